"""Rules for the attributes of vector indexes' search schemas, and the form of vectors in answers.

Texts: captures of the live service, August 2026 (nubo-db/dynamodb-conformance, eu-west-2, and ExtendDB's change
notes, us-east-1), and botocore 1.44.5, PutItem. gateway_errors.py has them, by the rules here. Writes of other
dialects are not rejected: an invalid vector is not in the index.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from tablegate.adapters.dynamodb.values.values import view
from tablegate.adapters.dynamodb.wire import limits
from tablegate.gateway.features.vectors.vectors import (
    VectorIndex,
    components_of,
    is_of_kind,
    vector_indexes,
    vector_of,
)
from tablegate.gateway.model.errors import RowRuleViolated
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import KeyColumn
from tablegate.gateway.model.values.rows import Contents
from tablegate.gateway.model.values.values import Kind, Value

# Vectors in items and answers


_GREATEST = Decimal("3.4028235E38")
"""The greatest 32-bit floating-point number, as in the service's text."""


def check(table: Table, contents: Contents, is_update: bool) -> None:
    """Raise RowRuleViolated if a vector index of the table rejects an item. `is_update` selects the texts of updates."""
    for index in vector_indexes(table):
        member = contents.members.get(index.attribute)
        if member is not None:
            fault = _fault_of_vector(index, member)
            if fault is not None:
                raise fault
        for column in index.columns:
            value = contents.value(column.name)
            if value is not None:
                _check_column(index, column, value, is_update)


def list_value(vector: bytes) -> Value:
    """Return a vector as the index stores it, each number in its shortest form."""
    return Value(Kind.LIST, tuple([Value(Kind.DECIMAL, number) for number in components_of(vector)]))


def _fault_of_vector(index: VectorIndex, member: dict[str, Any]) -> RowRuleViolated | None:
    if vector_of(member, index.dimensions) is not None:
        return None
    facts: dict[str, Any] = {"name": index.attribute, "index": index.name}
    [(tag, elements)] = member.items()
    if tag != "L":
        return RowRuleViolated("vector-type", actual=tag, **facts)
    if len(elements) != index.dimensions:
        return RowRuleViolated("vector-size", expected=index.dimensions, actual=len(elements), **facts)
    for at, element in enumerate(elements):
        [(tag, number)] = element.items()
        if tag != "N":
            return RowRuleViolated("vector-element-type", at=at, actual=tag, **facts)
        if Decimal(number).copy_abs() > _GREATEST:
            return RowRuleViolated("vector-element-range", at=at, number=_java_text(Decimal(number)), **facts)
    return None


def _java_text(number: Decimal) -> str:
    """Format a number like Java's floating-point numbers: 1.0E39."""
    sign, figures, _ = number.as_tuple()
    digits = "".join(map(str, figures)).rstrip("0")
    return f"{'-' if sign else ''}{digits[0]}.{digits[1:] or '0'}E{number.adjusted()}"


def _check_column(index: VectorIndex, column: KeyColumn, value: Value, is_update: bool) -> None:
    visible = view(value)
    facts = {"column": column, "index": index.name}
    if not is_of_kind(visible, column.kind):
        raise RowRuleViolated("search-schema-kind", actual=visible, **facts)
    if visible.kind not in (Kind.TEXT, Kind.BYTES):
        return
    size = len(visible.data) if visible.kind is Kind.BYTES else len(visible.data.encode())
    if column is index.partition:
        if not size:
            rule = "search-schema-update-empty" if is_update else "search-schema-empty"
            raise RowRuleViolated(rule, actual=visible, **facts)
        if size > limits.PARTITION_KEY_BYTES:
            raise RowRuleViolated("search-schema-hash-size", limit=limits.PARTITION_KEY_BYTES, **facts)
    elif size > limits.INLINE_FILTER_BYTES:
        raise RowRuleViolated("search-schema-filter-size", limit=limits.INLINE_FILTER_BYTES, **facts)
