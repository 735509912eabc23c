"""A walk through a whole table in locked batches, one transaction each, with saved progress.

Indexes are filled and expiry times are recomputed this way while clients write. The rows of a batch are locked as
writers lock them, so they do not change before the transaction ends.
"""

from __future__ import annotations

from typing import NamedTuple

from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.store.rows import rows
from tablegate.gateway.store.sql.databases import Session

# A row may have up to 4 MB.
_BATCH_BYTES = 4_000_000


class LockedBatch(NamedTuple):
    """The rows of a batch, locked until the transaction ends, the mark after the last key, and the number of keys."""

    rows: list[Row]
    mark: bytes
    length: int


def next_batch(session: Session, table: Table, mark: bytes | None, limit: int) -> LockedBatch | None:
    """Return at most `limit` rows after a mark (None for the start). None at the end of the table."""
    positions = rows.positions_after(session, table.id, position_of(mark), limit, _BATCH_BYTES)
    if not positions:
        return None
    keys = sorted((table.id, position) for position in positions)
    rows.claim(session, keys)
    present = rows.fetch_many(session, keys)
    rows.remove_many(session, (), claims=[key for key in keys if key not in present])
    return LockedBatch(list(present.values()), mark_of(positions[-1]), len(positions))


def mark_of(position: Position) -> bytes:
    """Return the mark after a position."""
    return len(position.partition).to_bytes(4, "big") + position.partition + position.sort


def position_of(mark: bytes | None) -> Position | None:
    """Return the position before a mark. None at the start."""
    if not mark:
        return None
    split = 4 + int.from_bytes(mark[:4], "big")
    return Position(mark[4:split], mark[split:])
