"""Aggregations and groups over the results of a search.

Each has an accumulator: `add` is called with every result, `result` returns the outcome. Nothing else of the results is
kept in memory.
"""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from tablegate.gateway.model.errors import LimitExceeded
from tablegate.gateway.model.search import geography
from tablegate.gateway.model.search.documents import Document
from tablegate.gateway.model.search.geography import Point
from tablegate.gateway.model.search.ordering import Sorter, fields_of_sorters, order_key
from tablegate.gateway.model.search.ordering import values_at as values_of
from tablegate.gateway.model.search.queries import Query, fields_of, matches
from tablegate.gateway.model.search.schema import FieldType, SearchField
from tablegate.gateway.model.values.keys import Position

MOST_GROUPS = 65_536
"""Maximum number of groups of a search, in all levels together."""


class Hit(NamedTuple):
    """A result: its document, and the bytes and the position of its primary key."""

    document: Document
    key: bytes
    position: Position


# Definitions


class MetricKind(Enum):
    """A number computed from the values of a field."""

    AVG = "avg"
    MAX = "max"
    MIN = "min"
    SUM = "sum"
    COUNT = "count"
    DISTINCT_COUNT = "distinct_count"


@dataclass(frozen=True, slots=True)
class Metric:
    """A number. `missing`: the value of a document without the field. None: it does not count."""

    name: str
    kind: MetricKind
    field: SearchField
    missing: Any = None


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Values of a field below which these percentages of all values are."""

    name: str
    field: SearchField
    percentages: tuple[float, ...]
    missing: Any = None


@dataclass(frozen=True, slots=True)
class TopRows:
    """The first rows in an order."""

    name: str
    limit: int
    sorters: tuple[Sorter, ...]


Aggregation = Metric | Percentiles | TopRows


class GroupOrder(Enum):
    """What groups are sorted by."""

    KEY = "key"
    COUNT = "count"
    AGGREGATION = "aggregation"


class GroupSorter(NamedTuple):
    """A sorter of groups. `aggregation`: the name of a metric."""

    by: GroupOrder
    descending: bool = False
    aggregation: str = ""


@dataclass(frozen=True, slots=True)
class Inner:
    """The aggregations and groups of each group."""

    aggregations: tuple[Aggregation, ...] = ()
    groups: tuple[Grouping, ...] = ()


NOTHING = Inner()


@dataclass(frozen=True, slots=True)
class GroupByField:
    """A group for each value of a field: the first `size` of them with at least `least` results."""

    name: str
    field: SearchField
    inner: Inner
    size: int
    sorters: tuple[GroupSorter, ...] = ()
    least: int = 1


@dataclass(frozen=True, slots=True)
class GroupByHistogram:
    """A group for each interval of values in [`low`, `high`). None: open."""

    name: str
    field: SearchField
    inner: Inner
    interval: float
    offset: float = 0
    missing: Any = None
    sorters: tuple[GroupSorter, ...] = ()
    least: int = 1
    low: Any = None
    high: Any = None


@dataclass(frozen=True, slots=True)
class GroupByRange:
    """A group for each range [from, to) of values, or of distances from `origin` in meters."""

    name: str
    field: SearchField
    inner: Inner
    ranges: tuple[tuple[float, float], ...]
    origin: Point | None = None


@dataclass(frozen=True, slots=True)
class GroupByFilter:
    """A group for each query."""

    name: str
    inner: Inner
    filters: tuple[Query, ...]


Grouping = GroupByField | GroupByHistogram | GroupByRange | GroupByFilter


# Results


class Group(NamedTuple):
    """A group: its key, the number of its results, and the outcomes of its aggregations and groups."""

    key: Any
    rows: int
    aggregations: list[Any]
    groups: list[list[Group]]


class Aggregations(NamedTuple):
    """The outcomes of the aggregations and groups of a search, in their order.

    The outcome of TopRows is a list of positions.
    """

    aggregations: list[Any]
    groups: list[list[Group]]


def sources_of(inner: Inner) -> list[SearchField]:
    """Return the fields that aggregations and groups use."""
    fields: list[SearchField] = []
    for aggregation in inner.aggregations:
        if isinstance(aggregation, TopRows):
            fields += fields_of_sorters(aggregation.sorters)
        else:
            fields.append(aggregation.field)
    for grouping in inner.groups:
        if isinstance(grouping, GroupByFilter):
            fields += [field for query in grouping.filters for field in fields_of(query)]
        else:
            fields.append(grouping.field)
        fields += sources_of(grouping.inner)
    return fields


# Accumulators


class _Accumulator(ABC):
    @abstractmethod
    def add(self, hit: Hit) -> None: ...

    @abstractmethod
    def result(self) -> Any: ...


def _values(field: SearchField, hit: Hit, missing: Any) -> list[Any]:
    values = values_of(field, hit.document)
    return values if values or missing is None else [missing]


class _Metric(_Accumulator):
    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._count = 0
        self._sum: float = 0
        self._least: Any = None
        self._most: Any = None
        self._distinct: set[Any] = set()

    def add(self, hit: Hit) -> None:
        metric = self._metric
        values = _values(metric.field, hit, metric.missing)
        self._count += len(values)
        if metric.kind is MetricKind.DISTINCT_COUNT:
            self._distinct.update(tuple(value) if isinstance(value, list) else value for value in values)
        elif values and metric.kind is not MetricKind.COUNT:
            self._sum += sum(values)
            self._least = min(values) if self._least is None else min(self._least, *values)
            self._most = max(values) if self._most is None else max(self._most, *values)

    def result(self) -> Any:
        match self._metric.kind:
            case MetricKind.COUNT:
                return self._count
            case MetricKind.DISTINCT_COUNT:
                return len(self._distinct)
            case MetricKind.SUM:
                return float(self._sum)
            case MetricKind.AVG:
                return self._sum / self._count if self._count else 0.0
            case MetricKind.MIN:
                return math.inf if self._least is None else float(self._least)
            case MetricKind.MAX:
                return -math.inf if self._most is None else float(self._most)


class _Percentiles(_Accumulator):
    def __init__(self, percentiles: Percentiles) -> None:
        self._percentiles = percentiles
        self._values: list[Any] = []

    def add(self, hit: Hit) -> None:
        self._values += _values(self._percentiles.field, hit, self._percentiles.missing)

    def result(self) -> list[tuple[float, Any]]:
        """Return (percentage, value) by percentage, with values between two neighbors interpolated."""
        values = sorted(self._values)
        return [(each, self._at(values, each)) for each in sorted(self._percentiles.percentages) if values]

    def _at(self, values: Sequence[Any], percentage: float) -> Any:
        place = min(max(percentage / 100 * len(values) - 0.5, 0), len(values) - 1)
        low, share = int(place), place - int(place)
        high = min(low + 1, len(values) - 1)
        value = values[low] if not share else values[low] + (values[high] - values[low]) * share
        return value if self._percentiles.field.type is FieldType.DOUBLE else int(value)


class _TopRows(_Accumulator):
    def __init__(self, top: TopRows) -> None:
        self._top = top
        self._hits: list[tuple[bytes, Position]] = []

    def add(self, hit: Hit) -> None:
        self._hits.append((order_key(self._top.sorters, hit.document, hit.key), hit.position))
        if len(self._hits) > 1000 + self._top.limit:
            self._hits = heapq.nsmallest(self._top.limit, self._hits)

    def result(self) -> list[Position]:
        return [position for _, position in heapq.nsmallest(self._top.limit, self._hits)]


class _Budget:
    """The number of groups that a search may still make."""

    def __init__(self) -> None:
        self._left = MOST_GROUPS

    def take(self) -> None:
        """Raises LimitExceeded."""
        self._left -= 1
        if self._left < 0:
            raise LimitExceeded("search-groups", MOST_GROUPS, MOST_GROUPS + 1)


class Collector:
    """The accumulators of one level: of a whole search, or of a group. Raises LimitExceeded."""

    def __init__(self, inner: Inner, budget: _Budget | None = None) -> None:
        budget = budget or _Budget()
        self.count = 0
        self._aggregations = [_ACCUMULATORS[type(each)](each) for each in inner.aggregations]
        self._groups = [_GROUPINGS[type(each)](each, budget) for each in inner.groups]
        self._names = [each.name for each in inner.aggregations]

    def add(self, hit: Hit) -> None:
        self.count += 1
        for accumulator in (*self._aggregations, *self._groups):
            accumulator.add(hit)

    def result(self) -> Aggregations:
        return Aggregations(
            [each.result() for each in self._aggregations], [each.result() for each in self._groups]
        )

    def group(self, key: Any) -> Group:
        return Group(key, self.count, *self.result())

    def number(self, aggregation: str) -> Any:
        """Return the outcome of an aggregation, to sort groups by it."""
        return self._aggregations[self._names.index(aggregation)].result()


class _Keyed(_Accumulator):
    """Groups by key, made when the first result comes."""

    def __init__(self, grouping: GroupByField | GroupByHistogram, budget: _Budget) -> None:
        self._grouping = grouping
        self._budget = budget
        self._collectors: dict[Any, Collector] = {}

    def add(self, hit: Hit) -> None:
        for key in self._keys(hit):
            self._collector(key).add(hit)

    def _keys(self, hit: Hit) -> set[Any]:
        grouping = self._grouping
        if isinstance(grouping, GroupByField):
            return set(values_of(grouping.field, hit.document))
        return {
            self._key(grouping, value)
            for value in _values(grouping.field, hit, grouping.missing)
            if (grouping.low is None or value >= grouping.low)
            and (grouping.high is None or value < grouping.high)
        }

    @staticmethod
    def _key(grouping: GroupByHistogram, value: Any) -> Any:
        return (value - grouping.offset) // grouping.interval * grouping.interval + grouping.offset

    def _collector(self, key: Any) -> Collector:
        found = self._collectors.get(key)
        if found is None:
            self._budget.take()
            found = self._collectors[key] = Collector(self._grouping.inner, self._budget)
        return found

    def result(self) -> list[Group]:
        grouping = self._grouping
        if isinstance(grouping, GroupByHistogram) and grouping.least <= 0:
            self._add_empty_groups(grouping)
        found = [item for item in self._collectors.items() if item[1].count >= grouping.least]
        found.sort(key=lambda item: item[0])
        by_count = (GroupSorter(GroupOrder.COUNT, True),)
        default = by_count if isinstance(grouping, GroupByField) else ()
        for sorter in reversed(grouping.sorters or default):
            found.sort(key=_sort_value(sorter), reverse=sorter.descending)
        size = grouping.size if isinstance(grouping, GroupByField) else None
        return [collector.group(key) for key, collector in found[:size]]

    def _add_empty_groups(self, grouping: GroupByHistogram) -> None:
        keys = list(self._collectors)
        low = grouping.low if grouping.low is not None else min(keys, default=None)
        high = grouping.high if grouping.high is not None else max(keys, default=None)
        if low is None or high is None:
            return
        key = self._key(grouping, low)
        while key < high:
            self._collector(key)
            key += grouping.interval


def _sort_value(sorter: GroupSorter) -> Callable[[tuple[Any, Collector]], Any]:
    match sorter.by:
        case GroupOrder.KEY:
            return lambda item: item[0]
        case GroupOrder.COUNT:
            return lambda item: item[1].count
    return lambda item: item[1].number(sorter.aggregation)


class _Ranged(_Accumulator):
    def __init__(self, grouping: GroupByRange, budget: _Budget) -> None:
        self._grouping = grouping
        self._collectors = [Collector(grouping.inner, budget) for _ in grouping.ranges]

    def add(self, hit: Hit) -> None:
        grouping = self._grouping
        values = values_of(grouping.field, hit.document)
        if grouping.origin is not None:
            values = [geography.distance_m(grouping.origin, value) for value in values]
        for (low, high), collector in zip(grouping.ranges, self._collectors, strict=True):
            if any(low <= value < high for value in values):
                collector.add(hit)

    def result(self) -> list[Group]:
        pairs = zip(self._grouping.ranges, self._collectors, strict=True)
        groups = [collector.group(bounds) for bounds, collector in pairs]
        return groups if self._grouping.origin is not None else sorted(groups, key=lambda group: group.key)


class _Filtered(_Accumulator):
    def __init__(self, grouping: GroupByFilter, budget: _Budget) -> None:
        self._grouping = grouping
        self._collectors = [Collector(grouping.inner, budget) for _ in grouping.filters]

    def add(self, hit: Hit) -> None:
        for query, collector in zip(self._grouping.filters, self._collectors, strict=True):
            if matches(query, hit.document):
                collector.add(hit)

    def result(self) -> list[Group]:
        return [collector.group(None) for collector in self._collectors]


_ACCUMULATORS: Mapping[type, Callable[[Any], _Accumulator]] = {
    Metric: _Metric,
    Percentiles: _Percentiles,
    TopRows: _TopRows,
}
_GROUPINGS: Mapping[type, Callable[[Any, _Budget], _Accumulator]] = {
    GroupByField: _Keyed,
    GroupByHistogram: _Keyed,
    GroupByRange: _Ranged,
    GroupByFilter: _Filtered,
}
