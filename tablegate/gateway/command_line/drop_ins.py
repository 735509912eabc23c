"""Replacements for other programs with their command lines: `dynamodb-local`, `azurite` and `azurite-table`.

Flags are parsed as those programs do: exact names, a value as the next word. Unknown flags and flags that cannot be supported
are errors that name the flag. No flag is ignored silently.

Sources: "DynamoDB local usage notes" (Amazon DynamoDB Developer Guide), and its output in the logs of users. README of
Azure/Azurite, "Command line options" and "Supported environment variable options" (3.35).
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from tablegate.gateway import __version__
from tablegate.gateway.command_line.errors import one_line_errors
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.configuration.settings import ANY, MOST_PORT, BadSetting, Settings


@dataclass(frozen=True, slots=True)
class ForeignFlag:
    """A flag of another program.

    - `name`: its key in the result of `read`.
    - `has_value`: the next word is its value.
    - `refused`: the reason why it is an error here.
    - `without`: the reason why it has no effect here.
    """

    name: str
    has_value: bool = False
    refused: str = ""
    without: str = ""


class ForeignCommand(click.Command):
    """A command that gets all its arguments unparsed, as `words`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.params["words"] = tuple(args)
        return []


def read_flags(words: Sequence[str], flags: Mapping[str, ForeignFlag], unknown: str) -> dict[str, str]:
    """Return name -> value, "" for a flag without value. Raises ClickException.

    `unknown` is the error text for an unknown flag. A flag without effect is reported on standard error.
    """
    found: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        name, separator, value = word.partition("=")
        flag = flags.get(word) or (flags.get(name) if separator and word.startswith("--") else None)
        if flag is None:
            raise click.ClickException(unknown.format(word=word, name=word.lstrip("-")))
        if flag.refused:
            raise click.ClickException(f"{name} is not supported: {flag.refused}")
        if flag.has_value and word in flags:
            value = next(rest, "")
            if not value:
                raise click.ClickException(f"{word} requires a value")
        if flag.without:
            click.echo(f"{name} has no effect: {flag.without}", err=True)
        found[flag.name] = value if flag.has_value else ""
    return found


@contextlib.contextmanager
def start_errors(port_in_use: Callable[[str, int], str]) -> Iterator[None]:
    """Report errors of the start in one line.

    `port_in_use` returns the other program's message for a host and a port that is in use.
    """
    from tablegate.gateway.server.startup_errors import PortTaken

    try:
        with one_line_errors():
            yield
    except click.ClickException as error:
        cause = error.__context__
        if isinstance(cause, PortTaken):
            click.echo(port_in_use(cause.host, cause.port), err=True)
            raise SystemExit(1) from None
        raise


def port_of(found: Mapping[str, Any], name: str, usual: int) -> int:
    """Return a port number. Raises ClickException."""
    text = found.get(name, str(usual))
    if not text.isdecimal() or int(text) > MOST_PORT:
        raise click.ClickException(f"{text} is not a port number (0 to {MOST_PORT})")
    return int(text)


_DYNAMODB_PORT = 8000
# DynamoDB Local has no flag for the host. Java listens on all addresses, IPv6 included: Node resolves `localhost` to ::1.
_DYNAMODB_HOST = "::" if socket.has_dualstack_ipv6() else "0.0.0.0"
_DYNAMODB_FILE = "tablegate.sqlite"
# Seconds that tables stay CREATING, UPDATING and DELETING with -delayTransientStatuses. It exceeds the time until the next
# request of a client that does not wait. The delay of DynamoDB Local is not documented.
_DELAY_S = 1.0
_DYNAMODB_FLAGS = {
    "-port": ForeignFlag("port", has_value=True),
    "-inMemory": ForeignFlag("in_memory"),
    "-dbPath": ForeignFlag("db_path", has_value=True),
    "-sharedDb": ForeignFlag("shared"),
    "-cors": ForeignFlag("cors", has_value=True),
    "-delayTransientStatuses": ForeignFlag("delayed"),
    "-optimizeDbBeforeStartup": ForeignFlag("optimized"),
    "-disableTelemetry": ForeignFlag("no_telemetry"),  # none is sent
    "-help": ForeignFlag("help"),
    "-jar": ForeignFlag("jar", has_value=True),
}
_JAVA_FLAG = re.compile(r"-D[\w.]+(=.*)?|-X.*|-javaagent:.*|-ea|-server")
_DYNAMODB_USAGE = """\
usage: tablegate dynamodb-local [-jar DynamoDBLocal.jar] [-port <port-no.>] [-inMemory] [-delayTransientStatuses]
            [-dbPath <path>] [-sharedDb] [-cors <allow-list>] [-optimizeDbBeforeStartup] [-disableTelemetry] [-help]
"""
_PORT_TAKEN = 'Exception in thread "main" java.io.IOException: Failed to bind to 0.0.0.0/0.0.0.0:{1}'


