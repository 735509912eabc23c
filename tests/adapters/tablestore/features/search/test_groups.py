"""Groups by dates, cells of a grid and several fields, and collapsed results.

Sources: aliyun-tablestore-go-sdk, tablestore/search_api_test.go; the GroupByDateHistogram and "Collapse (distinct)" pages
of the service.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from google.protobuf.message import Message

from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.gateway.features.search import collecting
from tests.adapters.tablestore.client import Refused, TableStoreService
from tests.adapters.tablestore.search_messages import (
    Searches,
    between,
    by_field,
    field,
    keys_of,
    match_all,
    variant,
)

DAY_MS = 86_400_000
HISTOGRAM, COMPOSITE = messages.GROUP_BY_DATE_HISTOGRAM, messages.GROUP_BY_COMPOSITE
DATES = ("2024-01-31 23:30:00", "2024-02-01 00:10:00", "2024-02-29 12:00:00", "2024-04-01 00:00:00", None)


@pytest.fixture
def table(service: TableStoreService) -> Searches:
    """Five rows. The last one has no date and no keyword."""
    made = Searches(service)
    made.create(
        field("d", messages.DATE, date_formats=["yyyy-MM-dd HH:mm:ss"]),
        ("k", messages.KEYWORD),
        ("l", messages.LONG),
        ("g", messages.GEO_POINT),
        field("a", messages.LONG, is_array=True),
    )
    for number, moment in enumerate(DATES):
        cells: dict[str, Any] = {"l": number, "g": f"{30.137817 + number % 2},120.08681"}
        cells["a"] = json.dumps([number, number + 1])
        if moment is not None:
            cells |= {"d": moment, "k": "ab"[number % 2]}
        service.put({"pk": number}, cells)
    made.catch_up()
    return made


def group_by(kind: int, body: Message, name: str = "x") -> messages.GroupBy:
    return messages.GroupBy(name=name, type=kind, body=body.SerializeToString())


def found(table: Searches, wanted: messages.GroupBy, kind: Any) -> Any:
    answer = table.search(match_all(), group_bys=messages.GroupBys(group_bys=[wanted]), limit=0)
    [result] = messages.GroupBysResult.FromString(answer.group_bys).group_by_results
    assert (result.name, result.type) == (wanted.name, wanted.type)
    return kind.FromString(result.group_by_result)


def time(value: int, unit: int) -> messages.DateTimeValue:
    return messages.DateTimeValue(value=value, unit=unit)


def dates(value: int = 1, unit: int = messages.MONTH, **members: Any) -> messages.GroupBy:
    body = messages.GroupByDateHistogram(field_name="d", interval=time(value, unit), **members)
    return group_by(HISTOGRAM, body)


def histogram(table: Searches, wanted: messages.GroupBy) -> list[tuple[str, int]]:
    """Return the start of each interval in UTC, and its number of rows."""
    items = found(table, wanted, messages.GroupByDateHistogramResult).items
    return [(text_of(item.timestamp), item.row_count) for item in items]


def text_of(timestamp: int) -> str:
    return f"{datetime.fromtimestamp(timestamp / 1000, UTC):%m-%d %H}"


def test_intervals_of_dates(table: Searches) -> None:
    assert histogram(table, dates()) == [("01-01 00", 1), ("02-01 00", 2), ("04-01 00", 1)]
    assert histogram(table, dates(1, messages.QUARTER_YEAR)) == [("01-01 00", 3), ("04-01 00", 1)]
    assert histogram(table, dates(1, messages.YEAR)) == [("01-01 00", 4)]
    assert histogram(table, dates(1, messages.WEEK)) == [("01-29 00", 2), ("02-26 00", 1), ("04-01 00", 1)]
    hours = histogram(table, dates(12, messages.HOUR))
    assert hours == [("01-31 12", 1), ("02-01 00", 1), ("02-29 12", 1), ("04-01 00", 1)]


def test_time_zones_and_offsets_of_dates(table: Searches) -> None:
    """In a zone east of UTC, the last half hour of January is in February. Starts are returned in UTC."""
    assert histogram(table, dates(time_zone="+01:00")) == [("01-31 23", 3), ("03-31 23", 1)]
    west = histogram(table, dates(time_zone="-01:30"))
    assert west == [("01-01 01", 2), ("02-01 01", 1), ("03-01 01", 1)]
    days = dates(1, messages.DAY, offset=time(-1, messages.HOUR))
    assert histogram(table, days) == [("01-31 23", 2), ("02-28 23", 1), ("03-31 23", 1)]


def test_missing_dates_ranges_and_empty_groups(table: Searches) -> None:
    missing = dates(missing=variant("2024-02-02 00:00:00"))
    assert histogram(table, missing) == [("01-01 00", 1), ("02-01 00", 3), ("04-01 00", 1)]
    assert histogram(table, dates(min_doc_count=2)) == [("02-01 00", 2)]
    everything = [("01-01 00", 1), ("02-01 00", 2), ("03-01 00", 0)]
    bounds = messages.FieldRange(min=variant("2024-01-01 00:00:00"), max=variant("2024-04-01 00:00:00"))
    assert histogram(table, dates(min_doc_count=0, field_range=bounds)) == everything
    order = messages.GroupBySorter(row_count_sort=messages.RowCountSort(order=messages.SORT_ORDER_DESC))
    by_count = dates(sort=messages.GroupBySort(sorters=[order]))
    assert histogram(table, by_count) == [("02-01 00", 2), ("01-01 00", 1), ("04-01 00", 1)]


@pytest.mark.parametrize(
    "wanted",
    [
        dates(0),
        dates(-1, messages.DAY),
        dates(time_zone="Berlin"),
        dates(time_zone="+25:00"),
        dates(offset=time(1, messages.MONTH)),
        dates(missing=variant("yesterday")),
        group_by(HISTOGRAM, messages.GroupByDateHistogram(field_name="d")),
        group_by(HISTOGRAM, messages.GroupByDateHistogram(field_name="l", interval=time(1, messages.DAY))),
        group_by(messages.GROUP_BY_GEO_GRID, messages.GroupByGeoGrid(field_name="g")),
        group_by(
            messages.GROUP_BY_GEO_GRID,
            messages.GroupByGeoGrid(field_name="g", precision=limits.GEOHASH_MAX + 1),
        ),
    ],
)
def test_invalid_groups(table: Searches, wanted: messages.GroupBy) -> None:
    with pytest.raises(Refused, match="OTSParameterInvalid"):
        found(table, wanted, messages.GroupByDateHistogramResult)


def test_the_number_of_intervals_is_limited(table: Searches) -> None:
    for days, is_allowed in ((limits.GROUPS_MAX, True), (limits.GROUPS_MAX + 1, False)):
        end = messages.FieldRange(min=variant(0), max=variant(days * DAY_MS))
        wanted = dates(1, messages.DAY, field_range=end)
        if is_allowed:
            assert histogram(table, wanted) == []
        else:
            with pytest.raises(Refused, match="number of groups"):
                histogram(table, wanted)


def test_cells_of_a_grid(table: Searches) -> None:
    body = messages.GroupByGeoGrid(field_name="g", precision=3, size=1)
    [item] = found(table, group_by(messages.GROUP_BY_GEO_GRID, body), messages.GroupByGeoGridResult).items
    assert (item.key, item.row_count) == ("wtm", 3)
    assert (item.geo_grid.top_left.lat, item.geo_grid.top_left.lon) == (30.9375, 119.53125)
    assert (item.geo_grid.bottom_right.lat, item.geo_grid.bottom_right.lon) == (29.53125, 120.9375)
    body.precision = limits.GEOHASH_MAX
    [item] = found(table, group_by(messages.GROUP_BY_GEO_GRID, body), messages.GroupByGeoGridResult).items
    assert item.key.startswith("wtm") and len(item.key) == limits.GEOHASH_MAX


def by_name(name: str, source: str, descending: bool = False) -> messages.GroupBy:
    order = messages.SORT_ORDER_DESC if descending else messages.SORT_ORDER_ASC
    sort = messages.GroupBySort(
        sorters=[messages.GroupBySorter(group_key_sort=messages.GroupKeySort(order=order))]
    )
    return group_by(messages.GROUP_BY_FIELD, messages.GroupByField(field_name=name, sort=sort), source)


def composite(*sources: messages.GroupBy, **members: Any) -> messages.GroupBy:
    body = messages.GroupByComposite(sources=messages.GroupBys(group_bys=sources), **members)
    return group_by(COMPOSITE, body)


def keys(result: messages.GroupByCompositeResult) -> list[tuple[Any, ...]]:
    """Return the keys of each group and its number of rows."""
    return [
        (
            *(None if is_null else key for key, is_null in zip(item.keys, item.is_null_keys, strict=True)),
            item.row_count,
        )
        for item in result.items
    ]


def test_composite_groups_have_pages(table: Searches) -> None:
    month = dates()
    month.name = "month"
    sources = by_name("k", "keyword", descending=True), month
    times = [1704067200000, 1706745600000, 1711929600000]
    january, february, april = map(str, times)
    expected = [("b", february, 1), ("b", april, 1), ("a", january, 1), ("a", february, 1), (None, None, 1)]
    inner = messages.Aggregations(
        aggs=[
            messages.Aggregation(
                name="s",
                type=messages.AGG_SUM,
                body=messages.FieldAggregation(field_name="l").SerializeToString(),
            )
        ]
    )
    whole = found(table, composite(*sources, sub_aggs=inner), messages.GroupByCompositeResult)
    assert keys(whole) == expected
    assert list(whole.source_group_by_names) == ["keyword", "month"]
    assert not whole.HasField("next_token")
    sums = [each.sub_aggs_result.agg_results[0].agg_result for each in whole.items]
    assert [messages.DoubleResult.FromString(each).value for each in sums] == [1.0, 3.0, 0.0, 2.0, 4.0]
    for size in (1, 2, 4):
        pages: list[tuple[Any, ...]] = []
        token = ""
        while True:
            wanted = composite(*sources, size=size, next_token=token)
            page = found(table, wanted, messages.GroupByCompositeResult)
            assert len(page.items) <= size
            pages += keys(page)
            token = page.next_token
            if not token:
                break
        assert pages == expected


def test_composite_groups_of_arrays_and_intervals(table: Searches) -> None:
    intervals = messages.GroupByHistogram(field_name="l", interval=variant(2))
    sources = by_name("a", "a"), group_by(messages.GROUP_BY_HISTOGRAM, intervals, "l")
    result = found(table, composite(*sources, size=4), messages.GroupByCompositeResult)
    assert keys(result) == [("0", "0", 1), ("1", "0", 2), ("2", "0", 1), ("2", "2", 1)]


def test_limits_of_composite_groups(table: Searches, monkeypatch: pytest.MonkeyPatch) -> None:
    source = by_name("l", "l")
    many = [by_name("l", str(number)) for number in range(limits.COMPOSITE_SOURCES_MAX + 1)]
    grid = group_by(messages.GROUP_BY_GEO_GRID, messages.GroupByGeoGrid(field_name="g", precision=1))
    inner = messages.GroupBys(group_bys=[source])
    deep = group_by(messages.GROUP_BY_FIELD, messages.GroupByField(field_name="k", sub_group_bys=inner))
    for accepted in (
        composite(source, size=limits.GROUPS_MAX),
        composite(source, suggested_size=limits.GROUPS_MAX + 1),
        composite(*many[:-1]),
    ):
        assert len(found(table, accepted, messages.GroupByCompositeResult).items) == 5
    for refused in (
        composite(source, size=limits.GROUPS_MAX + 1),
        composite(source, size=0),
        composite(*many),
        composite(),
        composite(source, source),
        composite(grid),
        composite(deep),
        composite(source, next_token="x"),
    ):
        with pytest.raises(Refused, match="OTSParameterInvalid"):
            found(table, refused, messages.GroupByCompositeResult)
    arrays = [by_name("a", str(number)) for number in range(4)]
    monkeypatch.setattr(collecting, "MOST_GROUPS", 16)
    assert found(table, composite(*arrays[:3], size=1), messages.GroupByCompositeResult).items
    assert found(table, composite(*arrays, size=1), messages.GroupByCompositeResult).items
    monkeypatch.setattr(collecting, "MOST_GROUPS", 15)
    with pytest.raises(Refused, match="too many groups"):
        found(table, composite(*arrays, size=1), messages.GroupByCompositeResult)


def test_collapsed_results(table: Searches) -> None:
    """The first row of each value. Totals and aggregations are those of all rows."""
    collapse = messages.Collapse(field_name="k")
    by_number = by_field("l", descending=True)
    answer = table.search(match_all(), collapse=collapse, sort=by_number, get_total_count=True)
    assert keys_of(answer) == [4, 3, 2]
    assert (answer.total_hits, answer.next_token) == (5, b"")
    assert table.find(match_all(), collapse=collapse) == [0, 1, 4]
    assert table.find(between("l", 1), collapse=collapse) == [1, 2, 4]
    page = table.search(match_all(), collapse=collapse, sort=by_number, offset=1, limit=1)
    assert (keys_of(page), page.next_token) == ([3], b"")
    token = table.search(match_all(), limit=1).next_token
    for refused in (
        {"collapse": collapse, "token": token},
        {"collapse": messages.Collapse(field_name="a")},
        {"collapse": messages.Collapse(field_name="g")},
        {"collapse": messages.Collapse(field_name="none")},
    ):
        with pytest.raises(Refused, match="OTSParameterInvalid"):
            table.search(match_all(), **refused)
