"""Checks of the settings: contradictions, settings without effect, and the secret key of the stored credentials.

Settings with which no server can start are refused earlier, when they are read (gateway/configuration/checks.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from tablegate.gateway.configuration.exposure import is_exposed, is_loopback
from tablegate.gateway.configuration.settings import BadSetting, Settings
from tablegate.gateway.doctor.findings import CheckContext, CheckResult, Severity
from tablegate.gateway.security.credential_store import CredentialStore
from tablegate.gateway.security.secret_cipher import LEAST_KEY_CHARACTERS, find_key
from tablegate.gateway.store import accounts
from tablegate.gateway.store.opening.migrating import revision_of
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
