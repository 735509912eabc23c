"""Fields of search indexes: virtual ones, addresses, dates, routing fields and the order of an index."""

from __future__ import annotations

from typing import Any

import pytest

from tablegate.adapters.tablestore.features.search.index_schemas import schema_of
from tablegate.adapters.tablestore.features.search.queries import query_of
from tablegate.adapters.tablestore.wire.plainbuffer import decode_row
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.gateway.features.search import field_values
from tablegate.gateway.features.search.queries import fields_of
from tests.adapters.tablestore.client import Refused, TableStoreService
from tests.adapters.tablestore.search_messages import (
    Searches,
    between,
    by_field,
    exists,
    field,
    keys_of,
    match_all,
    prefix,
    query,
    schema,
    term,
    terms,
    wildcard,
)

KEYWORD, LONG, DOUBLE, TEXT, DATE = (
    messages.KEYWORD,
    messages.LONG,
    messages.DOUBLE,
    messages.TEXT,
    messages.DATE,
)
IP, GEO_POINT = messages.IP, messages.GEO_POINT


@pytest.fixture
def table(service: TableStoreService) -> Searches:
    return Searches(service)


def virtual(name: str, kind: int, source: str, **members: Any) -> messages.FieldSchema:
    return field(name, kind, is_virtual_field=True, source_field_names=[source], **members)


# Virtual fields. Source: "Virtual columns" (2026)


def test_virtual_fields_convert_their_source(table: Searches) -> None:
    table.create(
        ("s", KEYWORD),
        virtual("s_long", LONG, "s"),
        virtual("s_double", DOUBLE, "s"),
        virtual("s_longs", LONG, "s", is_array=True),
        virtual("s_place", GEO_POINT, "s"),
        virtual("s_address", IP, "s"),
        virtual("s_date", DATE, "s", date_formats=["yyyyMMdd"]),
        virtual("l_keyword", KEYWORD, "l"),
        virtual("l_text", TEXT, "l"),
        virtual("l_date", DATE, "l", date_formats=["epoch_second"]),
        virtual("f_keyword", KEYWORD, "f"),
        virtual("l_double", DOUBLE, "l", is_array=True),
    )
    texts = {1: "12", 2: "1.5", 3: '[3, "4"]', 4: "1,2", 5: "10.0.0.1", 6: "20260102"}
    for key, text in texts.items():
        table.service.put({"pk": key}, {"s": text})
    table.service.put({"pk": 7}, {"l": 90, "f": 1.5})
    table.catch_up()
    assert table.find(term("s_long", 12)) == table.find(term("s_long", "12")) == [1]
    assert table.find(between("s_double", 1.0, 13.0)) == [1, 2]
    assert table.find(term("s_longs", 4)) == [3]
    assert table.find(exists("s_place")) == [4]
    assert table.find(term("s_address", "10.0.0.1")) == [5]
    assert table.find(term("s_date", "20260102")) == [6]
    assert table.find(term("l_keyword", "90")) == table.find(term("l_text", "90")) == [7]
    assert table.find(term("l_date", 90)) == table.find(term("f_keyword", "1.5")) == [7]
    assert table.find(exists("l_double")) == []
    by_number = table.find(exists("s_double"), sort=by_field("s_double"))
    assert by_number[:2] == [2, 1]


def test_virtual_fields_are_not_returned(table: Searches) -> None:
    table.create(virtual("v", LONG, "s"), virtual("w", KEYWORD, "s", store=True))
    table.service.put({"pk": 1}, {"s": "12"})
    table.catch_up()
    columns = messages.ColumnsToGet(return_type=messages.RETURN_ALL_FROM_INDEX)
    [data] = table.search(match_all(), columns=columns).rows
    assert decode_row(data).cells == []
    described = table.service.call("DescribeSearchIndex", table_name="t", index_name="i").schema
    assert described.field_schemas[0].is_virtual_field
    assert described.field_schemas[0].source_field_names == ["s"]


