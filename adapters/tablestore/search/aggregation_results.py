"""The messages of the outcomes of aggregations and groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from google.protobuf.message import Message

from tablegate.adapters.tablestore.search import tokens, variants
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.gateway.model.search import aggregations as model
from tablegate.gateway.model.search.geography import cell_of_geohash
from tablegate.gateway.model.search.intervals import DateIntervals
from tablegate.gateway.model.values.keys import Position

_METRIC_TYPES = {
    model.MetricKind.AVG: messages.AGG_AVG,
    model.MetricKind.MAX: messages.AGG_MAX,
    model.MetricKind.MIN: messages.AGG_MIN,
    model.MetricKind.SUM: messages.AGG_SUM,
    model.MetricKind.COUNT: messages.AGG_COUNT,
    model.MetricKind.DISTINCT_COUNT: messages.AGG_DISTINCT_COUNT,
}
_WHOLE = (model.MetricKind.COUNT, model.MetricKind.DISTINCT_COUNT)
RowBytes = Callable[[Position], bytes | None]
"""Returns the row at a position as the reply shows it, or None if it no longer exists."""


def aggregations_message(
    aggregations: Sequence[model.Aggregation], outcomes: Sequence[Any], row_bytes: RowBytes
) -> messages.AggregationsResult:
    """Return the outcomes of aggregations."""
    answer = messages.AggregationsResult()
    for aggregation, outcome in zip(aggregations, outcomes, strict=True):
        kind, result = _aggregation(aggregation, outcome, row_bytes)
        answer.agg_results.add(name=aggregation.name, type=kind, agg_result=result.SerializeToString())
    return answer


def _aggregation(
    aggregation: model.Aggregation, outcome: Any, row_bytes: RowBytes
) -> tuple[messages.AggregationType, Message]:
    if isinstance(aggregation, model.TopRows):
        rows = [data for position in outcome if (data := row_bytes(position)) is not None]
        return messages.AGG_TOP_ROWS, messages.TopRowsResult(rows=rows)
    if isinstance(aggregation, model.Percentiles):
        items = [messages.PercentilesItem(key=key, value=variants.encode(value)) for key, value in outcome]
        return messages.AGG_PERCENTILES, messages.PercentilesResult(items=items)
    kind = _METRIC_TYPES[aggregation.kind]
    if aggregation.kind in _WHOLE:
        return kind, messages.LongResult(value=outcome)
    return kind, messages.DoubleResult(value=outcome)


def groups_message(
    groupings: Sequence[model.Grouping], outcomes: Sequence[Sequence[model.Group]], row_bytes: RowBytes
) -> messages.GroupBysResult:
    """Return the outcomes of groups."""
    answer = messages.GroupBysResult()
    for grouping, groups in zip(groupings, outcomes, strict=True):
        kind, result = _grouping(grouping, groups, row_bytes)
        answer.group_by_results.add(name=grouping.name, type=kind, group_by_result=result.SerializeToString())
    return answer


def _grouping(
    grouping: model.Grouping, groups: Sequence[model.Group], row_bytes: RowBytes
) -> tuple[messages.GroupByType, Message]:
    subs = [_subs(grouping, group, row_bytes) for group in groups]
    pairs = list(zip(groups, subs, strict=True))
    match grouping:
        case model.GroupByField():
            return messages.GROUP_BY_FIELD, messages.GroupByFieldResult(
                items=[
                    messages.GroupByFieldResultItem(key=_text(group.key), row_count=group.rows, **sub)
                    for group, sub in pairs
                ]
            )
        case model.GroupByHistogram():
            return _histogram(grouping, pairs)
        case model.GroupByGrid():
            return messages.GROUP_BY_GEO_GRID, messages.GroupByGeoGridResult(
                items=[
                    messages.GroupByGeoGridResultItem(
                        key=group.key, geo_grid=_cell(group.key), row_count=group.rows, **sub
                    )
                    for group, sub in pairs
                ]
            )
        case model.GroupByComposite():
            return messages.GROUP_BY_COMPOSITE, _composite(grouping, pairs)
        case model.GroupByFilter():
            return messages.GROUP_BY_FILTER, messages.GroupByFilterResult(
                items=[messages.GroupByFilterResultItem(row_count=group.rows, **sub) for group, sub in pairs]
            )
        case model.GroupByRange():
            kind = messages.GROUP_BY_RANGE if grouping.origin is None else messages.GROUP_BY_GEO_DISTANCE
            return kind, messages.GroupByRangeResult(
                items=[
                    messages.GroupByRangeResultItem(
                        range_from=group.key[0], range_to=group.key[1], row_count=group.rows, **sub
                    )
                    for group, sub in pairs
                ]
            )


_Pairs = Sequence[tuple[model.Group, dict[str, Any]]]


def _histogram(grouping: model.GroupByHistogram, pairs: _Pairs) -> tuple[messages.GroupByType, Message]:
    if isinstance(grouping.intervals, DateIntervals):
        return messages.GROUP_BY_DATE_HISTOGRAM, messages.GroupByDateHistogramResult(
            items=[
                messages.GroupByDateHistogramItem(timestamp=group.key, row_count=group.rows, **sub)
                for group, sub in pairs
            ]
        )
    return messages.GROUP_BY_HISTOGRAM, messages.GroupByHistogramResult(
        items=[
            messages.GroupByHistogramItem(key=variants.encode(group.key), value=group.rows, **sub)
            for group, sub in pairs
        ]
    )


def _cell(geohash: str) -> messages.GeoGrid:
    top_left, bottom_right = (
        messages.GeoPoint(lat=latitude, lon=longitude) for latitude, longitude in cell_of_geohash(geohash)
    )
    return messages.GeoGrid(top_left=top_left, bottom_right=bottom_right)


def _composite(grouping: model.GroupByComposite, pairs: _Pairs) -> messages.GroupByCompositeResult:
    page = pairs[: grouping.size]
    answer = messages.GroupByCompositeResult(
        source_group_by_names=[source.grouping.name for source in grouping.sources],
        items=[
            messages.GroupByCompositeResultItem(
                keys=["" if part is None else _text(part) for part in group.key.parts],
                is_null_keys=[part is None for part in group.key.parts],
                row_count=group.rows,
                **sub,
            )
            for group, sub in page
        ],
    )
    if len(pairs) > len(page):
        answer.next_token = tokens.encode(page[-1][0].key.order).decode()
    return answer


def _subs(grouping: model.Grouping, group: model.Group, row_bytes: RowBytes) -> dict[str, Any]:
    inner = grouping.inner
    subs: dict[str, Any] = {}
    if inner.aggregations:
        subs["sub_aggs_result"] = aggregations_message(inner.aggregations, group.aggregations, row_bytes)
    if inner.groups:
        subs["sub_group_bys_result"] = groups_message(inner.groups, group.groups, row_bytes)
    return subs


def _text(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)
