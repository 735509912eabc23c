"""Conversion of keys and attribute names between any table and Azure Table.

The key of any table becomes PartitionKey and RowKey, two texts. A table created here has exactly these two columns. For a
table of another dialect, PartitionKey stands for the partition columns and RowKey for the sort columns ("" if there are
none), in the spelling common to all dialects (gateway/model/values/composites.py). A text in any other spelling belongs to
no row.

Azure accepts names in the form of C# identifiers. Other dialects have no such rule. A name that is invalid here
(`my-attr`, `1st`), or equal to a system name (`PartitionKey`, `odata.etag`), is escaped. Each such character becomes
`_xHHHH_` with its hexadecimal code point, as in .NET's XmlConvert.EncodeName for XML:

    my-attr -> my_x002D_attr      1st -> _x0031_st      Timestamp -> _x0054_imestamp

Both directions are total and each other's inverse for all names: see tests/adapters/azuretable/test_names.py.
"""

from __future__ import annotations

import re
from functools import lru_cache

from tablegate.adapters.azuretable.values import utf16_units
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


SYSTEM_NAMES = frozenset({"PartitionKey", "RowKey", "Timestamp"})

_ESCAPE = re.compile(r"_x([0-9A-F]{4}|[0-9A-F]{8})_")
# Followed by an escape, which begins with "_", this would be parsed as an escape.
_BEGINNING = re.compile(r"_x[0-9A-F]{4}")


@lru_cache(maxsize=8192)
def spelled(attribute: str) -> str:
    """Return the Azure property name of an attribute."""
    if not _is_plain(attribute):
        return _escaped(attribute)
    inner = _unescaped(attribute)
    if (
        inner != attribute and spelled(inner) == attribute
    ):  # it would be parsed as the name of another attribute
        return _escaped(attribute)
    return attribute


@lru_cache(maxsize=8192)
def unspelled(name: str) -> str:
    """Return the attribute of an Azure property name."""
    if "_x" not in name:
        return name
    attribute = _unescaped(name)
    return attribute if attribute != name and spelled(attribute) == name else name


def _is_plain(attribute: str) -> bool:
    return is_legal(attribute) and attribute not in SYSTEM_NAMES


def is_legal(name: str) -> bool:
    """Return True for a valid property name: a C# identifier (letters, digits, underscores, no digit first)."""
    return name.isidentifier()


def _escaped(attribute: str) -> str:
    if not attribute:
        return "_x_"  # the empty name, since no escape lacks digits
    if attribute in SYSTEM_NAMES:
        return _escape(attribute[0]) + attribute[1:]
    parts = []
    for at, character in enumerate(attribute):
        if character == "_" and _BEGINNING.match(attribute, at):
            parts.append(_escape("_"))
        elif character.isidentifier() or (at and ("a" + character).isidentifier()):
            parts.append(character)
        else:
            parts.append(_escape(character))
    spelling = "".join(parts)
    return spelling if spelling != attribute else _escape(attribute[0]) + attribute[1:]


def _escape(character: str) -> str:
    code = ord(character)
    return f"_x{code:04X}_" if code <= 0xFFFF else f"_x{code:08X}_"


def _unescaped(name: str) -> str:
    if name == "_x_":
        return ""
    return _ESCAPE.sub(_character, name)


def _character(match: re.Match[str]) -> str:
    code = int(match.group(1), 16)
    return chr(code) if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else match.group(0)