@click.command("dynamodb-local", cls=ForeignCommand)
def dynamodb_local(words: tuple[str, ...]) -> None:
    """Serve DynamoDB with the flags of DynamoDB Local, for example -inMemory -sharedDb -port 8000.

    Use it to replace `java -jar DynamoDBLocal.jar` in scripts. Flags of Java and -jar are accepted and have no effect.
    """
    given = read_flags(_without_java(words), _DYNAMODB_FLAGS, "Unrecognized option: {word}")
    if "help" in given:
        click.echo(_DYNAMODB_USAGE, nl=False)
        return
    _check_dynamodb_flags(given)
    settings = _dynamodb_settings(given)
    from tablegate.gateway.server import serving
    from tablegate.gateway.server.file_lock import FileLock
    from tablegate.gateway.store.opening import open_database

    class Lines(serving.StartupMessage):
        def ready(
            self, settings: Settings, dialects: object, sockets: list[socket.socket], figures: object
        ) -> None:
            print(_dynamodb_lines(given, sockets[0].getsockname()[1]), flush=True)

    with start_errors(_PORT_TAKEN.format):
        path = settings.database_path
        if "optimized" in given and path is not None and path.exists():
            lock = FileLock(path)
            database = open_database(settings.database)
            database.compact()
            database.close()
            lock.release()
        serving.serve(settings, Lines())


def _without_java(words: Sequence[str]) -> list[str]:
    """Return the words without the leading flags of the Java virtual machine."""
    remaining = [*words[1:]] if words[:1] == ("java",) else [*words]
    while remaining and _JAVA_FLAG.fullmatch(remaining[0]):
        del remaining[0]
    return remaining


def _check_dynamodb_flags(given: dict[str, str]) -> None:
    if "in_memory" in given and "db_path" in given:
        raise click.ClickException("-inMemory and -dbPath cannot be given together")
    if "optimized" in given and "db_path" not in given:
        raise click.ClickException("-optimizeDbBeforeStartup requires -dbPath")
    folder = Path(given.get("db_path", "."))
    if "in_memory" not in given and not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise click.ClickException(f"unable to open database file: {folder} is not a writable folder")


def _dynamodb_settings(given: dict[str, str]) -> Settings:
    folder = Path(given.get("db_path", ".")).absolute()
    try:
        return load(
            {
                "host": _DYNAMODB_HOST,
                "insecure": True,
                "emulator_health": True,
                "port": port_of(given, "port", _DYNAMODB_PORT),
                "dialects": "dynamodb",
                "memory": True if "in_memory" in given else None,
                "database": None if "in_memory" in given else f"sqlite:///{folder / _DYNAMODB_FILE}",
                "namespaces": "shared" if "shared" in given else "keys",
                "table_creation_delay": _DELAY_S if "delayed" in given else None,
                "cors_origin": _origins(given.get("cors", "")),
            },
            os.environ,
        )
    except BadSetting as error:
        raise click.ClickException(str(error)) from None


def _origins(allowed: str) -> tuple[str, ...] | None:
    """Return the origins of -cors, which lists domains, or *. A domain includes its http and https pages."""
    found: list[str] = []
    for name in filter(None, (each.strip() for each in allowed.split(","))):
        found += [name] if name == ANY or "://" in name else [f"http://{name}", f"https://{name}"]
    return tuple(found) or None


def _dynamodb_lines(given: dict[str, str], port: int) -> str:
    def shown(name: str) -> str:
        return "true" if name in given else "false"

    return (
        "Initializing DynamoDB Local with the following configuration:\n"
        f"Port:\t{port}\nInMemory:\t{shown('in_memory')}\nVersion:\t{__version__}\n"
        f"DbPath:\t{given.get('db_path', 'null')}\nSharedDb:\t{shown('shared')}\n"
        f"shouldDelayTransientStatuses:\t{shown('delayed')}\nCorsParams:\t{given.get('cors', 'null')}\n"
    )


_AZURITE_PORT = 10002
_AZURITE_FILE = "tablegate.sqlite"
_OTHER_SERVICES = "this server has tables only, no blobs and no queues"
_AZURITE_TABLE_FLAGS = {
    "--tableHost": ForeignFlag("host", has_value=True),
    "--tablePort": ForeignFlag("port", has_value=True),
    "--tableKeepAliveTimeout": ForeignFlag("idle", has_value=True),
    "-l": ForeignFlag("location", has_value=True),
    "--location": ForeignFlag("location", has_value=True),
    "-s": ForeignFlag("silent"),
    "--silent": ForeignFlag("silent"),
    "-L": ForeignFlag("loose"),  # unknown headers and parameters are always accepted
    "--loose": ForeignFlag("loose"),
    "-d": ForeignFlag("debug", has_value=True),
    "--debug": ForeignFlag("debug", has_value=True),
    "--skipApiVersionCheck": ForeignFlag("any_version"),  # every version is accepted
    "--disableProductStyleUrl": ForeignFlag("account_in_path"),
    "--oauth": ForeignFlag(
        "oauth",
        has_value=True,
        refused="this server verifies tokens. Use tablegate serve --jwt-keys-file FILE",
    ),
    "--cert": ForeignFlag("cert", has_value=True),
    "--key": ForeignFlag("key", has_value=True),
    "--pwd": ForeignFlag("password", has_value=True),
    "--inMemoryPersistence": ForeignFlag("in_memory"),
    "--disableTelemetry": ForeignFlag("no_telemetry"),  # none is sent
    "-v": ForeignFlag("version"),
    "--version": ForeignFlag("version"),
    "-h": ForeignFlag("help"),
    "--help": ForeignFlag("help"),
}
_AZURITE_FLAGS = _AZURITE_TABLE_FLAGS | {
    f"--{service}{part}": ForeignFlag(f"{service}{part}", has_value=True, without=_OTHER_SERVICES)
    for service in ("blob", "queue")
    for part in ("Host", "Port", "KeepAliveTimeout")
} | {"--extentMemoryLimit": ForeignFlag("extents", has_value=True, without=_OTHER_SERVICES)}  # fmt: skip


