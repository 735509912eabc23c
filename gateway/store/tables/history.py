"""What rows were before they changed, as SQL: begin, record, read backwards, trim, end; and all rows of a table in parts.

A history is a log: what is new is its end. What a row was at a moment stands where it first changed after that; if it did not,
the row is what it was.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.store.rows.scans import StoredRow
from tablegate.gateway.store.sql.checksums import ROW_COLUMNS, ROW_WIDTH
from tablegate.gateway.store.sql.databases import Pending, Session
from tablegate.gateway.store.sql.positions import position_of, stored_position

COLUMNS = "history_id, changed_at, slot, partition, sort, full_key, modified_at, size_bytes, kinds, body"
# In the order of checksums.ROW_COLUMNS, with the time of the change in place of the expiry. NULL: a history has no checksums.
_IMAGE = "r.partition, r.sort, r.full_key, r.modified_at, r.changed_at, r.size_bytes, r.kinds, NULL, r.body"
_CHANGED_AT = 4
_BATCH_BYTES = 4_000_000

HistoryKey = tuple[int, Position]
"""(history id, position of the row)."""
Mark = tuple[int, int, bytes, bytes]
"""How far a walk has come: by time (0 where there is none), slot and columns."""
NEWEST: Mark = (1 << 62, 0, b"", b"")
"""Where a walk back through a history begins."""


# Histories


def begin(session: Session, history_id: int, table_id: int, days: int | None) -> None:
    """Keep a new history, or this history for another time."""
    session.execute(
        "INSERT INTO histories (id, table_id, days) VALUES (?, ?, ?)"
        " ON CONFLICT (id) DO UPDATE SET days = excluded.days",
        (history_id, table_id, days),
    )


def end(session: Session, history_id: int) -> None:
    """Forget a history; what is in it is purged later. Its id is never used again."""
    session.send("DELETE FROM histories WHERE id = ?", (history_id,))
    session.send("INSERT INTO purges (kind, id) VALUES ('history', ?)", (history_id,))


def kept_for_days(session: Session) -> list[tuple[int, int, int | None]]:
    """(id, days, the earliest moment in it, in ticks, that is being copied) of every history that is kept for a time."""
    found = session.query(
        "SELECT h.id, h.days, (SELECT min(c.at) FROM copies c WHERE c.history_id = h.id) FROM histories h"
        " WHERE h.days IS NOT NULL ORDER BY h.id"
    )
    return [(history_id, days, at) for history_id, days, at in found]


# Recording


def latest_change(session: Session, history_ids: Iterable[int]) -> Pending[int]:
    """The time of the last change in any of these histories, in ticks (0: there is none)."""
    asked = [
        session.ask(
            "SELECT changed_at FROM history WHERE history_id = ? ORDER BY changed_at DESC LIMIT 1", (each,)
        )
        for each in history_ids
    ]
    return lambda: max((found[0][0] for answer in asked if (found := answer())), default=0)


def record(session: Session, changed: Iterable[tuple[HistoryKey, Row | None]], at: int) -> None:
    """Note what rows (None: no row) were until a moment, which is later than any before at which they changed."""
    session.execute_many(
        f"INSERT INTO history ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [_values(key, at, row) for key, row in changed],
    )


def _values(key: HistoryKey, at: int, row: Row | None) -> tuple[Any, ...]:
    partition, sort, slot, full_key = stored_position(key[1])
    image = (None, 0, None, None) if row is None else (row.modified_at, row.size_bytes, row.kinds, row.body)
    return (key[0], at, slot, partition, sort, full_key, *image)


def trim(session: Session, history_id: int, before: int, limit: int) -> int:
    """Delete at most `limit` of the oldest that is in a history, of what changed before a time, in ticks. How many went."""
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
    """A part of a walk: rows by position (None: there was none); the mark to go on after, None at the end; how many keys it went
    over; of changes, when each row changed last."""

    rows: dict[Position, Row | None]
    mark: Mark | None
    length: int
    changed_at: dict[Position, int] = {}  # noqa: RUF012  # of a named tuple; nobody changes it


def rows_after(session: Session, table_id: int, mark: Mark | None, limit: int) -> HistoryPage:
    """The next rows of a table, by slot and columns. Nothing is locked."""
    source = _Source("rows r WHERE r.table_id = ?", (table_id,), "0, r.slot, r.partition, r.sort", ">", "<=")
    return _part(session, source, ROW_COLUMNS, mark or (0, 0, b"", b""), limit)


def changes_before(session: Session, moment: HistoryPoint, mark: Mark, limit: int) -> HistoryPage:
    """What rows were before their next changes, from a mark back to a moment. Of several changes of a row the earliest counts."""
    source = _Source(
        "history r WHERE r.history_id = ? AND r.changed_at > ?",
        tuple(moment),
        "r.changed_at, r.slot, r.partition, r.sort",
        "<",
        ">=",
    )
    return _part(session, source, _IMAGE, mark, limit)


class _Source(NamedTuple):
    """What is walked: the table of SQL, called r, and which of it; the columns of a mark; how a mark that comes after another
    compares with it, and one that comes no later."""

    tables: str
    parameters: tuple[int, ...]
    mark: str
    after: str
    up_to: str


def _part(session: Session, source: _Source, columns: str, mark: Mark, limit: int) -> HistoryPage:
    timed = source.mark.startswith("r.")
    key = source.mark if timed else source.mark.removeprefix("0, ")
    order = ", ".join(f"{column} DESC" for column in key.split(", ")) if timed else key
    begin = mark if timed else mark[1:]
    places = ", ".join("?" * len(begin))
    where = f"{source.tables} AND ({key}) {source.after} ({places})"
    # Bodies are not read before it is known how large they are.
    found = session.query(
        f"SELECT {source.mark}, r.size_bytes FROM {where} ORDER BY {order} LIMIT ?",
        (*source.parameters, *begin, limit),
    )
    length = size = 0
    while length < len(found) and size <= _BATCH_BYTES:
        size += found[length][-1]
        length += 1
    if not length:
        return HistoryPage({}, None, 0)
    last: Mark = found[length - 1][:4]
    rows = session.query(
        f"SELECT {columns} FROM {where} AND ({key}) {source.up_to} ({places}) ORDER BY {order}",
        (*source.parameters, *begin, *(last if timed else last[1:])),
    )
    walked: dict[Position, Row | None] = {
        position_of(*each[:3]): StoredRow(each) if each[ROW_WIDTH - 1] is not None else None for each in rows
    }
    changed_at = {position_of(*each[:3]): each[_CHANGED_AT] for each in reversed(rows)} if timed else {}
    return HistoryPage(walked, last if length == limit or length < len(found) else None, length, changed_at)
