"""Speed of `tablegate copy` and `tablegate verify`: `python -m benchmarks.transfer`.

A table in an SQLite database is copied to each kind of end and back, and verified against each, by separate
processes. In alternation with copies into PostgreSQL, the same bytes are loaded by a raw COPY. Figures are medians
of the rounds. CPU is that of the copying process with its start (under a second).

    python -m benchmarks.transfer --rows 1000000 --ends postgresql --rounds 3
    python -m benchmarks.transfer --rows 20000 --rounds 3 --write      # all ends, into docs/explain/performance-large.md
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NamedTuple

import orjson
import psycopg

from benchmarks import report, signing
from benchmarks.contestants import Postgres, Workspace
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, text
from tablegate.gateway.store.postgresql import statements
from tablegate.gateway.store.rows import rows as stored_rows
from tablegate.gateway.store.sql.positions import stored_position
from tablegate.transfer.endpoints.database import DatabaseEndpoint
from tablegate.transfer.endpoints.endpoint import Definition, Service

_PAIR = KeySchema((KeyColumn("pk", Kind.TEXT),), (KeyColumn("sk", Kind.TEXT),))
_ENDS = ("sqlite", "postgresql", "dynamodb", "azure-table", "tablestore", "jsonl", "jsonl.zst", "parquet")
_CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "bench",
    "AWS_SECRET_ACCESS_KEY": "bench",
    "AZURE_STORAGE_KEY": signing.AZURE_KEY,
    "TABLESTORE_ACCESS_KEY_ID": "tablegate",
    "TABLESTORE_ACCESS_KEY_SECRET": "tablegate",
}


class Taken(NamedTuple):
    """Rows a second, microseconds of CPU for a row, maximum memory in MB."""

    rows_per_second: float
    cpu_us: float
    most_mb: float


def _ran(rows: int, folder: Path, *arguments: str) -> Taken:
    """Run a tablegate command as a process."""
    environment = {**os.environ, **_CREDENTIALS}
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "tablegate", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)}: status {process.returncode}")
    return Taken(rows / seconds, (usage.ru_utime + usage.ru_stime) / rows * 1e6, usage.ru_maxrss / 1024)


def _fill(address: str, number: int) -> None:
    """Create a table with rows of about 1 KB."""
    with closing(DatabaseEndpoint(address)) as endpoint:
        endpoint.create(Definition("things", Service.DYNAMODB, _PAIR))
        for start in range(0, number, 5_000):
            endpoint.write([_row(at) for at in range(start, min(number, start + 5_000))])


def _row(at: int) -> Row:
    pk, sk = f"partition {at // 20:07}", f"row {at:09}"
    body = orjson.dumps({"pk": {"S": pk}, "sk": {"S": sk}, "n": {"N": str(at)}, "text": {"S": "x" * 900}})
    position = _PAIR.key({"pk": text(pk), "sk": text(sk)}).position
    return Row(position, Contents(body, None, len(body) - 32), 0)


def _raw_copy(source: str, url: str) -> float:
    """Return rows a second of a COPY of the same bytes into the same table with the same indexes."""
    with closing(DatabaseEndpoint(f"{url}#warm")) as endpoint:
        endpoint.create(Definition("warm", Service.TABLEGATE, _PAIR))  # creates the SQL tables
    seconds, number, is_first = 0.0, 0, True
    with (
        closing(DatabaseEndpoint(source)) as endpoint,
        psycopg.connect(url) as connection,
        connection.cursor() as cursor,
    ):
        statement = f"COPY rows ({stored_rows.COLUMNS}) FROM STDIN (FORMAT binary)"
        with cursor.copy(statement.encode()) as copy:
            for page in endpoint.scan([0, 1]):
                data = statements.encode([_columns(row) for row in page.rows])
                piece = data[0 if is_first else len(statements.encode([])) - 2 : -2]
                is_first = False
                began = time.monotonic()
                copy.write(piece)
                seconds += time.monotonic() - began
                number += len(page.rows)
            began = time.monotonic()
        connection.commit()
        seconds += time.monotonic() - began
    return number / seconds


def _columns(row: Row) -> tuple[object, ...]:
    stored = stored_position(row.position)
    return (
        1 << 40, stored.partition, stored.sort, stored.slot, row.modified_at, row.expires_at_ms, row.size_bytes, row.kinds,
        row.body, stored.full_key,
    )  # fmt: skip


class _Ends:
    """Addresses of new tables at each kind of end."""

    def __init__(self, folder: Path, closing_: ExitStack, kinds: Sequence[str]) -> None:
        self.folder = folder
        self._number = 0
        self.postgres: Postgres | None = None
        self._server = ""
        if "postgresql" in kinds:
            self.postgres = Postgres(Workspace(frozenset(range(os.cpu_count() or 1)), folder / "postgres"))
            closing_.callback(self.postgres.stop)
        if {"dynamodb", "azure-table", "tablestore"} & {*kinds}:
            process = subprocess.Popen(
                [sys.executable, "-m", "tablegate", "serve", "--port", "0", "--database", str(folder / "served.sqlite")],
                stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            closing_.callback(process.terminate)
            assert process.stdout is not None
            self._server = process.stdout.readline().strip()

    def new(self, kind: str) -> str:
        """Return the address of an end without a table."""
        self._number += 1
        name = f"things{self._number}"
        match kind:
            case "sqlite":
                return f"tablegate:sqlite:///{self.folder}/{name}.sqlite#things"
            case "postgresql":
                assert self.postgres is not None
                return f"tablegate:{self.postgres.new_database()}#things"
            case "dynamodb":
                return f"dynamodb://{name}?region=us-east-1&endpoint={self._server}"
            case "azure-table":
                return f"azure-table://devstoreaccount1/{name}?endpoint={self._server}/devstoreaccount1"
            case "tablestore":
                return f"tablestore://bench/{name}?endpoint={self._server}"
        return f"file:{self.folder}/{name}.{kind}"


def _figures(measurements: list[Taken]) -> str:
    rows_per_second = statistics.median(measurement.rows_per_second for measurement in measurements)
    cpu_us = statistics.median(measurement.cpu_us for measurement in measurements)
    most_mb = statistics.median(measurement.most_mb for measurement in measurements)
    return f"{rows_per_second:,.0f} | {cpu_us:.0f} | {most_mb:.0f}"


def measured(rows: int, rounds: int, kinds: Sequence[str], print_line: Callable[[str], None]) -> list[str]:
    """Return the lines of a Markdown table."""
    folder = Path(tempfile.mkdtemp(prefix="tablegate-bench-"))
    measurements: dict[str, list[Taken]] = {}
    raw: list[float] = []
    try:
        with ExitStack() as closing_:
            ends = _Ends(folder, closing_, kinds)
            source = f"tablegate:sqlite:///{folder}/source.sqlite#things"
            _fill(source.removeprefix("tablegate:"), rows)
            for number in range(rounds):
                for kind in kinds:
                    target, back = ends.new(kind), ends.new("sqlite")
                    for name, command in (
                        (f"copy SQLite database to {kind}", ("copy", source, target, "--quiet")),
                        (f"copy {kind} to SQLite database", ("copy", target, back, "--quiet")),
                        (f"verify SQLite database and {kind}", ("verify", source, target)),
                    ):
                        measurements.setdefault(name, []).append(_ran(rows, folder, *command))
                        print_line(f"round {number + 1}: {name}: {_figures(measurements[name][-1:])}")
                    if kind == "postgresql" and ends.postgres is not None:
                        raw.append(_raw_copy(source.removeprefix("tablegate:"), ends.postgres.new_database()))
                        print_line(f"round {number + 1}: raw COPY {raw[-1]:,.0f}")
                    for path in (*folder.glob("things*"), *folder.glob("*.job*")):
                        path.unlink()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    lines = [
        f"{rows:,} rows of 1 KB, {rounds} rounds.",
        "",
        "| work | rows/s | CPU us/row | MB at most |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {name} | {_figures(measurements_of_kind)} |"
        for name, measurements_of_kind in measurements.items()
    ]
    if raw:
        lines.append(f"| raw COPY of the same bytes into PostgreSQL | {statistics.median(raw):,.0f} | | |")
    return lines


def main() -> None:
    """Measure, print, and write the table if requested."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ends", default=",".join(_ENDS[1:]), help="comma-separated, from , ".join(_ENDS))
    parser.add_argument("--write", action="store_true", help="into docs/explain/performance-large.md")
    options = parser.parse_args()
    lines = measured(
        options.rows, options.rounds, options.ends.split(","), lambda line: print(line, flush=True)
    )
    print("\n".join(lines))
    if options.write:
        report.write("transfer", "\n".join(lines), report.LARGE)


if __name__ == "__main__":
    main()
