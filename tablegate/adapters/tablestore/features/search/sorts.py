"""Sorts of search requests."""

from __future__ import annotations

from tablegate.adapters.tablestore.features.search import queries, request_values
from tablegate.adapters.tablestore.features.search.request_values import field_of, point_of, query_value
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import invalid
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.gateway.features.search.ranking import (
    UNSORTED,
    FieldSort,
    GeoDistanceSort,
    KeySort,
    NestedFilter,
    ScoreSort,
    Sorter,
)
from tablegate.gateway.features.search.schema import FieldType, SearchField, SearchSchema
from tablegate.gateway.features.search.score_functions import Combination

_MODES = {
    messages.SORT_MODE_MIN: Combination.MIN,
    messages.SORT_MODE_MAX: Combination.MAX,
    messages.SORT_MODE_AVG: Combination.AVG,
}
# FieldSort of the Java SDK: rows without a value are first or last by these names, else in the place of the value.
_FIRST, _LAST = "_first", "_last"


def sorters_of(sort: messages.Sort, schema: SearchSchema) -> tuple[Sorter, ...]:
    """Return the sorters of a sort. Raises ServiceError."""
    if len(sort.sorter) > limits.SORTERS_MAX:
        raise invalid(f"The number of sorters exceeds the limit: {limits.SORTERS_MAX}.")
    return tuple(_sorter_of(sorter, schema) for sorter in sort.sorter)


def _sorter_of(sorter: messages.Sorter, schema: SearchSchema) -> Sorter:
    if sorter.HasField("pk_sort"):
        return KeySort(sorter.pk_sort.order == messages.SORT_ORDER_DESC)
    if sorter.HasField(
        "doc_sort"
    ):  # the order of the documents is not specified, so it may be that of the key
        return KeySort(sorter.doc_sort.order == messages.SORT_ORDER_DESC)
    if sorter.HasField("field_sort"):
        return _field_sort(sorter.field_sort, schema)
    if sorter.HasField("geo_distance_sort"):
        return _geo_distance_sort(sorter.geo_distance_sort, schema)
    if sorter.HasField("score_sort"):
        sort = sorter.score_sort
        return ScoreSort(not sort.HasField("order") or sort.order == messages.SORT_ORDER_DESC)
    raise invalid("A sorter must have a type.")


def _field_sort(sort: messages.FieldSort, schema: SearchSchema) -> FieldSort:
    field = field_of(schema, sort.field_name)
    if field.type in UNSORTED:
        raise invalid(f"The field '{field.name}' can not be sorted by.")
    mode = _MODES[sort.mode]
    missing = request_values.decode_variant(sort.missing_value) if sort.HasField("missing_value") else _LAST
    missing_value = None if missing in (_FIRST, _LAST) else query_value(field, missing)
    is_descending = sort.order == messages.SORT_ORDER_DESC
    other = None
    if sort.HasField("missing_field"):
        other = field_of(schema, sort.missing_field, field.type)
        if other.ancestors != field.ancestors:
            raise invalid(f"The missing field '{other.name}' must be beside the field '{field.name}'.")
    nested = _nested_filter(sort, field, schema)
    return FieldSort(field, is_descending, mode, missing_value, nested, other, missing == _FIRST)


def _geo_distance_sort(sort: messages.GeoDistanceSort, schema: SearchSchema) -> GeoDistanceSort:
    field = field_of(schema, sort.field_name, FieldType.GEO_POINT)
    if not 1 <= len(sort.points) <= limits.POLYGON_POINTS_MAX:
        raise invalid("The points of a geo distance sort must not be empty.")
    return GeoDistanceSort(
        field,
        tuple(point_of(point) for point in sort.points),
        sort.order == messages.SORT_ORDER_DESC,
        _MODES[sort.mode],
        sort.distance_type == messages.GEO_DISTANCE_PLANE,
        _nested_filter(sort, field, schema),
    )


def _nested_filter(
    sort: messages.FieldSort | messages.GeoDistanceSort, field: SearchField, schema: SearchSchema
) -> NestedFilter | None:
    if not sort.HasField("nested_filter"):
        return None
    path = field_of(schema, sort.nested_filter.path, FieldType.NESTED)
    if path.name not in field.ancestors:
        raise invalid(f"The nested filter of a sort must be about a nested field around '{field.name}'.")
    return NestedFilter(path, queries.filter_of(sort.nested_filter.filter, schema))
