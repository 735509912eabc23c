"""A server process of any checkout on a new database, with the figures of its processes (for growth.py)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg

from benchmarks import dynamodb
from benchmarks.contestants import Postgres, Workspace, start_ours
from benchmarks.processes import Process, Tree
from benchmarks.signing import Client

_CORES = frozenset(os.sched_getaffinity(0))
_SHARDS = 32
_SIZE = "SELECT pg_database_size(current_database())"
_SIZE_ON_NODES = f"SELECT sum(result::bigint) FROM run_command_on_all_nodes('{_SIZE}')"


class GrowthServer:
    """A server on a new database: "sqlite", "postgresql", or "citus" for the cluster that the environment names."""

    def __init__(self, database: str, folder: Path, root: Path) -> None:
        self._stack = ExitStack()
        self._workspace = Workspace(_CORES, folder)
        self._root = root
        self._size = _SIZE
        self._path: Path | None = None
        self._database: Tree | None = None
        if database == "sqlite":
            self._path = folder / "growth.sqlite"
            self._url = f"sqlite:///{self._path}"
        elif database == "postgresql":
            postgres = Postgres(Workspace(_CORES, folder / "postgres"))
            self._stack.callback(postgres.stop)
            self._database = Tree([postgres.pid])
            self._url = postgres.new_database()
        else:
            self._use_cluster()
        self._start()

    def _use_cluster(self) -> None:
        """Create a database on the cluster, and distribute its tables with this server's checkout."""
        from benchmarks.distributed import processes_of
        from tests.support.databases import OWN_URL, SECOND_URL, PostgresServer

        cluster = PostgresServer(OWN_URL, SECOND_URL)
        self._stack.callback(cluster.drop_all)
        self._url = cluster.empty_database()
        for command in (("migrate",), ("distribute", "--shards", str(_SHARDS))):
            subprocess.run(
                [sys.executable, "-m", "tablegate", *command, "--database", self._url],
                cwd=self._workspace.folder,
                env={**os.environ, "PYTHONPATH": str(self._root)},
                check=True,
                stdout=subprocess.DEVNULL,
            )
        self._database = Tree([*processes_of(self._url)])
        self._size = _SIZE_ON_NODES

    def _start(self) -> None:
        port, self._process = start_ours(self._workspace, database=self._url, root=self._root)
        self._gateway = Tree([self._process.pid])
        self.client = Client(port)

    def restart(self) -> None:
        """Stop the server process and start another one on the same database."""
        self._stop_process()
        self._start()

    def stop(self) -> None:
        self._stop_process()
        self._stack.close()

    def _stop_process(self) -> None:
        self.client.close()
        process: Process = self._process
        process.stop()

    def cpu_seconds(self) -> tuple[float, float]:
        """Return the CPU seconds of the gateway and of the database's processes."""
        database = 0.0 if self._database is None else self._database.cpu_seconds()
        return self._gateway.cpu_seconds(), database

    @property
    def memory_mb(self) -> float:
        return self._gateway.memory_mb()[1]

    def disk_bytes(self) -> int:
        """Return the bytes of the database on the disk."""
        if self._path is not None:
            return sum(part.stat().st_size for part in self._path.parent.glob("growth.sqlite*"))
        with psycopg.connect(self._url.replace("+psycopg", "")) as connection:
            [(size,)] = connection.execute(self._size.encode()).fetchall()
        return int(size)

    def control(self, method: str, path: str, body: Any = None) -> str:
        """Return the answer to a request that is of no dialect."""
        data = None if body is None else json.dumps(body).encode()
        url = f"http://127.0.0.1:{self.client.port}/{path}"
        headers = {"Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method)) as reply:
            text: str = reply.read().decode()
            return text

    def call(self, operation: str, **body: Any) -> dict[str, Any]:
        return dynamodb.call(self.client, operation, body)
