"""Bulk loading of a table in several ways.

- BatchWriteItem of 25, an Azure changeset of 100 and BatchWriteRow of 200, sixteen at a time over sockets
- The engine's `BulkLoad` of 1,000 rows, which copies and imports use
- The same rows by executemany and COPY into the same table with the same indexes, without tablegate

    python -m benchmarks.bulk --rounds 15 --write

Each way has a short slice in each round. The results are rows a second and CPU for a row of all processes involved
(server, PostgreSQL and loader). Rows have about 1 KB. SQLite is durable (FULL).
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import orjson

from benchmarks import azuretable, dynamodb, report, tablestore
from benchmarks.comparisons import interval
from benchmarks.contestants import Contestant, Postgres, Running, Workspace, start_ours
from benchmarks.generator import Generator
from benchmarks.processes import Tree
from benchmarks.rounds import AtRound, Player
from benchmarks.workloads import Workload
from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.model.commands.row_commands import BulkLoad
from tablegate.gateway.model.commands.table_commands import CreateTable
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema, Position
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, text
from tablegate.gateway.store.migrating import migrate
from tablegate.gateway.store.opening import open_database
from tablegate.gateway.store.postgresql import statements
from tablegate.gateway.store.rows import rows as stored_rows
from tablegate.gateway.store.sql.positions import stored_position
from tablegate.gateway.store.store import Store

_ROWS, _LOADS = 1000, 5
_OURS, _RAW = 1, 1 << 40
_PAIR = KeySchema((KeyColumn("pk", Kind.TEXT),), (KeyColumn("sk", Kind.TEXT),))
Taken = tuple[float, float]
"""Rows a second, microseconds of CPU a row."""


class _Database:
    """A database that is loaded through the engine and, with another table id, directly."""

    def __init__(self, url: str, others: Tree | None) -> None:
        self.database = open_database(url)
        migrate(self.database)
        self.engine = new_engine(Store(self.database))
        [self.table] = self.engine.run([CreateTable("bench", "", "things", _PAIR)])
        self._others = others
        self._numbers = {_OURS: itertools.count(), _RAW: itertools.count()}

    def _rows(self, of: int) -> list[tuple[Position, Contents]]:
        new_rows = []
        for number in itertools.islice(self._numbers[of], _ROWS):
            item = dynamodb.item(dynamodb.partition_of(number), number)
            position = _PAIR.position((text(item["pk"]["S"]), text(item["sk"]["S"])))
            new_rows.append((position, Contents(orjson.dumps(item), None, dynamodb.ITEM_BYTES)))
        return new_rows

    def load(self) -> Taken:
        return self._timed(_OURS, lambda rows: self.engine.run([BulkLoad(self.table, rows)]))

    def executemany(self) -> Taken:
        """Load by the driver's executemany, with a transaction for each thousand rows."""
        marks = ", ".join("?" * len(stored_rows.COLUMNS.split(",")))

        def insert(rows: list[tuple[Position, Contents]]) -> None:
            with self.database.write() as session:
                session.execute_many(
                    f"INSERT INTO rows ({stored_rows.COLUMNS}) VALUES ({marks})", _columns(rows)
                )

        return self._timed(_RAW, insert)

    def copy(self) -> Taken:
        """Load by COPY in binary format."""

        def copy(rows: list[tuple[Position, Contents]]) -> None:
            connection = self.database.engine.raw_connection()
            cursor = connection.cursor()
            with cursor.copy(f"COPY rows ({stored_rows.COLUMNS}) FROM STDIN (FORMAT binary)") as copying:
                copying.write(statements.encode(_columns(rows)))
            connection.commit()
            connection.close()

        return self._timed(_RAW, copy)

    def _timed(self, of: int, work: Callable[[list[tuple[Position, Contents]]], object]) -> Taken:
        batches = [self._rows(of) for _ in range(_LOADS)]
        cpu = time.process_time() + self._cpu_of_others()
        began = time.perf_counter()
        for rows in batches:
            work(rows)
        seconds = time.perf_counter() - began
        cpu = time.process_time() + self._cpu_of_others() - cpu
        return _ROWS * _LOADS / seconds, cpu / (_ROWS * _LOADS) * 1e6

    def _cpu_of_others(self) -> float:
        return 0.0 if self._others is None else self._others.cpu_seconds()


