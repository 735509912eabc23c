"""The keys of any table as PartitionKey and RowKey, two texts, and back.

A table made here has just these two columns. Of a table made elsewhere the partition columns are shown as PartitionKey and
the sort columns as RowKey ("" if it has none), in the spelling that all dialects share (gateway/model/values/composites.py). A
text that is not what a key would be shown as belongs to no row.
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
"""Characters that no key may have which a client makes."""


def is_own(schema: KeySchema) -> bool:
    """Whether a table's key is the very pair that Azure has."""
    # Asked by every request; the names alone, which are compared first, nearly always tell.
    partition, sort = schema.partition, schema.sort
    return (
        len(partition) == 1
        and len(sort) == 1
        and partition[0].name == "PartitionKey"
        and sort[0].name == "RowKey"
        and partition[0].kind is sort[0].kind is Kind.TEXT
    )


def texts_of(schema: KeySchema, values: tuple[Value, ...]) -> tuple[str, str]:
    """(PartitionKey, RowKey) of the values of the key columns, in the schema's order."""
    width = len(schema.partition)
    if width == 1 and len(values) == 2:
        return text_of(values[0]), text_of(values[1])
    return composite_text(values[:width]), composite_text(values[width:])


def key_of(schema: KeySchema, partition_key: str, row_key: str) -> Key | None:
    """The key that is shown as these two texts, or None: no row of such a table can have it."""
    if is_own(schema):
        return own_key(partition_key, row_key)
    partition = split(schema.partition, partition_key)
    sort = split(schema.sort, row_key)
    if partition is None or sort is None:
        return None
    values = partition + sort
    return Key(tuple(values), schema.position(values))


def own_key(partition_key: str, row_key: str) -> Key:
    """The key in a table whose key is the very pair that Azure has."""
    is_short = len(partition_key) <= limits.KEY_MAX_UNITS
    first, partition = _known_column(partition_key) if is_short else _column(partition_key)
    second, sort = _column(row_key)
    return Key((first, second), Position(partition, sort))


def _column(text: str) -> tuple[Value, bytes]:
    value = Value(Kind.TEXT, text)
    return value, encode_column(value)


# The changes of a batch, and mostly what clients do one after the other, are of few partitions.
_known_column = lru_cache(maxsize=1024)(_column)


def check_new_key(partition_key: str, row_key: str) -> None:
    """Refuse a key that Azure does not let its clients make. Raises ServiceError OutOfRangeInput, PropertyValueTooLarge."""
    if len(partition_key) + len(row_key) <= limits.KEY_MAX_UNITS // 2:
        both = partition_key + row_key
        if both.isalnum() or not FORBIDDEN.search(both):
            return
    for text in (partition_key, row_key):
        if len(text) > limits.KEY_MAX_UNITS // 2 and utf16_units(text) > limits.KEY_MAX_UNITS:
            raise ServiceError("PropertyValueTooLarge")
        if FORBIDDEN.search(text):
            raise ServiceError("OutOfRangeInput")
