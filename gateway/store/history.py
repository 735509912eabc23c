"""What rows were before they changed, as SQL: begin, record, trim, end; and a table's rows as they were at a moment.

A row of `history` says what one row was from `since` until `changed_at`: of one key these intervals follow each other, so that
at most one of them holds a moment. Where none does the row has not changed since, and is what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from gateway.model.keys import Position
from gateway.model.rows import Row
from gateway.store.databases import Session
from gateway.store.positions import stored_position
from gateway.store.scans import ROW_COLUMNS, StoredRow

_COLUMNS = (
    "history_id, slot, partition, sort, changed_at, since, full_key, modified_at, size_bytes, kinds, body"
)
_IMAGE = "r.partition, r.sort, r.full_key, r.modified_at, NULL, r.size_bytes, r.kinds, r.body"
_BATCH_BYTES = 4_000_000

HistoryKey = tuple[int, Position]
"""(history id, position of the row)."""
Mark = tuple[int, bytes, bytes]
"""How far a walk by slot and columns has come."""


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
    session.execute("DELETE FROM histories WHERE id = ?", (history_id,))
    session.execute("INSERT INTO purges (kind, id) VALUES ('history', ?)", (history_id,))


def kept_for_days(session: Session) -> list[tuple[int, int, int | None]]:
    """(id, days, the earliest moment in it, in ticks, that is being copied) of every history that is kept for a time."""
    found = session.query(
        "SELECT h.id, h.days, (SELECT min(c.at) FROM copies c WHERE c.history_id = h.id) FROM histories h"
        " WHERE h.days IS NOT NULL ORDER BY h.id"
    )
    return [(history_id, days, at) for history_id, days, at in found]


def latest_change(session: Session, history_id: int) -> int:
    """When the last change in a history was, in ticks; 0: there is none."""
    [(at,)] = session.query(
        "SELECT COALESCE(max(changed_at), 0) FROM history WHERE history_id = ?", (history_id,)
    )
    return int(at)


# Recording


def ask_latest(session: Session, keys: Iterable[HistoryKey]) -> Callable[[], dict[HistoryKey, int]]:
    """When these rows changed last, in ticks, if that is in the history; to be had by calling what this returns (Session.ask).
    The rows have been claimed."""
    asked = [
        (
            key,
            session.ask(
                "SELECT max(changed_at) FROM history"
                " WHERE history_id = ? AND slot = ? AND partition = ? AND sort = ?",
                (key[0], *_mark(key[1])),
            ),
        )
        for key in keys
    ]
    return lambda: {key: at for key, answer in asked if (at := answer()[0][0]) is not None}


def record(
    session: Session, changed: Iterable[tuple[HistoryKey, Row | None]], at: int, latest: dict[HistoryKey, int]
) -> None:
    """Note what rows (None: no row) were until a moment that is later than any of `latest`."""
    values = [_values(key, at, latest.get(key, 0), row) for key, row in changed]
    session.execute_many(f"INSERT INTO history ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)


def _values(key: HistoryKey, at: int, since: int, row: Row | None) -> tuple[Any, ...]:
    partition, sort, slot, full_key = stored_position(key[1])
    image = (None, 0, None, None) if row is None else (row.modified_at, row.size_bytes, row.kinds, row.body)
    return (key[0], slot, partition, sort, at, since, full_key, *image)


def _mark(position: Position) -> Mark:
    partition, sort, slot, _ = stored_position(position)
    return slot, partition, sort


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


# A table as it was


class Moment(NamedTuple):
    """A history and a time in it, in ticks."""

    history_id: int
    at: int


class RowsThen(NamedTuple):
    """Some rows of a table as they were; the mark to go on after, None when the table is through; how many keys it went over."""

    rows: list[Row]
    mark: Mark | None
    length: int


def page(session: Session, table_id: int, moment: Moment | None, mark: Mark | None, limit: int) -> RowsThen:
    """The next rows after a mark (None: from the start) of a table as it was (None: as it is), by slot and columns. The session
    is one snapshot: so nothing is locked, and writers go on."""
    after = mark or (0, b"", b"")
    present = _Source("rows r", "r.table_id = ?", (table_id,))
    upper = _upper(session, present, after, limit, None)
    found = {}
    if moment is not None:
        past = _Source(
            "history r",
            "r.history_id = ? AND r.changed_at > ? AND r.since <= ?",
            (moment.history_id, moment.at, moment.at),
        )
        upper = _upper(session, past, after, limit, upper)
        found = {columns[:2]: columns for columns in _between(session, past, _IMAGE, after, upper)}
    rows: list[Row] = [
        StoredRow(columns)
        for columns in _between(session, present, ROW_COLUMNS, after, upper)
        if columns[:2] not in found
    ]
    length = len(rows) + len(found)
    rows += [StoredRow(columns) for columns in found.values() if columns[-1] is not None]
    return RowsThen(rows, upper, length)


class _Source(NamedTuple):
    """What is read: the table of SQL, called r, and which of it."""

    tables: str
    where: str
    parameters: tuple[int, ...]


_ORDER = "ORDER BY r.slot, r.partition, r.sort"


def _upper(session: Session, source: _Source, after: Mark, limit: int, upper: Mark | None) -> Mark | None:
    """How far to read so that there are no more rows than `limit` and not many bytes; `upper` at most. Bodies are not read."""
    where, parameters = _bounded(source, after, upper)
    found = session.query(
        f"SELECT r.slot, r.partition, r.sort, r.size_bytes FROM {source.tables} WHERE {where} {_ORDER} LIMIT ?",
        (*parameters, limit),
    )
    size = 0
    for at, (*key, size_bytes) in enumerate(found, 1):
        size += size_bytes
        if at == limit or size > _BATCH_BYTES:
            return key[0], key[1], key[2]
    return upper


def _between(
    session: Session, source: _Source, columns: str, after: Mark, upper: Mark | None
) -> Sequence[tuple[Any, ...]]:
    where, parameters = _bounded(source, after, upper)
    return session.query(f"SELECT {columns} FROM {source.tables} WHERE {where} {_ORDER}", parameters)


def _bounded(source: _Source, after: Mark, upper: Mark | None) -> tuple[str, tuple[Any, ...]]:
    where = f"{source.where} AND (r.slot, r.partition, r.sort) > (?, ?, ?)"
    if upper is None:
        return where, (*source.parameters, *after)
    return f"{where} AND (r.slot, r.partition, r.sort) <= (?, ?, ?)", (*source.parameters, *after, *upper)
