"""Rows as SQL: claim, fetch, save, remove.

Knows columns and sets of keys; knows nothing of why a row changes. On PostgreSQL sets go over as arrays, sorted by key,
so that two writers lock in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gateway.model.keys import LOWEST, Position
from gateway.model.rows import Row
from gateway.store.databases import Session
from gateway.store.positions import Place, place_of, position_of
from gateway.store.scans import ROW_COLUMNS, ROW_WIDTH, StoredRow

RowKey = tuple[int, Position]
"""(table id, position)."""

LOWEST_SLOT = (0, LOWEST, LOWEST)

_GET = (
    f"SELECT {ROW_COLUMNS} FROM rows r WHERE r.table_id = ? AND r.partition = ? AND r.sort = ? AND r.slot = ?"
)

# LIMIT 1 keeps the planner from turning the look-ups into a join by scan.
_GET_MANY = f"""
SELECT {ROW_COLUMNS}, k.ordinal
FROM unnest(?::bigint[], ?::bytea[], ?::bytea[], ?::smallint[]) WITH ORDINALITY AS k(table_id, partition, sort, slot, ordinal)
CROSS JOIN LATERAL (
    SELECT * FROM rows s
    WHERE s.table_id = k.table_id AND s.partition = k.partition AND s.sort = k.sort AND s.slot = k.slot LIMIT 1
) r WHERE r.body IS NOT NULL"""

# WHERE false: rows that are there are locked and left as they are; what is not there is claimed with an empty row.
_CLAIM = """
INSERT INTO rows (table_id, partition, sort, slot, modified_at, size_bytes)
SELECT k.table_id, k.partition, k.sort, k.slot, 0, 0
FROM unnest(?::bigint[], ?::bytea[], ?::bytea[], ?::smallint[]) AS k(table_id, partition, sort, slot)
ON CONFLICT (table_id, partition, sort, slot) DO UPDATE SET size_bytes = 0 WHERE false"""

_SAVE = """
INSERT INTO rows (table_id, partition, sort, slot, modified_at, expires_at_ms, size_bytes, kinds, body, full_key)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (table_id, partition, sort, slot) DO UPDATE SET modified_at = excluded.modified_at,
    expires_at_ms = excluded.expires_at_ms, size_bytes = excluded.size_bytes, kinds = excluded.kinds,
    body = excluded.body, full_key = excluded.full_key"""

_SAVE_MANY = """
UPDATE rows r SET modified_at = k.modified_at, expires_at_ms = k.expires_at_ms, size_bytes = k.size_bytes,
    kinds = k.kinds, body = k.body, full_key = k.full_key
FROM unnest(?::bigint[], ?::bytea[], ?::bytea[], ?::smallint[], ?::bigint[], ?::bigint[], ?::int[], ?::bytea[], ?::bytea[],
    ?::bytea[]) AS k(table_id, partition, sort, slot, modified_at, expires_at_ms, size_bytes, kinds, body, full_key)
WHERE r.table_id = k.table_id AND r.partition = k.partition AND r.sort = k.sort AND r.slot = k.slot"""

# Over whatever is there, `modified_at` growing nonetheless; but rows with kinds of another dialect are left as they are.
_COLUMNS = "table_id, partition, sort, slot, modified_at, expires_at_ms, size_bytes, kinds, body, full_key"
_PUT = """
ON CONFLICT (table_id, partition, sort, slot) DO UPDATE SET
    modified_at = %s(excluded.modified_at, rows.modified_at + 1), expires_at_ms = excluded.expires_at_ms,
    size_bytes = excluded.size_bytes, kinds = excluded.kinds, body = excluded.body, full_key = excluded.full_key
WHERE rows.kinds IS NULL"""
_PUT_ONE = f"INSERT INTO rows ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_PUT_ON_SQLITE = _PUT_ONE + _PUT % "max"
_PUT_ON_POSTGRESQL = _PUT_ONE + _PUT % "greatest"
_PUT_MANY = (
    f"""
INSERT INTO rows ({_COLUMNS})
SELECT * FROM unnest(?::bigint[], ?::bytea[], ?::bytea[], ?::smallint[], ?::bigint[], ?::bigint[], ?::int[], ?::bytea[],
    ?::bytea[], ?::bytea[])"""
    + _PUT % "greatest"
)

_INSERT_ONE = _PUT_ONE + " ON CONFLICT DO NOTHING"
_INSERT_MANY = f"""
INSERT INTO rows ({_COLUMNS})
SELECT * FROM unnest(?::bigint[], ?::bytea[], ?::bytea[], ?::smallint[], ?::bigint[], ?::bigint[], ?::int[], ?::bytea[],
    ?::bytea[], ?::bytea[])
