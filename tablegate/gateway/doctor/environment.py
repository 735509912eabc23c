"""Checks of a server's settings and of its machine.

The settings: contradictions, settings without effect, and the secret key of the stored credentials. Settings with which no
server can start are refused earlier, when they are read (gateway/configuration/checks.py). The machine: free disk space, open
files and certificates.
"""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tablegate.gateway.configuration.checks import is_exposed, is_loopback
from tablegate.gateway.configuration.settings import BadSetting, Settings
from tablegate.gateway.doctor.findings import CheckContext, CheckResult, Severity
from tablegate.gateway.security.credential_store import CredentialStore
from tablegate.gateway.security.secret_cipher import LEAST_KEY_CHARACTERS, find_key
from tablegate.gateway.store import accounts
from tablegate.gateway.store.migrating import revision_of
from tablegate.gateway.store.store import Store


def clashes(context: CheckContext) -> Iterator[CheckResult]:
    """Check for settings that contradict each other."""
    found = False
    for level, names, text in _clashes(context.settings):
        found = True
        yield CheckResult(level, f"{' and '.join(names)}: {text}", {"settings": names})
    if not found:
        yield CheckResult(Severity.OK, "no settings contradict each other")


def _clashes(settings: Settings) -> Iterator[tuple[Severity, list[str], str]]:
    if is_exposed(settings):
        yield (
            Severity.FAILED,
            ["auth", "host"],
            "auth dev accepts every client, and other machines can reach the address. Use --auth strict",
        )
    if settings.insecure and settings.auth == "dev" and not is_loopback(settings.host):
        text = "every client that can reach this machine has full access"
        yield Severity.WARNING, ["auth", "insecure"], text
    if settings.auth == "dev" and settings.namespaces == "separate":
        yield (
            Severity.WARNING,
            ["auth", "namespaces"],
            "auth dev does not verify clients, so tenants can read each other's tables. Use --auth strict",
        )
    if settings.auth == "strict" and settings.insecure:
        yield Severity.WARNING, ["auth", "insecure"], "insecure has no effect with auth strict"
    if settings.auth == "strict" and not settings.metrics_token and settings.metrics_port is None:
        yield (
            Severity.WARNING,
            ["auth", "metrics_token"],
            "/metrics refuses all requests. Set metrics_token or metrics_port",
        )
    if settings.auth == "strict" and not settings.is_secure and not is_loopback(settings.host):
        yield (
            Severity.WARNING,
            ["auth", "tls_cert"],
            "data is sent without encryption, unless a proxy terminates TLS",
        )
    yield from _short_tokens(settings)
    if (settings.jwt_issuer or settings.jwt_audience) and settings.jwt_keys_file is None:
        yield (
            Severity.WARNING,
            ["jwt_keys_file"],
            "it is not set, so jwt_issuer and jwt_audience have no effect",
        )
    if settings.max_buffered_bytes < settings.max_body_bytes:
        text = "a body of the maximum size is always refused. Raise max_buffered_bytes"
        yield Severity.WARNING, ["max_buffered_bytes", "max_body_bytes"], text
    if settings.stop_seconds > settings.body_seconds + settings.write_seconds:
        yield Severity.WARNING, ["stop_seconds"], "it exceeds the maximum time of a request"
    cores = os.cpu_count() or 1
    if settings.workers > 2 * cores:
        yield Severity.WARNING, ["workers"], f"{settings.workers} server processes on {cores} cores"


def _short_tokens(settings: Settings) -> Iterator[tuple[Severity, list[str], str]]:
    for name in ("admin_token", "metrics_token"):
        if 0 < len(getattr(settings, name)) < LEAST_KEY_CHARACTERS:
            text = f"it can be guessed. Use at least {LEAST_KEY_CHARACTERS} random characters"
            yield Severity.WARNING, [name], text


def secret_key(context: CheckContext) -> Iterator[CheckResult]:
    """Check that the secret key of the settings decrypts the stored credentials. The check creates no key."""
    assert context.database is not None
    if not revision_of(context.database):
        yield CheckResult(Severity.SKIPPED, "nothing is stored yet")
        return
    store = Store(context.database)
    with store.read() as session:
        number = len(accounts.all_credentials(session))
    facts = {"credentials": number}
    if not number:
        is_closed = context.settings.auth == "strict" and context.settings.credentials_file is None
        text = "no credential is stored"
        if is_closed:
            text += ": auth strict refuses all requests. Run `tablegate credentials add`"
        yield CheckResult(Severity.WARNING if is_closed else Severity.OK, text, facts)
        return
    if (path := context.settings.database_path) and not context.settings.secret_key:
        key_file = path.with_name(path.name + ".key")
        if not key_file.exists():
            yield CheckResult(
                Severity.FAILED,
                f"{number} credentials are stored, but the key file {key_file} is not there: restore it",
                facts,
            )
            return
    try:
        CredentialStore(store, lambda: find_key(context.settings)).load()
    except BadSetting as error:
        yield CheckResult(Severity.FAILED, f"{number} credentials are stored: {error}", facts)
        return
    yield CheckResult(Severity.OK, f"the secret key decrypts the {number} stored credentials", facts)
    if context.settings.credentials_file is not None:
        text = "credentials_file has no effect: it is read at the first start only"
        yield CheckResult(Severity.OK, text)


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

    from tablegate.gateway.server.listening import Certificate

    Certificate(path, key)
    not_after = x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc
    left = not_after - datetime.now(UTC)
    level = Severity.FAILED if left < timedelta(0) else Severity.WARNING if left < _DAYS_LEFT else Severity.OK
    yield CheckResult(
        level, f"{path} is valid until {not_after:%Y-%m-%d}", {"not_after": not_after.isoformat()}
    )
