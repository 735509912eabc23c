"""SQL for rows: claim, fetch, save and remove.

Sets of keys are sorted, so that two writers lock in the same order. `Statements` has what differs between databases.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tablegate.gateway.model.commands.row_commands import RowKey
from tablegate.gateway.model.errors import DataCorrupted
from tablegate.gateway.model.values.keys import LOWEST, Position
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.store.rows.scans import StoredRow
from tablegate.gateway.store.sql.checksums import ROW_COLUMNS, ROW_WIDTH, checksum_of
from tablegate.gateway.store.sql.databases import Key, Pending, Session
from tablegate.gateway.store.sql.positions import position_of, stored_position

LOWEST_SLOT = (0, LOWEST, LOWEST)
# Index of the expiry time in checksums.ROW_COLUMNS.
_EXPIRES_AT = 4

COLUMNS = (
    "table_id, partition, sort, slot, modified_at, expires_at_ms, size_bytes, kinds, body, full_key, checksum"
)

# Statements for one row, for every database. `Statements` handles sets of rows.
GET = (
    f"SELECT {ROW_COLUMNS} FROM rows r WHERE r.table_id = ? AND r.partition = ? AND r.sort = ? AND r.slot = ?"
)

# Includes the table's version, so that one statement also verifies the descriptor.
LOOK_UP = f"""
SELECT {ROW_COLUMNS}, t.version
FROM tables t LEFT JOIN rows r ON r.table_id = t.id AND r.partition = ? AND r.sort = ? AND r.slot = ?
WHERE t.id = ?"""

_INSERT = f"INSERT INTO rows ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
INSERT = _INSERT + " ON CONFLICT DO NOTHING"

SAVE = f"""
{_INSERT}
ON CONFLICT (table_id, partition, sort, slot) DO UPDATE SET modified_at = excluded.modified_at,
    expires_at_ms = excluded.expires_at_ms, size_bytes = excluded.size_bytes, kinds = excluded.kinds,
    body = excluded.body, full_key = excluded.full_key, checksum = excluded.checksum"""

REMOVE = "DELETE FROM rows WHERE table_id = ? AND partition = ? AND sort = ? AND slot = ?"
REMOVE_UNCHANGED = REMOVE + " AND modified_at = ?"


def claim(session: Session, keys: Sequence[RowKey]) -> None:
    """Lock these keys until the transaction ends, with or without rows. `keys` must be sorted and unique."""
    if keys:
        session.statements.claim_rows(session, _stored_keys(keys))


def fetch_many(session: Session, keys: Sequence[RowKey]) -> dict[RowKey, Row]:
    """Return the existing rows by key."""
    if not keys:
        return {}
    columns_of_rows = session.statements.fetch_rows(session, _stored_keys(keys))()
    return {keys[at]: StoredRow(columns) for at, columns in columns_of_rows}


def claim_and_fetch(session: Session, keys: Sequence[RowKey]) -> Pending[dict[RowKey, Row]]:
    """Lock these keys as `claim` does, and return the existing rows by key."""
    if not keys:
        return dict
    stored_keys = _stored_keys(keys)
    session.statements.claim_rows(session, stored_keys)
    answer = session.statements.fetch_rows(session, stored_keys)
    return lambda: {keys[at]: StoredRow(columns) for at, columns in answer()}


def look_up(session: Session, keys: Sequence[RowKey]) -> tuple[dict[RowKey, Row], dict[int, int]]:
    """Return the existing rows by key, and the versions of the existing tables by id."""
    rows: dict[RowKey, Row] = {}
    versions: dict[int, int] = {}
    for at, columns in session.statements.look_up_rows(session, _stored_keys(keys))():
        key = keys[at]
        versions[key[0]] = columns[ROW_WIDTH]
        if columns[ROW_WIDTH - 1] is not None:
            rows[key] = StoredRow(columns)
    return rows, versions


def are_unchanged(session: Session, rows_by_key: Mapping[RowKey, Row]) -> bool:
    """Return True if rows that were read at several nodes are certainly all of one moment. See Statements."""
    versions = [
        (*key, rows_by_key[at].modified_at)
        for at, key in zip(rows_by_key, _stored_keys([*rows_by_key]), strict=True)
    ]
    return session.statements.are_unchanged(session, versions)


def save_many(session: Session, rows: Iterable[tuple[int, Row]]) -> None:
    """Insert or replace rows, given as (table id, row) and sorted by key. Their keys must be claimed."""
    values = _columns(rows)
    if values:
        session.statements.save_rows(session, values)


def load(session: Session, rows: Iterable[tuple[int, Row]]) -> None:
    """Insert many new rows, given as (table id, row) and sorted by key. Raises KeyOccupied if a row exists."""
    session.statements.load_rows(session, _columns(rows))


def remove_many(session: Session, keys: Sequence[RowKey], claims: Sequence[RowKey] = ()) -> None:
    """Delete rows, and release claims on keys that neither have nor need a row."""
    if keys or claims:
        session.statements.remove_rows(session, _stored_keys(keys), _stored_keys(claims))


def remove_unchanged(session: Session, rows: Sequence[tuple[int, Row]]) -> bool:
    """Delete rows, given as (table id, row), that have not changed since they were read.

    Return False if one of them has changed, or is locked by another transaction. The transaction must then be rolled
    back.
    """
    versions = sorted(
        (table_id, *stored_position(row.position)[:3], row.modified_at) for table_id, row in rows
    )
    return session.statements.remove_unchanged_rows(session, versions) == len(versions)


def positions_after(
    session: Session, table_id: int, after: Position | None, limit: int, limit_bytes: int
) -> list[Position]:
    """Return the next positions of a table, ordered by slot and columns.

    At most `limit` positions of rows with at most `limit_bytes` together, but at least one if any is left. Bodies are not
    read.
    """
    slot, partition, sort = LOWEST_SLOT
    if after is not None:
        stored_key = stored_position(after)
        slot, partition, sort = stored_key.slot, stored_key.partition, stored_key.sort + b"\x00"
    keys = session.query(
        "SELECT partition, sort, full_key, size_bytes FROM rows WHERE table_id = ? AND (slot, partition, sort) >= (?, ?, ?)"
        " ORDER BY slot, partition, sort LIMIT ?",
        (table_id, slot, partition, sort, limit),
    )
    positions: list[Position] = []
    for *key, size_bytes in keys:
        limit_bytes -= size_bytes
        if positions and limit_bytes < 0:
            break
        positions.append(position_of(*key))
    return positions


def expired(
    session: Session, between_ms: tuple[int, int], limit: int, offset: int = 0
) -> tuple[list[tuple[int, Row]], int | None, list[DataCorrupted]]:
    """Return rows that expire between two times (inclusive) as (table id, row), oldest expiry first, after an offset.

    Also returns the last time read (None if there is no row), and the errors of damaged rows. A damaged row does not
    prevent the others from being returned.
    """
    expired_rows: list[tuple[int, Row]] = []
    errors: list[DataCorrupted] = []
    last_ms: int | None = None
    rows = session.query(
        f"SELECT {ROW_COLUMNS}, r.table_id FROM rows r"
        " WHERE r.expires_at_ms IS NOT NULL AND r.expires_at_ms BETWEEN ? AND ? ORDER BY r.expires_at_ms"
        " LIMIT ? OFFSET ?",
        (*between_ms, limit, offset),
    )
    for columns in rows:
        last_ms = columns[_EXPIRES_AT]
        try:
            expired_rows.append((columns[ROW_WIDTH], StoredRow(columns)))
        except DataCorrupted as error:
            errors.append(error)
    return expired_rows, last_ms, errors


def count_expired(session: Session, now_ms: int, at_most: int) -> int:
    """Return the number of rows that are due by their column `expires_at_ms`. Stops counting at a number."""
    [(number,)] = session.query(
        "SELECT count(*) FROM (SELECT 1 FROM rows WHERE expires_at_ms IS NOT NULL AND expires_at_ms <= ? LIMIT ?)"
        " AS counted",
        (now_ms, at_most),
    )
    return number


def set_expiry(session: Session, rows: Iterable[tuple[int, Row]]) -> None:
    """Update only the expiry times of rows, given as (table id, row). Skips rows that have changed, and keeps
    `modified_at`."""
    session.execute_many(
        "UPDATE rows SET expires_at_ms = ?"
        " WHERE table_id = ? AND partition = ? AND sort = ? AND slot = ? AND modified_at = ?",
        [
            (row.expires_at_ms, table_id, *stored_position(row.position)[:3], row.modified_at)
            for table_id, row in rows
        ],
    )


def count(session: Session, table_id: int) -> tuple[int, int]:
    """Return the number of rows of a table and their billed bytes."""
    [(number, size)] = session.query(
        "SELECT count(*), COALESCE(sum(size_bytes), 0) FROM rows WHERE table_id = ?", (table_id,)
    )
    return number, int(size)


def _columns(rows: Iterable[tuple[int, Row]]) -> list[tuple[object, ...]]:
    """Return rows, given as (table id, row), in the order of COLUMNS."""
    columns: list[tuple[object, ...]] = []
    for table_id, row in rows:
        partition, sort, slot, full_key = stored_position(row.position)
        contents = row.contents
        body, kinds, size_bytes = contents.body, contents.kinds, contents.size_bytes
        columns.append(
            (
                table_id,
                partition,
                sort,
                slot,
                row.modified_at,
                row.expires_at_ms,
                size_bytes,
                kinds,
                body,
                full_key,
                checksum_of(partition, sort, full_key, row.modified_at, size_bytes, kinds, body),
            )
        )
    return columns


def _stored_keys(keys: Sequence[RowKey]) -> list[Key]:
    return [(table_id, *stored_position(position)[:3]) for table_id, position in keys]


def copy(session: Session, table_id: int, to: int, expires: bool) -> None:
    """Copy the rows of a table to another one that is empty. Expiry times are dropped if not `expires`."""
    columns = "partition, sort, slot, modified_at, {}, size_bytes, kinds, body, full_key, checksum"
    session.execute(
        f"INSERT INTO rows ({COLUMNS}) SELECT {session.statements.big_number}, "
        f"{columns.format('expires_at_ms' if expires else 'NULL')} FROM rows WHERE table_id = ? AND body IS NOT NULL",
        (to, table_id),
    )
