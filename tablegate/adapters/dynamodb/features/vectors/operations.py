"""SearchVectors: the items with the nearest vectors.

The answer has the attributes that the index projects. It has the vector only if ProjectionExpression names it. Shapes:
botocore 1.44.5.

SearchConditionExpression has equality conditions on attributes of a search schema. It is evaluated in two steps, as key
conditions are: the tests by attribute name, then their check against the schema of one index. Texts: captures of the
live service, August 2026 (nubo-db/dynamodb-conformance, eu-west-2, and ExtendDB's change notes, us-east-1), some from the
developer guide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tablegate.adapters.dynamodb.call import Answer, CallContext, find_table
from tablegate.adapters.dynamodb.capacity import Blocks, mode_of
from tablegate.adapters.dynamodb.expressions.conditions import ConditionReader
from tablegate.adapters.dynamodb.expressions.projections import ProjectionPaths, parse_projection, project
from tablegate.adapters.dynamodb.expressions.static_checks import Placeholders, condition_tree
from tablegate.adapters.dynamodb.expressions.syntax import (
    AndNode,
    BetweenNode,
    CompareNode,
    ConditionNode,
    PathNode,
    ValueNode,
)
from tablegate.adapters.dynamodb.features.vectors import vector_rules
from tablegate.adapters.dynamodb.operation import Operation, by_name
from tablegate.adapters.dynamodb.validation import shapes
from tablegate.adapters.dynamodb.validation.shapes import (
    CAPACITY,
    INTEGER_FROM_1,
    NAME,
    PLACEHOLDERS,
    TABLE_NAME,
    TEXT,
    Members,
    requests_of,
)
from tablegate.adapters.dynamodb.values.keys import shown_schema, visible_attributes
from tablegate.adapters.dynamodb.values.values import render_values
from tablegate.adapters.dynamodb.wire import error_texts, limits
from tablegate.adapters.dynamodb.wire.error_texts import expression_text
from tablegate.adapters.dynamodb.wire.errors import validation
from tablegate.adapters.dynamodb.wire.gateway_errors import type_name
from tablegate.gateway.features.vectors.vectors import (
    COMPONENT_BYTES,
    SearchVectors,
    VectorIndex,
    VectorMatch,
    is_of_kind,
    pack,
    vector_index,
)
from tablegate.gateway.model.authorization.permissions import Permission, Purpose
from tablegate.gateway.model.errors import IndexMissing
from tablegate.gateway.model.tables.tables import State, Table
from tablegate.gateway.model.values.values import Kind, Value

# SearchConditionExpression


_NAME = "SearchConditionExpression"
_COMPARATOR = f"Invalid {_NAME}: Invalid comparator used in {_NAME}"


def search_tests(text: str, placeholders: Placeholders) -> dict[str, Value]:
    """Return the required value of each attribute. Raises ServiceError."""
    tree = condition_tree(text, _NAME, placeholders)
    reader = _Reader(_NAME, placeholders)
    reader.condition(tree)
    reader.read(tree)
    return reader.tests


class _Reader(ConditionReader):
    """A collector of the tests in a valid condition."""

    def __init__(self, kind: str, placeholders: Placeholders) -> None:
        super().__init__(kind, placeholders)
        self.tests: dict[str, Value] = {}

    def read(self, node: ConditionNode) -> None:
        """Collect the tests in a condition. Raises ServiceError for operators that no search condition may have."""
        match node:
            case AndNode(parts):
                for part in parts:
                    self.read(part)
            case CompareNode("=", PathNode() as path, ValueNode() as value):
                self._note(path, value)
            case CompareNode("=", ValueNode() as value, PathNode() as path):
                self._note(path, value)
            case CompareNode() | BetweenNode():
                raise validation(_COMPARATOR)
            case _:
                raise validation(f"Invalid operator used in {_NAME}")

    def _note(self, path: PathNode, value: ValueNode) -> None:
        if len(path.steps) > 1:
            raise validation(f"{_NAME} cannot have conditions on nested attributes")
        name = str(self.path(path)[0])
        if name in self.tests:
            raise validation(f"{_NAME} must only contain one condition per attribute")
        self.tests[name] = self.value(value)


def check_search_tests(index: VectorIndex, tests: Mapping[str, Value] | None) -> None:
    """Raise ServiceError if the search schema of an index does not take these tests. They are None without an expression."""
    if tests is None:
        if index.partition is not None:
            raise validation(f"{_NAME} must be provided when SearchSchema has a HASH key")
        return
    columns = {column.name: column for column in index.columns}
    for name, value in tests.items():
        column = columns.get(name)
        if column is None:
            raise validation(
                f"{_NAME} must not contain any attributes that is not in SearchSchema. Invalid attribute: {name}"
            )
        if not is_of_kind(value, column.kind):
            raise validation(
                f"Type of '{name}' attribute in {_NAME} ({type_name(value.kind)}) does not match type in search schema "
                f"({type_name(column.kind)})"
            )
        if column is index.partition and value.data in ("", b""):
            kind = "binary" if value.kind is Kind.BYTES else "string"
            raise validation(expression_text("key-empty", kind=kind, name=name))
    if index.partition is not None and index.partition.name not in tests:
        raise validation(f"{_NAME} must have all HASH attributes")


# SearchVectors


class _SearchClauses:
    """The condition and the projection of a search."""

    __slots__ = ("projection", "tests")

    def __init__(self, call: CallContext, arguments: Mapping[str, Any]) -> None:
        placeholders = Placeholders.of(arguments, call.error_texts)
        text = arguments.get("SearchConditionExpression")
        self.tests = None if text is None else search_tests(text, placeholders)
        text = arguments.get("ProjectionExpression")
        self.projection: ProjectionPaths | None = (
            None if text is None else parse_projection(text, placeholders)
        )
        placeholders.check_all_used()


async def search_vectors(call: CallContext) -> Answer:
    """SearchVectors: the items with the nearest vectors. Raises ServiceError, TableMissing, IndexMissing."""
    arguments = call.input
    clauses = _SearchClauses(call, arguments)
    table = await find_table(call, arguments["TableName"])
    index = _index(call, table)
    vector = arguments["SearchVector"]
    if len(vector) != index.dimensions:
        raise validation(
            error_texts.bare("search-vector-size", actual=len(vector), expected=index.dimensions)
        )
    check_search_tests(index, clauses.tests)
    tests = dict(clauses.tests or {})
    partition = None if index.partition is None else tests.pop(index.partition.name)
    search = SearchVectors(table, index, pack(vector), arguments["TopK"], partition, tests)
    return _answer(call, clauses, search, await search)


def _index(call: CallContext, table: Table) -> VectorIndex:
    """Return the index of the request. An index that is being filled counts as missing while the table is UPDATING."""
    name = call.input["IndexName"]
    index = vector_index(table, name)
    now_ms = call.gateway.now_ms()
    state = table.state_at(now_ms)
    if index is None or (not index.is_active(now_ms) and state is State.UPDATING):
        raise IndexMissing(table.name, name)
    if not index.is_active(now_ms) and state is State.ACTIVE:
        raise validation(f"Cannot search backfilling vector index: {name}")
    return index


def _answer(
    call: CallContext, clauses: _SearchClauses, search: SearchVectors, vector_matches: list[VectorMatch]
) -> Answer:
    results: list[dict[str, Any]] = []
    bytes_left = limits.SEARCH_ANSWER_BYTES
    for match in vector_matches:
        bytes_left -= match.row.size_bytes
        if bytes_left < 0 and results:
            break
        results.append({"Item": _item(search, clauses.projection, match), "Score": match.score})
    consumed = _consumed(call, search.index, vector_matches[: len(results)])
    return {"SearchResults": results, **consumed}


def _consumed(call: CallContext, index: VectorIndex, vector_matches: Sequence[VectorMatch]) -> Blocks:
    """Return the block of SearchVectors: the sizes of the search vector and of the index entries found."""
    size = COMPONENT_BYTES * index.dimensions
    size += sum([index.size_bytes(nearest.row.contents) for nearest in vector_matches])
    if mode_of(call) == "NONE":
        return {}
    return {"ConsumedCapacity": {"VectorSearchRequestBytes": float(max(limits.VECTOR_REQUEST_BYTES, size))}}


def _item(search: SearchVectors, projection: ProjectionPaths | None, nearest: VectorMatch) -> dict[str, Any]:
    table, index = search.table, search.index
    projected_names = index.projected_names
    if projected_names is not None:
        projected_names = projected_names.union(shown_schema(table.key_schema).names)
    attributes = visible_attributes(table.key_schema, nearest.row)
    names = nearest.row.contents.members if projected_names is None else projected_names
    values: dict[str, Value] = {}
    for name in {*names, *shown_schema(table.key_schema).names}:
        value = attributes.get(name)
        if value is not None and name != index.attribute:
            values[name] = value
    if projection is None:
        return render_values(values)
    if index.attribute in projection.names and (
        projected_names is None or index.attribute in projected_names
    ):
        values[index.attribute] = vector_rules.list_value(nearest.vector)
    rendered = render_values(project(values, projection))
    for element in rendered.get(index.attribute, {}).get("L", ()):
        if "." not in element["N"]:  # as in the index: 1.0 (paritysuite, vectorSearch/search.test.ts)
            element["N"] += ".0"
    return rendered


# Inputs


_SEARCH: Members = {
    "TableName": TABLE_NAME,
    "IndexName": NAME,
    "ReturnConsumedCapacity": CAPACITY,
    "SearchVector": shapes.Sequence(shapes.AttributeValue(), 1, limits.VECTOR_DIMENSIONS),
    "TopK": INTEGER_FROM_1,
    "SearchConditionExpression": TEXT,
    "ProjectionExpression": TEXT,
    **PLACEHOLDERS,
}
VECTOR_REQUESTS = requests_of(
    {"SearchVectors": (_SEARCH, ("TableName", "IndexName", "SearchVector", "TopK"))}
)


# Operations


OPERATIONS = by_name(
    Operation(
        "SearchVectors", search_vectors, VECTOR_REQUESTS, Purpose((Permission.SEARCH,)),
        rule=vector_rules.search_vectors, refusal_of_body=vector_rules.refusal_of_body,
    ),
)  # fmt: skip
