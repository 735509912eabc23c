"""Virtual columns of search indexes in SQLQuery ("Virtual columns of search indexes" of Tablestore's SQL)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tablegate.adapters.tablestore.wire.protocol import search_pb2
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tests.adapters.tablestore.client import Refused, TableStoreService
from tests.adapters.tablestore.search_messages import field, schema
from tests.support.clock import Clock
from tests.support.sql_client import sql

ENGINE = """engine='searchindex', engine_attribute='{"index_name": "i", "table_name": "t"}'"""
COLUMNS = "pk bigint, s mediumtext, s_long bigint, s_double double, s_text mediumtext, n_word mediumtext"


def virtual(name: str, kind: int, source: str, **members: Any) -> search_pb2.FieldSchema:
    return field(name, kind, is_virtual_field=True, source_field_names=[source], **members)


@pytest.fixture(scope="module")
def service() -> Iterator[TableStoreService]:
    """Six rows: s is the text of pk * 10, and in row 5 no number. n is pk. Virtual columns have them in other types."""
    with TableStoreService.opened(Clock()) as opened:
        opened.create("t", ("pk", messages.INTEGER))
        fields = schema(
            ("pk", search_pb2.LONG), ("s", search_pb2.KEYWORD), ("n", search_pb2.LONG), virtual("s_long", search_pb2.LONG, "s"),
            virtual("s_double", search_pb2.DOUBLE, "s"), virtual("s_text", search_pb2.TEXT, "s"),
            virtual("n_word", search_pb2.KEYWORD, "n"), virtual("s_longs", search_pb2.LONG, "s", is_array=True),
        )  # fmt: skip
        opened.call("CreateSearchIndex", table_name="t", index_name="i", schema=fields)
        for key in range(6):
            opened.put({"pk": key}, {"s": "ten words" if key == 5 else str(key * 10), "n": key}, table="t")
        opened.gateway.engine.background.catch_up()
        sql(opened, f"create table found ({COLUMNS}) {ENGINE}")
        yield opened


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select pk from found where s_long = 20", [(2,)]),
        ("select pk from found where s_long > 20 and s_double <= 40.0", [(3,), (4,)]),
        ("select pk from found where s_long is null", [(5,)]),
        ("select pk from found where n_word = '3' or n_word like '4%'", [(3,), (4,)]),
        ("select pk from found where text_match(s_text, 'words')", [(5,)]),
        ("select sum(s_long), max(s_double), count(s_long), count(*) from found", [(100.0, 40.0, 5, 6)]),
        ("select sum(s_long + 0), max(s_double + 0) from found where pk > 2", [(70.0, 40.0)]),
        ("select count(*) from found group by s_long > 20 order by 1", [(1,), (2,), (3,)]),
        ("select pk from found where s_long > 0 order by s_long desc limit 2", [(4,), (3,)]),
        ("select pk, s from found order by n_word desc limit 1", [(5, "ten words")]),
        ("select * from found where s_long = 10", [(1, "10")]),
        ("select a.pk from found a where exists (select 1 from found b where b.s_long = a.s_long + 10) limit 1", [(0,)]),
    ],
)  # fmt: skip
def test_results(service: TableStoreService, query: str, expected: list[Any]) -> None:
    assert sql(service, query).rows == expected


@pytest.mark.parametrize(
    "query",
    ["select s_long from found", "select s_long x from found", "select found.s_text from found",
     f"create table x (s_longs bigint) {ENGINE}", f"create table x (s_long double) {ENGINE}",
     f"create table x (s_none bigint) {ENGINE}", "alter table found add column s_longs bigint"],
)  # fmt: skip
def test_refusals(service: TableStoreService, query: str) -> None:
    with pytest.raises(Refused) as refused:
        sql(service, query)
    assert (refused.value.status, refused.value.code) == (400, "OTSParameterInvalid")


def test_a_table_has_no_virtual_columns(service: TableStoreService) -> None:
    """A column of the table with the name of a virtual field is read from the table."""
    service.put({"pk": 0}, {"s": "0", "n": 0, "s_long": 7}, table="t")
    sql(service, "create table t (pk bigint primary key, s_long bigint)")
    answer = sql(service, "select s_long from t where s_long = 7")
    assert (answer.rows, [each.table_name for each in answer.message.consumes]) == ([(7,)], ["t"])
