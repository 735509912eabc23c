"""Fields and values that search requests name."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from tablegate.adapters.tablestore.wire.errors import invalid
from tablegate.gateway.features.search import field_values
from tablegate.gateway.features.search.documents import query_value_of
from tablegate.gateway.features.search.field_values import Point
from tablegate.gateway.features.search.queries import Bool, Query, Range, Terms
from tablegate.gateway.features.search.schema import FieldType, SearchField, SearchSchema


def field_of(schema: SearchSchema, name: str, expected: FieldType | None = None) -> SearchField:
    """Return the field with a name, of the expected type if one is given. Raises ServiceError."""
    field = schema.by_name.get(name)
    if field is None:
        raise invalid(f"field: {name} does not exist")
    if not field.is_indexed:
        raise invalid(f"field: {name} is not indexed")
    if expected is not None and field.type is not expected:
        raise invalid(f"The type of field '{name}' must be {expected.name}.")
    return field


def typed_field(schema: SearchSchema, name: str, types: Container[FieldType], user: str) -> SearchField:
    """Return a field of one of the types that a query or a function supports. `user`: either, for the error text."""
    field = field_of(schema, name)
    if field.type not in types:
        raise invalid(f"The type of field '{name}' does not support the {user}: {field.type.name}.")
    return field


def query_value(field: SearchField, data: Any) -> Any:
    """Return a value for a field. Raises ServiceError if it does not fit."""
    value = query_value_of(field, data)
    if value is None:
        raise invalid(f"The value does not match the type of field '{field.name}': {field.type.name}.")
    return value


def terms_of(field: SearchField, terms: Sequence[Any]) -> Query:
    """Return the query for values of a field. Raises ServiceError.

    A term of an IP field may be a block of addresses. Source: "IP data type".
    """
    values: list[Any] = []
    parts: list[Query] = []
    for term in terms:
        is_address = field.type is FieldType.IP and isinstance(term, str)
        block = field_values.address_block(term) if is_address else None
        if block is None:
            values.append(query_value(field, term))
        else:
            parts.append(Range(field, *block, includes_lower=True, includes_upper=True))
    if values:
        parts.append(Terms(field, tuple(values)))
    return parts[0] if len(parts) == 1 else Bool(should=tuple(parts), minimum=1)


def point_of(text: str) -> Point:
    """Return the point of "latitude,longitude". Raises ServiceError."""
    point = field_values.point_of(text)
    if point is None:
        raise invalid(f"Invalid geo point: '{text[:64]}'.")
    return point
