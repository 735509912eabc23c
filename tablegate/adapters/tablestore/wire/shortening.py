"""Truncation of large serialized messages before they are parsed.

A message of two bytes becomes an object of more than a hundred: 10 MB of them took 700 MB and 0.4 s. Lists with a limit
keep one element too many, so that validation still refuses the request. Encoding: protobuf.dev, "Encoding".
"""

from __future__ import annotations

from collections import Counter
from functools import cache

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from tablegate.adapters.tablestore.wire import limits

LARGE_BYTES = 64 << 10
"""Shorter requests are not truncated."""
# Shorter messages inside requests are not truncated.
_SHORT_BYTES = 4096
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_VARINT_MAX_BYTES = 10
# Maximum number of messages of a type in a request. Validation refuses more.
_MOST_COUNTED = {
    "ColumnValueFilter": limits.FILTER_NODES_MAX,
    "DefinedColumnSchema": limits.DEFINED_COLUMNS_MAX,
    "FieldSchema": limits.SEARCH_FIELDS_MAX,
    "Filter": limits.FILTER_NODES_MAX,
    "IndexMeta": limits.INDEXES_MAX,
    "PartitionRange": limits.PARTITIONS_MAX,
    "PrimaryKeySchema": limits.KEY_COLUMNS_MAX,
    "Query": limits.QUERIES_MAX,
    "RowInBatchWriteRowRequest": limits.BATCH_WRITE_ROWS_MAX,
    "RowInBulkImportRequest": limits.BATCH_WRITE_ROWS_MAX,
    "TableInBatchGetRowRequest": limits.BATCH_GET_ROWS_MAX,
    "TableInBatchWriteRowRequest": limits.BATCH_WRITE_ROWS_MAX,
}
# Maximum for all other types: a row of a batch has one of each.
_MOST_OTHERS = limits.BATCH_WRITE_ROWS_MAX
# Maximum number of fields of a message: names of columns, keys and tokens of a table in a batch, and all others.
_MOST_FIELDS = limits.COLUMNS_MAX + 2 * limits.BATCH_GET_ROWS_MAX + 50


class TooManyFields(Exception):
    """A message has more fields than any valid request."""


class _Unreadable(Exception):
    """The bytes are not a message."""


def shorten(data: bytes, descriptor: Descriptor) -> bytes:
    """Return a serialized message whose lists have at most one element too many. Raises TooManyFields.

    Invalid bytes are returned unchanged, and the parser refuses them.
    """
    try:
        return _shorten(data, descriptor, Counter())
    except (_Unreadable, IndexError):
        return data


def _shorten(data: bytes, descriptor: Descriptor, counts: Counter[str]) -> bytes:
    """Truncate a message. `counts`: number of messages of each type so far."""
    messages = _message_fields(descriptor)
    pieces: list[bytes] = []
    at = kept_up_to = fields = 0
    end = len(data)
    while at < end:
        start = at
        tag, at = _varint(data, at)
        if tag & 7 == _BYTES:
            size, content_at = _varint(data, at)
            at = content_at + size
        else:
            at = _after_number(data, at, tag & 7)
        fields += 1
        inner = messages.get(tag >> 3) if tag & 7 == _BYTES else None
        if fields > _MOST_FIELDS:
            raise TooManyFields
        if inner is None:
            continue
        if _is_one_too_many(inner.name, counts):
            return b"".join([*pieces, data[kept_up_to:start]])
        if size > _SHORT_BYTES:
            content = data[content_at:at]
            short = _shorten(content, inner, counts)
            if short is not content:
                pieces += [data[kept_up_to:start], _frame(tag, short)]
                kept_up_to = at
    return b"".join([*pieces, data[kept_up_to:]]) if pieces else data


def _is_one_too_many(name: str, counts: Counter[str]) -> bool:
    counts[name] += 1
    fields_max = _MOST_COUNTED.get(name)
    if fields_max is None and counts[name] > _MOST_OTHERS:
        raise TooManyFields
    return fields_max is not None and counts[name] > fields_max + 1


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number and the offset of its end."""
    number = data[at]
    if number < 0x80:
        return number, at + 1
    number &= 0x7F
    for place in range(1, _VARINT_MAX_BYTES):
        byte = data[at + place]
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return number, at + place + 1
    raise _Unreadable


def _after_number(data: bytes, at: int, wire_type: int) -> int:
    if wire_type == _VARINT:
        return _varint(data, at)[1]
    if wire_type in (_FIXED32, _FIXED64):
        return at + (4 if wire_type == _FIXED32 else 8)
    raise _Unreadable


def _frame(tag: int, content: bytes) -> bytes:
    return _encode(tag) + _encode(len(content)) + content


def _encode(number: int) -> bytes:
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


@cache
def _message_fields(descriptor: Descriptor) -> dict[int, Descriptor]:
    """Return the message types of fields, by field number."""
    return {
        field.number: field.message_type
        for field in descriptor.fields
        if field.type == FieldDescriptor.TYPE_MESSAGE and field.message_type is not None
    }
