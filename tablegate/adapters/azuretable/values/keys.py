"""Conversion of the keys of any table to PartitionKey and RowKey, two texts, and back.

A table created here has exactly these two columns. For a table of another dialect, PartitionKey stands for the
partition columns and RowKey for the sort columns ("" if there are none), in the spelling common to all dialects
(gateway/model/values/composites.py). A text in any other spelling belongs to no row.
"""

from __future__ import annotations

import re
from functools import lru_cache

from tablegate.adapters.azuretable.values.values import utf16_units
from tablegate.adapters.azuretable.wire import limits
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.gateway.model.values.composites import composite_text, split, text_of
from tablegate.gateway.model.values.keys import Key, KeyColumn, KeySchema, Position, encode_column
from tablegate.gateway.model.values.values import Kind, Value

PARTITION_KEY = KeyColumn("PartitionKey", Kind.TEXT)
ROW_KEY = KeyColumn("RowKey", Kind.TEXT)
OWN_SCHEMA = KeySchema((PARTITION_KEY,), (ROW_KEY,))

FORBIDDEN = re.compile(r"[/\\#?\x00-\x1f\x7f-\x9f]")
"""Characters that keys of new entities must not have."""


def is_own(schema: KeySchema) -> bool:
    """Return True if the key columns of a table are exactly PartitionKey and RowKey."""
    # Called for every request. Comparing the names first is nearly always enough.
    partition, sort = schema.partition, schema.sort
    return (
        len(partition) == 1
        and len(sort) == 1
        and partition[0].name == "PartitionKey"
        and sort[0].name == "RowKey"
        and partition[0].kind is sort[0].kind is Kind.TEXT
    )


def texts_of(schema: KeySchema, values: tuple[Value, ...]) -> tuple[str, str]:
    """Return (PartitionKey, RowKey) for the values of the key columns, in the schema's order."""
    width = len(schema.partition)
    if width == 1 and len(values) == 2:
        return text_of(values[0]), text_of(values[1])
    return composite_text(values[:width]), composite_text(values[width:])


def key_of(schema: KeySchema, partition_key: str, row_key: str) -> Key | None:
    """Return the key with these two texts, or None if no row of such a table can have it."""
    if is_own(schema):
        return own_key(partition_key, row_key)
    partition = split(schema.partition, partition_key)
    sort = split(schema.sort, row_key)
    if partition is None or sort is None:
        return None
    values = partition + sort
    return Key(tuple(values), schema.position(values))


def own_key(partition_key: str, row_key: str) -> Key:
    """Return the key in a table with exactly the columns PartitionKey and RowKey."""
    is_short = len(partition_key) <= limits.KEY_MAX_UNITS
    first, partition = _known_column(partition_key) if is_short else _column(partition_key)
    second, sort = _column(row_key)
    return Key((first, second), Position(partition, sort))


def _column(text: str) -> tuple[Value, bytes]:
    value = Value(Kind.TEXT, text)
    return value, encode_column(value)


# Changes of a batch and successive requests mostly have few partitions.
_known_column = lru_cache(maxsize=1024)(_column)


def check_new_key(partition_key: str, row_key: str) -> None:
    """Check a key of a new entity. Raises ServiceError OutOfRangeInput, PropertyValueTooLarge.

    Source of the text for a forbidden character: thepirat000/Audit.NET issue 680.
    """
    if len(partition_key) + len(row_key) <= limits.KEY_MAX_UNITS // 2:
        joined = partition_key + row_key
        if joined.isalnum() or not FORBIDDEN.search(joined):
            return
    for name, text in (("PartitionKey", partition_key), ("RowKey", row_key)):
        if len(text) > limits.KEY_MAX_UNITS // 2 and utf16_units(text) > limits.KEY_MAX_UNITS:
            raise ServiceError("PropertyValueTooLarge")
        if FORBIDDEN.search(text):
            raise ServiceError(
                "OutOfRangeInput", f"The '{name}' parameter of value '{text}' is out of range."
            )


def check_new_addressed_key(partition_key: str, row_key: str) -> None:
    """Check a key of a new entity that stands in an address.

    Raises ServiceError InvalidInput, OutOfRangeInput, PropertyValueTooLarge.
    Source of the text for a slash: Azure/azure-storage-net issue 386, Azure/azure-cosmos-table-dotnet issue 64.
    """
    if "/" in partition_key or "/" in row_key:
        raise ServiceError("InvalidInput", "Bad Request - Error in query syntax.")
    check_new_key(partition_key, row_key)
