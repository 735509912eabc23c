"""`tablegate dynamodb-local`: a replacement with the command line of DynamoDB Local.

Sources: "DynamoDB local usage notes" (Amazon DynamoDB Developer Guide), and its output in the logs of users.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Sequence
from pathlib import Path

import click

from tablegate.gateway import __version__
from tablegate.gateway.command_line import foreign_flags
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.configuration.settings import ANY, BadSetting, Settings

_PORT = 8000
# DynamoDB Local has no flag for the host. Java listens on all addresses, IPv6 included: Node resolves `localhost` to ::1.
_HOST = "::" if socket.has_dualstack_ipv6() else "0.0.0.0"
_FILE = "tablegate.sqlite"
# Seconds that tables stay CREATING, UPDATING and DELETING with -delayTransientStatuses. It exceeds the time until the next
# request of a client that does not wait. The delay of DynamoDB Local is not documented.
_DELAY_S = 1.0
_FLAGS = {
    "-port": foreign_flags.ForeignFlag("port", has_value=True),
    "-inMemory": foreign_flags.ForeignFlag("in_memory"),
    "-dbPath": foreign_flags.ForeignFlag("db_path", has_value=True),
    "-sharedDb": foreign_flags.ForeignFlag("shared"),
    "-cors": foreign_flags.ForeignFlag("cors", has_value=True),
    "-delayTransientStatuses": foreign_flags.ForeignFlag("delayed"),
    "-optimizeDbBeforeStartup": foreign_flags.ForeignFlag("optimized"),
    "-disableTelemetry": foreign_flags.ForeignFlag("no_telemetry"),  # none is sent
    "-help": foreign_flags.ForeignFlag("help"),
    "-jar": foreign_flags.ForeignFlag("jar", has_value=True),
}
_JAVA_FLAG = re.compile(r"-D[\w.]+(=.*)?|-X.*|-javaagent:.*|-ea|-server")
_USAGE = """\
usage: tablegate dynamodb-local [-jar DynamoDBLocal.jar] [-port <port-no.>] [-inMemory] [-delayTransientStatuses]
            [-dbPath <path>] [-sharedDb] [-cors <allow-list>] [-optimizeDbBeforeStartup] [-disableTelemetry] [-help]
"""
_TAKEN = 'Exception in thread "main" java.io.IOException: Failed to bind to 0.0.0.0/0.0.0.0:{1}'


@click.command("dynamodb-local", cls=foreign_flags.ForeignCommand)
def dynamodb_local(words: tuple[str, ...]) -> None:
    """Serve DynamoDB with the flags of DynamoDB Local, for example -inMemory -sharedDb -port 8000.

    Use it to replace `java -jar DynamoDBLocal.jar` in scripts. Flags of Java and -jar are accepted and have no effect.
    """
    given = foreign_flags.read(_without_java(words), _FLAGS, "Unrecognized option: {word}")
    if "help" in given:
        click.echo(_USAGE, nl=False)
        return
    _check(given)
    settings = _settings(given)
    from tablegate.gateway.server import serving
    from tablegate.gateway.server.file_lock import FileLock
    from tablegate.gateway.store.opening.opening import open_database

    class Lines(serving.StartupMessage):
        def ready(
            self, settings: Settings, dialects: object, sockets: list[socket.socket], figures: object
        ) -> None:
            print(_lines(given, sockets[0].getsockname()[1]), flush=True)

    with foreign_flags.start_errors(_TAKEN.format):
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


def _check(given: dict[str, str]) -> None:
    if "in_memory" in given and "db_path" in given:
        raise click.ClickException("-inMemory and -dbPath cannot be given together")
    if "optimized" in given and "db_path" not in given:
        raise click.ClickException("-optimizeDbBeforeStartup requires -dbPath")
    folder = Path(given.get("db_path", "."))
    if "in_memory" not in given and not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise click.ClickException(f"unable to open database file: {folder} is not a writable folder")


def _settings(given: dict[str, str]) -> Settings:
    folder = Path(given.get("db_path", ".")).absolute()
    try:
        return load(
            {
                "host": _HOST,
                "insecure": True,
                "emulator_health": True,
                "port": foreign_flags.port_of(given, "port", _PORT),
                "dialects": "dynamodb",
                "memory": True if "in_memory" in given else None,
                "database": None if "in_memory" in given else f"sqlite:///{folder / _FILE}",
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


def _lines(given: dict[str, str], port: int) -> str:
    def shown(name: str) -> str:
        return "true" if name in given else "false"

    return (
        "Initializing DynamoDB Local with the following configuration:\n"
        f"Port:\t{port}\nInMemory:\t{shown('in_memory')}\nVersion:\t{__version__}\n"
        f"DbPath:\t{given.get('db_path', 'null')}\nSharedDb:\t{shown('shared')}\n"
        f"shouldDelayTransientStatuses:\t{shown('delayed')}\nCorsParams:\t{given.get('cors', 'null')}\n"
    )