@click.command("azurite", cls=ForeignCommand)
def azurite(words: tuple[str, ...]) -> None:
    """Serve Azure tables with the flags of Azurite, for example --tableHost 0.0.0.0 --inMemoryPersistence --silent.

    Use it to replace `azurite` in scripts. Blobs and queues are not served.
    """
    lines = (
        "Azurite Table service is starting at {url}",
        "Azurite Table service is successfully listening at {url}",
    )
    _serve_azurite(words, _AZURITE_FLAGS, lines, "Exit due to unhandled error")


@click.command("azurite-table", cls=ForeignCommand)
def azurite_table(words: tuple[str, ...]) -> None:
    """Serve Azure tables with the flags of azurite-table.

    Use it to replace `azurite-table` in scripts.
    """
    lines = (
        "Azurite Table service is starting on {address}",
        "Azurite Table service successfully started on {address}",
    )
    _serve_azurite(words, _AZURITE_TABLE_FLAGS, lines, "Exiting due to an unhandled error")


def _serve_azurite(
    words: tuple[str, ...],
    flags: Mapping[str, ForeignFlag],
    lines: tuple[str, str],
    port_in_use: str,
) -> None:
    if words and words[-1] in ("-d", "--debug"):
        raise click.ClickException("Must provide a debug log file path for parameter -d or --debug")
    given = read_flags(words, flags, 'The option "{name}" is unknown.')
    if "version" in given or "help" in given:
        click.echo(__version__ if "version" in given else "Flags: " + " ".join(flags))
        return
    settings = _azurite_settings(given)
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

    with start_errors(
        lambda host, port: f"{port_in_use}: listen EADDRINUSE: address already in use {host}:{port}"
    ):
        serving.serve(settings, Lines())


def _azurite_settings(given: Mapping[str, str]) -> Settings:
    if "in_memory" in given and "location" in given:
        raise click.ClickException("--inMemoryPersistence and --location cannot be given together")
    accounts = os.environ.get("AZURITE_ACCOUNTS", "")
    values: dict[str, Any] = {
        "host": given.get("host", "127.0.0.1"),
        "insecure": True,
        "emulator_health": True,
        "port": port_of(given, "port", _AZURITE_PORT),
        "dialects": "azuretable",
        "namespaces": "separate",
        "access_log": "silent" not in given,
        "log_level": "debug" if "debug" in given else None,
        "idle_seconds": given.get("idle"),
        "memory": True if "in_memory" in given else None,
        "auth": "strict" if accounts else None,
        "azure_account_in_host": False if "account_in_path" in given else None,
        "credentials_file": _file_of(_azurite_credentials(accounts)) if accounts else None,
    }
    if "in_memory" not in given:
        folder = Path(given.get("location", ".")).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        values["database"] = f"sqlite:///{folder / _AZURITE_FILE}"
    if "cert" in given:
        values["tls_cert"], values["tls_key"] = _azurite_certificate(given)
    try:
        return load(values, os.environ)
    except BadSetting as error:
        raise click.ClickException(str(error)) from None


def _azurite_credentials(accounts: str) -> bytes:
    """Return AZURITE_ACCOUNTS, `account:key[:key];...`, as a credentials file. They replace the well-known account."""
    found = []
    for text in filter(None, accounts.split(";")):
        name, *keys = text.strip().split(":")
        if not name or not 1 <= len(keys) <= 2:
            raise click.ClickException("AZURITE_ACCOUNTS must be account:key[:key], separated by semicolons")
        found.append({"scheme": "azure", "access_id": name, "secrets": keys, "grants": "all"})
    return json.dumps({"credentials": found}).encode()


def _azurite_certificate(given: Mapping[str, str]) -> tuple[Path, Path]:
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
    """Return a new file that only its owner can read. It is removed when this process ends."""
    descriptor, name = tempfile.mkstemp(prefix="tablegate-")
    atexit.register(Path(name).unlink, missing_ok=True)
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
