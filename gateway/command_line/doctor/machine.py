"""Checks of the machine: room on the disk, open files, certificates."""

from __future__ import annotations

import resource
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tablegate.gateway.command_line.doctor.findings import CheckContext, CheckResult, Severity

_LEAST_FREE_BYTES = 64 << 20
_LITTLE_FREE_BYTES = 1 << 30
_LITTLE_FREE_SHARE = 0.1
_DAYS_LEFT = timedelta(days=14)
_OWN_DESCRIPTORS = 512


def disk(examined: CheckContext) -> Iterator[CheckResult]:
    """How large the database is, and how much room is left where it grows."""
    path = examined.settings.database_path
    if path is not None:
        size = sum(
            each.stat().st_size for each in (path, path.with_name(path.name + "-wal")) if each.exists()
        )
        yield _room(f"{_shown(size)} of data", path.absolute().parent, size)
        return
    if not examined.is_a_server:
        yield CheckResult(Severity.SKIPPED, "in memory")
        return
    if examined.database is None:
        yield CheckResult(Severity.SKIPPED, "there is no database to ask")
        return
    [(size_text,)] = examined.ask("SELECT pg_database_size(current_database())::text")
    size = int(size_text)
    text = f"{_shown(size)} of data; PostgreSQL does not tell how much room its machine has left"
    yield CheckResult(Severity.OK, text, {"size_bytes": size})


def _room(of_what: str, folder: Path, size: int) -> CheckResult:
    while not folder.exists():
        folder = folder.parent
    usage = shutil.disk_usage(folder)
    facts = {"folder": str(folder), "size_bytes": size, "free_bytes": usage.free, "total_bytes": usage.total}
    text = f"{of_what}, {_shown(usage.free)} of {_shown(usage.total)} free in {folder}"
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


def open_files(examined: CheckContext) -> Iterator[CheckResult]:
    """Whether this machine lets a process have as many open files as there may be connections."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * examined.settings.max_connections + _OWN_DESCRIPTORS
    facts = {"limit": hard, "wanted": wanted}
    if hard not in (resource.RLIM_INFINITY, -1) and hard < wanted:
        yield CheckResult(
            Severity.WARNING, f"{hard} open files are allowed, max_connections wants {wanted}", facts
        )
    else:
        yield CheckResult(Severity.OK, f"{wanted} open files are wanted, and allowed", facts)


def certificate(examined: CheckContext) -> Iterator[CheckResult]:
    """Whether the TLS certificate can be used, and how long it is good for."""
    path, key = examined.settings.tls_cert, examined.settings.tls_key
    if path is None or key is None:
        yield CheckResult(Severity.SKIPPED, "no certificate is given")
        return
    from cryptography import x509

    from tablegate.gateway.server.certificates import Certificate

    Certificate(path, key)
    ends = x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc
    left = ends - datetime.now(UTC)
    level = Severity.FAILED if left < timedelta(0) else Severity.WARNING if left < _DAYS_LEFT else Severity.OK
    yield CheckResult(level, f"{path} is good until {ends:%Y-%m-%d}", {"not_after": ends.isoformat()})
