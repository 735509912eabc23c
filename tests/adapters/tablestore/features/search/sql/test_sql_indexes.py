"""SQLQuery on secondary and search indexes: which one is read, mappings of indexes, conditions of search indexes.

Sources: "Query optimization", "Search index operations" and "DDL operations" of Tablestore's SQL, and TestSQLWithSearch
of the Go SDK.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tablegate.adapters.tablestore.features.search.sql import indexes
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.protocol import search_pb2, sql_pb2
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.features.search.search_commands import SearchRows
from tests.adapters.tablestore.client import Refused, TableStoreService
from tests.adapters.tablestore.search_messages import field, schema
from tests.support.clock import Clock
from tests.support.sql_client import sql
from tests.support.tables import each_row

LONG, KEYWORD, TEXT, NESTED = search_pb2.LONG, search_pb2.KEYWORD, search_pb2.TEXT, search_pb2.NESTED
DEFINED = [
    messages.DefinedColumnSchema(name="n", type=messages.DCT_INTEGER),
    messages.DefinedColumnSchema(name="price", type=messages.DCT_DOUBLE),
    messages.DefinedColumnSchema(name="kind", type=messages.DCT_STRING),
]
MAPPING = (
    "create table goods (shop varchar(9), id bigint, n bigint, price double, kind mediumtext, title mediumtext,"
    " tags mediumtext, parts mediumtext, primary key(shop, id))"
)
OF_SEARCH_INDEX = (
    "create table found (shop varchar(9), id bigint, kind mediumtext, title mediumtext, tags mediumtext,"
    """ parts mediumtext) engine='searchindex', engine_attribute='{"index_name":"searched","table_name":"goods"}'"""
)


def secondary_index(name: str, *key: str) -> messages.IndexMeta:
    return messages.IndexMeta(
        name=name,
        primary_key=key,
        defined_column=["price"],
        index_update_mode=messages.IUM_ASYNC_INDEX,
        index_type=messages.IT_GLOBAL_INDEX,
    )


@pytest.fixture(scope="module")
def goods(shared_database_url: str) -> Iterator[TableStoreService]:
    """A table of twelve rows with secondary indexes by (n) and by (kind, n), and a search index without n and price."""
    with TableStoreService.opened(Clock(), database=shared_database_url) as service:
        by_n, by_kind = secondary_index("by_n", "n"), secondary_index("by_kind", "kind", "n")
        service.create(
            "goods", ("shop", messages.STRING), ("id", messages.INTEGER), defined=DEFINED, index_metas=[by_n, by_kind]
        )  # fmt: skip
        nested = field("parts", NESTED, field_schemas=[field("name", KEYWORD), field("size", LONG)])
        fields = schema(
            ("shop", KEYWORD), ("id", LONG), ("kind", KEYWORD), ("title", TEXT), field("tags", LONG, is_array=True), nested
        )  # fmt: skip
        service.call("CreateSearchIndex", table_name="goods", index_name="searched", schema=fields)
        for number in range(12):
            cells: dict[str, Any] = {
                "kind": f"kind{number % 3}", "price": number / 2, "title": f"red apple number {number}",
                "tags": json.dumps([number, number + 1]),
                "parts": json.dumps([{"name": "a", "size": number}, {"name": "b", "size": 20 - number}]),
            }  # fmt: skip
            if number % 4:
                cells["n"] = number % 4
            service.put({"shop": f"s{number % 2}", "id": number}, cells, table="goods")
        service.gateway.engine.background.catch_up()
        sql(service, MAPPING)
        sql(service, OF_SEARCH_INDEX)
        yield service


def accesses(service: TableStoreService, query: str) -> list[str]:
    """Return the tables and indexes that a statement reads."""
    message = sql(service, query).message
    return [each.table_name for each in message.consumes] + [
        each.index_name for each in message.search_consumes
    ]


def ids(service: TableStoreService, condition: str, table: str = "found") -> list[int]:
    return [
        number for (number,) in sql(service, f"select id from {table} where {condition} order by id").rows
    ]


# The choice of an index


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select price from goods where n = 1", "by_n"),
        ("select price from goods where n > 2 and price > 1", "by_n"),
        ("select price, n from goods where kind = 'kind1' and n = 1", "by_kind"),
        ("select price, n from goods where n = 1 and kind >= 'kind1'", "by_kind"),
        ("select price from goods where kind = 'kind1'", "goods"),  # rows without n are not in the index
        ("select price, title from goods where n = 1", "goods"),  # the index has no title
        ("select price from goods where n = '1'", "by_n"),
        ("select price from goods where n = '1x'", "goods"),
        ("select price from goods where n = 1 or kind = 'kind1'", "goods"),
        ("select price from goods where n = 1 and shop = 's1'", "goods"),
        ("select a.price, b.price from goods b left join goods a on a.id = b.id where a.n = 1", "goods"),
        ("select kind from goods", "searched"),
        ("select count(*) from goods where title like '%5' and kind > 'a'", "searched"),
        ("select kind from goods where shop = 's1'", "goods"),
        ("select * from goods", "goods"),
        ("select id from found where shop = 's1' and id = 1", "searched"),
        ("select id from by_n where id = 1", "by_n"),
    ],
)
def test_a_query_reads_the_expected_index(goods: TableStoreService, query: str, expected: str) -> None:
    assert accesses(goods, query)[-1] == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("n = 1", [0.5, 2.5, 4.5]), ("n > 1 and n <= 2", [1.0, 3.0, 5.0]), ("n between 3 and 9", [1.5, 3.5, 5.5]),
        ("kind = 'kind1' and n = 1", [0.5]), ("kind = 'kind1'", [0.5, 2.0, 3.5, 5.0]), ("n is null", [0.0, 2.0, 4.0]),
    ],
)  # fmt: skip
def test_rows_by_a_secondary_index(goods: TableStoreService, condition: str, expected: list[float]) -> None:
    assert sql(goods, f"select price from goods where {condition} order by price").rows == [
        (price,) for price in expected
    ]


def test_pages_of_indexes(goods: TableStoreService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SQL_PAGE_ROWS", 2)
    assert len(sql(goods, "select price from goods where n >= 1").rows) == 9
    assert ids(goods, "kind > ''") == list(range(12))
    assert len(sql(goods, "select id from found limit 5").rows) == 5
    monkeypatch.setattr(limits, "SQL_ROWS_MAX", 11)
    with pytest.raises(Refused, match="exceeds the limit"):
        sql(goods, "select id from found")
    assert len(sql(goods, "select price from goods where n >= 1").rows) == 9


def test_an_index_that_is_being_filled_is_not_read(goods: TableStoreService) -> None:
    goods.create("filling")
    goods.put({"pk": 1}, {"a": 1}, table="filling")
    sql(goods, "create table filling (pk bigint primary key, a bigint)")
    goods.call(
        "CreateSearchIndex", table_name="filling", index_name="f", schema=schema(("a", LONG), ("pk", LONG))
    )
    assert accesses(goods, "select * from filling") == ["filling"]
    goods.gateway.engine.background.catch_up()
    answer = sql(goods, "select * from filling")
    [consumed] = answer.message.search_consumes
    assert not answer.message.consumes
    assert (consumed.table_name, consumed.index_name, answer.rows) == ("filling", "f", [(1, 1)])
    assert consumed.consumed.capacity_unit.read > 0
    goods.call("DeleteSearchIndex", table_name="filling", index_name="f")
    assert accesses(goods, "select * from filling") == ["filling"]


def test_strong_consistency_reads_no_search_index(goods: TableStoreService) -> None:
    sql(goods, "drop mapping table goods")
    for engine, expected in (("""engine_attribute='{"consistency": "strong"}'""", "goods"), ("", "searched")):
        sql(goods, f"{MAPPING} engine=tablestore {engine}")
        assert accesses(goods, "select kind from goods") == [expected]
        if expected == "goods":
            sql(goods, "drop mapping table if exists goods")


# Conditions of search indexes


@each_row(
    "condition, expected",
    [
        ("text_match(title, 'number 7')", list(range(12))),
        ("TEXT_MATCH(title, 'number 7', 'and')", [7]),
        ("text_match(title, '3 7 apple', 'or', '2')", [3, 7]),
        ("text_match_phrase(title, 'apple number 4')", [4]),
        ("text_match_phrase(title, 'number apple')", []),
        ("not text_match(title, '1 2 3')", [0, 4, 5, 6, 7, 8, 9, 10, 11]),
        ("text_match(title, '1 2 3') and kind = 'kind1'", [1]),
        ("text_match(title, '5') or id = 2", [2, 5]),
        ("array_extract(tags) = 3", [2, 3]),
        ("3 < array_extract(tags) and id < 5", [3, 4]),
        ("array_extract(tags) between 11 and 20", [10, 11]),
        ("array_extract(tags) in (1, 12)", [0, 1, 11]),
        ("array_extract(tags) is null", []),
        ("array_extract(tags) is not null and 2 >= id", [0, 1, 2]),
        ("text_match(kind, 'kind1') and text_match_phrase(shop, 's0')", [4, 10]),
        ("`parts.size` = 3", [3]),
        ("`parts.name` = 'a' and `parts.size` = 17", [3]),
        ("nested_query(`parts.name` = 'a' and `parts.size` = 17)", []),
        ("nested_query(`parts.name` = 'b' and `parts.size` = 17)", [3]),
        ("nested_query((`parts.name` = 'b' or `parts.name` = 'c') and not `parts.size` < 19)", [0, 1]),
        ("found.kind like 'kind2%' and id > 3", [5, 8, 11]),
        ("kind in ('kind0', 'x') and id <= 3", [0, 3]),
        ("kind is not null and kind <> 'kind0' and id < 3", [1, 2]),
        ("id * 2 = 6", [3]),
        ("kind like '%1' and shop = 's0'", [4, 10]),
    ],
)
def test_conditions_of_search_indexes(goods: TableStoreService, condition: str, expected: list[int]) -> None:
    assert ids(goods, condition) == expected
    assert accesses(goods, f"select id from found where {condition}") == ["searched"]
    if "found." not in condition:
        assert ids(goods, condition, table="goods") == expected


@each_row(
    "condition",
    ["text_match(kind)", "text_match(title, 'a', 'xor')", "text_match(title, 'a', 'or', 'x')", "text_match(upper(title), 'a')",
     "text_match(id, 'a')", "text_match_phrase(title, 1)", "array_extract(kind) = 'a'", "array_extract(tags) = id",
     "array_extract(tags) = 'x'", "array_extract(tags)", "array_extract(tags) <> 1", "array_extract(tags) is true",
     "`parts.size` = id", "`parts.size` like 'a'", "`parts.none` = 1", "nested_query(id = 1)", "nested_query()",
     "nested_query(array_extract(tags) = 1)", "nested_query(`parts.size` = 1 and array_extract(tags) = 1)", "nowhere = 1",
     "vector_query_float32(title, '[1]', 1)", "score() > 1", "json_extract(parts, '$.a') = 1"],
)  # fmt: skip
def test_conditions_that_are_refused(goods: TableStoreService, condition: str) -> None:
    with pytest.raises(Refused) as refused:
        sql(goods, f"select id from found where {condition}")
    assert (refused.value.status, refused.value.code) == (400, "OTSParameterInvalid")


@pytest.mark.parametrize("number", [12, 13, 500])
def test_many_conditions_are_planned_quickly(goods: TableStoreService, number: int) -> None:
    """PostgreSQL would plan 500 conditions for more than 30 seconds. So it gets 12 of them."""
    numbers = list(range(number))
    query = "explain select id from found where " + " and ".join(f"id<{each + 9}" for each in numbers)
    assert sql(goods, query).rows[0][3] == "exact"
    assert ids(goods, " or ".join(f"id={each}" for each in numbers)) == list(range(12))
    assert ids(goods, f"id in ({', '.join(map(str, numbers))})") == list(range(12))
    assert ids(goods, " and ".join(f"id<>{each}" for each in numbers[5:]) + " and id<12") == list(range(5))
    assert ids(goods, " and ".join(f"id<{each + 9}" for each in numbers)) == list(range(9))


def test_the_conditions_of_a_nested_query(goods: TableStoreService) -> None:
    """1,024 conditions, 20 levels."""
    for condition, is_fitting in (
        (" and ".join(["`parts.size`=3"] * 1_024), True),
        (" or ".join(["`parts.size`=3"] * 1_025), False),
        ("not (" * 20 + "`parts.size`=3" + ")" * 20, True),
        ("not (" * 21 + "`parts.size`=3" + ")" * 21, False),
    ):
        if is_fitting:
            assert ids(goods, f"nested_query({condition})") == [3]
        else:
            with pytest.raises(Refused, match="too many conditions"):
                ids(goods, f"nested_query({condition})")


def test_a_table_without_a_search_index_has_no_full_text(goods: TableStoreService) -> None:
    with pytest.raises(Refused, match="needs a column of a search index"):
        sql(goods, "select price from goods where text_match(title, 'a')")


# Sorts and pages of search indexes


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select id from found order by id desc limit 2", [11, 10]),
        ("select id from found where id > 4 order by id limit 1, 2", [6, 7]),
        ("select id from found order by kind desc, id desc limit 2", [11, 8]),
        ("select id from found where kind >= 'kind1' order by kind limit 2", [4, 10]),  # by key: s0 before s1
        ("select id from goods where kind > 'kind1' order by kind limit 2", [2, 8]),
        ("select id from found order by id limit 2", [0, 1]),
        ("select -id as id from found order by id desc limit 2", None),
        ("select id from found order by id + 1 desc limit 2", None),
        ("select id from found order by 1 desc limit 2", None),
        ("select id from found order by title desc limit 2", None),
        ("select id from found where kind like '%a%' order by id desc limit 2", None),
        ("select distinct id from found order by id desc limit 2", None),
    ],
)
def test_sorts_of_search_indexes(
    goods: TableStoreService, monkeypatch: pytest.MonkeyPatch, query: str, expected: list[int] | None
) -> None:
    """An order that the index has (`expected`) reads as many rows as the LIMIT needs."""
    monkeypatch.setattr(limits, "SQL_ROWS_MAX", 3)
    monkeypatch.setattr(limits, "SQL_PAGE_ROWS", 1)
    if expected is None:
        with pytest.raises(Refused, match="exceeds the limit"):
            sql(goods, query.replace("'%a%'", "'%k%'"))
        return
    assert [number for (number,) in sql(goods, query).rows] == expected
    [step] = sql(goods, f"explain {query}").rows
    assert step[3] == "exact, sorted"


def test_a_search_index_sorts_null_as_sql_does(
    service: TableStoreService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First in an ascending order, last in a descending one. Only the rows of the LIMIT are read."""
    service.create("t", ("pk", messages.INTEGER))
    service.call(
        "CreateSearchIndex", table_name="t", index_name="i", schema=schema(("pk", LONG), ("n", LONG))
    )
    for key, number in enumerate((3, None, 1, None, 2)):
        service.put({"pk": key}, {"z": 0} if number is None else {"n": number}, table="t")
    service.gateway.engine.background.catch_up()
    attributes = '{"index_name":"i","table_name":"t"}'
    sql(
        service, f"create table m (pk bigint, n bigint) engine='searchindex', engine_attribute='{attributes}'"
    )
    monkeypatch.setattr(limits, "SQL_ROWS_MAX", 3)
    monkeypatch.setattr(limits, "SQL_PAGE_ROWS", 1)
    assert sql(service, "select pk from m order by n limit 3").rows == [(1,), (3,), (2,)]
    assert sql(service, "select pk from m order by n limit 1, 2").rows == [(3,), (2,)]
    assert sql(service, "select pk from m order by n desc limit 2").rows == [(0,), (4,)]
    assert sql(service, "select pk from m where n > 0 order by n limit 2").rows == [(2,), (4,)]


