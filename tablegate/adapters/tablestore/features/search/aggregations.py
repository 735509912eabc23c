"""Aggregations and groups of search requests, and the messages of their outcomes.

Source: search.proto of the Java and Python SDKs, and the Aggregation and GroupBy pages of the service.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from google.protobuf.message import Message

from tablegate.adapters.tablestore.features.search import request_values
from tablegate.adapters.tablestore.features.search.queries import filter_of
from tablegate.adapters.tablestore.features.search.request_values import date_intervals, field_of, query_value
from tablegate.adapters.tablestore.features.search.sorts import sorters_of
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import invalid
from tablegate.adapters.tablestore.wire.parsing import parse
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.gateway.features.search import aggregations as model
from tablegate.gateway.features.search.aggregations import DateIntervals, NumberIntervals
from tablegate.gateway.features.search.field_values import NS_PER_MS, cell_of_geohash
from tablegate.gateway.features.search.ranking import BY_KEY
from tablegate.gateway.features.search.schema import FieldType, SearchField, SearchSchema
from tablegate.gateway.model.values.keys import Position

_NUMBERS = (FieldType.LONG, FieldType.DOUBLE)
_COUNTED = (
    FieldType.LONG,
    FieldType.DOUBLE,
    FieldType.BOOLEAN,
    FieldType.KEYWORD,
    FieldType.GEO_POINT,
    FieldType.DATE,
)
_RANKED = (FieldType.LONG, FieldType.DOUBLE, FieldType.DATE)
_GROUPED = (FieldType.LONG, FieldType.DOUBLE, FieldType.BOOLEAN, FieldType.KEYWORD, FieldType.DATE)
# The kind of each metric, its name in error texts, and the types of its field.
METRICS = {
    messages.AGG_AVG: (model.MetricKind.AVG, "avg", _NUMBERS),
    messages.AGG_MAX: (model.MetricKind.MAX, "max", _NUMBERS),
    messages.AGG_MIN: (model.MetricKind.MIN, "min", _NUMBERS),
    messages.AGG_SUM: (model.MetricKind.SUM, "sum", _NUMBERS),
    messages.AGG_COUNT: (model.MetricKind.COUNT, "count", _COUNTED),
    messages.AGG_DISTINCT_COUNT: (model.MetricKind.DISTINCT_COUNT, "distinct count", _COUNTED),
}


def inner_of(aggs: Any, group_bys: Any, schema: SearchSchema, level: int = 0) -> model.Inner:
    """Return the aggregations and groups of a request, or of a group in it. Raises ServiceError."""
    for kind, number, most in (
        ("aggregations", len(aggs.aggs), limits.AGGREGATIONS_MAX),
        ("group bys", len(group_bys.group_bys), limits.GROUPINGS_MAX),
    ):
        if number > most:
            raise invalid(f"The number of {kind} exceeds the limit: {most}.")
    if group_bys.group_bys and level >= limits.GROUPING_LEVELS_MAX:
        raise invalid(f"The level of group bys exceeds the limit: {limits.GROUPING_LEVELS_MAX}.")
    for parts in (aggs.aggs, group_bys.group_bys):
        _check_names(parts)
    return model.Inner(
        tuple(_aggregation_of(each, schema) for each in aggs.aggs),
        tuple(_grouping_of(each, schema, level) for each in group_bys.group_bys),
    )


def _check_names(parts: Sequence[messages.Aggregation | messages.GroupBy]) -> None:
    names = [part.name for part in parts]
    if "" in names or len(set(names)) < len(names):
        raise invalid("The names of aggregations and group bys must be different and not empty.")


def _field(schema: SearchSchema, name: str, kind: str, types: Sequence[FieldType]) -> SearchField:
    if name not in schema.by_name:
        raise invalid(f"[{kind}] field: {name} does not exist")
    field = field_of(schema, name)
    if field.type not in types:
        allowed = ", ".join(each.value for each in types)
        raise invalid(f"[{kind}] field_name:{name} type:{field.type.value} is invalid, allow [{allowed}]")
    return field


def _missing(field: SearchField, data: bytes) -> Any:
    return query_value(field, request_values.decode_variant(data)) if data else None


def _aggregation_of(aggregation: messages.Aggregation, schema: SearchSchema) -> model.Aggregation:
    name = aggregation.name
    if aggregation.type == messages.AGG_TOP_ROWS:
        top = parse(messages.TopRowsAggregation, aggregation.body, "the aggregation")
        limit = top.limit if top.HasField("limit") else 1
        if not 1 <= limit <= limits.TOP_ROWS_MAX:
            raise invalid(f"[top_rows agg] limit must be in range: [1, {limits.TOP_ROWS_MAX}].")
        return model.TopRows(name, limit, sorters_of(top.sort, schema) or BY_KEY)
    if aggregation.type == messages.AGG_PERCENTILES:
        body = parse(messages.PercentilesAggregation, aggregation.body, "the aggregation")
        field = _field(schema, body.field_name, "percentiles agg", _RANKED)
        percentages = tuple(body.percentiles)
        if not 1 <= len(percentages) <= limits.PERCENTILES_MAX or not all(
            0 <= each <= 100 for each in percentages
        ):
            raise invalid("[percentiles agg] percentiles must be numbers from 0 to 100.")
        return model.Percentiles(name, field, percentages, _grouped_value(field, body.missing_value))
    if aggregation.type not in METRICS or not aggregation.HasField("type"):
        raise invalid("The type of the aggregation is not supported.")
    kind, title, types = METRICS[aggregation.type]
    metric = parse(messages.FieldAggregation, aggregation.body, "the aggregation")
    field = _field(schema, metric.field_name, f"{title} agg", types)
    return model.Metric(name, kind, field, _missing(field, metric.missing))


def _grouped_value(field: SearchField, data: bytes) -> Any:
    """Return a value as percentiles and groups count them: a date in milliseconds."""
    value = _missing(field, data)
    return value // NS_PER_MS if value is not None and field.type is FieldType.DATE else value


# Groups


def _grouping_of(group_by: messages.GroupBy, schema: SearchSchema, level: int) -> model.Grouping:
    kind, make = _GROUPINGS.get(group_by.type, (None, None))
    if kind is None or make is None or not group_by.HasField("type"):
        raise invalid("The type of the group by is not supported.")
    body: Any = parse(kind, group_by.body, "the group by")
    return make(group_by.name, body, schema, inner_of(body.sub_aggs, body.sub_group_bys, schema, level + 1))


def _by_field(name: str, body: Any, schema: SearchSchema, inner: model.Inner) -> model.Grouping:
    field = _field(schema, body.field_name, "group_by_field", _GROUPED)
    least = body.min_doc_count if body.HasField("min_doc_count") else 1
    size = _size("group_by_field", body)
    return model.GroupByField(name, field, inner, size, _group_sorters(body.sort, inner), max(1, least))


def _by_histogram(name: str, body: Any, schema: SearchSchema, inner: model.Inner) -> model.Grouping:
    field = _field(schema, body.field_name, "group_by_histogram", _RANKED)
    interval = request_values.decode_variant(body.interval)
    if isinstance(interval, (bool, str)) or not 0 < interval < math.inf:
        raise invalid("[group_by_histogram] interval must be greater than 0.")
    offset = request_values.decode_variant(body.offset) if body.offset else 0
    if isinstance(offset, (bool, str)) or not math.isfinite(offset):
        raise invalid("[group_by_histogram] offset must be a number.")
    intervals = NumberIntervals(interval, offset)
    return _histogram("group_by_histogram", name, body, field, inner, intervals, body.missing_value)


def _by_dates(name: str, body: Any, schema: SearchSchema, inner: model.Inner) -> model.Grouping:
    field = _field(schema, body.field_name, "group_by_date_histogram", (FieldType.DATE,))
    return _histogram("group_by_date_histogram", name, body, field, inner, date_intervals(body), body.missing)


def _histogram(
    kind: str,
    name: str,
    body: Any,
    field: SearchField,
    inner: model.Inner,
    intervals: NumberIntervals | DateIntervals,
    missing: bytes,
) -> model.GroupByHistogram:
    """Return a histogram. `kind`: its name in error texts. `missing`: an encoded value, or empty."""
    low, high = (_grouped_value(field, bound) for bound in (body.field_range.min, body.field_range.max))
    if low is not None and high is not None and (high - low) / intervals.length_min > limits.GROUPS_MAX:
        raise invalid(f"[{kind}] The number of groups exceeds the limit: {limits.GROUPS_MAX}.")
    return model.GroupByHistogram(
        name,
        field,
        inner,
        intervals,
        _grouped_value(field, missing),
        _group_sorters(body.sort, inner),
        body.min_doc_count if body.HasField("min_doc_count") else 1,
        low,
        high,
    )


def _by_grid(name: str, body: Any, schema: SearchSchema, inner: model.Inner) -> model.Grouping:
    field = _field(schema, body.field_name, "group_by_geo_grid", (FieldType.GEO_POINT,))
    if not 1 <= body.precision <= limits.GEOHASH_MAX:
        raise invalid(f"[group_by_geo_grid] precision must be in range: [1, {limits.GEOHASH_MAX}].")
    return model.GroupByGrid(name, field, inner, _size("group_by_geo_grid", body), body.precision)


def _size(kind: str, body: Any) -> int:
    size: int = body.size if body.HasField("size") else limits.GROUPS_DEFAULT
    if not 1 <= size <= limits.GROUPS_MAX:
        raise invalid(f"[{kind}] size must be in range: [1, {limits.GROUPS_MAX}].")
    return size


def _by_composite(name: str, body: Any, schema: SearchSchema, inner: model.Inner) -> model.Grouping:
    group_bys = body.sources.group_bys
    if not 1 <= len(group_bys) <= limits.COMPOSITE_SOURCES_MAX:
        raise invalid(
            "[group_by_composite] The number of sources must be in range: "
            f"[1, {limits.COMPOSITE_SOURCES_MAX}]."
        )
    _check_names(group_bys)
    size = _size("group_by_composite", body)
    if body.HasField("suggested_size") and body.suggested_size > 0 and not body.HasField("size"):
        size = min(body.suggested_size, limits.GROUPS_MAX)
    try:
        [after] = (
            map(bytes.fromhex, request_values.decode_token(body.next_token.encode()))
            if body.next_token
            else [b""]
        )
    except (ValueError, TypeError):
        raise invalid("[group_by_composite] Invalid next token.") from None
    sources = tuple(_source_of(each, schema) for each in group_bys)
    return model.GroupByComposite(name, sources, inner, size, after)


def _source_of(group_by: messages.GroupBy, schema: SearchSchema) -> model.CompositeSource:
    grouping = _grouping_of(group_by, schema, 0)
    if not isinstance(grouping, model.GroupByField | model.GroupByHistogram):
        raise invalid("[group_by_composite] A source must be a group by of a field, a histogram or dates.")
    if grouping.inner != model.NOTHING:
        raise invalid("[group_by_composite] A source must have no sub aggregations and group bys.")
    if any(sorter.by is not model.GroupOrder.KEY for sorter in grouping.sorters):
        raise invalid("[group_by_composite] A source can be sorted by its key only.")
    return model.CompositeSource(grouping, any(sorter.descending for sorter in grouping.sorters[:1]))


def _by_range(name: str, body: Any, schema: SearchSchema, inner: model.Inner) -> model.Grouping:
    field = _field(schema, body.field_name, "group_by_range", _RANKED)
    return model.GroupByRange(name, field, inner, _ranges(body.ranges, limits.GROUP_RANGES_MAX))


def _by_distance(name: str, body: Any, schema: SearchSchema, inner: model.Inner) -> model.Grouping:
    field = _field(schema, body.field_name, "group_by_geo_distance", (FieldType.GEO_POINT,))
    origin = (body.origin.lat, body.origin.lon)
    if not (abs(origin[0]) <= 90 and abs(origin[1]) <= 180):
        raise invalid("[group_by_geo_distance] Invalid origin.")
    ranges = _ranges(body.ranges, limits.GROUP_DISTANCES_MAX)
    return model.GroupByRange(
        name, field, inner, tuple((max(0.0, low), high) for low, high in ranges), origin
    )


def _by_filter(name: str, body: Any, schema: SearchSchema, inner: model.Inner) -> model.Grouping:
    if not 1 <= len(body.filters) <= limits.GROUP_FILTERS_MAX:
        raise invalid(
            f"[group_by_filter] The number of filters must be in range: [1, {limits.GROUP_FILTERS_MAX}]."
        )
    return model.GroupByFilter(name, inner, tuple(filter_of(each, schema) for each in body.filters))


_GROUPINGS: Mapping[
    int, tuple[type[Message], Callable[[str, Any, SearchSchema, model.Inner], model.Grouping]]
] = {
    messages.GROUP_BY_FIELD: (messages.GroupByField, _by_field),
    messages.GROUP_BY_RANGE: (messages.GroupByRange, _by_range),
    messages.GROUP_BY_FILTER: (messages.GroupByFilter, _by_filter),
    messages.GROUP_BY_GEO_DISTANCE: (messages.GroupByGeoDistance, _by_distance),
    messages.GROUP_BY_HISTOGRAM: (messages.GroupByHistogram, _by_histogram),
    messages.GROUP_BY_DATE_HISTOGRAM: (messages.GroupByDateHistogram, _by_dates),
    messages.GROUP_BY_GEO_GRID: (messages.GroupByGeoGrid, _by_grid),
    messages.GROUP_BY_COMPOSITE: (messages.GroupByComposite, _by_composite),
}


def _ranges(ranges: Sequence[messages.Range], most: int) -> tuple[tuple[float, float], ...]:
    if not 1 <= len(ranges) <= most:
        raise invalid(f"The number of ranges must be in range: [1, {most}].")
    found = tuple(
        (
            each.begin if each.HasField("begin") else -math.inf,
            each.end if each.HasField("end") else math.inf,
        )
        for each in ranges
    )
    if any(math.isnan(bound) for bounds in found for bound in bounds):
        raise invalid("The bounds of a range must be numbers.")
    return found


def _group_sorters(sort: messages.GroupBySort, inner: model.Inner) -> tuple[model.GroupSorter, ...]:
    if len(sort.sorters) > limits.SORTERS_MAX:
        raise invalid(f"The number of sorters exceeds the limit: {limits.SORTERS_MAX}.")
    metrics = {each.name for each in inner.aggregations if isinstance(each, model.Metric)}
    sorters = []
    for sorter in sort.sorters:
        if sorter.HasField("sub_agg_sort"):
            name = sorter.sub_agg_sort.sub_agg_name
            if name not in metrics:
                raise invalid(f"The sub aggregation to sort by does not exist: '{name}'.")
            is_descending = sorter.sub_agg_sort.order == messages.SORT_ORDER_DESC
            sorters.append(model.GroupSorter(model.GroupOrder.AGGREGATION, is_descending, name))
        elif sorter.HasField("row_count_sort"):
            is_descending = sorter.row_count_sort.order == messages.SORT_ORDER_DESC
            sorters.append(model.GroupSorter(model.GroupOrder.COUNT, is_descending))
        elif sorter.HasField("group_key_sort"):
            is_descending = sorter.group_key_sort.order == messages.SORT_ORDER_DESC
            sorters.append(model.GroupSorter(model.GroupOrder.KEY, is_descending))
        else:
            raise invalid("A sorter must have a type.")
    return tuple(sorters)


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
        items = [
            messages.PercentilesItem(key=key, value=request_values.encode_variant(value))
            for key, value in outcome
        ]
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
            found = items(
                messages.GroupByHistogramItem,
                lambda key: {"key": request_values.encode_variant(key)},
                "value",
            )
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
                answer.next_token = request_values.encode_token(groups[grouping.size - 1].key.order).decode()
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
