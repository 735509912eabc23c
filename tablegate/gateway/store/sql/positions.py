"""Conversion between positions and their SQL columns. Long keys are clipped here and nowhere else.

PostgreSQL refuses an index tuple over 2,704 bytes, and legal keys are longer: DynamoDB 2,048 + 1,024, Table Store four
of 1 KB, and an index entry holds two keys. So partition and sort are each stored in at most 1,280 bytes. Longer ones
are stored as their first 1,248 bytes and the SHA-256 of the whole. A column of exactly 1,280 bytes is a clipped one.

Clipped columns are distinct where the keys are. They have the order of the keys, except among keys that share those
1,248 bytes ("ties"). `full_key` holds the full bytes, and scans order ties by them (gateway/store/rows/scans.py).
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from tablegate.gateway.model.values.keys import SLOT_SHIFT, SLOTS, Position, partition_hash

COLUMN_BYTES = 1_280
KEPT_BYTES = COLUMN_BYTES - hashlib.sha256().digest_size


_new = tuple.__new__  # creates a named tuple in half the time of its own constructor


class StoredPosition(NamedTuple):
    """The columns of a position: partition and sort, clipped if too long, the slot, and the full key if one was
    clipped."""

    partition: bytes
    sort: bytes
    slot: int
    full_key: bytes | None


def stored_position(position: Position) -> StoredPosition:
    """Return the columns under which a position is stored."""
    partition, sort = position
    if len(partition) < COLUMN_BYTES and len(sort) < COLUMN_BYTES:
        return _new(StoredPosition, (partition, sort, SLOTS[partition_hash(partition) >> SLOT_SHIFT], None))
    full_key = len(partition).to_bytes(4, "big") + partition + sort
    return StoredPosition(
        _clip(partition), _clip(sort), SLOTS[partition_hash(partition) >> SLOT_SHIFT], full_key
    )


def position_of(partition: bytes, sort: bytes, full_key: bytes | None) -> Position:
    """Return the position that is stored under these columns."""
    if full_key is None:
        return Position(partition, sort)
    split = 4 + int.from_bytes(full_key[:4], "big")
    return Position(full_key[4:split], full_key[split:])


def lower_bound(data: bytes) -> tuple[bytes, bool]:
    """Return (bound b, exact): every key >= data has a column >= b. If exact, no other key has."""
    return (data, True) if len(data) <= KEPT_BYTES else (data[:KEPT_BYTES], False)


def upper_bound(data: bytes) -> tuple[bytes, bool]:
    """Return (bound b, exact): every key < data has a column < b. If exact, no other key has."""
    if len(data) <= KEPT_BYTES:
        return data, True
    return data[:KEPT_BYTES] + b"\xff" * (COLUMN_BYTES - KEPT_BYTES + 1), False


def _clip(data: bytes) -> bytes:
    return data if len(data) < COLUMN_BYTES else data[:KEPT_BYTES] + hashlib.sha256(data).digest()
