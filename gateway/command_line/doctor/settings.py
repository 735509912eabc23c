"""Checks of the settings: which clash, which have no effect, and whether the secret key is that of the stored credentials.

What no server could start with is refused where settings are read (gateway/configuration/checks.py), before any check.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from tablegate.gateway.command_line.doctor.findings import CheckContext, CheckResult, Severity
from tablegate.gateway.configuration.settings import BadSetting, Settings
from tablegate.gateway.security.credential_store import CredentialStore
from tablegate.gateway.security.secret_cipher import find_key
from tablegate.gateway.server.serving import is_exposed, is_loopback
from tablegate.gateway.store.accounts import credentials
from tablegate.gateway.store.opening.migrating import revision_of
from tablegate.gateway.store.store import Store


def clashes(examined: CheckContext) -> Iterator[CheckResult]:
    """Settings that contradict each other."""
    found = False
    for level, names, text in _clashes(examined.settings):
        found = True
        yield CheckResult(level, f"{' and '.join(names)}: {text}", {"settings": names})
    if not found:
        yield CheckResult(Severity.OK, "no settings clash")


def _clashes(settings: Settings) -> Iterator[tuple[Severity, list[str], str]]:
    if is_exposed(settings):
        yield (
            Severity.FAILED,
            ["auth", "host"],
            "dev lets everybody in, and the address can be reached from elsewhere",
        )
    if settings.insecure and settings.auth == "dev" and not is_loopback(settings.host):
        yield Severity.WARNING, ["auth", "insecure"], "everybody who can reach this machine may do everything"
    if settings.auth == "dev" and settings.namespaces == "separate":
        yield (
            Severity.WARNING,
            ["auth", "namespaces"],
            "with dev nobody proves who they are, so tenants are not kept apart",
        )
    if settings.auth == "strict" and settings.insecure:
        yield Severity.WARNING, ["auth", "insecure"], "insecure has no effect with strict"
    if settings.auth == "strict" and not settings.metrics_token and settings.metrics_port is None:
        yield (
            Severity.WARNING,
            ["auth", "metrics_token"],
            "/metrics is refused to everybody; give it a token or a port",
        )
    if settings.auth == "strict" and not settings.is_secure and not is_loopback(settings.host):
        yield (
            Severity.WARNING,
            ["auth", "tls_cert"],
            "data is sent in the clear unless something in front does TLS",
        )
    if (settings.jwt_issuer or settings.jwt_audience) and settings.jwt_keys_file is None:
        yield Severity.WARNING, ["jwt_keys_file"], "without it jwt_issuer and jwt_audience have no effect"
    if settings.max_buffered_bytes < settings.max_body_bytes:
        yield Severity.WARNING, ["max_buffered_bytes", "max_body_bytes"], "the longest body is never let in"
    if settings.stop_seconds > settings.body_seconds + settings.write_seconds:
        yield Severity.WARNING, ["stop_seconds"], "it is longer than any request may take"
    cores = os.cpu_count() or 1
    if settings.workers > 2 * cores:
        yield Severity.WARNING, ["workers"], f"{settings.workers} server processes on {cores} cores"


def secret_key(examined: CheckContext) -> Iterator[CheckResult]:
    """Whether the stored credentials open with the secret key of these settings. No key is made for it."""
    assert examined.database is not None
    if not revision_of(examined.database):
        yield CheckResult(Severity.SKIPPED, "nothing is stored yet")
        return
    store = Store(examined.database)
    with store.read() as session:
        number = len(credentials.all_of(session))
    facts = {"credentials": number}
    if not number:
        is_closed = examined.settings.auth == "strict" and examined.settings.credentials_file is None
        text = "no credential is stored" + (": nobody can come in with auth strict" if is_closed else "")
        yield CheckResult(Severity.WARNING if is_closed else Severity.OK, text, facts)
        return
    if (path := examined.settings.database_path) and not examined.settings.secret_key:
        key_file = path.with_name(path.name + ".key")
        if not key_file.exists():
            yield CheckResult(
                Severity.FAILED, f"{number} credentials are stored, and {key_file} is not there", facts
            )
            return
    try:
        CredentialStore(store, lambda: find_key(examined.settings)).load()
    except BadSetting as error:
        yield CheckResult(Severity.FAILED, f"{number} credentials are stored: {error}", facts)
        return
    yield CheckResult(Severity.OK, f"{number} stored credentials open with the secret key", facts)
    if examined.settings.credentials_file is not None:
        text = "credentials_file is read at the first start only, and credentials are stored"
        yield CheckResult(Severity.OK, text)
