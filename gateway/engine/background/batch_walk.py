"""Walking a whole table in locked batches, a transaction each, remembering how far it came: how indexes are filled and
expiry times are set anew while writers go on.

Rows are locked as writers lock them, so nobody changes a row between the look and what is made of it.
"""

from __future__ import annotations

from typing import NamedTuple

from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.store.rows import rows
from tablegate.gateway.store.sql.databases import Session

# Rows may have 4 MB.
_BATCH_BYTES = 4_000_000


class LockedBatch(NamedTuple):
    """The rows of a batch, locked until the transaction ends; the mark behind the last of them; how many keys it went over."""

    rows: list[Row]
    mark: bytes
    length: int


def next_batch(session: Session, table: Table, mark: bytes | None, limit: int) -> LockedBatch | None:
    """The next rows after a mark (None: from the start), `limit` at most; None when the table is through."""
    positions = rows.positions_after(session, table.id, position_of(mark), limit, _BATCH_BYTES)
    if not positions:
        return None
    keys = sorted((table.id, position) for position in positions)
    rows.claim(session, keys)
    present = rows.fetch_many(session, keys)
    rows.remove_many(session, (), claims=[key for key in keys if key not in present])
    return LockedBatch(list(present.values()), mark_of(positions[-1]), len(positions))


def mark_of(position: Position) -> bytes:
    """The mark behind a position."""
    return len(position.partition).to_bytes(4, "big") + position.partition + position.sort


def position_of(mark: bytes | None) -> Position | None:
    """The position that a mark is behind; None: the mark is at the start."""
    if not mark:
        return None
    split = 4 + int.from_bytes(mark[:4], "big")
    return Position(mark[4:split], mark[split:])
