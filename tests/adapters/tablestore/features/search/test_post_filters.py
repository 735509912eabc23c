"""SearchQuery.filter of the Java and Go SDKs. Source: "Post-query filter" (November 2025)."""

from __future__ import annotations

from typing import Any

import pytest

from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tests.adapters.tablestore.client import TableStoreService
from tests.adapters.tablestore.search_messages import (
    Searches,
    between,
    bool_of,
    exists,
    field,
    keys_of,
    query,
    term,
    terms,
)
from tests.support.capabilities import needs

BY_SCORE = messages.Sort(sorter=[messages.Sorter(score_sort=messages.ScoreSort())])


@pytest.fixture
def table(service: TableStoreService) -> Searches:
    """Rows 0 to 7: even ones are books. The score of a row is its key, and its vector is (key, 1)."""
    table = Searches(service)
    options = messages.VectorOptions(
        data_type=messages.FLOAT_32, dimension=2, metric_type=messages.DOT_PRODUCT
    )
    vector = field("v", messages.VECTOR, vector_options=options)
    table.create(("category", messages.KEYWORD), ("score", messages.LONG), vector)
    for key in range(8):
        values = {"category": ("book", "film")[key % 2], "score": key, "v": f"[{key}, 1]"}
        table.service.put({"pk": key}, values)
    table.catch_up()
    return table


def kept(wanted: messages.Query) -> dict[str, Any]:
    return {"filter": messages.SearchFilter(query=wanted)}


def test_results_and_their_total_are_filtered(table: Searches) -> None:
    between_1_and_10 = between("score", 1, 10, lower=False)
    answer = table.search(terms("category", "book"), **kept(between_1_and_10), get_total_count=True)
    assert (keys_of(answer), answer.total_hits) == ([2, 4, 6], 3)
    either = bool_of(should_queries=[term("score", 0), term("score", 6)], must_not_queries=[term("score", 6)])
    assert table.find(exists("category"), **kept(either)) == [0]


def test_aggregations_are_of_filtered_results(table: Searches) -> None:
    body = messages.FieldAggregation(field_name="score").SerializeToString()
    total = messages.Aggregation(name="total", type=messages.AGG_SUM, body=body)
    answer = table.search(
        term("category", "book"), **kept(between("score", 3)), aggs=messages.Aggregations(aggs=[total])
    )
    [result] = messages.AggregationsResult.FromString(answer.aggs).agg_results
    assert messages.DoubleResult.FromString(result.agg_result).value == 10


def test_pages_are_of_filtered_results(table: Searches) -> None:
    members = kept(term("category", "film"))
    answer = table.search(between("score", 2), **members, limit=2)
    assert keys_of(answer) == [3, 5]
    assert table.find(between("score", 2), **members, token=answer.next_token, limit=2) == [7]


def test_scores_do_not_change(table: Searches) -> None:
    function = messages.FieldValueFactor(field_name="score")
    message = messages.FunctionScoreQuery(query=exists("score"), field_value_factor=function)
    wanted = query(messages.FUNCTION_SCORE_QUERY, message)
    answer = table.search(wanted, **kept(term("category", "film")), sort=BY_SCORE)
    assert [hit.score for hit in answer.search_hits] == [7, 5, 3, 1]


@needs("vectors")
def test_the_nearest_vectors_are_found_first(table: Searches) -> None:
    message = messages.KnnVectorQuery(field_name="v", top_k=3, float32_query_vector=(1, 0))
    nearest = query(messages.KNN_VECTOR_QUERY, message)
    assert table.find(nearest, limit=3) == [7, 6, 5]
    answer = table.search(nearest, **kept(term("category", "book")), limit=3, get_total_count=True)
    assert (keys_of(answer), answer.total_hits) == ([6], 1)