def test_a_search_of_a_virtual_field_reads_its_source() -> None:
    """Grants with restricted columns are judged by these (SearchRows.columns)."""
    search_schema = schema_of(schema(virtual("v", LONG, "secret")))
    [used] = fields_of(query_of(term("v", 1), search_schema))
    assert search_schema.top(used).source == "secret"


@pytest.mark.parametrize(
    "wrong",
    [
        field("v", LONG, is_virtual_field=True),
        field("v", LONG, is_virtual_field=True, source_field_names=["a", "b"]),
        field("v", LONG, is_virtual_field=True, source_field_names=[""]),
        field("v", LONG, source_field_names=["a"]),
        virtual("v", messages.BOOLEAN, "a"),
        virtual("v", messages.VECTOR, "a", vector_options=messages.VectorOptions(dimension=2)),
        field("n", messages.NESTED, field_schemas=[virtual("v", LONG, "a")]),
        field("d", DATE, date_formats=["epoch_weeks"]),
        field("d", DATE, date_formats=["SSSSSSSSSS"]),
    ],
    ids=["none", "two", "empty", "real", "boolean", "vector", "nested", "unit", "digits"],
)
def test_invalid_fields_are_refused(service: TableStoreService, wrong: messages.FieldSchema) -> None:
    service.create()
    with pytest.raises(Refused, match="OTSParameterInvalid"):
        service.call("CreateSearchIndex", table_name="t", index_name="i", schema=schema(wrong))


def test_fuzzy_keywords_are_keywords(table: Searches) -> None:
    table.create(("k", messages.FUZZY_KEYWORD), virtual("v", messages.FUZZY_KEYWORD, "l"))
    table.service.put({"pk": 1}, {"k": "abc", "l": 123})
    table.catch_up()
    suffix = query(messages.SUFFIX_QUERY, messages.SuffixQuery(field_name="k", suffix="bc"))
    assert table.find(suffix) == table.find(wildcard("k", "*b*")) == table.find(prefix("v", "12")) == [1]
    described = table.service.call("DescribeSearchIndex", table_name="t", index_name="i").schema
    assert described.field_schemas[0].field_type == messages.FUZZY_KEYWORD


# Addresses. Source: "IP data type"


def test_addresses(table: Searches) -> None:
    table.create(("a", IP), field("many", IP, is_array=True))
    texts = [
        "192.168.1.1",
        "::ffff:192.168.1.9",
        "192.168.2.1",
        "FC00:0:130F::9C0:876A:130B",
        "1.2.3",
        "fe80::1%e0",
    ]
    for key, text in enumerate(texts):
        table.service.put({"pk": key}, {"a": text, "many": f'["{text}", "9.9.9.9"]'})
    table.catch_up()
    assert table.find(exists("a")) == [0, 1, 2, 3]
    assert table.find(term("a", "::FFFF:192.168.1.1")) == table.find(term("a", "192.168.1.1")) == [0]
    assert table.find(term("a", "192.168.1.9")) == [1]
    assert table.find(term("a", "fc00:0000:130f:0000:0000:09c0:876a:130b")) == [3]
    assert table.find(term("a", "192.168.1.77/24")) == [0, 1]
    assert table.find(term("a", "192.168.0.0/16")) == [0, 1, 2]
    assert table.find(term("a", "fc00::/8")) == table.find(term("a", "::/0"), offset=3) == [3]
    assert table.find(terms("a", "192.168.2.0/30", "192.168.1.1", "1.1.1.1")) == [0, 2]
    assert table.find(between("a", "192.168.1.2", "192.168.2.1")) == [1]
    assert table.find(term("many", "9.9.9.9")) == [0, 1, 2, 3]
    assert table.find(exists("a"), sort=by_field("a", descending=True)) == [3, 2, 1, 0]
    for wrong in ("1.2.3.4/33", "::/129", "1.2.3.4/-1", "1.2.3.4/255.0.0.0", "1.2.3.4/", "1.2.3"):
        with pytest.raises(Refused, match="OTSParameterInvalid"):
            table.find(term("a", wrong))
    with pytest.raises(Refused, match="OTSParameterInvalid"):
        table.find(between("a", "192.168.1.0/24"))


