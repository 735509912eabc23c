"""Search indexes: definitions, queries, order and pages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tablegate.adapters.tablestore.features.search import request_values
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.plainbuffer import decode_row
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.gateway.features.search import document_store, searching
from tablegate.gateway.model.values.values import Value
from tests.adapters.tablestore.client import Refused, TableStoreService
from tests.adapters.tablestore.search_messages import (
    Searches,
    between,
    bool_of,
    by_field,
    exists,
    field,
    keys_of,
    match_all,
    nested,
    prefix,
    query,
    schema,
    search_query,
    term,
    terms,
    variant,
    wildcard,
)

KEYWORD, LONG, DOUBLE, BOOLEAN = messages.KEYWORD, messages.LONG, messages.DOUBLE, messages.BOOLEAN
TEXT, DATE, NESTED, GEO_POINT = messages.TEXT, messages.DATE, messages.NESTED, messages.GEO_POINT


@pytest.fixture
def table(service: TableStoreService) -> Searches:
    return Searches(service)


# Definitions


def test_a_description_has_the_defaults(table: Searches) -> None:
    """Source: aliyun-tablestore-python-sdk, tests/search_index_test.py, _check_index_meta."""
    table.create(("k", KEYWORD), ("t", TEXT))
    answer = table.service.call("DescribeSearchIndex", table_name="t", index_name="i")
    keyword, text = answer.schema.field_schemas
    assert (keyword.index, keyword.store, keyword.is_array) == (True, True, False)
    assert (text.index, text.store, text.analyzer) == (True, False, "single_word")
    assert answer.schema.HasField("index_setting")
    assert [each.HasField("pk_sort") for each in answer.schema.index_sort.sorter] == [True]
    assert answer.sync_stat.sync_phase == messages.FULL
    table.catch_up()
    answer = table.service.call("DescribeSearchIndex", table_name="t", index_name="i")
    assert answer.sync_stat.sync_phase == messages.INCR
    assert answer.sync_stat.current_sync_timestamp == table.service.clock.ms * 1_000_000


def test_an_index_with_a_nested_field_has_no_order(table: Searches) -> None:
    table.create(field("n", NESTED, field_schemas=[field("a", LONG)]))
    answer = table.service.call("DescribeSearchIndex", table_name="t", index_name="i")
    assert answer.schema.HasField("index_sort")
    assert not answer.schema.index_sort.sorter


def test_indexes_are_listed_and_deleted(table: Searches) -> None:
    table.create(("k", KEYWORD))
    call = table.service.call
    call("CreateSearchIndex", table_name="t", index_name="j", schema=schema(("k", KEYWORD)))
    table.service.create("other")
    for members in ({"table_name": "t"}, {}):
        listed = call("ListSearchIndex", **members).indices
        assert [(each.table_name, each.index_name) for each in listed] == [("t", "i"), ("t", "j")]
    call("DeleteSearchIndex", table_name="t", index_name="i")
    assert [each.index_name for each in call("ListSearchIndex", table_name="t").indices] == ["j"]
    with pytest.raises(Refused, match=r"search index \[i\] does not exist"):
        table.find(match_all())
    with pytest.raises(Refused, match="OTSMetaNotMatch"):
        call("DeleteSearchIndex", table_name="t", index_name="i")


def test_a_name_is_used_once(table: Searches) -> None:
    table.create(("k", KEYWORD))
    with pytest.raises(Refused, match="OTSObjectAlreadyExist"):
        table.service.call("CreateSearchIndex", table_name="t", index_name="i", schema=schema(("k", KEYWORD)))


@pytest.mark.parametrize(
    ("operation", "members"),
    [
        ("CreateSearchIndex", {"schema": schema(("k", KEYWORD))}),
        ("DescribeSearchIndex", {}),
        ("UpdateSearchIndex", {"time_to_live": -1}),
        ("DeleteSearchIndex", {}),
        ("Search", {}),
    ],
)
def test_operations_on_a_missing_table_are_refused(
    service: TableStoreService, operation: str, members: dict[str, Any]
) -> None:
    """Source: TestExceptionOfService and TableOperationFunctiontest of the Java SDK."""
    with pytest.raises(Refused, match=r"OTSParameterInvalid.*table \[none\] does not exist"):
        service.call(operation, table_name="none", index_name="i", **members)


@pytest.mark.parametrize(
    "fields",
    [
        [],
        [("k", KEYWORD), ("k", LONG)],
        [("", KEYWORD)],
        [("v", messages.VECTOR)],
        [("v", messages.FLATTENED)],
        [field("n", NESTED)],
        [field("k", KEYWORD, field_schemas=[field("a", LONG)])],
        [field("t", TEXT, analyzer="no_word")],
        [field("d", DATE, date_formats=["ww"])],
        [field("t", TEXT, analyzer="fuzzy", analyzer_parameter=b"\x08\x09")],
    ],
)
def test_invalid_schemas_are_refused(service: TableStoreService, fields: list[Any]) -> None:
    service.create()
    with pytest.raises(Refused, match="OTSParameterInvalid"):
        service.call("CreateSearchIndex", table_name="t", index_name="i", schema=schema(*fields))
    assert not service.call("ListSearchIndex", table_name="t").indices


def test_a_dropped_table_leaves_nothing(table: Searches) -> None:
    table.create(("k", KEYWORD))
    table.service.put({"pk": 1}, {"k": "a"})
    table.catch_up()
    table.service.call("DeleteTable", table_name="t")
    table.service.create()
    assert not table.service.call("ListSearchIndex", table_name="t").indices
    table.catch_up()
    engine = table.service.gateway.engine
    while engine.background.next_batch() is not None:
        pass
    with engine._store.read() as session:
        for name in ("search_documents", "search_terms", "followers"):
            assert session.query(f"SELECT count(*) FROM {name}") == [(0,)], name


# Maintenance


def test_existing_rows_and_changes_are_indexed(table: Searches) -> None:
    service = table.service
    service.create()
    for number in range(3):
        service.put({"pk": number}, {"k": f"v{number}"})
    service.call("CreateSearchIndex", table_name="t", index_name="i", schema=schema(("k", KEYWORD)))
    service.put({"pk": 3}, {"k": "v3"})
    service.update({"pk": 0}, {"k": "v9"})
    service.delete({"pk": 1})
    table.catch_up()
    assert table.find(match_all()) == [0, 2, 3]
    assert table.find(term("k", "v0")) == []
    assert table.find(term("k", "v9")) == [0]
    service.delete({"pk": 0})
    service.put({"pk": 0}, {"k": "again"})
    table.catch_up()
    assert table.find(term("k", "again")) == [0]


def test_a_value_that_does_not_fit_is_left_out(table: Searches) -> None:
    """Source: aliyun-tablestore-python-sdk, tests/search_index_test.py, _prepare_data."""
    days = field("d", DATE, date_formats=["yyyy-MM-dd", "epoch_second"])
    table.create(("l", LONG), days, field("a", LONG, is_array=True))
    table.service.put({"pk": 1}, {"l": "text", "d": "2022-05-6", "a": '["x"]'})
    table.service.put({"pk": 2}, {"l": 7, "d": "2022-05-06", "a": "[1, 2]"})
    table.service.put({"pk": 3}, {"d": "9" * 18})
    table.catch_up()
    assert table.find(match_all()) == [1, 2, 3]
    for name in "lda":
        assert table.find(exists(name)) == [2]


@pytest.mark.parametrize(
    ("form", "value"),
    [
        ("epoch_second", 1218197720),
        ("epoch_millis", 1218197720123),
        ("epoch_micros", 1218197720123456),
        ("epoch_nanos", 1218197720123456789),
        ("epoch_nanos", "1218197720123456789"),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSSSSSSS", "2008-08-08T12:15:20.123456789"),
        ("yy-M-d K:mm:ssa x", "08-8-8 0:15:20PM +00"),
        ("yyyyMMdd HHmmssXXX", "20080808 201520+08:00"),
        ("yyyyMMdd HHmmssXXXXX", "20080808 201530+08:00:10"),
        ("yyyyMMdd HHmmssxxxx", "20080808 201520+0800"),
    ],
)
def test_dates_of_each_format(table: Searches, form: str, value: Any) -> None:
    """Source: "Date data type" of the documentation, with its example."""
    table.create(field("d", DATE, date_formats=[form]))
    table.service.put({"pk": 1}, {"d": value})
    table.catch_up()
    assert table.find(term("d", value)) == table.find(exists("d")) == [1]
    second = 1218197720 if form == "epoch_second" else None
    assert table.find(between("d", second, value, upper=True)) == [1]
    assert table.find(between("d", value, lower=False)) == []


# Queries


def test_terms_of_each_type(table: Searches) -> None:
    table.create(("k", KEYWORD), ("l", LONG), ("f", DOUBLE), ("b", BOOLEAN), field("a", LONG, is_array=True))
    table.service.put({"pk": 1}, {"k": "x", "l": -5, "f": 0.5, "b": True, "a": "[1, 2]"})
    table.service.put({"pk": 2}, {"k": "y", "l": 7, "f": -1.5, "b": False, "a": "[2, 3]"})
    table.catch_up()
    assert table.find(term("k", "x")) == table.find(term("l", -5)) == table.find(term("l", "-5")) == [1]
    assert table.find(term("f", 0.5)) == table.find(term("b", True)) == table.find(term("a", 1)) == [1]
    assert table.find(terms("a", 1, 3)) == table.find(term("a", 2)) == [1, 2]
    assert table.find(between("l", -5, 7)) == [1]
    assert table.find(between("l", -5, 7, lower=False, upper=True)) == [2]
    assert table.find(between("f", None, 0.0)) == [2]
    assert table.find(between("k", "x", lower=False)) == [2]


def test_patterns(table: Searches) -> None:
    table.create(("k", KEYWORD))
    for number, text in enumerate(("apple", "apricot", "banana", "a*b", "äpfel")):
        table.service.put({"pk": number}, {"k": text})
    table.catch_up()
    assert table.find(prefix("k", "ap")) == [0, 1]
    assert table.find(wildcard("k", "a?*e")) == [0]
    assert table.find(wildcard("k", "*an*")) == [2]
    assert table.find(query(messages.SUFFIX_QUERY, messages.SuffixQuery(field_name="k", suffix="ot"))) == [1]
    assert table.find(wildcard("k", "a*b")) == [3]
    assert table.find(wildcard("k", "*")) == [0, 1, 2, 3, 4]
    assert table.find(wildcard("k", "**a**p**")) == [0, 1]
    assert table.find(wildcard("k", "*a*a*")) == [2]
    assert table.find(wildcard("k", "*?an*na")) == [2]
    assert table.find(wildcard("k", "?pfel*")) == [4]
    assert table.find(wildcard("k", "apple")) == [0]
    assert table.find(wildcard("k", "*e*le")) == []


def test_a_wildcard_takes_linear_time(table: Searches) -> None:
    """With all ways to place the stars, this would not end."""
    table.create(("k", KEYWORD))
    table.service.put({"pk": 1}, {"k": "a" * 4096})
    table.catch_up()
    assert table.find(wildcard("k", "*a" * 15 + "*")) == [1]
    assert table.find(wildcard("k", "*a" * 15 + "*b")) == []


def test_bool_queries(table: Searches) -> None:
    """Only `should` means at least one of them.

    Source: search_index_test.py of the Python SDK, and the page on BoolQuery.
    """
    table.create(("l", LONG))
    for number in range(10):
        table.service.put({"pk": number}, {"l": number})
    table.catch_up()
    low, high = between("l", None, 5), between("l", 3)
    assert table.find(bool_of(must_queries=[low], filter_queries=[high])) == [3, 4]
    assert table.find(bool_of(must_not_queries=[low])) == [5, 6, 7, 8, 9]
    assert table.find(bool_of(should_queries=[term("l", 1), term("l", 2)])) == [1, 2]
    assert table.find(bool_of(must_queries=[low], should_queries=[term("l", 1)])) == [0, 1, 2, 3, 4]
    assert table.find(bool_of(should_queries=[low, high], minimum_should_match=2)) == [3, 4]
    assert table.find(bool_of(should_queries=[low, high], minimum_should_match=3)) == []
    assert table.find(bool_of()) == list(range(10))


def test_a_share_of_the_parts_must_match(table: Searches) -> None:
    """Source: the texts of minimum_should_match in aliyun-tablestore-python-sdk 6.4.8 (encoder.py)."""
    table.create(("l", LONG), ("t", TEXT))
    for number in range(6):
        table.service.put({"pk": number}, {"l": number, "t": " ".join("abcd"[:number])})
    table.catch_up()
    at_least = [between("l", number) for number in (1, 2, 3, 4)]

    def some(minimum: str) -> list[int]:
        return table.find(bool_of(should_queries=at_least, new_minimum_should_match=minimum))

    def match(minimum: str) -> list[int]:
        message = messages.MatchQuery(field_name="t", text="a b c d", new_minimum_should_match=minimum)
        return table.find(query(messages.MATCH_QUERY, message))

    assert some("2") == match("2") == [2, 3, 4, 5]
    assert some("75%") == match("75%") == [3, 4, 5]
    assert some("74%") == match("74%") == [2, 3, 4, 5]
    assert some("100%") == match("100%") == [4, 5]
    assert some("0%") == [0, 1, 2, 3, 4, 5]
    assert match("0%") == [1, 2, 3, 4, 5]
    for wrong in ("x", "-1", "%", "2<75%", "1.5", "1" * 10):
        for ask in (some, match):
            with pytest.raises(Refused, match="Invalid minimum_should_match"):
                ask(wrong)


def test_objects_of_a_nested_field_match_one_by_one(table: Searches) -> None:
    table.create(field("n", NESTED, field_schemas=[field("a", KEYWORD), field("b", LONG)]))
    table.service.put({"pk": 1}, {"n": json.dumps([{"a": "x", "b": 1}, {"a": "y", "b": 2}])})
    table.service.put({"pk": 2}, {"n": json.dumps([{"a": "x", "b": 2}])})
    table.catch_up()
    both = bool_of(must_queries=[term("n.a", "x"), term("n.b", 2)])
    assert table.find(nested("n", both)) == [2]
    assert table.find(nested("n", term("n.a", "x"))) == [1, 2]
    without = bool_of(must_not_queries=[term("n.a", "x")])
    assert table.find(nested("n", without)) == [1]
    assert table.find(term("n.b", 1)) == []


def test_texts(table: Searches) -> None:
    table.create(("t", TEXT), field("s", TEXT, analyzer="split"), field("f", TEXT, analyzer="fuzzy"))
    table.service.put({"pk": 1}, {"t": "This is a Test", "s": "one,two three", "f": "abcdefghij"})
    table.service.put({"pk": 2}, {"t": "a test is this", "s": "two one,two", "f": "bcd"})
    table.catch_up()

    def match(name: str, text: str, **members: Any) -> messages.Query:
        return query(messages.MATCH_QUERY, messages.MatchQuery(field_name=name, text=text, **members))

    def phrase(name: str, text: str, **members: Any) -> messages.Query:
        message = messages.MatchPhraseQuery(field_name=name, text=text, **members)
        return query(messages.MATCH_PHRASE_QUERY, message)

    assert table.find(match("t", "THIS nothing")) == [1, 2]
    assert table.find(match("t", "this nothing", operator=messages.AND)) == []
    assert table.find(match("t", "this is nothing", minimum_should_match=2)) == [1, 2]
    assert table.find(phrase("t", "this is")) == [1]
    assert table.find(phrase("t", "is this", slop=2)) == [1, 2]
    assert table.find(phrase("t", "this this", slop=3)) == []
    assert table.find(match("s", "one,two")) == [1, 2]
    assert table.find(match("s", "three")) == [1]
    assert table.find(match("s", "one")) == []
    assert table.find(phrase("f", "defghij")) == table.find(phrase("f", "abcdefghij")) == [1]
    assert table.find(phrase("f", "cd")) == [1, 2]
    assert table.find(prefix("t", "te")) == [1, 2]
    assert table.find(prefix("t", "this is")) == []


def test_places(table: Searches) -> None:
    table.create(("g", GEO_POINT))
    for number, point in enumerate(("0,0", "0,1", "10,179.5", "10,-179.5", "north")):
        table.service.put({"pk": number}, {"g": point})
    table.catch_up()

    def near(center: str, meters: float) -> messages.Query:
        message = messages.GeoDistanceQuery(field_name="g", center_point=center, distance=meters)
        return query(messages.GEO_DISTANCE_QUERY, message)

    def box(top_left: str, bottom_right: str) -> messages.Query:
        message = messages.GeoBoundingBoxQuery(field_name="g", top_left=top_left, bottom_right=bottom_right)
        return query(messages.GEO_BOUNDING_BOX_QUERY, message)

    polygon = messages.GeoPolygonQuery(field_name="g", points=["1,-1", "1,0.5", "-1,0.5", "-1,-1"])
    assert table.find(near("0,0", 111_000)) == [0]
    assert table.find(near("0,0", 112_000)) == [0, 1]
    assert table.find(near("10,180", 60_000)) == [2, 3]
    assert table.find(box("11,179", "9,-179")) == [2, 3]
    assert table.find(query(messages.GEO_POLYGON_QUERY, polygon)) == [0]
    sort = messages.Sort(
        sorter=[messages.Sorter(geo_distance_sort=messages.GeoDistanceSort(field_name="g", points=["0,2"]))]
    )
    assert table.find(match_all(), sort=sort) == [1, 0, 2, 3, 4]


# Order and pages


def test_the_order_of_a_field_has_missing_values_last(table: Searches) -> None:
    """Or first, by FieldSort.FIRST_WHEN_MISSING of the Java SDK."""
    table.create(("l", LONG), ("o", LONG), ("k", KEYWORD), field("a", LONG, is_array=True))
    for number, value in enumerate((5, None, -3, 12)):
        cells = {} if value is None else {"l": value, "a": f"[{value}, 0]"}
        table.service.put({"pk": number}, cells or {"other": 1})
    table.catch_up()
    assert table.find(match_all(), sort=by_field("l")) == [2, 0, 3, 1]
    assert table.find(match_all(), sort=by_field("l", descending=True)) == [3, 0, 2, 1]
    highest = messages.FieldSort(field_name="a", mode=messages.SORT_MODE_MAX)
    sort = messages.Sort(sorter=[messages.Sorter(field_sort=highest)])
    assert table.find(match_all(), sort=sort) == [2, 0, 3, 1]
    other = messages.FieldSort(field_name="l", missing_field="o")
    table.service.put({"pk": 4}, {"o": 0})
    table.catch_up()
    sort = messages.Sort(sorter=[messages.Sorter(field_sort=other)])
    assert table.find(match_all(), sort=sort) == [2, 4, 0, 3, 1]
    for value, orders in (
        ("_first", ([1, 4, 2, 0, 3], [1, 4, 3, 0, 2])),
        ("_last", ([2, 0, 3, 1, 4], [3, 0, 2, 1, 4])),
    ):
        for descending, expected in zip((False, True), orders, strict=True):
            sort = by_field("l", descending)
            sort.sorter[0].field_sort.missing_value = variant(value)
            assert table.find(match_all(), sort=sort) == expected
            first = table.search(match_all(), sort=sort, limit=1)
            assert keys_of(first) + table.find(match_all(), token=first.next_token) == expected
    for name in ("none", "k"):
        other.missing_field = name
        with pytest.raises(Refused, match="OTSParameterInvalid"):
            table.find(match_all(), sort=messages.Sort(sorter=[messages.Sorter(field_sort=other)]))
    table.service.delete({"pk": 4})
    table.catch_up()
    key = messages.PrimaryKeySort(order=messages.SORT_ORDER_DESC)
    sort = messages.Sort(sorter=[messages.Sorter(pk_sort=key)])
    assert table.find(match_all(), sort=sort) == [3, 2, 1, 0]


def test_the_nested_filter_of_a_sort(table: Searches) -> None:
    """Only objects that match it count. It must be about a field around that of the sort."""
    inner = [field("k", KEYWORD), field("l", LONG)]
    table.create(
        field("n", messages.NESTED, field_schemas=inner), field("o", messages.NESTED, field_schemas=inner)
    )
    for number, objects in enumerate(([("a", 3), ("b", 1)], [("a", 2)], [("b", 0)])):
        value = json.dumps([{"k": key, "l": low} for key, low in objects])
        table.service.put({"pk": number}, {"n": value, "o": value})
    table.catch_up()

    def find(path: str, condition: messages.Query) -> list[Any]:
        sort = by_field("n.l")
        sort.sorter[0].field_sort.nested_filter.CopyFrom(messages.NestedFilter(path=path, filter=condition))
        found: list[Any] = table.find(match_all(), sort=sort)
        return found

    assert table.find(match_all(), sort=by_field("n.l")) == [2, 0, 1]
    assert find("n", term("n.k", "a")) == [1, 0, 2]
    for path, condition in (("o", term("o.k", "a")), ("n.k", term("n.k", "a")), ("absent", match_all())):
        with pytest.raises(Refused, match="OTSParameterInvalid"):
            find(path, condition)


@pytest.mark.parametrize("sort", [None, by_field("l"), by_field("k", descending=True)])
@pytest.mark.parametrize("wanted", [match_all(), wildcard("k", "*")])
def test_pages(table: Searches, sort: messages.Sort | None, wanted: messages.Query) -> None:
    table.create(("l", LONG), ("k", KEYWORD))
    for number in range(23):
        table.service.put({"pk": number}, {"l": number % 4, "k": f"k{number % 3}"})
    table.catch_up()
    more = {} if sort is None else {"sort": sort}
    everything = table.find(wanted, **more)
    assert sorted(everything) == list(range(23))
    answer = table.search(wanted, limit=5, get_total_count=True, **more)
    pages = [[decode_row(data).key[0].value for data in answer.rows]]
    assert answer.total_hits == 23
    while answer.next_token:
        answer = table.search(wanted, limit=5, token=answer.next_token)
        pages.append([decode_row(data).key[0].value for data in answer.rows])
        assert answer.total_hits == -1
    assert [len(page) for page in pages] == [5, 5, 5, 5, 3]
    found = [value.data for page in pages for value in page if isinstance(value, Value)]
    assert found == everything
    assert table.find(wanted, limit=5, offset=20, **more) == everything[20:]


def test_each_full_page_has_a_token(table: Searches) -> None:
    """Source: TestMetaService of the Java SDK: the only row of a query has a token with the limit 1."""
    table.create(("l", LONG))
    for number in range(2):
        table.service.put({"pk": number}, {"l": number})
    table.catch_up()
    last = table.search(match_all(), limit=2)
    assert keys_of(last) == [0, 1]
    after = table.search(match_all(), token=last.next_token, limit=2)
    assert not after.rows
    assert not after.next_token
    assert not table.search(match_all(), limit=3).next_token
    assert not table.search(match_all(), limit=0).next_token


def test_tokens_belong_to_an_index(table: Searches) -> None:
    table.create(("l", LONG))
    for number in range(3):
        table.service.put({"pk": number}, {"l": number})
    table.catch_up()
    token = table.search(match_all(), limit=1).next_token
    call = table.service.call
    call("CreateSearchIndex", table_name="t", index_name="j", schema=schema(("l", LONG)))
    for wrong in (b"x", b"W10=", token[:-4]):
        with pytest.raises(Refused, match="Invalid next token"):
            table.search(match_all(), token=wrong)
    with pytest.raises(Refused, match="Invalid next token"):
        call("Search", table_name="t", index_name="j", search_query=search_query(match_all(), token=token))
    with pytest.raises(Refused, match="can not be set with a token"):
        table.search(match_all(), token=token, offset=1)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (messages.ColumnsToGet(return_type=messages.RETURN_ALL), {"k", "l", "t"}),
        (messages.ColumnsToGet(return_type=messages.RETURN_NONE), set()),
        (messages.ColumnsToGet(return_type=messages.RETURN_ALL_FROM_INDEX), {"k", "l"}),
        (messages.ColumnsToGet(return_type=messages.RETURN_SPECIFIED, column_names=["t", "x"]), {"t"}),
    ],
)
def test_columns(table: Searches, columns: messages.ColumnsToGet, expected: set[str]) -> None:
    table.create(("k", KEYWORD), ("l", LONG), ("t", TEXT))
    table.service.put({"pk": 1}, {"k": "a", "l": 1, "t": "text"})
    table.catch_up()
    answer = table.search(match_all(), columns=columns)
    [row] = [decode_row(data) for data in answer.rows]
    assert [cell.name for cell in row.key] == ["pk"]
    assert {cell.name for cell in row.cells} == expected


# Limits


def deep(levels: int) -> messages.Query:
    wanted = match_all()
    for _ in range(levels):
        wanted = bool_of(must_queries=[wanted])
    return wanted


@pytest.mark.parametrize(
    ("fits", "exceeds"),
    [
        ({"limit": limits.SEARCH_ROWS_MAX}, {"limit": limits.SEARCH_ROWS_MAX + 1}),
        (
            {"limit": 1, "offset": limits.SEARCH_RESULTS_MAX - 1},
            {"limit": 1, "offset": limits.SEARCH_RESULTS_MAX},
        ),
        ({"limit": 0}, {"limit": -1}),
    ],
)
def test_limits_of_a_page(table: Searches, fits: dict[str, int], exceeds: dict[str, int]) -> None:
    table.create(("k", KEYWORD))
    columns = messages.ColumnsToGet(return_type=messages.RETURN_ALL)
    table.search(match_all(), columns=columns, **fits)
    with pytest.raises(Refused, match="OTSParameterInvalid"):
        table.search(match_all(), columns=columns, **exceeds)


def test_a_page_has_more_rows_if_the_index_has_the_columns(table: Searches) -> None:
    """Source: "How do I increase the value of the limit parameter to 1000": attribute columns decide."""
    table.create(("k", KEYWORD), ("t", TEXT))
    most = limits.SEARCH_INDEXED_ROWS_MAX
    for columns in (
        messages.ColumnsToGet(return_type=messages.RETURN_ALL_FROM_INDEX),
        messages.ColumnsToGet(return_type=messages.RETURN_SPECIFIED, column_names=["k"]),
        messages.ColumnsToGet(return_type=messages.RETURN_NONE),
    ):
        table.search(match_all(), columns=columns, limit=most)
        with pytest.raises(Refused, match="OTSParameterInvalid"):
            table.search(match_all(), columns=columns, limit=most + 1)
    not_stored = messages.ColumnsToGet(return_type=messages.RETURN_SPECIFIED, column_names=["k", "t"])
    with pytest.raises(Refused, match="OTSParameterInvalid"):
        table.search(match_all(), columns=not_stored, limit=limits.SEARCH_ROWS_MAX + 1)


@pytest.mark.parametrize(
    ("fits", "exceeds"),
    [
        (deep(limits.QUERY_DEPTH_MAX), deep(limits.QUERY_DEPTH_MAX + 1)),
        (
            bool_of(should_queries=[match_all()] * (limits.QUERIES_MAX - 1)),
            bool_of(should_queries=[match_all()] * limits.QUERIES_MAX),
        ),
        (
            terms("k", *map(str, range(limits.TERMS_MAX))),
            terms("k", *map(str, range(limits.TERMS_MAX + 1))),
        ),
        (
            wildcard("k", "x" * limits.WILDCARD_MAX_CHARACTERS),
            wildcard("k", "x" * (limits.WILDCARD_MAX_CHARACTERS + 1)),
        ),
        (prefix("k", "x" * limits.PREFIX_MAX_BYTES), prefix("k", "x" * (limits.PREFIX_MAX_BYTES + 1))),
        (term("k", "x"), term("absent", "x")),
        (term("l", 1), term("l", "x")),
        (between("l", 1), between("b", True)),
        (prefix("k", "1"), prefix("l", "1")),
    ],
)
def test_limits_of_queries(table: Searches, fits: messages.Query, exceeds: messages.Query) -> None:
    table.create(("k", KEYWORD), ("l", LONG), ("b", BOOLEAN))
    table.search(fits)
    with pytest.raises(Refused, match="OTSParameterInvalid"):
        table.search(exceeds)


def test_keywords_longer_than_a_stored_term(table: Searches) -> None:
    """Terms are clipped in the database. Their rest is compared."""
    table.create(("k", KEYWORD))
    for number, last in enumerate("abc"):
        table.service.put({"pk": number}, {"k": "x" * 600 + last})
    table.catch_up()
    assert table.find(term("k", "x" * 600 + "b")) == [1]
    assert table.find(between("k", "x" * 600 + "b")) == [1, 2]
    assert table.find(prefix("k", "x" * 600 + "c")) == [2]
    assert table.find(bool_of(must_not_queries=[term("k", "x" * 600 + "b")])) == [0, 2]


@pytest.mark.parametrize(
    "members",
    [
        {"filter": messages.SearchFilter(query=match_all())},
        {"filter": messages.SearchFilter(query=bool_of(filter_queries=[term("k", "a")]))},
        {"filter": messages.SearchFilter(query=exists("t"))},
        {"sort": messages.Sort(sorter=[messages.Sorter()])},
    ],
)
def test_unsupported_members_are_refused(table: Searches, members: dict[str, Any]) -> None:
    table.create(("k", KEYWORD), ("t", TEXT))
    with pytest.raises(Refused, match="OTSParameterInvalid"):
        table.search(match_all(), **members)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("name", ["l", "k"])
def test_a_sort_by_a_field_evaluates_its_first_terms_only(
    table: Searches, monkeypatch: pytest.MonkeyPatch, name: str, descending: bool
) -> None:
    """Each page of 3 rows needs 4 documents, and the one before."""
    table.create(("l", LONG), ("k", KEYWORD))
    for number in range(20):
        table.service.put({"pk": number}, {"l": number * 7 % 20 - 10, "k": f"k{number * 7 % 20:02d}"})
    table.catch_up()
    expected = sorted(range(20), key=lambda number: number * 7 % 20, reverse=descending)
    monkeypatch.setattr(document_store, "_FEW", 10)
    monkeypatch.setattr(searching, "MOST_EVALUATED", 5)
    answer = table.search(match_all(), sort=by_field(name, descending), limit=3, get_total_count=True)
    found = keys_of(answer)
    assert answer.total_hits == 20
    while answer.next_token and len(found) < 9:
        answer = table.search(match_all(), token=answer.next_token, limit=3)
        found += keys_of(answer)
    assert found == expected[:9]
    sort = by_field(name, descending).SerializeToString()
    index_id = request_values.decode_token(answer.next_token)[0]
    for order_key in (b"", b"\x01", b"\x01x", b"\xfe\xfe", b"\xff"):
        monkeypatch.setattr(searching, "MOST_EVALUATED", 20)
        token = request_values.encode_token(index_id, sort, order_key, b"", b"")
        assert len(table.search(match_all(), token=token, limit=3).rows) <= 3


def test_a_new_table_has_no_search_indexes(service: TableStoreService) -> None:
    service.create("new")
    assert not service.call("ListSearchIndex", table_name="new").indices
