"""Parsing of protobuf messages, with validation of required fields and of UTF-8 in strings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import invalid
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as search_messages
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.adapters.tablestore.wire.shortening import LARGE_BYTES, TooManyFields, shorten
from tablegate.gateway.model.errors import Busy

MessageT = TypeVar("MessageT", bound=Message)

_RECURSIVE = (search_messages.FieldSchema.DESCRIPTOR,)
_STRING, _MESSAGE = FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_MESSAGE


def parse(kind: type[MessageT], data: bytes, subject: str) -> MessageT:
    """Parse a message. `subject`: its name in error texts. Raises ServiceError, Busy."""
    message = kind()
    try:
        if len(data) > LARGE_BYTES:
            data = shorten(data, cast(Descriptor, kind.DESCRIPTOR))
        message.ParseFromString(data)
    except (DecodeError, TooManyFields):
        raise invalid(f"Failed to parse {subject}.") from None
    except MemoryError:
        raise Busy("not enough memory to parse a message") from None
    _shorten(message)
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


def _shorten(message: Message) -> None:
    """Truncate lists to one element too many, so that refusing a long list is cheap."""
    for name, elements_max in _MOST.get(type(message), ()):
        del getattr(message, name)[elements_max + 1 :]
    if isinstance(message, messages.BatchWriteRowRequest):
        _shorten_batch(message.tables, "rows", limits.BATCH_WRITE_ROWS_MAX)
    elif isinstance(message, messages.BatchGetRowRequest):
        _shorten_batch(message.tables, "primary_key", limits.BATCH_GET_ROWS_MAX)
    elif isinstance(message, messages.CreateTableRequest):
        _shorten(message.table_meta)
        for index in message.index_metas:
            _shorten(index)
    elif isinstance(message, messages.CreateIndexRequest):
        _shorten(message.index_meta)


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