ON CONFLICT DO NOTHING"""

_REMOVE = "DELETE FROM rows WHERE table_id = ? AND partition = ? AND sort = ? AND slot = ?"

# With the versions of the tables, so that one statement is enough to know that their descriptors are not out of date.
_LOOK_UP = f"""
SELECT {ROW_COLUMNS}, t.version
FROM tables t LEFT JOIN rows r ON r.table_id = t.id AND r.partition = ? AND r.sort = ? AND r.slot = ?
WHERE t.id = ?"""

_LOOK_UP_MANY = f"""
SELECT {ROW_COLUMNS}, t.version, k.ordinal
FROM unnest(?::bigint[], ?::bytea[], ?::bytea[], ?::smallint[]) WITH ORDINALITY AS k(table_id, partition, sort, slot, ordinal)
JOIN tables t ON t.id = k.table_id
LEFT JOIN LATERAL (
    SELECT * FROM rows s
    WHERE s.table_id = k.table_id AND s.partition = k.partition AND s.sort = k.sort AND s.slot = k.slot LIMIT 1
) r ON true"""

_REMOVE_MANY = """
DELETE FROM rows r USING unnest(?::bigint[], ?::bytea[], ?::bytea[], ?::smallint[]) AS k(table_id, partition, sort, slot)
WHERE r.table_id = k.table_id AND r.partition = k.partition AND r.sort = k.sort AND r.slot = k.slot"""


def claim(session: Session, keys: Sequence[RowKey]) -> None:
    """Lock these keys until the transaction ends, whether or not they have rows. `keys` sorted, without repeats.

    On SQLite the write transaction is the lock.
    """
    if session.is_postgresql and keys:
        session.send(_CLAIM, _arrays(keys))


def fetch_many(session: Session, keys: Sequence[RowKey]) -> dict[RowKey, Row]:
    """The rows that are there, by key."""
    return ask_many(session, keys)()


def ask_many(session: Session, keys: Sequence[RowKey]) -> Callable[[], dict[RowKey, Row]]:
    """The same, to be had by calling what this returns (Session.ask)."""
    if not session.is_postgresql:
        found = _fetch_singly(session, keys)
        return lambda: found
    if not keys:
        return dict
    if len(keys) == 1:
        [(table_id, position)] = keys
        place = place_of(position)
        answer = session.ask(_GET, (table_id, place.partition, place.sort, place.slot))
        return lambda: {
            key: StoredRow(columns) for key, columns in zip(keys, _with_body(answer()), strict=False)
        }
    answer = session.ask(_GET_MANY, _arrays(keys))
    return lambda: {keys[columns[ROW_WIDTH] - 1]: StoredRow(columns) for columns in answer()}


def _with_body(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Without claims, which have no row yet."""
    return [columns for columns in rows if columns[ROW_WIDTH - 1] is not None]


def _fetch_singly(session: Session, keys: Sequence[RowKey]) -> dict[RowKey, Row]:
    found: dict[RowKey, Row] = {}
    for table_id, position in keys:
        place = place_of(position)
        rows = session.query(_GET, (table_id, place.partition, place.sort, place.slot))
        if rows and rows[0][ROW_WIDTH - 1] is not None:
            found[table_id, position] = StoredRow(rows[0])
    return found


def look_up(session: Session, keys: Sequence[RowKey]) -> tuple[dict[RowKey, Row], dict[int, int]]:
    """(the rows that are there, by key; version by id of the tables that are there), in one statement of PostgreSQL."""
    if len(keys) == 1:
        [(table_id, position)] = keys
        place = place_of(position)
        answer = session.query(_LOOK_UP, (place.partition, place.sort, place.slot, table_id))
        at = [keys[0]] * len(answer)
    else:
        answer = session.query(_LOOK_UP_MANY, _arrays(keys))
        at = [keys[columns[ROW_WIDTH + 1] - 1] for columns in answer]
    versions = {key[0]: columns[ROW_WIDTH] for key, columns in zip(at, answer, strict=True)}
    found: dict[RowKey, Row] = {
        key: StoredRow(columns)
        for key, columns in zip(at, answer, strict=True)
        if columns[ROW_WIDTH - 1] is not None
    }
    return found, versions


def save_many(session: Session, rows: Iterable[tuple[int, Row]]) -> None:
    """Store rows over what is there: (table id, row). On PostgreSQL their keys have been claimed."""
    values = [_columns(table_id, row) for table_id, row in rows]
    if not values:
        return
    if session.is_postgresql and len(values) > 1:
        session.send(_SAVE_MANY, list(zip(*values, strict=True)))
    elif len(values) == 1:
        session.send(_SAVE, values[0])
    else:
        session.execute_many(_SAVE, values)


