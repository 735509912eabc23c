"""Parsing of protobuf messages, with validation of required fields and of UTF-8 in strings.

Large messages are truncated before they are parsed. A message of two bytes becomes an object of more than a hundred:
10 MB of them took 700 MB and 0.4 s. Lists with a limit keep one element too many, so that validation still refuses the
request. Encoding: protobuf.dev, "Encoding".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import invalid
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as search_messages
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.errors import Busy

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


def shorten_fields(data: bytes, descriptor: Descriptor) -> bytes:
    """Return a serialized message whose lists have at most one element too many. Raises TooManyFields.

    Invalid bytes are returned unchanged, and the parser refuses them.
    """
    try:
        return _shorten_fields(data, descriptor, Counter())
    except (_Unreadable, IndexError):
        return data


def _shorten_fields(data: bytes, descriptor: Descriptor, counts: Counter[str]) -> bytes:
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
            short = _shorten_fields(content, inner, counts)
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


MessageT = TypeVar("MessageT", bound=Message)

_RECURSIVE = (search_messages.FieldSchema.DESCRIPTOR,)
_STRING, _MESSAGE = FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_MESSAGE


def parse(kind: type[MessageT], data: bytes, subject: str) -> MessageT:
    """Parse a message. `subject`: its name in error texts. Raises ServiceError, Busy."""
    message = kind()
    try:
        if len(data) > LARGE_BYTES:
            data = shorten_fields(data, cast(Descriptor, kind.DESCRIPTOR))
        message.ParseFromString(data)
    except (DecodeError, TooManyFields):
        raise invalid(f"Failed to parse {subject}.") from None
    except MemoryError:
        raise Busy("not enough memory to parse a message") from None
    _shorten_lists(message)
    if not message.IsInitialized():
        missing = ", ".join(message.FindInitializationErrors())[:_ERROR_MAX_CHARACTERS]  # type: ignore[attr-defined]
        raise invalid(f"Failed to parse {subject}, missing required fields: {missing}.")
    if not _has_only_text(message):
        raise invalid(f"Failed to parse {subject}, a string is not UTF-8.")
    return message


# Maximum length of a part of an error text.
_ERROR_MAX_CHARACTERS = 4096


# Maximum lengths of lists. Longer lists are truncated to one element more, and validation refuses them.
_MOST: dict[type[Message], tuple[tuple[str, int], ...]] = {
    messages.CompositeColumnValueFilter: (("sub_filters", limits.FILTER_NODES_MAX),),
    messages.CreateTableRequest: (("index_metas", limits.INDEXES_MAX), ("partitions", limits.PARTITIONS_MAX)),
    messages.TableMeta: (
        ("primary_key", limits.KEY_COLUMNS_MAX),
        ("defined_column", limits.DEFINED_COLUMNS_MAX),
    ),
    messages.IndexMeta: (
        ("primary_key", limits.KEY_COLUMNS_MAX),
        ("defined_column", limits.DEFINED_COLUMNS_MAX),
    ),
    messages.AddDefinedColumnRequest: (("columns", limits.DEFINED_COLUMNS_MAX),),
    messages.BulkImportRequest: (("rows", limits.BATCH_WRITE_ROWS_MAX),),
}


def _shorten_lists(message: Message) -> None:
    """Truncate lists to one element too many, so that refusing a long list is cheap."""
    for name, elements_max in _MOST.get(type(message), ()):
        del getattr(message, name)[elements_max + 1 :]
    if isinstance(message, messages.BatchWriteRowRequest):
        _shorten_batch(message.tables, "rows", limits.BATCH_WRITE_ROWS_MAX)
    elif isinstance(message, messages.BatchGetRowRequest):
        _shorten_batch(message.tables, "primary_key", limits.BATCH_GET_ROWS_MAX)
    elif isinstance(message, messages.CreateTableRequest):
        _shorten_lists(message.table_meta)
        for index in message.index_metas:
            _shorten_lists(index)
    elif isinstance(message, messages.CreateIndexRequest):
        _shorten_lists(message.index_meta)


def _shorten_batch(tables: Any, name: str, rows_max: int) -> None:
    """Truncate a batch to one row too many in all its tables together. Each table has a row."""
    del tables[rows_max + 1 :]
    rows_left = rows_max + 1
    for number, table in enumerate(tables):
        rows = getattr(table, name)
        del rows[rows_left:]
        rows_left -= len(rows)
        if not rows_left:
            del tables[number + 1 :]
            return


def _has_only_text(message: Message) -> bool:
    """Return True if every string is valid. The runtime returns strings that are not UTF-8 as `bytes`."""
    for name, is_text, is_repeated in _text_fields(message.DESCRIPTOR):
        if is_text:
            value = getattr(message, name)
            if isinstance(value, bytes) or (is_repeated and value and _has_bytes(name, value)):
                return False
        elif is_repeated:
            if not all(_has_only_text(part) for part in getattr(message, name)):
                return False
        elif message.HasField(name) and not _has_only_text(getattr(message, name)):
            return False
    return True


def _has_bytes(name: str, values: Sequence[str | bytes]) -> bool:
    """Return True if some element is not a string. Of columns only the permitted number is checked."""
    return bytes in set(map(type, values[: limits.COLUMNS_MAX + 1] if name == "columns_to_get" else values))


@cache
def _text_fields(descriptor: Descriptor) -> tuple[tuple[str, bool, bool], ...]:
    """Return the fields of a message that are or may contain strings: (name, is a string, is repeated).

    A batch has hundreds of messages with few of these.
    """
    return tuple(
        (field.name, field.type == _STRING, _is_repeated(field))
        for field in descriptor.fields
        if field.type == _STRING or (field.type == _MESSAGE and _may_have_text(field.message_type))
    )


def _may_have_text(descriptor: Descriptor | None) -> bool:
    """Return True if a message type contains strings, or may contain itself."""
    if descriptor is None or descriptor in _RECURSIVE:
        return descriptor is not None
    return bool(_text_fields(descriptor))


def _is_repeated(field: FieldDescriptor) -> bool:
    """Return True if a field is repeated. Releases 5 and 6 of protobuf have a label, 6 and 7 a property."""
    is_repeated: bool | None = getattr(field, "is_repeated", None)
    return field.label == FieldDescriptor.LABEL_REPEATED if is_repeated is None else is_repeated  # type: ignore[attr-defined]
