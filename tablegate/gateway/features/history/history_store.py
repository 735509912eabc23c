"""SQL for histories: previous versions of rows, for point-in-time recovery.

A history is a log with the newest versions at its end. The first change of a row after a point in time has the row's
version at that point. If there is no such change, the current row is that version.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.store.rows.scans import StoredRow
from tablegate.gateway.store.sql.checksums import ROW_COLUMNS, ROW_WIDTH
from tablegate.gateway.store.sql.databases import Pending, Session
from tablegate.gateway.store.sql.owned_rows import KINDS, OwnedRows
from tablegate.gateway.store.sql.positions import position_of, stored_position

COLUMNS = "history_id, changed_at, slot, partition, sort, full_key, modified_at, size_bytes, kinds, body"
# In the order of checksums.ROW_COLUMNS, with the time of the change in place of the expiry. NULL: they have no checksums.
_IMAGE = "r.partition, r.sort, r.full_key, r.modified_at, r.changed_at, r.size_bytes, r.kinds, NULL, r.body"
_CHANGED_AT = 4
_BATCH_BYTES = 4_000_000

HistoryKey = tuple[int, Position]
"""(history id, position of the row)."""
Mark = tuple[int, int, bytes, bytes]
"""A cursor of a walk: time (0 if there is none), slot, and partition and sort columns."""
NEWEST: Mark = (1 << 62, 0, b"", b"")
"""The start of a walk back through a history."""


# Histories


def begin(session: Session, history_id: int, table_id: int, days: int | None) -> None:
    """Start a history, or update its retention."""
    session.execute(
        "INSERT INTO histories (id, table_id, days) VALUES (?, ?, ?)"
        " ON CONFLICT (id) DO UPDATE SET days = excluded.days",
        (history_id, table_id, days),
    )


def end(session: Session, history_id: int) -> None:
    """End a history. Its contents are purged later, and its id is never reused."""
    session.send("DELETE FROM histories WHERE id = ?", (history_id,))
    session.send("INSERT INTO purges (kind, id) VALUES ('history', ?)", (history_id,))


KINDS["history"] = OwnedRows("history", "history_id", "changed_at, slot, partition, sort", "size_bytes")


def with_retention(session: Session) -> list[tuple[int, int, int | None]]:
    """Return (id, days, earliest time in ticks that a copy needs) of each history with a retention."""
    rows = session.query(
        "SELECT h.id, h.days, (SELECT min(c.at) FROM copies c WHERE c.history_id = h.id) FROM histories h"
        " WHERE h.days IS NOT NULL ORDER BY h.id"
    )
    return [(history_id, days, at) for history_id, days, at in rows]


# Recording


def latest_change(session: Session, history_ids: Iterable[int]) -> Pending[int]:
    """Return the time of the last change in these histories, in ticks. 0 if there is none."""
    answers = [
        session.ask(
            "SELECT changed_at FROM history WHERE history_id = ? ORDER BY changed_at DESC LIMIT 1",
            (history_id,),
        )
        for history_id in history_ids
    ]
    return lambda: max((rows[0][0] for answer in answers if (rows := answer())), default=0)


def record(session: Session, changes: Iterable[tuple[HistoryKey, Row | None]], at: int) -> None:
    """Record previous versions of rows, valid until `at`, which must be later than the rows' earlier changes."""
    session.execute_many(
        f"INSERT INTO history ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [_values(key, at, row) for key, row in changes],
    )


def _values(key: HistoryKey, at: int, row: Row | None) -> tuple[Any, ...]:
    partition, sort, slot, full_key = stored_position(key[1])
    image = (None, 0, None, None) if row is None else (row.modified_at, row.size_bytes, row.kinds, row.body)
    return (key[0], at, slot, partition, sort, full_key, *image)


def trim(session: Session, history_id: int, before: int, limit: int) -> int:
    """Delete up to `limit` of the oldest changes from before a time in ticks. Return their number."""
    oldest = session.query(
        "SELECT changed_at FROM history WHERE history_id = ? AND changed_at < ? ORDER BY changed_at LIMIT ?",
        (history_id, before, limit),
    )
    if not oldest:
        return 0
    return session.execute(
        "DELETE FROM history WHERE history_id = ? AND changed_at <= ?", (history_id, oldest[-1][0])
    )


# Reading


class HistoryPoint(NamedTuple):
    """A history and a time in it, in ticks."""

    history_id: int
    at: int


class HistoryPage(NamedTuple):
    """A page of a walk: rows by position (or None), the next mark (or None at the end), and the number of keys read.

    `changed_at`: the time of the last change of each row, for a walk over changes.
    """

    rows: dict[Position, Row | None]
    mark: Mark | None
    length: int
    changed_at: dict[Position, int] = {}  # noqa: RUF012  # a default that is never changed


def rows_after(session: Session, table_id: int, mark: Mark | None, limit: int) -> HistoryPage:
    """Return the next rows of a table, by slot and columns, without locks."""
    source = _Source("rows r WHERE r.table_id = ?", (table_id,), "0, r.slot, r.partition, r.sort", ">", "<=")
    return _page(session, source, ROW_COLUMNS, mark or (0, 0, b"", b""), limit)


def changes_before(session: Session, moment: HistoryPoint, mark: Mark, limit: int) -> HistoryPage:
    """Return versions of rows before their changes, from a mark back to a time. The earliest change of a row counts."""
    source = _Source(
        "history r WHERE r.history_id = ? AND r.changed_at > ?",
        tuple(moment),
        "r.changed_at, r.slot, r.partition, r.sort",
        "<",
        ">=",
    )
    return _page(session, source, _IMAGE, mark, limit)


class _Source(NamedTuple):
    """The source of a walk: an SQL table with the alias r and its condition, and the columns of a mark.

    `after` and `up_to`: the operators for marks after another one, and for marks not after it.
    """

    tables: str
    parameters: tuple[int, ...]
    mark: str
    after: str
    up_to: str


def _page(session: Session, source: _Source, columns: str, mark: Mark, limit: int) -> HistoryPage:
    is_history = source.mark.startswith("r.")
    key = source.mark if is_history else source.mark.removeprefix("0, ")
    order = ", ".join(f"{column} DESC" for column in key.split(", ")) if is_history else key
    begin = mark if is_history else mark[1:]
    places = ", ".join("?" * len(begin))
    where = f"{source.tables} AND ({key}) {source.after} ({places})"
    # Sizes are read before bodies, to limit the size of a page.
    sizes = session.query(
        f"SELECT {source.mark}, r.size_bytes FROM {where} ORDER BY {order} LIMIT ?",
        (*source.parameters, *begin, limit),
    )
    length = size = 0
    while length < len(sizes) and size <= _BATCH_BYTES:
        size += sizes[length][-1]
        length += 1
    if not length:
        return HistoryPage({}, None, 0)
    last: Mark = sizes[length - 1][:4]
    rows = session.query(
        f"SELECT {columns} FROM {where} AND ({key}) {source.up_to} ({places}) ORDER BY {order}",
        (*source.parameters, *begin, *(last if is_history else last[1:])),
    )
    page_rows: dict[Position, Row | None] = {
        position_of(*row[:3]): StoredRow(row) if row[ROW_WIDTH - 1] is not None else None for row in rows
    }
    changed_at = {position_of(*row[:3]): row[_CHANGED_AT] for row in reversed(rows)} if is_history else {}
    return HistoryPage(
        page_rows, last if length == limit or length < len(sizes) else None, length, changed_at
    )
