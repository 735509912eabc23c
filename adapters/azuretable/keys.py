"""The keys of any table as PartitionKey and RowKey, two texts, and back.

A table made here has just these two columns. Of a table made elsewhere the partition columns are shown as PartitionKey and
the sort columns as RowKey ("" if it has none): one column as its canonical text (plain digits; lower-case hexadecimal of
bytes), several joined by "|", with "%" and "|" inside them written %25 and %7C. Every spelling is reversible; a text that is
not what a key would be shown as belongs to no row.
"""

from __future__ import annotations

import re
from decimal import Decimal

from adapters.azuretable import limits
from adapters.azuretable.errors import ServiceError
from adapters.azuretable.values import utf16_units
from gateway.model.keys import Key, KeyColumn, KeySchema
from gateway.model.values import Kind, Value, decimal_fits, decimal_text

PARTITION_KEY = KeyColumn("PartitionKey", Kind.TEXT)
ROW_KEY = KeyColumn("RowKey", Kind.TEXT)
OWN_SCHEMA = KeySchema((PARTITION_KEY,), (ROW_KEY,))

_FORBIDDEN = re.compile(r"[/\\#?\x00-\x1f\x7f-\x9f]")
_CANONICAL_NUMBER = re.compile(r"-?(0|[1-9]\d{0,200})(\.\d{0,200}[1-9])?", re.ASCII)
_INT64 = range(-(2**63), 2**63)


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
    split = len(schema.partition)
    if split == 1 and len(values) == 2:
        return _text_of(values[0]), _text_of(values[1])
    return _joined(values[:split]), _joined(values[split:])


def key_of(schema: KeySchema, partition_key: str, row_key: str) -> Key | None:
    """The key that is shown as these two texts, or None: no row of such a table can have it."""
    if schema.partition and is_own(schema):
        values: list[Value] | None = [Value(Kind.TEXT, partition_key), Value(Kind.TEXT, row_key)]
    else:
        partition = _split(schema.partition, partition_key)
        sort = _split(schema.sort, row_key)
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


def _text_of(value: Value) -> str:
    kind, data = value
    if kind is Kind.TEXT:
        return str(data)
    if kind is Kind.BYTES:
        return bytes(data).hex()
    return decimal_text(data)


def _joined(values: tuple[Value, ...]) -> str:
    if len(values) == 1:
        return _text_of(values[0])
    return "|".join(_text_of(value).replace("%", "%25").replace("|", "%7C") for value in values)


def _split(columns: tuple[KeyColumn, ...], text: str) -> list[Value] | None:
    if len(columns) == 1:
        value = _value_of(columns[0].kind, text)
        return None if value is None else [value]
    if not columns:
        return [] if text == "" else None
    parts = text.split("|")
    if len(parts) != len(columns):
        return None
    values = [
        _value_of(column.kind, part.replace("%7C", "|").replace("%25", "%"))
        for column, part in zip(columns, parts, strict=True)
    ]
    found = [value for value in values if value is not None]
    if len(found) != len(columns) or _joined(tuple(found)) != text:
        return None
    return found


def _value_of(kind: Kind, text: str) -> Value | None:
    if kind is Kind.TEXT:
        return Value(kind, text)
    if kind is Kind.BYTES:
        try:
            data = bytes.fromhex(text)
        except ValueError:
            return None
        return Value(kind, data) if data.hex() == text else None
    if not _CANONICAL_NUMBER.fullmatch(text) or text == "-0":
        return None
    number = Decimal(text)
    if kind is Kind.INT64:
        return Value(kind, int(number)) if "." not in text and int(number) in _INT64 else None
    return Value(kind, number) if decimal_fits(number) else None
