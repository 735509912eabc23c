"""VECTOR_QUERY_FLOAT32 and SCORE() of SQLQuery.

Source: "KNN vector query of search indexes" of Tablestore's SQL.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator

import pytest

from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.protocol import search_pb2
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tests.adapters.tablestore.client import Refused, TableStoreService
from tests.adapters.tablestore.search_messages import field, schema
from tests.support.capabilities import needs
from tests.support.clock import Clock
from tests.support.sql_client import DOUBLE, sql
from tests.support.tables import each_row

pytest.importorskip("numpy")
pytestmark = needs("vectors")

SOURCE = random.Random(3)
VECTORS = {number: [round(SOURCE.uniform(-2, 2), 2), round(SOURCE.uniform(-2, 2), 2)] for number in range(30)}
COLUMNS = "pk bigint, kind mediumtext, v mediumtext"


@pytest.fixture(scope="module")
def places() -> Iterator[TableStoreService]:
    """A table of thirty vectors, a mapping of it, and one of its search index."""
    with TableStoreService.opened(Clock()) as service:
        service.create("places", ("pk", messages.INTEGER))
        options = search_pb2.VectorOptions(
            data_type=search_pb2.FLOAT_32, dimension=2, metric_type=search_pb2.EUCLIDEAN
        )
        fields = schema(
            ("pk", search_pb2.LONG), ("kind", search_pb2.KEYWORD), field("v", search_pb2.VECTOR, vector_options=options)
        )  # fmt: skip
        service.call("CreateSearchIndex", table_name="places", index_name="i", schema=fields)
        for number, vector in VECTORS.items():
            cells = {"kind": f"kind{number % 3}", "v": json.dumps(vector)}
            service.put({"pk": number}, cells, table="places")
        service.gateway.engine.background.catch_up()
        sql(service, f"create table places ({COLUMNS}, primary key(pk))")
        engine = """engine='searchindex', engine_attribute='{"index_name": "i", "table_name": "places"}'"""
        sql(service, f"create table found ({COLUMNS}) {engine}")
        yield service


def nearest(number: int, kinds: str = "012") -> list[int]:
    """The keys with the smallest distances to (1, -0.5), of some kinds."""
    keys = [key for key in VECTORS if str(key % 3) in kinds]
    return sorted(keys, key=lambda key: math.dist(VECTORS[key], (1, -0.5)))[:number]


def call(rest: str = "5") -> str:
    return f'vector_query_float32(v, "[1, -0.5]", {rest})'


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        (f"where {call()}", nearest(5)),
        (f"where {call()} order by score() desc", nearest(5)),
        (f"where {call()} order by score() asc", nearest(5)[::-1]),
        (f"where {call()} order by pk", sorted(nearest(5))),
        (f"where {call('9')} limit 1, 3", nearest(4)[1:]),
        (f"where {call('2')} limit 4", nearest(4)),
        (f"where {call()} and kind = 'kind1'", [key for key in nearest(5) if key % 3 == 1]),
        (f"where kind <> 'kind0' and ({call('20')} and pk > 9)", [key for key in nearest(20) if key % 3 and key > 9]),
        (f"""where {call("4, kind = 'kind1'")}""", nearest(4, "1")),
        (f"""where {call("4, kind in ('kind0', 'kind2') or pk < 0")}""", nearest(4, "02")),
        (f"where {call('1000')}", nearest(30)),
    ],
)  # fmt: skip
def test_nearest_rows(places: TableStoreService, rest: str, expected: list[int]) -> None:
    for table in ("found", "places"):
        assert [key for (key,) in sql(places, f"select pk from {table} {rest}").rows] == expected


def test_scores(places: TableStoreService) -> None:
    """The score of Euclidean distances is 1 / (1 + the square of the distance)."""
    answer = sql(places, f"select pk, score() s, SCORE() * 2 from found where {call()} having s > 0")
    assert (answer.names, answer.types[1]) == (["pk", "s", "SCORE() * 2"], DOUBLE)
    for key, score, twice in answer.rows:
        assert score == pytest.approx(1 / (1 + math.dist(VECTORS[key], (1, -0.5)) ** 2), rel=1e-5)
        assert twice == score * 2
    [[most, number]] = sql(places, f"select max(score()), count(*) from found where {call()}").rows
    assert (most, number) == (answer.rows[0][1], 5)


def test_a_star_has_no_score(places: TableStoreService) -> None:
    answer = sql(places, f"select * from found where {call('1')}")
    assert answer.names == ["pk", "kind", "v"]
    assert answer.rows == [(nearest(1)[0], f"kind{nearest(1)[0] % 3}", json.dumps(VECTORS[nearest(1)[0]]))]


def test_a_subquery_can_have_a_vector_query(places: TableStoreService) -> None:
    query = f"select pk from places where pk in (select pk from found where {call('3')}) order by pk"
    assert [key for (key,) in sql(places, query).rows] == sorted(nearest(3))
    joined = (
        f"select a.pk from places a join (select pk, score() s from found where {call('3')}) x on a.pk = x.pk"
    )
    assert [key for (key,) in sql(places, f"{joined} order by x.s desc").rows] == nearest(3)


def test_explain_shows_a_vector_query(places: TableStoreService) -> None:
    for rest, rows in (("", 5), (" and pk > 1", 5), (" limit 2", 2), (" limit 9", 9)):
        steps = sql(places, f"explain select pk from found where {call()}{rest}").rows
        assert steps == [("places", "search index", "i", "vectors", rows)]


@each_row(
    "rest",
    [f"found where {call()} or pk = 1", f"found where not {call()}", f"found where {call()} and {call()}",
     "found a join found b on a.pk = b.pk where vector_query_float32(a.v, '[1, 1]', 1)", f"found having {call()}",
     f"found where if({call()}, 1, 0)", f"places where pk = 1 and {call()}",
     *(f"found where vector_query_float32({arguments})" for arguments in
       ("", "v", "v, '[1, 1]'", "v, '[1, 1]', 1, 1, 1", "kind, '[1, 1]', 1", "w, '[1, 1]', 1", "'v', '[1, 1]', 1",
        "v, '[1]', 1", "v, '[1, \"a\"]', 1", "v, '[1, null]', 1", "v, '[1, 1e999]', 1", "v, '[1, 1e39]', 1", "v, 'x', 1",
        "v, '1', 1", "v, kind, 1", "v, 1, 1", "v, '[1, NaN]', 1", "v, '[[1], [1]]', 1", "v, '[1, 1]', 'a'",
        "v, '[1, 1]', 1.5", "v, '[1, 1]', pk", "v, '[1, 1]', 1, kind like '%a'", "v, '[1, 1]', 1, 'kind'",
        f"v, '[1, 1]', 1, {call()}")),
     "found where score() > 0", "places order by score()", f"found where {call()} and score(1) > 0",
     f"found where {call()} and exists (select pk from places order by score())"],
)  # fmt: skip
def test_refusals(places: TableStoreService, rest: str) -> None:
    with pytest.raises(Refused) as refused:
        sql(places, f"select pk from {rest}")
    assert (refused.value.status, refused.value.code) == (400, "OTSParameterInvalid")


def test_the_number_of_rows(places: TableStoreService) -> None:
    most = limits.NEAREST_MAX
    assert len(sql(places, f"select pk from found where {call(str(most))}").rows) == len(VECTORS)
    assert len(sql(places, f"select pk from found where {call('1')} limit {most + 1}").rows) == len(VECTORS)
    for number in (0, most + 1, -1, 2**70):
        with pytest.raises(Refused, match="topK"):
            sql(places, f"select pk from found where {call(str(number))}")
