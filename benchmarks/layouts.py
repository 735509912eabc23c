"""Layouts of `rows` on SQLite with their pragmas: CPU and bytes written for a row at several table sizes.

The statements have the form of the data path's. COMMIT is most of a put, and its cost grows with the number of
changed pages.

    python -m benchmarks.layouts --rows 10000,1000000 --rounds 3 --write

A transaction has sixteen rows, like a tick of sixteen writers. A batch has 400. New rows are appended to 997
partitions in turn. CPU is that of this process, the minimum of the rounds, with synchronous FULL. With --write the
table goes into build/performance-all.md.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import report

_PARTITIONS, _TICK, _BATCH, _QUERIED, _SCANNED = 997, 16, 400, 50, 1000
_KEY = "table_id INTEGER NOT NULL, partition BLOB NOT NULL, sort BLOB NOT NULL, slot INTEGER NOT NULL"
_FACTS = "modified_at INTEGER NOT NULL, expires_at_ms INTEGER, size_bytes INTEGER NOT NULL, kinds BLOB, full_key BLOB"
_PRIMARY = "PRIMARY KEY (table_id, partition, sort, slot)"
_COLUMNS = "table_id, partition, sort, slot, modified_at, expires_at_ms, size_bytes, kinds, full_key, body"
_AT = "table_id = ? AND partition = ? AND sort = ? AND slot = ?"
_SET = "modified_at = excluded.modified_at, expires_at_ms = excluded.expires_at_ms, size_bytes = excluded.size_bytes"
Row = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """Tables, and the way to write and read rows in them.

    `hot` is the size of a small table for new rows, which are moved to the large one in key order. 0 for none.
    """

    name: str
    tables: tuple[str, ...]
    page_bytes: int = 16_384
    by_slot: bool = True
    checkpoint_pages: int = 2000
    pragmas: tuple[str, ...] = ()
    are_bodies_beside: bool = False
    hot: int = 0

    def open(self, path: Path) -> sqlite3.Connection:
        """Create a database with these tables."""
        connection = sqlite3.connect(path, isolation_level=None, cached_statements=256)
        settings = (
            f"page_size = {self.page_bytes}", "journal_mode = WAL", "synchronous = FULL", "cache_size = -32768",
            f"wal_autocheckpoint = {self.checkpoint_pages}", *self.pragmas,
        )  # fmt: skip
        for setting in settings:
            connection.execute(f"PRAGMA {setting}")
        for table in self.tables:
            connection.execute(table)
        if self.by_slot:
            connection.execute("CREATE INDEX rows_by_slot ON rows (table_id, slot, partition, sort)")
        return connection


_CLUSTERED = (f"CREATE TABLE rows ({_KEY}, {_FACTS}, body BLOB, {_PRIMARY}) WITHOUT ROWID",)
_BY_ROWID = (
    f"CREATE TABLE rows ({_KEY}, {_FACTS}, body BLOB)",
    "CREATE UNIQUE INDEX rows_by_key ON rows (table_id, partition, sort, slot)",
)
_BESIDE = (
    f"CREATE TABLE rows ({_KEY}, {_FACTS}, body_id INTEGER, {_PRIMARY}) WITHOUT ROWID",
    "CREATE TABLE bodies (id INTEGER PRIMARY KEY, body BLOB)",
)
_HOT = (*_CLUSTERED, f"CREATE TABLE hot ({_KEY}, {_FACTS}, body BLOB, {_PRIMARY}) WITHOUT ROWID")
LAYOUTS = (
    Layout("without rowid, 16 KB pages", _CLUSTERED),
    Layout("... without the index by slot", _CLUSTERED, by_slot=False),
    Layout("... 4 KB pages", _CLUSTERED, 4_096, checkpoint_pages=8000),
    Layout("... 8 KB pages", _CLUSTERED, 8_192, checkpoint_pages=4000),
    Layout("... 32 KB pages", _CLUSTERED, 32_768, checkpoint_pages=1000),
    Layout("... a checkpoint every 500 pages", _CLUSTERED, checkpoint_pages=500),
    Layout("... a checkpoint every 8,000 pages", _CLUSTERED, checkpoint_pages=8000),
    Layout("... 8 KB pages, a checkpoint every 8,000", _CLUSTERED, 8_192, checkpoint_pages=8000),
    Layout("... cache_spill off", _CLUSTERED, pragmas=("cache_spill = OFF",)),
    Layout("... a cache of 256 MB", _CLUSTERED, pragmas=("cache_size = -262144",)),
    Layout("... mmap of 1 GB", _CLUSTERED, pragmas=("mmap_size = 1073741824",)),
    Layout("with rowid, 4 KB pages", _BY_ROWID, 4_096, checkpoint_pages=8000),
    Layout("as it is: with rowid, 8 KB pages", _BY_ROWID, 8_192, checkpoint_pages=4000),
    Layout("with rowid, 16 KB pages", _BY_ROWID),
    Layout("bodies beside keys, 4 KB pages", _BESIDE, 4_096, checkpoint_pages=8000, are_bodies_beside=True),
    Layout("bodies beside keys, 16 KB pages", _BESIDE, are_bodies_beside=True),
    Layout("a hot level of 2,000 rows, 16 KB pages", _HOT, hot=2_000),
    Layout("a hot level of 20,000 rows, 16 KB pages", _HOT, hot=20_000),
)


class Rows:
    """A database of one layout with rows, and the measured operations."""

    def __init__(self, layout: Layout, path: Path, count: int) -> None:
        self._layout = layout
        self._path = path
        self._hot = 0
        self._moment = itertools.count(1)
        self.count = count
        self.database = layout.open(path)
        # Bodies that keep their place are inserted in order of arrival. Others end up in key order anyway.
        stays = layout.are_bodies_beside or layout.tables is _BY_ROWID
        in_order = sorted(range(count), key=lambda number: (0 if stays else number % _PARTITIONS, number))
        for start in range(0, count, 20_000):
            self._write([self._row(number) for number in in_order[start : start + 20_000]], is_loading=True)
        self.database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _row(self, number: int) -> Row:
        partition = b"\x01part%04d\x00" % (number % _PARTITIONS)
        key = (1, partition, b"\x01%010d\x00" % number, number % _PARTITIONS % 256)
        return (*key, next(self._moment), None, 925, None, None, b"%08d" % (number % 97) + b"x" * 1100)

    def _some(self, size: int) -> list[int]:
        return [next(self._moment) * 7919 % self.count for _ in range(size)]

    def _write(self, rows: list[Row], is_loading: bool = False) -> None:
        database, layout = self.database, self._layout
        rows.sort(key=lambda row: row[:4])
        database.execute("BEGIN IMMEDIATE")
        database.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()  # the check of table versions
        if layout.are_bodies_beside:
            self._write_beside(rows)
        else:
            table = "hot" if layout.hot and not is_loading else "rows"
            marks = f"INSERT INTO {table} ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            conflict = (
                f" ON CONFLICT (table_id, partition, sort, slot) DO UPDATE SET {_SET}, body = excluded.body"
            )
            database.executemany(marks + conflict, rows)
            if table == "hot":
                self._hot += len(rows)
        database.execute("COMMIT")
        if layout.hot and self._hot >= layout.hot:
            self._hot = 0
            database.execute("BEGIN IMMEDIATE")
            merge = f"INSERT INTO rows ({_COLUMNS}) SELECT {_COLUMNS} FROM hot WHERE true ORDER BY 1, 2, 3, 4"
            database.execute(
                f"{merge} ON CONFLICT (table_id, partition, sort, slot) DO UPDATE SET {_SET}, body = excluded.body"
            )
            database.execute("DELETE FROM hot")
            database.execute("COMMIT")

    def _write_beside(self, rows: list[Row]) -> None:
        database = self.database
        for *facts, body in rows:
            existing = database.execute(f"SELECT body_id FROM rows WHERE {_AT}", facts[:4]).fetchone()
            if existing is None:
                body_id = database.execute("INSERT INTO bodies (body) VALUES (?)", (body,)).lastrowid
                names = _COLUMNS.replace(" body", " body_id")
                database.execute(
                    f"INSERT INTO rows ({names}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (*facts, body_id)
                )
            else:
                database.execute("UPDATE bodies SET body = ? WHERE id = ?", (body, *existing))
                database.execute(f"UPDATE rows SET modified_at = ? WHERE {_AT}", (facts[4], *facts[:4]))

    # Operations. Each returns its number of rows

    def insert(self, size: int = _TICK) -> int:
        """Append new rows to partitions."""
        first, self.count = self.count, self.count + size
        self._write([self._row(number) for number in range(first, first + size)])
        return size

    def batch(self) -> int:
        """Append many rows in one transaction."""
        return self.insert(_BATCH)

    def overwrite(self) -> int:
        """Overwrite existing rows without reading them."""
        self._write([self._row(number) for number in self._some(_TICK)])
        return _TICK

    def update(self) -> int:
        """Read and write existing rows."""
        rows = [self._row(number) for number in self._some(_TICK)]
        for row in rows:
            self._read_row(row)
        self._write(rows)
        return _TICK

    def get(self) -> int:
        """Read single rows."""
        for number in self._some(_TICK):
            assert self._read_row(self._row(number))
        return _TICK

    def _read_row(self, row: Row) -> list[Row]:
        database, layout = self.database, self._layout
        if layout.hot:
            hot_rows = database.execute(f"SELECT * FROM hot WHERE {_AT}", row[:4]).fetchall()
            if hot_rows:
                return hot_rows
        if layout.are_bodies_beside:
            joined = f"SELECT r.*, b.body FROM rows r JOIN bodies b ON b.id = r.body_id WHERE {_AT}"
            return database.execute(joined, row[:4]).fetchall()
        return database.execute(f"SELECT * FROM rows WHERE {_AT}", row[:4]).fetchall()

    def query(self, size: int = _QUERIED) -> int:
        """Read a page of one partition as one concatenated value."""
        within = "WHERE table_id = 1 AND partition = ? AND sort >= ? ORDER BY sort LIMIT ?"
        parameters: tuple[object, ...] = (b"\x01part%04d\x00" % (next(self._moment) % _PARTITIONS), b"", size)
        source = f"SELECT sort, body FROM rows {within}"
        if self._layout.are_bodies_beside:
            source = f"SELECT sort, b.body AS body FROM rows JOIN bodies b ON b.id = body_id {within}"
        elif self._layout.hot:
            union = f"SELECT sort, body FROM (SELECT * FROM hot {within}) UNION ALL SELECT sort, body FROM ({source})"
            source, parameters = f"SELECT * FROM ({union}) ORDER BY sort LIMIT ?", (*parameters * 2, size)
        self.database.execute(
            f"SELECT count(*), CAST(group_concat(body, ',') AS BLOB) FROM ({source})", parameters
        ).fetchall()
        return size

    def scan(self) -> int:
        """Read a long page over several partitions."""
        within = "WHERE table_id = 1 AND (partition, sort) >= (?, ?) ORDER BY partition, sort LIMIT ?"
        start = (b"\x01part%04d\x00" % (next(self._moment) % _PARTITIONS), b"", _SCANNED)
        body = (
            "b.body FROM rows JOIN bodies b ON b.id = body_id"
            if self._layout.are_bodies_beside
            else "body FROM rows"
        )
        count = len(self.database.execute(f"SELECT {body} {within}", start).fetchall())
        if self._layout.hot:
            self.database.execute(f"SELECT body FROM hot {within}", start).fetchall()
        return max(count, 1)

    @property
    def log_bytes(self) -> int:
        """The number of bytes that this process has written."""
        for line in Path("/proc/self/io").read_text().splitlines():
            if line.startswith("wchar:"):
                return int(line.split()[1])
        return 0


_WORK: tuple[tuple[str, int], ...] = (
    ("insert", 150), ("overwrite", 150), ("update", 150), ("batch", 10), ("get", 300), ("query", 300), ("scan", 20),
)  # fmt: skip


def measured(layout: Layout, count: int, rounds: int, folder: Path) -> Iterator[tuple[str, float, float]]:
    """Yield (name, microseconds of CPU, bytes written) for a row of each operation, the minimum of the rounds."""
    rows = Rows(layout, folder / "rows.sqlite", count)
    for name, times in _WORK:
        work: Callable[[], int] = getattr(rows, name)
        costs: list[tuple[float, float]] = []
        for _ in range(rounds):
            began, bytes_before, rows_done = time.process_time(), rows.log_bytes, 0
            for _ in range(times):
                rows_done += work()
            costs.append(
                ((time.process_time() - began) / rows_done * 1e6, (rows.log_bytes - bytes_before) / rows_done)
            )
        yield name, min(cost for cost, _ in costs), min(size for _, size in costs)
    rows.database.close()


def lines(counts: Iterable[int], rounds: int, names: str) -> Iterator[list[str]]:
    """Yield a table line for each layout and size."""
    for count in counts:
        for layout in LAYOUTS:
            if names not in layout.name:
                continue
            folder = Path(tempfile.mkdtemp(prefix="tablegate-layouts-"))
            try:
                figures = {name: (cpu, size) for name, cpu, size in measured(layout, count, rounds, folder)}
            finally:
                shutil.rmtree(folder)
            cells = [report.count(figures[name][0]) for name, _ in _WORK]
            sizes = [f"{figures[name][1] / 1024:.1f}" for name in ("insert", "overwrite", "batch")]
            line = [f"{layout.name}, {count:,} rows", *cells, *sizes]
            print(" | ".join(line), flush=True)
            yield line


HEADER = (
    "CPU us a row, and KB written a row", *(name for name, _ in _WORK), "insert KB", "overwrite KB", "batch KB",
)  # fmt: skip


def main() -> None:
    """Print the table or write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", default="10000,1000000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--names", default="", help="only layouts with this text in their name")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    counts = [int(number) for number in options.rows.split(",")]
    text = report.table(HEADER, list(lines(counts, options.rounds, options.names)))
    print(f"\n{text}")
    if options.write:
        report.write("layouts", text, report.ALL)


if __name__ == "__main__":
    main()
