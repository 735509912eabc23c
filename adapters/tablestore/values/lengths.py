"""How long values may be, in keys and in attributes."""

from __future__ import annotations

from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import invalid
from tablegate.gateway.model.values.values import Kind, Value, size_bytes

_LONGEST_CHARACTER_BYTES = 4


def check_key_value(name: str, value: Value) -> None:
    """Raises ServiceError for a key value that is too long."""
    if _may_exceed(value, limits.KEY_VALUE_MAX_BYTES):
        _check("primary key", name, size_bytes(value), limits.KEY_VALUE_MAX_BYTES)


def check_value(name: str, value: Value) -> None:
    """Raises ServiceError for the value of an attribute that is too long."""
    if _may_exceed(value, limits.VALUE_MAX_BYTES):
        _check("attribute", name, size_bytes(value), limits.VALUE_MAX_BYTES)


def _may_exceed(value: Value, most: int) -> bool:
    """Whether it is worth the while to measure a value."""
    kind = value.kind
    return (kind is Kind.TEXT or kind is Kind.BYTES) and len(value.data) * _LONGEST_CHARACTER_BYTES > most


def _check(what: str, name: str, size: int, most: int) -> None:
    if size > most:
        raise invalid(
            f"The length of {what} column: '{name}' exceeds the MaxLength:{most} with CurrentLength:{size}."
        )


def check_request(size: int, operation: str) -> None:
    """Raises ServiceError for a request whose names and values are too long together."""
    if size > limits.WRITE_MAX_BYTES:
        raise invalid(
            f"The total data size of {operation} request exceeds the limit, limit size: {limits.WRITE_MAX_BYTES},"
            f" data size: {size}."
        )
