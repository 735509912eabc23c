"""Walking a whole table in locked batches, a transaction each, remembering how far it came: how indexes are filled and
expiry times are set anew while writers go on.

Rows are locked as writers lock them, so nobody changes a row between the look and what is made of it.
"""

from __future__ import annotations

from gateway.model.keys import SPREADS, Position
from gateway.model.rows import Row
from gateway.model.tables import Table
from gateway.store import rows
from gateway.store.databases import Session
from gateway.store.scans import Walk, rows_source

BATCH_ROWS = 256


def next_batch(session: Session, table: Table, mark: bytes | None) -> tuple[list[Row], bytes] | None:
    """The next rows after a mark (None: from the start), locked, and the new mark; None when the table is through."""
    source = rows_source(table.id)
    chunk = next(Walk(session, source, BATCH_ROWS).segment(0, SPREADS, _unpack(mark)), None)
    if chunk is None:
        return None
    positions = [source.position(columns) for columns in chunk[:BATCH_ROWS]]
    keys = sorted((table.id, position) for position in positions)
    rows.claim(session, keys)
    present = rows.fetch_many(session, keys)
    if session.is_postgresql:
        rows.remove_many(session, [key for key in keys if key not in present])
    return list(present.values()), _pack(positions[-1])


def _pack(position: Position) -> bytes:
    return len(position.partition).to_bytes(4, "big") + position.partition + position.sort


def _unpack(mark: bytes | None) -> Position | None:
    if not mark:
        return None
    split = 4 + int.from_bytes(mark[:4], "big")
    return Position(mark[4:split], mark[split:])
