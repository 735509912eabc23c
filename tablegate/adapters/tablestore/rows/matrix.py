"""SimpleRowMatrix: rows as a table of values, without names and stamps in each. For GetRange (by hint) and BulkExport.

    file    = magic  data_offset  option_offset  key_count  attribute_count  (each int32)  name*  options  row*  01 crc
    name    = length:int16 bytes
    row     = 02 value*          a value for each name, `06` if the row has none
    options = 0A has_whole_keys:byte  03 row_count:int32
    crc     = over everything before it

Only the newest version of a cell is shown. The options precede the rows, because Java parses everything between
data_offset and the closing 01 as rows. Source: docs/protocols/table-store.md section 3.6, and
aliyun-tablestore-java-sdk, SimpleRowMatrixBlockParser.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from tablegate.adapters.tablestore.wire.checksums import crc8
from tablegate.adapters.tablestore.wire.plainbuffer import encode_value
from tablegate.gateway.model.values.values import Value

MAGIC = 0x304D5253
_HEAD = struct.Struct("<iiiii")
_MISSING = b"\x06"


def encode(
    key_names: Sequence[str],
    names: Sequence[str],
    rows: Sequence[Mapping[str, Value]],
    has_whole_keys: bool = True,
) -> bytes:
    """Return rows as a matrix with these columns. A row is its values by name.

    `has_whole_keys`: the columns include the whole key.
    """
    columns = [*key_names, *names]
    head = b"".join(struct.pack("<h", len(name.encode())) + name.encode() for name in columns)
    options = b"\x0a" + bytes((has_whole_keys,)) + b"\x03" + struct.pack("<i", len(rows))
    option_offset = _HEAD.size + len(head)
    data_offset = option_offset + len(options)
    data = b"".join(_row(columns, row) for row in rows)
    counts = _HEAD.pack(MAGIC, data_offset, option_offset, len(key_names), len(names))
    body = b"".join((counts, head, options, data, b"\x01"))
    return body + bytes((crc8(body),))


def _row(columns: Sequence[str], row: Mapping[str, Value]) -> bytes:
    parts = [b"\x02"]
    for name in columns:
        value = row.get(name)
        parts.append(_MISSING if value is None else encode_value(value))
    return b"".join(parts)
