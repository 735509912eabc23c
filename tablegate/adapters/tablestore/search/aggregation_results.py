"""The messages of the outcomes of aggregations and groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from google.protobuf.message import Message

from tablegate.adapters.tablestore.search import tokens, variants
from tablegate.adapters.tablestore.search.aggregations import METRICS
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.gateway.features.search import aggregations as model
from tablegate.gateway.features.search.aggregations import DateIntervals
from tablegate.gateway.features.search.field_values import cell_of_geohash
from tablegate.gateway.model.values.keys import Position

_METRIC_TYPES = {kind: message_type for message_type, (kind, _, _) in METRICS.items()}
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
    def items(
        message: Callable[..., Any], members: Callable[[Any], dict[str, Any]], count: str = "row_count"
    ) -> list[Any]:
        return [
            message(**members(group.key), **{count: group.rows}, **_subs(grouping, group, row_bytes))
            for group in groups
        ]

    match grouping:
        case model.GroupByField():
            found = items(messages.GroupByFieldResultItem, lambda key: {"key": _text(key)})
            return messages.GROUP_BY_FIELD, messages.GroupByFieldResult(items=found)
        case model.GroupByHistogram(intervals=DateIntervals()):
            found = items(messages.GroupByDateHistogramItem, lambda key: {"timestamp": key})
            return messages.GROUP_BY_DATE_HISTOGRAM, messages.GroupByDateHistogramResult(items=found)
        case model.GroupByHistogram():
            found = items(messages.GroupByHistogramItem, lambda key: {"key": variants.encode(key)}, "value")
            return messages.GROUP_BY_HISTOGRAM, messages.GroupByHistogramResult(items=found)
        case model.GroupByGrid():
            found = items(messages.GroupByGeoGridResultItem, lambda key: {"key": key, "geo_grid": _cell(key)})
            return messages.GROUP_BY_GEO_GRID, messages.GroupByGeoGridResult(items=found)
        case model.GroupByFilter():
            found = items(messages.GroupByFilterResultItem, lambda key: {})
            return messages.GROUP_BY_FILTER, messages.GroupByFilterResult(items=found)
        case model.GroupByRange():
            kind = messages.GROUP_BY_RANGE if grouping.origin is None else messages.GROUP_BY_GEO_DISTANCE
            found = items(
                messages.GroupByRangeResultItem, lambda key: {"range_from": key[0], "range_to": key[1]}
            )
            return kind, messages.GroupByRangeResult(items=found)
        case model.GroupByComposite():
            found = items(messages.GroupByCompositeResultItem, _composite_members)
            answer = messages.GroupByCompositeResult(items=found[: grouping.size])
            answer.source_group_by_names.extend(source.grouping.name for source in grouping.sources)
            if len(groups) > grouping.size:
                answer.next_token = tokens.encode(groups[grouping.size - 1].key.order).decode()
            return messages.GROUP_BY_COMPOSITE, answer


def _composite_members(key: model.CompositeKey) -> dict[str, Any]:
    return {
        "keys": ["" if part is None else _text(part) for part in key.parts],
        "is_null_keys": [part is None for part in key.parts],
    }


def _cell(geohash: str) -> messages.GeoGrid:
    top_left, bottom_right = (
        messages.GeoPoint(lat=latitude, lon=longitude) for latitude, longitude in cell_of_geohash(geohash)
    )
    return messages.GeoGrid(top_left=top_left, bottom_right=bottom_right)


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
