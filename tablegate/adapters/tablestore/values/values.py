"""Conversion of values and key columns between the gateway and Table Store.

Table Store has five kinds of attributes (INTEGER, DOUBLE, BOOLEAN, STRING, BINARY) and three of keys. Values of other
dialects are shown exactly or as text, never rounded. NULL is shown as a missing column. Every value converts in both
directions.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from tablegate.adapters.tablestore.values.views import WIRE_KINDS, view
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import invalid
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.values.keys import KeyColumn
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, Value, decimal_fits, decimal_text, size_bytes

_LONGEST_CHARACTER_BYTES = 4
WIRE_TAGS = frozenset({"I64", "D", "BOOL", "S", "B"})
"""Tags of the kinds on the wire in bodies (gateway/model/values/bodies.py)."""

SHOWN_KINDS = frozenset(Kind) - {Kind.NULL}
"""Kinds that Table Store can show."""

VT_NAMES = {
    Kind.INT64: "INTEGER",
    Kind.DOUBLE: "DOUBLE",
    Kind.BOOL: "BOOLEAN",
    Kind.TEXT: "STRING",
    Kind.BYTES: "BLOB",
}
"""Names of types in error texts, after `VT_`."""


def check_length(column_kind: str, name: str, value: Value, bytes_max: int) -> None:
    """Raise ServiceError if a text or blob has more than `bytes_max` bytes. `column_kind`: the kind of column in the text."""
    if len(value.data) * _LONGEST_CHARACTER_BYTES > bytes_max and (size := size_bytes(value)) > bytes_max:
        raise invalid(
            f"The length of {column_kind} column: '{name}' exceeds the MaxLength:{bytes_max} with CurrentLength:{size}."
        )


def check_attribute(name: str, value: Value) -> None:
    """Raise ServiceError if the value of an attribute is too long."""
    if value.kind is Kind.TEXT or value.kind is Kind.BYTES:
        check_length("attribute", name, value, limits.VALUE_MAX_BYTES)


def restored(key_names: tuple[str, ...], old: Row | None, contents: Contents) -> Contents:
    """Restore the stored kind of values that were read and written back unchanged."""
    if old is None or all(WIRE_TAGS.issuperset(member) for member in old.contents.members.values()):
        return contents
    before = old.latest
    stored_values = {
        name: before[name]
        for name, value in contents.latest.items()
        if name in before and before[name].kind not in WIRE_KINDS and view(before[name]) == value
    }
    return contents.replacing(stored_values, key_names) if stored_values else contents


DEFINED_KINDS: dict[int, Kind] = {
    messages.DCT_INTEGER: Kind.INT64,
    messages.DCT_DOUBLE: Kind.DOUBLE,
    messages.DCT_BOOLEAN: Kind.BOOL,
    messages.DCT_STRING: Kind.TEXT,
    messages.DCT_BLOB: Kind.BYTES,
}


# Keys

_KEY_TYPES = {
    Kind.INT64: messages.INTEGER,
    Kind.TEXT: messages.STRING,
    Kind.BYTES: messages.BINARY,
    Kind.DECIMAL: messages.STRING,
}
KEY_KINDS = {messages.INTEGER: Kind.INT64, messages.STRING: Kind.TEXT, messages.BINARY: Kind.BYTES}


def key_type(column: KeyColumn) -> messages.PrimaryKeyType:
    """Return the type of a key column in Table Store. A DECIMAL (DynamoDB's N) is shown as a string."""
    return _KEY_TYPES[column.kind]


def key_kind_shown(column: KeyColumn) -> Kind:
    """Return the kind of a key column's values on the wire."""
    return Kind.TEXT if column.kind is Kind.DECIMAL else column.kind


def key_value_shown(value: Value) -> Value:
    """Return a key value as it is shown on the wire."""
    return Value(Kind.TEXT, decimal_text(value.data)) if value.kind is Kind.DECIMAL else value


def key_number(text: str) -> Value | None:
    """Return the DECIMAL key value that is shown as a text. None if it is none."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    if not number.is_finite() or not decimal_fits(number):
        return None
    return Value(Kind.DECIMAL, number)
