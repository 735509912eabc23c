"""Encoding of rows in the binary format of PostgreSQL's COPY, which needs no parsing of text.

The format is described under "COPY", "Binary Format" in PostgreSQL's documentation.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

_HEADER = b"PGCOPY\n\xff\r\n\x00" + struct.pack(">ii", 0, 0)
_TRAILER = struct.pack(">h", -1)
_NULL = struct.pack(">i", -1)

_length = struct.Struct(">i").pack
# Each field is its length and its value. A row begins with the number of its columns. `_head` packs that number, the
# table id and the length of the partition. `_slot_and_time` packs the fields of the slot and of the time of the last
# write.
_head = struct.Struct(">hiqi").pack
_slot_and_time = struct.Struct(">ihiq").pack
_bigint = struct.Struct(">iq").pack
_integer = struct.Struct(">ii").pack


def encode(rows: Sequence[tuple[Any, ...]]) -> bytes:
    """Return rows, with columns in the order of rows.COLUMNS, as the input of a binary COPY."""
    parts = [_HEADER]
    for (
        table_id,
        partition,
        sort,
        slot,
        modified_at,
        expires_at_ms,
        size_bytes,
        kinds,
        body,
        full_key,
        checksum,
    ) in rows:
        parts += (
            _head(11, 8, table_id, len(partition)), partition,
            _length(len(sort)), sort,
            _slot_and_time(2, slot, 8, modified_at),
            _NULL if expires_at_ms is None else _bigint(8, expires_at_ms),
            _integer(4, size_bytes),
            _NULL if kinds is None else _length(len(kinds)) + kinds,
            _length(len(body)), body,
            _NULL if full_key is None else _length(len(full_key)) + full_key,
            _bigint(8, checksum),
        )  # fmt: skip
    parts.append(_TRAILER)
    return b"".join(parts)