def _columns(rows: list[tuple[Position, Contents]]) -> list[tuple[object, ...]]:
    table_rows = [Row(position, contents, 1) for position, contents in sorted(rows, key=lambda pair: pair[0])]
    columns: list[tuple[object, ...]] = []
    for row in table_rows:
        partition, sort, slot, full_key = stored_position(row.position)
        columns.append((_RAW, partition, sort, slot, 1, None, row.size_bytes, None, row.body, full_key))
    return columns


def _ways(folder: Path, stack: ExitStack) -> Iterator[tuple[str, Callable[[int], Taken]]]:
    """Yield each way to load by name. It is called with the number of a round."""
    cores = frozenset(os.sched_getaffinity(0))
    postgres = Postgres(Workspace(cores, folder / "postgres"))
    stack.callback(postgres.stop)
    generator = Generator(cores, folder)
    workloads_by_name = {
        "BatchWriteItem of 25": dynamodb.WORKLOADS, "Azure changeset of 100": azuretable.WORKLOADS,
        "BatchWriteRow of 200": tablestore.WORKLOADS,
    }  # fmt: skip
    for on in ("SQLite", "PostgreSQL"):
        for name, workloads in workloads_by_name.items():
            is_postgres = on == "PostgreSQL"
            url = postgres.new_database() if is_postgres else "sqlite:///bench.sqlite"
            port, process = start_ours(Workspace(cores, folder / f"{name} {on}"), database=url)
            running = Running(port, process, *((postgres.pid,) if is_postgres else ()))
            stack.callback(running.stop)
            player = Player(Contestant("tablegate", "tablegate", (), "disk, fsync", _never), running)
            [batch] = [workload for workload in workloads if workload.name == "batch"]
            assert player.prepare(batch), player.absent
            yield f"{name}, {on}", _batch_loader(player, batch, generator)
    database = _Database(f"sqlite:///{folder}/loaded.sqlite", None)
    yield "engine Load, SQLite", lambda _: database.load()
    yield "raw executemany, SQLite", lambda _: database.executemany()
    other = _Database(postgres.new_database(), Tree([postgres.pid]))
    yield "engine Load, PostgreSQL", lambda _: other.load()
    yield "raw COPY, PostgreSQL", lambda _: other.copy()


def _batch_loader(player: Player, batch: Workload, generator: Generator) -> Callable[[int], Taken]:
    def played(number: int) -> Taken:
        player.play(generator, batch, 16, AtRound(number, 0.5))
        rate, cpu = player.slices["batch", 16][number]
        return rate * batch.rows, cpu / batch.rows

    return played


def _never(workspace: Workspace) -> Running:
    raise AssertionError("started here")


def main() -> None:
    """Print the table or write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="tablegate-bench-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        ways = dict(_ways(folder, stack))
        measurements_by_way: dict[str, list[Taken]] = {name: [] for name in ways}
        for number in range(options.rounds):
            for name, way in ways.items():
                measurements_by_way[name].append(way(number))
        raw = {
            "SQLite": measurements_by_way["raw executemany, SQLite"],
            "PostgreSQL": measurements_by_way["raw COPY, PostgreSQL"],
        }
        lines = []
        for name, measurements in measurements_by_way.items():
            beside = raw[name.rpartition(", ")[2]]
            share = interval(
                [rate / theirs for (rate, _), (theirs, _) in zip(measurements, beside, strict=True)]
            )
            rates, costs = zip(*measurements, strict=True)
            cells = [
                report.count(statistics.median(rates)),
                report.count(statistics.median(costs)),
                str(share),
            ]
            lines.append([name, *cells])
    header = ("", "rows/s", "CPU us a row", "of the raw way's rows/s")
    text = f"Medians of {options.rounds} rounds.\n\n{report.table(header, lines)}"
    print(text)
    if options.write:
        report.write("bulk", text)


if __name__ == "__main__":
    main()
