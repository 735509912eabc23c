"""Vector fields and KNN queries."""

from __future__ import annotations

import math
import sys
from typing import Any

import pytest

from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.gateway.features.search import searching as nearest_vectors
from tests.adapters.tablestore.client import Refused, TableStoreService
from tests.adapters.tablestore.search_messages import (
    Searches,
    bool_of,
    exists,
    field,
    keys_of,
    query,
    schema,
    term,
)
from tests.support.capabilities import needs

pytestmark = needs("vectors")
HALF = math.sqrt(0.5)
VECTORS = {1: (1.0, 0.0), 2: (2.0, 2.0), 3: (0.0, 3.0), 4: (-1.0, 0.0)}


def vector_field(metric: int = messages.EUCLIDEAN, dimension: int = 2) -> messages.FieldSchema:
    options = messages.VectorOptions(data_type=messages.FLOAT_32, dimension=dimension, metric_type=metric)
    return field("v", messages.VECTOR, vector_options=options)


def nearest(vector: tuple[float, ...] = (1.0, 1.0), top_k: int = 10, **members: Any) -> messages.Query:
    message = messages.KnnVectorQuery(field_name="v", top_k=top_k, float32_query_vector=vector, **members)
    return query(messages.KNN_VECTOR_QUERY, message)


def fill(service: TableStoreService, metric: int) -> Searches:
    table = Searches(service)
    table.create(vector_field(metric), ("k", messages.KEYWORD))
    for key, (x, y) in VECTORS.items():
        service.put({"pk": key}, {"v": f"[{x}, {y}]", "k": "ab"[key % 2]})
    service.put({"pk": 5}, {"v": "[1, 2, 3]", "k": "a"})
    service.put({"pk": 6}, {"v": '["x", 1]', "k": "a"})
    table.catch_up()
    return table


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (messages.EUCLIDEAN, {1: 1 / 2, 2: 1 / 3, 3: 1 / 6, 4: 1 / 6}),
        (messages.COSINE, {2: 1.0, 1: (1 + HALF) / 2, 3: (1 + HALF) / 2, 4: (1 - HALF) / 2}),
        (messages.DOT_PRODUCT, {2: 4.0, 3: 3.0, 1: 1.0, 4: -1.0}),
    ],
)
def test_the_most_similar_vectors_come_first(
    service: TableStoreService, metric: int, expected: dict[int, float]
) -> None:
    table = fill(service, metric)
    answer = table.search(nearest(), get_total_count=True)
    assert keys_of(answer) == [*expected]
    assert [hit.score for hit in answer.search_hits] == pytest.approx([*expected.values()])
    assert answer.total_hits == 4
    assert table.find(exists("v")) == [1, 2, 3, 4]


def test_top_k_filters_and_pages(service: TableStoreService) -> None:
    table = fill(service, messages.DOT_PRODUCT)
    two = table.search(nearest(top_k=2), limit=1, get_total_count=True)
    assert (keys_of(two), two.total_hits) == ([2], 2)
    assert table.find(nearest(top_k=2, filter=term("k", "b")), limit=2) == [3, 1]
    assert table.find(nearest(top_k=3, min_score=3)) == [2, 3]
    assert table.find(nearest(top_k=3, min_score=3.5)) == [2]
    assert table.find(nearest(top_k=3, min_score=3.5, weight=0.5)) == [
        2
    ]  # KnnVectorQuery.java: of the distance
    [hit, _] = table.search(nearest(top_k=2, weight=0.5), limit=2).search_hits
    assert hit.score == 2.0  # half of the score above
    first = table.search(nearest(top_k=3), limit=2)
    second = table.search(nearest(top_k=3), token=first.next_token, limit=2)
    assert keys_of(first) + keys_of(second) == [2, 3, 1]


def test_the_limit_replaces_a_lower_top_k(service: TableStoreService) -> None:
    """Source: "KNN vector query" of the documentation, and the Python SDK's search_index_test.py."""
    table = fill(service, messages.DOT_PRODUCT)
    found = table.search(nearest(top_k=1), limit=3, get_total_count=True)
    assert (keys_of(found), found.total_hits) == ([2, 3, 1], 3)
    assert found.next_token


def test_blocks_of_vectors(service: TableStoreService, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only one vector is in memory at a time. Numbers beyond 32 bits are in no result."""
    table = fill(service, messages.DOT_PRODUCT)
    service.put({"pk": 7}, {"v": "[1e300, 0]", "k": "a"})
    table.catch_up()
    monkeypatch.setattr(nearest_vectors, "_BLOCK_NUMBERS", 1)
    assert table.find(nearest()) == [2, 3, 1, 4]
    assert table.find(nearest(top_k=2), limit=2) == [2, 3]


def test_vector_queries_need_numpy(service: TableStoreService, monkeypatch: pytest.MonkeyPatch) -> None:
    table = fill(service, messages.COSINE)
    monkeypatch.setitem(sys.modules, "tablegate.gateway.features.vectors.exact_search", None)
    monkeypatch.delattr("tablegate.gateway.features.vectors.exact_search", raising=False)
    with pytest.raises(Refused, match=r"tablegate\[vectors\]"):
        table.find(nearest())


@pytest.mark.parametrize(
    "wanted",
    [
        nearest(top_k=0),
        nearest(top_k=limits.NEAREST_MAX + 1),
        nearest((1.0,)),
        nearest((1.0, math.nan)),
        bool_of(must_queries=[nearest()]),
        term("v", "[1, 2]"),
    ],
)
def test_invalid_vector_queries(service: TableStoreService, wanted: messages.Query) -> None:
    table = fill(service, messages.COSINE)
    table.search(nearest(top_k=limits.NEAREST_MAX))
    with pytest.raises(Refused, match="OTSParameterInvalid"):
        table.search(wanted)


def test_a_group_cannot_be_of_a_vector_query(service: TableStoreService) -> None:
    """Its results depend on the other documents, so a filter cannot decide on one."""
    table = fill(service, messages.COSINE)
    body = messages.GroupByFilter(filters=[nearest()]).SerializeToString()
    group = messages.GroupBy(name="g", type=messages.GROUP_BY_FILTER, body=body)
    with pytest.raises(Refused, match="must be the outermost query"):
        table.search(term("k", "a"), group_bys=messages.GroupBys(group_bys=[group]))


def test_limits_of_dimensions(service: TableStoreService) -> None:
    service.create()
    for dimension in (0, limits.VECTOR_DIMENSIONS_MAX + 1):
        made = schema(vector_field(dimension=dimension))
        with pytest.raises(Refused, match="dimension"):
            service.call("CreateSearchIndex", table_name="t", index_name="i", schema=made)
    made = schema(vector_field(dimension=limits.VECTOR_DIMENSIONS_MAX))
    service.call("CreateSearchIndex", table_name="t", index_name="i", schema=made)
