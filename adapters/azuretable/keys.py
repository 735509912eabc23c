"""The keys of any table as PartitionKey and RowKey, two texts, and back.

A table made here has just these two columns. Of a table made elsewhere the partition columns are shown as PartitionKey and
the sort columns as RowKey ("" if it has none), in the spelling that all dialects share (gateway/model/composites.py). A text
that is not what a key would be shown as belongs to no row.
"""

from __future__ import annotations

import re

from adapters.azuretable import limits
from adapters.azuretable.errors import ServiceError
from adapters.azuretable.values import utf16_units
from gateway.model.composites import joined, split, text_of
from gateway.model.keys import Key, KeyColumn, KeySchema
from gateway.model.values import Kind, Value

PARTITION_KEY = KeyColumn("PartitionKey", Kind.TEXT)
ROW_KEY = KeyColumn("RowKey", Kind.TEXT)
OWN_SCHEMA = KeySchema((PARTITION_KEY,), (ROW_KEY,))

_FORBIDDEN = re.compile(r"[/\\#?\x00-\x1f\x7f-\x9f]")


def is_own(schema: KeySchema) -> bool:
    """Whether a table's key is the very pair that Azure has."""
    return schema == OWN_SCHEMA


def has_text_keys(schema: KeySchema) -> bool:
    """Whether PartitionKey and RowKey are one TEXT column each, or no column: their order is the rows' order."""
    return (
        len(schema.partition) == 1
        and len(schema.sort) <= 1
        and all(column.kind is Kind.TEXT for column in schema.columns)
    )


def texts_of(schema: KeySchema, values: tuple[Value, ...]) -> tuple[str, str]:
    """(PartitionKey, RowKey) of the values of the key columns, in the schema's order."""
    width = len(schema.partition)
    if width == 1 and len(values) == 2:
        return text_of(values[0]), text_of(values[1])
    return joined(values[:width]), joined(values[width:])


def key_of(schema: KeySchema, partition_key: str, row_key: str) -> Key | None:
    """The key that is shown as these two texts, or None: no row of such a table can have it."""
    if schema.partition and is_own(schema):
        values: list[Value] | None = [Value(Kind.TEXT, partition_key), Value(Kind.TEXT, row_key)]
    else:
        partition = split(schema.partition, partition_key)
        sort = split(schema.sort, row_key)
        values = None if partition is None or sort is None else partition + sort
    if values is None:
        return None
    return Key(tuple(values), schema.position(values))


def check_new_key(partition_key: str, row_key: str) -> None:
    """Refuse a key that Azure does not let its clients make. Raises ServiceError OutOfRangeInput, PropertyValueTooLarge."""
    for text in (partition_key, row_key):
        if len(text) > limits.KEY_MAX_UNITS // 2 and utf16_units(text) > limits.KEY_MAX_UNITS:
            raise ServiceError("PropertyValueTooLarge")
        if _FORBIDDEN.search(text):
            raise ServiceError("OutOfRangeInput")