def test_pages_of_large_rows_are_short(goods: TableStoreService, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are read whole. So the next page has as many rows as fit into its bytes by the size of those before."""
    monkeypatch.setattr(limits, "STREAM_MAX_BYTES", 100)
    monkeypatch.setattr(indexes, "_FIRST_ROWS", 2)
    asked = []

    def command(*arguments: Any, **members: Any) -> SearchRows:
        asked.append(SearchRows(*arguments, **members))
        return asked[-1]

    monkeypatch.setattr(indexes, "SearchRows", command)
    assert len(sql(goods, "select id from found").rows) == 12
    assert [each.limit for each in asked[:3]] == [2, 1, 1]


# Aggregates of search indexes


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select count(*) from found", (12,)),
        (
            "select count(*), sum(id), avg(id), min(id) + 1, max(id) from found where kind = 'kind1'",
            (4, 22.0, 5.5, 2, 10),
        ),
        ("select count(id) n, max(id) from found where id > 100 having count(*) = 0", (0, None)),
        ("select sum(id) from found where text_match(title, '3') or array_extract(tags) = 5", (12.0,)),
        ("select min(id) from found where exists (select 1) limit 1", None),
        ("select count(*) from found where title like '%3'", None),
        ("select count(kind) from found", None),
        ("select count(distinct id) from found", None),
        ("select max(id + 1) from found", None),
        ("select max(id), kind from found", None),
        ("select count(*) from found group by kind", None),
        ("select count(*) from found a join found b on a.id = b.id", None),
    ],
)
def test_aggregates_of_search_indexes(
    goods: TableStoreService, monkeypatch: pytest.MonkeyPatch, query: str, expected: tuple[Any, ...] | None
) -> None:
    """Those that the index can compute (`expected`) read no row, so they have no limit of rows."""
    monkeypatch.setattr(limits, "SQL_ROWS_MAX", 0)
    if expected is None:
        with pytest.raises(Refused, match="exceeds the limit"):
            sql(goods, query)
        return
    answer = sql(goods, query)
    assert answer.rows == [expected]
    assert [each.index_name for each in answer.message.search_consumes] == ["searched"]
    assert sql(goods, f"explain {query}").rows == [
        ("goods", "search index, aggregates", "searched", "exact", 0)
    ]
    monkeypatch.undo()
    assert sql(goods, query.replace("(id)", "(id + 0)").replace("count(*)", "count(id + 0)")).rows == [
        expected
    ]


def test_large_numbers_are_read_from_the_rows(goods: TableStoreService) -> None:
    large = 2**53 + 1
    goods.create("large")
    goods.put({"pk": large}, {}, table="large")
    goods.call("CreateSearchIndex", table_name="large", index_name="l", schema=schema(("pk", LONG)))
    goods.gateway.engine.background.catch_up()
    assert sql(goods, "select max(pk), min(pk) from large").rows == [(large, large)]


def test_an_index_with_a_time_to_live_is_not_selected(goods: TableStoreService) -> None:
    options = messages.TableOptions(time_to_live=-1, max_versions=1, allow_update=False)
    goods.create("expiring", table_options=options)
    members = {"index_name": "e", "schema": schema(("pk", LONG)), "time_to_live": 86_400}
    goods.call("CreateSearchIndex", table_name="expiring", **members)
    goods.gateway.engine.background.catch_up()
    assert accesses(goods, "select pk from expiring") == ["expiring"]


# Mappings of indexes


def test_a_mapping_of_a_search_index_has_its_own_name(goods: TableStoreService) -> None:
    assert {("found",), ("goods",)} <= set(sql(goods, "show tables").rows)
    assert [row[:2] for row in sql(goods, "desc found").rows][:3] == [
        ("shop", "varchar(9)"), ("id", "bigint(20)"), ("kind", "mediumtext"),
    ]  # fmt: skip
    other = OF_SEARCH_INDEX.replace("found", "other")
    sql(goods, other)
    with pytest.raises(Refused, match="already exists"):
        sql(goods, other)
    sql(goods, other.replace("create table", "create table if not exists"))
    with pytest.raises(Refused, match="already exists"):
        sql(goods, OF_SEARCH_INDEX.replace("found", "goods"))
    for wrong in (
        other.replace("searched", "missing"), other.replace('"goods"', '"missing"'), other.replace("kind mediumtext", "x text"),
        other.replace('"index_name"', '"x"'), other.replace("searchindex", "innodb"), other.replace("'{", "'"),
        other.replace("engine_attribute", "comment"), other.replace("other", "`b c`"),
    ):  # fmt: skip
        with pytest.raises(Refused) as refused:
            sql(goods, wrong.replace("table other", "table another"))
        assert refused.value.status in (400, 404)
    sql(goods, "drop mapping table other, goods")
    assert {("other",), ("goods",)}.isdisjoint(sql(goods, "show tables").rows)
    sql(goods, MAPPING)
    with pytest.raises(Refused, match="does not exist"):
        sql(goods, "select * from other")


def test_a_mapping_of_a_deleted_search_index_can_be_dropped(goods: TableStoreService) -> None:
    goods.create("short")
    goods.call("CreateSearchIndex", table_name="short", index_name="searched", schema=schema(("a", LONG)))
    sql(
        goods,
        "create table short_found (a bigint) engine='searchindex'"
        """ engine_attribute='{"index_name":"searched","table_name":"short"}'""",
    )
    goods.call("DeleteSearchIndex", table_name="short", index_name="searched")
    with pytest.raises(Refused, match=r"search index \[searched\] does not exist"):
        sql(goods, "select * from short_found")
    sql(goods, "drop mapping table short_found")
    assert ("short_found",) not in sql(goods, "show tables").rows


def test_a_secondary_index_is_a_table(goods: TableStoreService) -> None:
    assert sql(goods, "select * from by_n where n = 3 and shop > ''").rows == [
        (3, "s1", 3, 1.5), (3, "s1", 7, 3.5), (3, "s1", 11, 5.5),
    ]  # fmt: skip
    sql(goods, "create table by_n (n bigint, shop varchar(9), id bigint, primary key(n, shop, id))")
    assert ("by_n",) in sql(goods, "show tables").rows
    assert sql(goods, "select * from by_n limit 1").names == ["n", "shop", "id"]
    sql(goods, "drop mapping table by_n")
    assert sql(goods, "select * from by_n limit 1").names == ["n", "shop", "id", "price"]
    with pytest.raises(Refused, match="primary key must be"):
        sql(goods, "create table by_n (n bigint, primary key(n))")


def test_the_number_of_mappings_of_indexes(goods: TableStoreService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SQL_INDEX_MAPPINGS_MAX", 2)
    sql(goods, OF_SEARCH_INDEX.replace("found", "second"))
    with pytest.raises(Refused, match="number of mappings"):
        sql(goods, OF_SEARCH_INDEX.replace("found", "third"))
    with pytest.raises(Refused, match="number of mappings"):
        sql(goods, "drop mapping table second, second, second")
    sql(goods, "drop mapping table second")


def test_show_index_has_the_columns_of_the_service(goods: TableStoreService) -> None:
    """Source: "Query index information about tables" of the Python SDK."""
    answer = sql(goods, "show index in goods")
    assert answer.names == [
        "Table", "Non_unique", "Key_name", "Seq_in_index", "Column_name", "Is_defined_column", "Search_type", "Collation",
        "Cardinality", "Sub_part", "Packed", "Null", "Index_type", "Comment", "Index_comment", "Visible", "Expression",
    ]  # fmt: skip
    rows = [dict(zip(answer.names, row, strict=True)) for row in answer.rows]
    assert list(rows[0].values()) == [
        "goods", 0, "PRIMARY", 1, "shop", None, "", "A", 0, None, None, "", "", "", "", "YES", "NULL",
    ]  # fmt: skip
    shown = [
        (row["Key_name"], row["Column_name"], row["Is_defined_column"], row["Search_type"]) for row in rows
    ]
    assert ("by_n", "n", "NO", "") in shown
    assert ("by_n", "price", "YES", "") in shown
    assert ("searched", "title", "NO", "TEXT") in shown
    assert {row["Key_name"] for row in rows} == {"PRIMARY", "by_n", "by_kind", "searched"}
    assert {row[2] for row in sql(goods, "show index in found").rows} == {"searched"}
    assert {row[2] for row in sql(goods, "show index in by_n").rows} == {"by_n"}


def test_alter_table_changes_the_mapping(goods: TableStoreService) -> None:
    answer = sql(goods, "alter table goods add column extra bigint")
    assert (answer.message.type, answer.message.rows) == (sql_pb2.SQL_ALTER_TABLE, b"")
    assert ("extra", "bigint(20)", "YES", "", None, "") in sql(goods, "desc goods").rows
    assert sql(goods, "select extra from goods limit 1").rows == [(None,)]
    sql(goods, "alter table goods drop column EXTRA")
    sql(goods, "alter table found drop column tags")
    sql(goods, "alter table found add column tags mediumtext")
    for wrong in (
        "alter table goods drop column extra", "alter table goods drop column shop", "alter table goods add column n bigint",
        "alter table goods add column a bigint, add column b bigint", "alter table goods add column c json",
        "alter table found add column n bigint", "alter table by_kind add column c bigint", "alter table goods rename to x",
        "alter table none add column c bigint", "alter table goods add index (n)",
    ):  # fmt: skip
        with pytest.raises(Refused):
            sql(goods, wrong)


# EXPLAIN


@each_row(
    "query, steps",
    [
        ("select * from goods where shop = 's1' and id = 1", [("goods", "row", "", "shop, id", 1)]),
        ("select * from goods where shop = 's1' and id > 1", [("goods", "table, range", "", "shop, id", 100_000)]),
        ("select * from goods where 1 < id and 's1' = shop", [("goods", "table, range", "", "shop, id", 100_000)]),
        ("select * from goods where shop = true", [("goods", "table, all", "", "", 100_000)]),
        ("select * from goods where shop > -'a'", [("goods", "table, all", "", "", 100_000)]),
        ("select * from goods", [("goods", "table, all", "", "", 100_000)]),
        ("select * from goods limit 3, 4", [("goods", "table, all", "", "", 7)]),
        ("select * from goods where price > 1 limit 4", [("goods", "table, all", "", "", 100_000)]),
        ("select * from goods where id = 1 and shop = 'a' and shop > 'b' or 0", [("goods", "table, all", "", "", 100_000)]),
        ("select price from goods where 1 < n", [("goods", "secondary index, range", "by_n", "n", 100_000)]),
        ("select id from found where kind = 'a' limit 9", [("goods", "search index", "searched", "exact", 9)]),
        ("select id from found where kind like '%a' limit 9", [("goods", "search index", "searched", "candidates", 100_000)]),
        ("select a.price from goods a join by_n b on a.id = b.id where a.shop = 's1' and b.n = 2",
         [("goods", "table, range", "", "shop", 100_000), ("goods", "secondary index, range", "by_n", "n", 100_000)]),
        ("select * from (select kind from found) x where kind in (select kind from goods where shop = 's1')",
         [("goods", "search index", "searched", "exact", 100_000), ("goods", "table, range", "", "shop", 100_000)]),
        ("select 1", []),
    ],
)  # fmt: skip
def test_explain_shows_the_steps_of_a_query(goods: TableStoreService, query: str, steps: list[Any]) -> None:
    answer = sql(goods, f"EXPLAIN {query};")
    assert answer.names == ["Table", "Access", "Index", "Condition", "Rows_max"]
    assert answer.rows == steps
    assert sql(goods, query).message.type == answer.message.type == sql_pb2.SQL_SELECT


def test_explain_reads_at_most_a_row_of_each_access(
    goods: TableStoreService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SQL_ROWS_MAX", 2)
    query = "select count(*) from goods a join found b on a.id = b.id"
    assert len(sql(goods, f"explain {query}").rows) == 2
    monkeypatch.setattr(limits, "SQL_ROWS_MAX", 1)
    with pytest.raises(Refused, match="exceeds the limit"):
        sql(goods, f"explain {query}")
