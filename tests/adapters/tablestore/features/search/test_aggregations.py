"""Aggregations and groups. Sources: aliyun-tablestore-python-sdk, tests/agg_test.py and tests/group_by_test.py."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf.message import Message

from tablegate.adapters.tablestore.features.search import request_values
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.plainbuffer import decode_row
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.gateway.features.search import collecting
from tests.adapters.tablestore.client import Refused, TableStoreService
from tests.adapters.tablestore.search_messages import (
    Searches,
    field,
    key_of,
    match_all,
    term,
    variant,
    wildcard,
)


@pytest.fixture
def table(service: TableStoreService) -> Searches:
    """Rows 0 to 9: l is the key, k is a or b, d a half of the key, a and n lists."""
    made = Searches(service)
    made.create(
        ("l", messages.LONG),
        ("k", messages.KEYWORD),
        ("d", messages.DOUBLE),
        ("t", messages.TEXT),
        ("g", messages.GEO_POINT),
        field("a", messages.LONG, is_array=True),
        field("n", messages.NESTED, field_schemas=[field("v", messages.LONG)]),
    )
    for number in range(10):
        cells = {"l": number, "k": "ab"[number % 2], "g": f"0,{number}", "a": f"[{number}, -1]", "t": "x"}
        cells["n"] = json.dumps([{"v": number}, {"v": 1}])
        if number < 8:
            cells["d"] = number / 2
        service.put({"pk": number}, cells)
    made.catch_up()
    return made


def agg(kind: int, body: Message, name: str = "x") -> messages.Aggregation:
    return messages.Aggregation(name=name, type=kind, body=body.SerializeToString())


def metric(kind: int, name: str, missing: Any = None) -> messages.Aggregation:
    more = {} if missing is None else {"missing": variant(missing)}
    return agg(kind, messages.FieldAggregation(field_name=name, **more))


def result(table: Searches, aggregation: messages.Aggregation, kind: Any, **members: Any) -> Any:
    answer = table.search(match_all(), aggs=messages.Aggregations(aggs=[aggregation]), limit=0, **members)
    [found] = messages.AggregationsResult.FromString(answer.aggs).agg_results
    assert (found.name, found.type) == (aggregation.name, aggregation.type)
    return kind.FromString(found.agg_result)


def groups(table: Searches, kind: int, body: Message, result_kind: Any) -> Any:
    group_by = messages.GroupBy(name="x", type=kind, body=body.SerializeToString())
    answer = table.search(match_all(), group_bys=messages.GroupBys(group_bys=[group_by]), limit=0)
    [found] = messages.GroupBysResult.FromString(answer.group_bys).group_by_results
    return result_kind.FromString(found.group_by_result).items


@pytest.mark.parametrize(
    ("kind", "name", "missing", "expected"),
    [
        (messages.AGG_SUM, "l", None, 45.0),
        (messages.AGG_AVG, "l", None, 4.5),
        (messages.AGG_MIN, "a", None, -1.0),
        (messages.AGG_MAX, "n.v", None, 9.0),
        (messages.AGG_SUM, "d", None, 14.0),
        (messages.AGG_SUM, "d", 1.0, 16.0),
        (messages.AGG_COUNT, "a", None, 20),
        (messages.AGG_COUNT, "d", None, 8),
        (messages.AGG_DISTINCT_COUNT, "k", None, 2),
        (messages.AGG_DISTINCT_COUNT, "g", None, 10),
        (messages.AGG_DISTINCT_COUNT, "n.v", None, 10),
    ],
)
def test_metrics(table: Searches, kind: int, name: str, missing: Any, expected: float) -> None:
    is_whole = kind in (messages.AGG_COUNT, messages.AGG_DISTINCT_COUNT)
    message = messages.LongResult if is_whole else messages.DoubleResult
    assert result(table, metric(kind, name, missing), message).value == expected


def test_sums_do_not_depend_on_the_order_of_the_rows(service: TableStoreService) -> None:
    """As in TestAggregationAvgAggregationValidTypeMissingValue of the Go SDK, whose average is 8.1 in any order."""
    made = Searches(service)
    made.create(("d", messages.DOUBLE))
    for number, value in enumerate([1e16, 1.0, -1e16, 1.0, 1e16, 1.0, -1e16, 1.0]):
        service.put({"pk": number}, {"d": value})
    made.catch_up()
    for kind, expected in ((messages.AGG_SUM, 4.0), (messages.AGG_AVG, 0.5)):
        assert result(made, metric(kind, "d"), messages.DoubleResult).value == expected


def test_percentiles(table: Searches) -> None:
    wanted = agg(
        messages.AGG_PERCENTILES, messages.PercentilesAggregation(field_name="l", percentiles=[90, 50, 0])
    )
    items = result(table, wanted, messages.PercentilesResult).items
    assert [(item.key, request_values.decode_variant(item.value)) for item in items] == [
        (0, 0),
        (50, 4),
        (90, 8),
    ]


def test_top_rows(table: Searches) -> None:
    order = messages.FieldSort(field_name="d", order=messages.SORT_ORDER_DESC)
    sort = messages.Sort(sorter=[messages.Sorter(field_sort=order)])
    wanted = agg(messages.AGG_TOP_ROWS, messages.TopRowsAggregation(limit=2, sort=sort))
    rows = [decode_row(data) for data in result(table, wanted, messages.TopRowsResult).rows]
    assert [key_of(row) for row in rows] == [7, 6]
    assert not rows[0].cells


def test_groups_of_a_field(table: Searches) -> None:
    inner = messages.Aggregations(aggs=[metric(messages.AGG_SUM, "l")])
    body = messages.GroupByField(field_name="k", sub_aggs=inner)
    items = groups(table, messages.GROUP_BY_FIELD, body, messages.GroupByFieldResult)
    assert [(item.key, item.row_count) for item in items] == [("a", 5), ("b", 5)]
    [found] = items[1].sub_aggs_result.agg_results
    assert messages.DoubleResult.FromString(found.agg_result).value == 25.0
    sort = messages.SubAggSort(sub_agg_name="x", order=messages.SORT_ORDER_DESC)
    body.sort.CopyFrom(messages.GroupBySort(sorters=[messages.GroupBySorter(sub_agg_sort=sort)]))
    body.size = 1
    items = groups(table, messages.GROUP_BY_FIELD, body, messages.GroupByFieldResult)
    assert [item.key for item in items] == ["b"]


def test_groups_inside_groups(table: Searches) -> None:
    inner = messages.GroupBy(
        name="y",
        type=messages.GROUP_BY_RANGE,
        body=messages.GroupByRange(
            field_name="l", ranges=[messages.Range(begin=5, end=9), messages.Range(end=5)]
        ).SerializeToString(),
    )
    body = messages.GroupByField(field_name="k", sub_group_bys=messages.GroupBys(group_bys=[inner]))
    items = groups(table, messages.GROUP_BY_FIELD, body, messages.GroupByFieldResult)
    [found] = items[0].sub_group_bys_result.group_by_results
    ranges = messages.GroupByRangeResult.FromString(found.group_by_result).items
    assert [(each.range_from, each.range_to, each.row_count) for each in ranges] == [
        (float("-inf"), 5, 3),
        (5, 9, 2),
    ]


def test_groups_of_intervals_filters_and_distances(table: Searches) -> None:
    histogram = messages.GroupByHistogram(field_name="l", interval=variant(4))
    items = groups(table, messages.GROUP_BY_HISTOGRAM, histogram, messages.GroupByHistogramResult)
    assert [(request_values.decode_variant(item.key), item.value) for item in items] == [
        (0, 4),
        (4, 4),
        (8, 2),
    ]
    histogram.min_doc_count = 0
    histogram.field_range.CopyFrom(messages.FieldRange(min=variant(6), max=variant(16)))
    items = groups(table, messages.GROUP_BY_HISTOGRAM, histogram, messages.GroupByHistogramResult)
    assert [(request_values.decode_variant(item.key), item.value) for item in items] == [
        (4, 2),
        (8, 2),
        (12, 0),
    ]
    filters = messages.GroupByFilter(filters=[term("k", "a"), wildcard("k", "*")])
    items = groups(table, messages.GROUP_BY_FILTER, filters, messages.GroupByFilterResult)
    assert [item.row_count for item in items] == [5, 10]
    distances = messages.GroupByGeoDistance(
        field_name="g",
        origin=messages.GeoPoint(lat=0, lon=0),
        ranges=[messages.Range(begin=200_000, end=400_000), messages.Range(begin=0, end=200_000)],
    )
    items = groups(table, messages.GROUP_BY_GEO_DISTANCE, distances, messages.GroupByRangeResult)
    assert [item.row_count for item in items] == [2, 2]


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (metric(messages.AGG_AVG, "absent"), r"\[avg agg\] field: absent does not exist"),
        (
            metric(messages.AGG_SUM, "k"),
            r"\[sum agg\] field_name:k type:keyword is invalid, allow \[long, double\]",
        ),
        (metric(messages.AGG_COUNT, "t"), "OTSParameterInvalid"),
        (messages.Aggregation(name="x"), "not supported"),
        (agg(messages.AGG_TOP_ROWS, messages.TopRowsAggregation(limit=limits.TOP_ROWS_MAX + 1)), "limit"),
        (
            agg(messages.AGG_PERCENTILES, messages.PercentilesAggregation(field_name="l", percentiles=[101])),
            "percentiles",
        ),
    ],
)
def test_invalid_aggregations(table: Searches, wanted: messages.Aggregation, text: str) -> None:
    with pytest.raises(Refused, match=text):
        table.search(match_all(), aggs=messages.Aggregations(aggs=[wanted]))


def test_limits_of_aggregations(table: Searches, monkeypatch: pytest.MonkeyPatch) -> None:
    many = [
        agg(messages.AGG_COUNT, messages.FieldAggregation(field_name="l"), name=str(number))
        for number in range(limits.AGGREGATIONS_MAX + 1)
    ]
    table.search(match_all(), aggs=messages.Aggregations(aggs=many[:-1]))
    for refused in (many, many[:1] * 2):
        with pytest.raises(Refused, match="OTSParameterInvalid"):
            table.search(match_all(), aggs=messages.Aggregations(aggs=refused))

    def nested_groups(levels: int) -> messages.GroupBys:
        inner = nested_groups(levels - 1) if levels > 1 else messages.GroupBys()
        body = messages.GroupByField(field_name="l", sub_group_bys=inner)
        kind = messages.GROUP_BY_FIELD
        return messages.GroupBys(
            group_bys=[messages.GroupBy(name="x", type=kind, body=body.SerializeToString())]
        )

    table.search(match_all(), group_bys=nested_groups(limits.GROUPING_LEVELS_MAX))
    with pytest.raises(Refused, match="level"):
        table.search(match_all(), group_bys=nested_groups(limits.GROUPING_LEVELS_MAX + 1))
    monkeypatch.setattr(collecting, "MOST_GROUPS", 10)
    table.search(match_all(), group_bys=nested_groups(1))
    with pytest.raises(Refused, match="too many groups"):
        table.search(match_all(), group_bys=nested_groups(2))
