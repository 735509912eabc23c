"""Rules about several members of vector indexes and of SearchVectors, as far as they need no table.

Texts: captures of the live service, August 2026 (nubo-db/dynamodb-conformance, eu-west-2, and ExtendDB's change
notes, us-east-1), and botocore 1.44.5.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tablegate.adapters.dynamodb.validation.rules.expression_rules import check_parameters, check_placeholders
from tablegate.adapters.dynamodb.validation.rules.index_rules import check_projection, refused
from tablegate.adapters.dynamodb.validation.rules.rule_context import RuleContext
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.errors import ServiceError, serialization, validation
from tablegate.gateway.features.vectors.vectors import pack

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
