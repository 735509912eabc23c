"""CPU of background work: expiry and drop of a large table with one index, and trimming of a stream, in this process.

`python -m benchmarks.housekeeping [--rows 1000000] [--batches 200 4000] [--databases sqlite postgresql]` fills tables in
random order and prints the rows per second of CPU, of this process and of PostgreSQL together. Half of the rows of the
first table expire. Then it is dropped.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from benchmarks.contestants import Postgres, Workspace
from benchmarks.processes import Tree
from benchmarks.report import count, table
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.engine.scheduler import Batch, BatchDone
from tablegate.gateway.model.commands.row_commands import WriteGroup
from tablegate.gateway.model.commands.table_commands import CreateTable, DropTable, NewIndex
from tablegate.gateway.model.commands.writes import Replace, Write
from tablegate.gateway.model.tables.indexes import IndexProjection
from tablegate.gateway.model.tables.tables import ExpiryRule, Rules, StreamRule, Table
from tablegate.gateway.model.values.keys import Key, KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Contents
from tablegate.gateway.model.values.values import Kind, Value, decimal
from tablegate.gateway.store.migrating import migrate
from tablegate.gateway.wiring import connect, open_store

_SCHEMA = KeySchema((KeyColumn("pk", Kind.TEXT),), (KeyColumn("sk", Kind.DECIMAL),))
_INDEX = NewIndex(
    "by-colour",
    KeySchema((KeyColumn("colour", Kind.TEXT),), (KeyColumn("sk", Kind.DECIMAL),)),
    IndexProjection.ALL,
)
_NEVER_S, _HOUR_S, _ITEM_BYTES = 4_000_000_000, 3_600, 158
_TOGETHER, _MEASURED = 1_000, 20_000


def _fill(engine: Engine, made: Table, rows: int, expires_at_s: int) -> None:
    """Store items in random order. Every second one expires."""
    numbers = list(range(rows))
    random.Random(rows).shuffle(numbers)
    for first in range(0, rows, _TOGETHER):
        groups = []
        for number in numbers[first : first + _TOGETHER]:
            values = (Value(Kind.TEXT, f"customer-{number % 9973:06}"), decimal(number))
            item = {
                "pk": {"S": values[0].data},
                "sk": {"N": str(number)},
                "colour": {"S": f"colour-{number * 7919 % 1000:04}"},
                "expires": {"N": str(expires_at_s if number % 2 else _NEVER_S)},
                "note": {"S": "x" * 90},
            }
            contents = Contents(json.dumps(item, separators=(",", ":")).encode(), None, _ITEM_BYTES)
            groups.append(
                WriteGroup((Write(made, Key(values, _SCHEMA.position(values)), Replace(contents)),))
            )
        engine.run(list(groups))


def _speed(
    cpu_seconds: Callable[[], float], batch: Callable[[int], int | BatchDone | None], limit: int, most: int
) -> float:
    """Return the rows per second of CPU of batches with at most `limit` rows, until `most` rows or the end."""
    began, rows = cpu_seconds(), 0
    while rows < most and (done := batch(limit)) is not None:
        rows += done if isinstance(done, int) else done.rows
    return rows / max(cpu_seconds() - began, 1e-9)


def _measure(
    url: str, cpu_seconds: Callable[[], float], rows: int, batches: Sequence[int]
) -> Iterator[list[str]]:
    """Yield a line of the table for each kind of work."""
    settings = load({"database": url}, {})
    database = connect(settings)
    migrate(database)
    opened = open_store(settings, database)
    engine, hour_hence = opened.engine, int(time.time()) + _HOUR_S
    stream = StreamRule("1", True, "NEW_AND_OLD_IMAGES", _HOUR_S * 1_000, 0)
    [things] = engine.run(
        [
            CreateTable(
                "dynamodb", "", "things", _SCHEMA, (_INDEX,), Rules(expiry=ExpiryRule(attribute="expires"))
            )
        ]
    )
    [recorded] = engine.run([CreateTable("dynamodb", "", "recorded", _SCHEMA, (), Rules(stream=stream))])
    _fill(engine, things, rows, hour_hence)
    _fill(engine, recorded, _MEASURED * len(batches), _NEVER_S)
    background = engine.background
    now_ms = (hour_hence + _HOUR_S) * 1_000

    def line(name: str, work: Batch, most: int) -> list[str]:
        return [name, *(count(_speed(cpu_seconds, partial(work, now_ms), limit, most)) for limit in batches)]

    yield line("expiry, rows with an entry", background.works["expiry_sweep"].batch, _MEASURED)
    yield line("trimming, changes", background.works["stream_trim"].batch, _MEASURED)
    engine.run([DropTable(things)])
    yield line("drop, rows and entries", background.works["purge"].batch, rows // len(batches))
    opened.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--batches", type=int, nargs="+", default=[200, 4_000])
    parser.add_argument(
        "--databases", nargs="+", default=["sqlite", "postgresql"], choices=["sqlite", "postgresql"]
    )
    arguments = parser.parse_args()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    folder = Path(tempfile.mkdtemp(prefix="tablegate-bench-"))

    def own_cpu_seconds() -> float:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return used.ru_utime + used.ru_stime

    lines = []
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        for database in arguments.databases:
            url, cpu_seconds = f"sqlite:///{folder / 'housekeeping.sqlite'}", own_cpu_seconds
            if database == "postgresql":
                postgres = Postgres(Workspace(frozenset(os.sched_getaffinity(0)), folder / "postgres"))
                stack.callback(postgres.stop)
                url, tree = postgres.new_database(), Tree([postgres.pid])

                def cpu_seconds(tree: Tree = tree) -> float:
                    return own_cpu_seconds() + tree.cpu_seconds()

            for name, *speeds in _measure(url, cpu_seconds, arguments.rows, arguments.batches):
                lines.append([f"{database}: {name}", *speeds])
    print(table(["per second of CPU", *(f"batches of {limit:,}" for limit in arguments.batches)], lines))


if __name__ == "__main__":
    main()
