"""Checks of the machine: free disk space, open files, certificates."""

from __future__ import annotations

import resource
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tablegate.gateway.doctor.findings import CheckContext, CheckResult, Severity

_LEAST_FREE_BYTES = 64 << 20
_LITTLE_FREE_BYTES = 1 << 30
_LITTLE_FREE_SHARE = 0.1
_DAYS_LEFT = timedelta(days=14)
_OWN_DESCRIPTORS = 512


def disk(context: CheckContext) -> Iterator[CheckResult]:
    """Check the size of the database and the free space of its disk."""
    path = context.settings.database_path
    if path is not None:
        size = sum(
            each.stat().st_size for each in (path, path.with_name(path.name + "-wal")) if each.exists()
        )
        yield _free_space(f"{_shown(size)} of data", path.absolute().parent, size)
        return
    if not context.is_a_server:
        yield CheckResult(Severity.SKIPPED, "in memory")
        return
    if context.database is None:
        yield CheckResult(Severity.SKIPPED, "there is no database to check")
        return
    [(size_text,)] = context.query("SELECT pg_database_size(current_database())::text")
    size = int(size_text)
    text = f"{_shown(size)} of data. PostgreSQL does not report the free disk space of its machine"
    yield CheckResult(Severity.OK, text, {"size_bytes": size})


def _free_space(prefix: str, folder: Path, size: int) -> CheckResult:
    while not folder.exists():
        folder = folder.parent
    usage = shutil.disk_usage(folder)
    facts = {"folder": str(folder), "size_bytes": size, "free_bytes": usage.free, "total_bytes": usage.total}
    text = f"{prefix}, {_shown(usage.free)} of {_shown(usage.total)} free in {folder}"
    if usage.free < _LEAST_FREE_BYTES:
        return CheckResult(Severity.FAILED, text, facts)
    is_little = usage.free < max(_LITTLE_FREE_BYTES, size * _LITTLE_FREE_SHARE)
    return CheckResult(Severity.WARNING if is_little else Severity.OK, text, facts)


def _shown(size: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def open_files(context: CheckContext) -> Iterator[CheckResult]:
    """Check that a process can open as many files as the connections of the settings require."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    required = 2 * context.settings.max_connections + _OWN_DESCRIPTORS
    facts = {"limit": hard, "wanted": required}
    if hard not in (resource.RLIM_INFINITY, -1) and hard < required:
        text = f"{hard} open files are allowed, max_connections requires {required}: raise ulimit -n"
        yield CheckResult(Severity.WARNING, text, facts)
    else:
        yield CheckResult(Severity.OK, f"the required {required} open files are allowed", facts)


def certificate(context: CheckContext) -> Iterator[CheckResult]:
    """Check that the TLS certificate can be used, and its end of validity."""
    path, key = context.settings.tls_cert, context.settings.tls_key
    if path is None or key is None:
        yield CheckResult(Severity.SKIPPED, "tls_cert is not set")
        return
    from cryptography import x509

    from tablegate.gateway.server.certificates import Certificate

    Certificate(path, key)
    not_after = x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc
    left = not_after - datetime.now(UTC)
    level = Severity.FAILED if left < timedelta(0) else Severity.WARNING if left < _DAYS_LEFT else Severity.OK
    yield CheckResult(
        level, f"{path} is valid until {not_after:%Y-%m-%d}", {"not_after": not_after.isoformat()}
    )