def ask_put_many(session: Session, rows: Iterable[tuple[int, Row]]) -> Callable[[], int]:
    """Store rows, (table id, row), sorted by key, without a look at what is there. How many were stored, to be had by
    calling what this returns (Session.ask): the others stand where a row has kinds of its own, which the new one may have to
    take over. A row whose `modified_at` is not later than that of what was there gets the next one."""
    if not session.is_postgresql:
        return _ask_many(session, _PUT_ON_SQLITE, "", rows)
    return _ask_many(session, _PUT_ON_POSTGRESQL, _PUT_MANY, rows)


def ask_insert_many(session: Session, rows: Iterable[tuple[int, Row]]) -> Callable[[], int]:
    """Store rows, (table id, row), sorted by key, where there are none. How many were stored, to be had by calling what this
    returns (Session.ask)."""
    return _ask_many(session, _INSERT_ONE, _INSERT_MANY, rows)


def _ask_many(
    session: Session, of_one: str, of_many: str, rows: Iterable[tuple[int, Row]]
) -> Callable[[], int]:
    values = [_columns(table_id, row) for table_id, row in rows]
    if not session.is_postgresql:
        count = session.execute_many(of_one, values)
        return lambda: count
    if len(values) == 1:
        return session.ask_count(of_one, values[0])
    return session.ask_count(of_many, list(zip(*values, strict=True)))


def remove_many(session: Session, keys: Sequence[RowKey]) -> None:
    """Delete rows, and claims that came to nothing."""
    if not keys:
        return
    if session.is_postgresql and len(keys) > 1:
        session.send(_REMOVE_MANY, _arrays(keys))
        return
    for table_id, position in keys:
        place = place_of(position)
        session.send(_REMOVE, (table_id, place.partition, place.sort, place.slot))


def positions_after(
    session: Session, table_id: int, after: Position | None, limit: int, limit_bytes: int
) -> list[Position]:
    """The next positions of a table by slot and columns, one at least if there are any: `limit` at most, and no more rows
    than have so many bytes together. Bodies are not read."""
    slot, partition, sort = LOWEST_SLOT
    if after is not None:
        place = place_of(after)
        slot, partition, sort = place.slot, place.partition, place.sort + b"\x00"
    found = session.query(
        "SELECT partition, sort, full_key, size_bytes FROM rows WHERE table_id = ? AND (slot, partition, sort) >= (?, ?, ?)"
        " ORDER BY slot, partition, sort LIMIT ?",
        (table_id, slot, partition, sort, limit),
    )
    positions: list[Position] = []
    for *key, size_bytes in found:
        limit_bytes -= size_bytes
        if positions and limit_bytes < 0:
            break
        positions.append(position_of(*key))
    return positions


def expired(session: Session, now_ms: int, limit: int) -> list[tuple[int, Row]]:
    """Some rows whose time is over: (table id, row), oldest first."""
    rows = session.query(
        f"SELECT {ROW_COLUMNS}, r.table_id FROM rows r WHERE r.expires_at_ms IS NOT NULL AND r.expires_at_ms <= ?"
        " ORDER BY r.expires_at_ms LIMIT ?",
        (now_ms, limit),
    )
    return [(columns[ROW_WIDTH], StoredRow(columns)) for columns in rows]


def set_expiry(session: Session, rows: Iterable[tuple[int, Row]]) -> None:
    """Store only when rows expire, (table id, row), if they are still what they were; `modified_at` stays."""
    session.execute_many(
        "UPDATE rows SET expires_at_ms = ?"
        " WHERE table_id = ? AND partition = ? AND sort = ? AND slot = ? AND modified_at = ?",
        [
            (row.expires_at_ms, table_id, *place_of(row.position)[:3], row.modified_at)
            for table_id, row in rows
        ],
    )


def count(session: Session, table_id: int) -> tuple[int, int]:
    """(rows, billed bytes) of a table."""
    [(number, size)] = session.query(
        "SELECT count(*), COALESCE(sum(size_bytes), 0) FROM rows WHERE table_id = ?", (table_id,)
    )
    return number, int(size)


def _columns(table_id: int, row: Row) -> tuple[object, ...]:
    place: Place = place_of(row.position)
    contents = row.contents
    return (
        table_id,
        place.partition,
        place.sort,
        place.slot,
        row.modified_at,
        row.expires_at_ms,
        contents.size_bytes,
        contents.kinds,
        contents.body,
        place.full_key,
    )


def _arrays(keys: Sequence[RowKey]) -> list[list[object]]:
    places = [(table_id, place_of(position)) for table_id, position in keys]
    return [
        [table_id for table_id, _ in places],
        [place.partition for _, place in places],
        [place.sort for _, place in places],
        [place.slot for _, place in places],
    ]