def test_blocks_have_all_lengths() -> None:
    assert field_values.address_block("10.0.0.1/32") == (field_values.address_digits("10.0.0.1"),) * 2
    assert field_values.address_block("10.0.0.1/0") == (
        field_values.address_digits("0.0.0.0"),
        field_values.address_digits("255.255.255.255"),
    )
    assert field_values.address_block("::1/128") == (field_values.address_digits("::1"),) * 2


# Dates. Source: "Date data type"


def test_the_range_of_dates(table: Searches) -> None:
    """From 1970-01-01 to 2262-04-11 23:47:16.854775807."""
    formats = ["epoch_nanos", "yyyy-MM-dd HH:mm:ss.SSSSSSSSS"]
    table.create(field("d", DATE, date_formats=formats))
    day = "2262-04-11 23:47:16"
    for key, value in enumerate((-1, 0, field_values.LAST_NS, f"{day}.854775806", f"{day}.854775808")):
        table.service.put({"pk": key}, {"d": value})
    table.catch_up()
    assert table.find(exists("d")) == [1, 2, 3]
    assert table.find(between("d", -1)) == [1, 2, 3]
    assert table.find(between("d", None, "9999-12-31 00:00:00.000000000", upper=True)) == [1, 2, 3]
    assert table.find(between("d", "9999-12-31 00:00:00.000000000", lower=False)) == []


def test_dates_have_nanoseconds(table: Searches) -> None:
    table.create(field("d", DATE, date_formats=["yyyy-MM-dd HH:mm:ss.SSSSSSSSS"]))
    moments = [f"2024-02-29 12:00:00.{fraction:09d}" for fraction in (3, 1, 2, 999_999_999)]
    for key, moment in enumerate(moments):
        table.service.put({"pk": key}, {"d": moment})
    table.catch_up()
    assert table.find(term("d", moments[2])) == [2]
    assert table.find(between("d", moments[2], lower=False)) == [0, 3]
    assert keys_of(table.search(match_all(), sort=by_field("d"))) == [1, 2, 0, 3]
    assert keys_of(table.search(match_all(), sort=by_field("d", descending=True))) == [3, 0, 2, 1]


# Settings of an index


def test_routing_fields_are_columns_of_the_primary_key(service: TableStoreService) -> None:
    service.create()
    setting = messages.IndexSetting(routing_fields=["pk"])
    members = {"table_name": "t", "index_name": "i"}
    service.call("CreateSearchIndex", **members, schema=schema(("k", KEYWORD), index_setting=setting))
    described = service.call("DescribeSearchIndex", **members).schema
    assert described.index_setting.routing_fields == ["pk"]
    setting.routing_fields[0] = "k"
    members["index_name"] = "j"
    with pytest.raises(Refused, match="OTSParameterInvalid"):
        service.call("CreateSearchIndex", **members, schema=schema(("k", KEYWORD), index_setting=setting))


def test_an_index_sorts_results_by_its_own_order(table: Searches) -> None:
    table.create(("l", LONG), ("t", TEXT), ("g", GEO_POINT), index_sort=by_field("l", descending=True))
    for key in range(3):
        table.service.put({"pk": key}, {"l": key})
    table.catch_up()
    first = table.search(match_all(), limit=2)
    assert keys_of(first) == [2, 1]
    assert keys_of(table.search(match_all(), limit=2, token=first.next_token)) == [0]
    score = messages.Sort(sorter=[messages.Sorter(score_sort=messages.ScoreSort())])
    place = messages.GeoDistanceSort(field_name="g", points=["1,1"])
    wrong = [
        score,
        by_field("t"),
        by_field("x"),
        messages.Sort(sorter=[messages.Sorter(geo_distance_sort=place)]),
    ]
    for sort in wrong:
        fields = schema(("l", LONG), ("t", TEXT), ("g", GEO_POINT), index_sort=sort)
        with pytest.raises(Refused, match="OTSParameterInvalid"):
            table.service.call("CreateSearchIndex", table_name="t", index_name="j", schema=fields)
