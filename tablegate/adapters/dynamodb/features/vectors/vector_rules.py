"""Rules about vectors: members of vector indexes and of SearchVectors, as far as they need no table, the attributes of
search schemas, and the form of vectors in answers.

Texts: captures of the live service, August 2026 (nubo-db/dynamodb-conformance, eu-west-2, and ExtendDB's change
notes, us-east-1), and botocore 1.44.5, PutItem. gateway_errors.py has those about items, by the rules here. Writes of
other dialects are not rejected: an invalid vector is not in the index.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from tablegate.adapters.dynamodb.validation.expression_rules import check_parameters, check_placeholders
from tablegate.adapters.dynamodb.validation.table_rules import check_projection, refused
from tablegate.adapters.dynamodb.values.values import view
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.errors import RuleContext, ServiceError, serialization, validation
from tablegate.gateway.features.vectors.vectors import (
    VectorIndex,
    components_of,
    is_of_kind,
    pack,
    vector_indexes,
    vector_of,
)
from tablegate.gateway.model.errors import RowRuleViolated
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import KeyColumn
from tablegate.gateway.model.values.rows import Contents
from tablegate.gateway.model.values.values import Kind, Value

# Members of requests


Input = dict[str, Any]
_SCHEMA_ROLES = {"HASH": limits.SEARCH_SCHEMA_HASHES, "INLINE_FILTER": limits.SEARCH_SCHEMA_FILTERS}


# Indexes


def check_index(index: Input, definitions: Iterable[str]) -> None:
    """Raise ServiceError for a vector index with members that exclude each other or do not match
    AttributeDefinitions.
    """
    schema = index.get("SearchSchema", ())
    for role, count_max in _SCHEMA_ROLES.items():
        count = sum(element["SearchSchemaElementType"] == role for element in schema)
        if count > count_max:
            raise refused("search-schema-count", count=count, role=role, limit=count_max)
    if any(element["AttributeName"] not in definitions for element in schema):
        raise refused("search-schema-undefined")
    name = index["VectorAttribute"]["AttributeName"]
    if name in definitions:
        raise refused("vector-attribute-defined", name=name)
    if index["Dimensions"] > limits.VECTOR_DIMENSIONS:
        raise refused("vector-dimensions", limit=limits.VECTOR_DIMENSIONS)
    check_projection(index)


def check_dimensions(existing: Iterable[tuple[str, int]], index: Mapping[str, Any]) -> None:
    """Raise ServiceError if another index has other dimensions for the same attribute.

    `existing`: (attribute, dimensions).
    """
    name = index["VectorAttribute"]["AttributeName"]
    if any(attribute == name and dimensions != index["Dimensions"] for attribute, dimensions in existing):
        raise refused("vector-dimensions-differ", name=name)


def new_indexes(data: Input, definitions: Sequence[str]) -> None:
    """Raise ServiceError for the VectorIndexes of a CreateTable. Names are checked elsewhere."""
    indexes = data.get("VectorIndexes", ())
    if not indexes:
        return
    if data.get("BillingMode") != "PAY_PER_REQUEST":
        raise refused("vector-billing")
    if len(indexes) > limits.VECTOR_INDEXES:
        raise refused("vector-count", limit=limits.VECTOR_INDEXES)
    earlier: list[tuple[str, int]] = []
    for index in indexes:
        check_index(index, definitions)
        check_dimensions(earlier, index)
        earlier.append((index["VectorAttribute"]["AttributeName"], index["Dimensions"]))


def schema_names(data: Input) -> list[str]:
    """Return the attributes of all search schemas in a CreateTable."""
    return [
        element["AttributeName"]
        for index in data.get("VectorIndexes", ())
        for element in index.get("SearchSchema", ())
    ]


def projected_number(data: Input) -> int:
    """Return the number of attributes that count as projected by the vector indexes of a CreateTable.

    These are the named attributes, the vector and each filter (botocore 1.44.5, VectorIndex).
    """
    total = 0
    for index in data.get("VectorIndexes", ()):
        filters = Counter(element["SearchSchemaElementType"] for element in index.get("SearchSchema", ()))
        total += 1 + filters["INLINE_FILTER"] + len(index["Projection"].get("NonKeyAttributes", ()))
    return total


def index_updates(data: Input) -> None:
    """Raise ServiceError for the VectorIndexUpdates of an UpdateTable."""
    definitions = {definition["AttributeName"] for definition in data.get("AttributeDefinitions", ())}
    for update in data.get("VectorIndexUpdates", ()):
        if not update:
            raise refused("index-update-empty")
        if len(update) > 1:
            raise refused("index-update-several")
        if "Create" in update:
            check_index(update["Create"], definitions)


# Searches


def search_vectors(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for a SearchVectors that violates a rule that needs no table.

    Converts the search vector to a list of numbers.
    """
    if data["TopK"] > limits.SEARCH_RESULTS:
        raise refused("top-k", value=data["TopK"], limit=limits.SEARCH_RESULTS)
    check_parameters(data, context, ("SearchConditionExpression", "ProjectionExpression"), ())
    check_placeholders(data, context)
    try:
        components = [float(element["N"]) for element in data["SearchVector"] if len(element) == 1]
        pack(components)
    except (KeyError, TypeError, ValueError, OverflowError):
        raise refused("search-vector") from None
    if len(components) < len(data["SearchVector"]):
        raise refused("search-vector")
    data["SearchVector"] = components


_EXPECTED_TYPES = {
    "TableName": "a string",
    "IndexName": "a string",
    "SearchVector": "a sequence",
    "TopK": "i32",
}


def refusal_of_body(body: Any, text: bytes, refusal: ServiceError) -> ServiceError:
    """Return the error for a rejected SearchVectors. `body`: the parsed `text`.

    The service reads this body more strictly than others. A null, or a missing TableName, is reported first, with
    its position in the text (paritysuite, October 2026).
    """
    if not isinstance(body, dict):
        return refusal
    for name, value in body.items():
        if value is None and name in _EXPECTED_TYPES:
            match = re.search(rb'"%s"\s*:\s*null' % name.encode(), text)
            where = _place(text, match.end() if match else len(text))
            return serialization(f"invalid type: null, expected {_EXPECTED_TYPES[name]}{where}")
    if "TableName" not in body:
        return validation(f"missing field `TableName`{_place(text, len(text.rstrip()))}")
    return refusal


def _place(text: bytes, end: int) -> str:
    line, begin = text.count(b"\n", 0, end) + 1, text.rfind(b"\n", 0, end) + 1
    return f" at line {line} column {end - begin}"


# Vectors in items and answers


_GREATEST = Decimal("3.4028235E38")
"""The greatest 32-bit floating-point number, as in the service's text."""


def check_vectors(table: Table, contents: Contents, is_update: bool) -> None:
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
