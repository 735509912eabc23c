"""`tablegate azurite` and `tablegate azurite-table`: replacements with the command lines of Azurite.

Sources: README of Azure/Azurite, "Command line options" and "Supported environment variable options" (3.35).
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from tablegate.gateway import __version__
from tablegate.gateway.command_line import foreign_flags
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.configuration.settings import BadSetting, Settings

_PORT = 10002
_FILE = "tablegate.sqlite"
_OTHERS = "this server has tables only, no blobs and no queues"
_TABLE_FLAGS = {
    "--tableHost": foreign_flags.ForeignFlag("host", has_value=True),
    "--tablePort": foreign_flags.ForeignFlag("port", has_value=True),
    "--tableKeepAliveTimeout": foreign_flags.ForeignFlag("idle", has_value=True),
    "-l": foreign_flags.ForeignFlag("location", has_value=True),
    "--location": foreign_flags.ForeignFlag("location", has_value=True),
    "-s": foreign_flags.ForeignFlag("silent"),
    "--silent": foreign_flags.ForeignFlag("silent"),
    "-L": foreign_flags.ForeignFlag("loose"),  # unknown headers and parameters are always accepted
    "--loose": foreign_flags.ForeignFlag("loose"),
    "-d": foreign_flags.ForeignFlag("debug", has_value=True),
    "--debug": foreign_flags.ForeignFlag("debug", has_value=True),
    "--skipApiVersionCheck": foreign_flags.ForeignFlag("any_version"),  # every version is accepted
    "--disableProductStyleUrl": foreign_flags.ForeignFlag("account_in_path"),
    "--oauth": foreign_flags.ForeignFlag(
        "oauth",
        has_value=True,
        refused="this server verifies tokens. Use tablegate serve --jwt-keys-file FILE",
    ),
    "--cert": foreign_flags.ForeignFlag("cert", has_value=True),
    "--key": foreign_flags.ForeignFlag("key", has_value=True),
    "--pwd": foreign_flags.ForeignFlag("password", has_value=True),
    "--inMemoryPersistence": foreign_flags.ForeignFlag("in_memory"),
    "--disableTelemetry": foreign_flags.ForeignFlag("no_telemetry"),  # none is sent
    "-v": foreign_flags.ForeignFlag("version"),
    "--version": foreign_flags.ForeignFlag("version"),
    "-h": foreign_flags.ForeignFlag("help"),
    "--help": foreign_flags.ForeignFlag("help"),
}
_FLAGS = _TABLE_FLAGS | {
    f"--{service}{part}": foreign_flags.ForeignFlag(f"{service}{part}", has_value=True, without=_OTHERS)
    for service in ("blob", "queue")
    for part in ("Host", "Port", "KeepAliveTimeout")
} | {"--extentMemoryLimit": foreign_flags.ForeignFlag("extents", has_value=True, without=_OTHERS)}  # fmt: skip


@click.command("azurite", cls=foreign_flags.ForeignCommand)
def azurite(words: tuple[str, ...]) -> None:
    """Serve Azure tables with the flags of Azurite, for example --tableHost 0.0.0.0 --inMemoryPersistence --silent.

    Use it to replace `azurite` in scripts. Blobs and queues are not served.
    """
    lines = (
        "Azurite Table service is starting at {url}",
        "Azurite Table service is successfully listening at {url}",
    )
    _serve(words, _FLAGS, lines, "Exit due to unhandled error")


@click.command("azurite-table", cls=foreign_flags.ForeignCommand)
def azurite_table(words: tuple[str, ...]) -> None:
    """Serve Azure tables with the flags of azurite-table.

    Use it to replace `azurite-table` in scripts.
    """
    lines = (
        "Azurite Table service is starting on {address}",
        "Azurite Table service successfully started on {address}",
    )
    _serve(words, _TABLE_FLAGS, lines, "Exiting due to an unhandled error")


def _serve(
    words: tuple[str, ...],
    flags: Mapping[str, foreign_flags.ForeignFlag],
    lines: tuple[str, str],
    port_in_use: str,
) -> None:
    if words and words[-1] in ("-d", "--debug"):
        raise click.ClickException("Must provide a debug log file path for parameter -d or --debug")
    given = foreign_flags.read(words, flags, 'The option "{name}" is unknown.')
    if "version" in given or "help" in given:
        click.echo(__version__ if "version" in given else "Flags: " + " ".join(flags))
        return
    settings = _settings(given)
    if "debug" in given:
        _log_to(Path(given["debug"]))
    from tablegate.gateway.server import serving

    class Lines(serving.StartupMessage):
        def ready(
            self, settings: Settings, dialects: object, sockets: list[socket.socket], figures: object
        ) -> None:
            for line in lines:
                self._print(line, settings, sockets)

        def closed(self) -> None:
            print(
                "Azurite Table service is closing...\nAzurite Table service successfully closed", flush=True
            )

        def _print(self, line: str, settings: Settings, sockets: list[socket.socket]) -> None:
            address = f"{settings.host}:{sockets[0].getsockname()[1]}"
            scheme = "https" if settings.is_secure else "http"
            print(line.format(address=address, url=f"{scheme}://{address}"), flush=True)

    with foreign_flags.start_errors(
        lambda host, port: f"{port_in_use}: listen EADDRINUSE: address already in use {host}:{port}"
    ):
        serving.serve(settings, Lines())


def _settings(given: Mapping[str, str]) -> Settings:
    if "in_memory" in given and "location" in given:
        raise click.ClickException("--inMemoryPersistence and --location cannot be given together")
    accounts = os.environ.get("AZURITE_ACCOUNTS", "")
    values: dict[str, Any] = {
        "host": given.get("host", "127.0.0.1"),
        "insecure": True,
        "emulator_health": True,
        "port": foreign_flags.port_of(given, "port", _PORT),
        "dialects": "azuretable",
        "namespaces": "separate",
        "access_log": "silent" not in given,
        "log_level": "debug" if "debug" in given else None,
        "idle_seconds": given.get("idle"),
        "memory": True if "in_memory" in given else None,
        "auth": "strict" if accounts else None,
        "azure_account_in_host": False if "account_in_path" in given else None,
        "credentials_file": _file_of(_credentials(accounts)) if accounts else None,
    }
    if "in_memory" not in given:
        folder = Path(given.get("location", ".")).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        values["database"] = f"sqlite:///{folder / _FILE}"
    if "cert" in given:
        values["tls_cert"], values["tls_key"] = _certificate(given)
    try:
        return load(values, os.environ)
    except BadSetting as error:
        raise click.ClickException(str(error)) from None


def _credentials(accounts: str) -> bytes:
    """Return AZURITE_ACCOUNTS, `account:key[:key];...`, as a credentials file. They replace the well-known account."""
    found = []
    for text in filter(None, accounts.split(";")):
        name, *keys = text.strip().split(":")
        if not name or not 1 <= len(keys) <= 2:
            raise click.ClickException("AZURITE_ACCOUNTS must be account:key[:key], separated by semicolons")
        found.append({"scheme": "azure", "access_id": name, "secrets": keys, "grants": "all"})
    return json.dumps({"credentials": found}).encode()


def _certificate(given: Mapping[str, str]) -> tuple[Path, Path]:
    """Return the certificate and its key as PEM files: the two that are given, or the contents of the PFX file."""
    path = Path(given["cert"])
    if "password" not in given:
        if "key" not in given:
            raise click.ClickException("--cert requires --key (PEM) or --pwd (PFX)")
        return path, Path(given["key"])
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.serialization import pkcs12

    try:
        key, certificate, others = pkcs12.load_key_and_certificates(
            path.read_bytes(), given["password"].encode()
        )
    except (OSError, ValueError) as error:
        raise click.ClickException(f"cannot use the certificate {path}: {error}") from None
    if key is None or certificate is None:
        raise click.ClickException(f"cannot use the certificate {path}: it lacks a key or a certificate")
    pem = serialization.Encoding.PEM
    chain = b"".join(each.public_bytes(pem) for each in (certificate, *others))
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return _file_of(chain), _file_of(secret)


def _file_of(content: bytes) -> Path:
    """Return a new file that only its owner can read."""
    descriptor, name = tempfile.mkstemp(prefix="tablegate-")
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return Path(name)


def _log_to(path: Path) -> None:
    """Redirect standard error to a file."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror}") from None
    os.dup2(file, 2)
    os.close(file)
