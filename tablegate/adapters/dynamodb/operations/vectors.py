"""SearchVectors: the items with the nearest vectors.

The answer has the attributes that the index projects. It has the vector only if ProjectionExpression names it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tablegate.adapters.dynamodb.capacity.consumed_capacity import Blocks, mode_of
from tablegate.adapters.dynamodb.expressions.placeholders import Placeholders
from tablegate.adapters.dynamodb.expressions.projections import ProjectionPaths, parse_projection, project
from tablegate.adapters.dynamodb.expressions.search_conditions import check_tests, search_tests
from tablegate.adapters.dynamodb.values import vectors
from tablegate.adapters.dynamodb.values.composites import shown_schema, visible_attributes
from tablegate.adapters.dynamodb.values.values import render_values
from tablegate.adapters.dynamodb.wire import limits, messages
from tablegate.adapters.dynamodb.wire.call_context import Answer, CallContext, find_table
from tablegate.adapters.dynamodb.wire.errors import validation
from tablegate.gateway.features.vectors.vectors import (
    COMPONENT_BYTES,
    SearchVectors,
    VectorIndex,
    VectorMatch,
    pack,
    vector_index,
)
from tablegate.gateway.model.errors import IndexMissing
from tablegate.gateway.model.tables.tables import State, Table
from tablegate.gateway.model.values.values import Value

# SearchVectors


class _SearchClauses:
    """The condition and the projection of a search."""

    __slots__ = ("projection", "tests")

    def __init__(self, call: CallContext, arguments: Mapping[str, Any]) -> None:
        placeholders = Placeholders.of(arguments, call.wording)
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
        raise validation(messages.bare("search-vector-size", actual=len(vector), expected=index.dimensions))
    check_tests(index, clauses.tests)
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
        values[index.attribute] = vectors.list_value(nearest.vector)
    rendered = render_values(project(values, projection))
    for element in rendered.get(index.attribute, {}).get("L", ()):
        if "." not in element["N"]:  # as in the index: 1.0 (paritysuite, vectorSearch/search.test.ts)
            element["N"] += ".0"
    return rendered
