"""The accumulators of aggregations and groups.

`add` is called with every result of a search, `result` returns the outcome. Nothing else of the results is kept in
memory.
"""

from __future__ import annotations

import heapq
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tablegate.gateway.features.search import field_values
from tablegate.gateway.features.search.aggregations import (
    Aggregations,
    CompositeKey,
    Group,
    GroupByComposite,
    GroupByField,
    GroupByFilter,
    GroupByGrid,
    GroupByHistogram,
    GroupByRange,
    GroupOrder,
    GroupSorter,
    Inner,
    KeyedGrouping,
    Metric,
    MetricKind,
    Percentiles,
    TopRows,
    grouped_values,
)
from tablegate.gateway.features.search.documents import Document
from tablegate.gateway.features.search.queries import CheckTime, matches, without_limit
from tablegate.gateway.features.search.ranking import key_bytes, order_key, values_at
from tablegate.gateway.features.search.schema import FieldType
from tablegate.gateway.model.errors import LimitExceeded
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.values import hash_key

MOST_GROUPS = 65_536
"""Maximum number of groups of a search, in all levels together, and of combinations of keys of a document."""
MOST_KEPT_BYTES = 256 << 20
"""Maximum size of the values and positions that the aggregations of a search keep, in all groups together."""
_KEPT_BYTES = 100
"""An estimate of the memory for a value or a position, besides the bytes of a text or a key."""


class Hit(NamedTuple):
    """A result: its document, and the bytes and the position of its primary key."""

    document: Document
    key: bytes
    position: Position


class _Accumulator(ABC):
    @abstractmethod
    def add(self, hit: Hit) -> None: ...

    @abstractmethod
    def result(self) -> Any: ...


class _Budget:
    """The groups of a part of a search and the bytes that they keep. The whole search has the limits.

    `check_time`: of the whole search.
    """

    def __init__(self, whole: _Budget | None = None, check_time: CheckTime = without_limit) -> None:
        self._whole = whole
        self.check_time: CheckTime = check_time if whole is None else whole.check_time
        self._groups = self._kept_bytes = 0

    def take(self, groups: int = 0, kept_bytes: int = 0) -> None:
        """Count more groups and bytes, or fewer if the numbers are negative. Raises LimitExceeded."""
        self._groups += groups
        self._kept_bytes += kept_bytes
        if self._whole is not None:
            self._whole.take(groups, kept_bytes)
        elif self._groups > MOST_GROUPS:
            raise LimitExceeded("search-groups", MOST_GROUPS, self._groups)
        elif self._kept_bytes > MOST_KEPT_BYTES:
            raise LimitExceeded("search-memory", MOST_KEPT_BYTES, self._kept_bytes)

    def release(self) -> None:
        """Count this part no longer."""
        if self._whole is not None:
            self._whole.take(-self._groups, -self._kept_bytes)


class _Sum:
    """A compensated sum (Neumaier): equal values give one sum, in whichever order an index returns them."""

    def __init__(self) -> None:
        self._total: float = 0
        self._lost: float = 0

    def add(self, value: float) -> None:
        total = self._total + value
        if abs(self._total) >= abs(value):
            self._lost += (self._total - total) + value
        else:
            self._lost += (value - total) + self._total
        self._total = total

    def result(self) -> float:
        return self._total + self._lost if math.isfinite(self._total) else self._total


class _Metric(_Accumulator):
    def __init__(self, metric: Metric, budget: _Budget) -> None:
        self._metric = metric
        self._budget = budget
        self._count = 0
        self._sum = _Sum()
        self._least: Any = None
        self._most: Any = None
        self._distinct: set[Hashable] = set()

    def add(self, hit: Hit) -> None:
        metric = self._metric
        values = values_at(metric.field, hit.document)
        if not values and metric.missing is not None:
            values = [metric.missing]
        self._count += len(values)
        if metric.kind is MetricKind.DISTINCT_COUNT:
            self._add_distinct(set(map(hash_key, values)))
        elif values and metric.kind is not MetricKind.COUNT:
            for value in values:
                self._sum.add(value)
            self._least = min(values) if self._least is None else min(self._least, *values)
            self._most = max(values) if self._most is None else max(self._most, *values)

    def _add_distinct(self, values: set[Hashable]) -> None:
        new = values - self._distinct
        sizes = (len(value) if isinstance(value, str) else 0 for value in new)
        self._budget.take(kept_bytes=_KEPT_BYTES * len(new) + sum(sizes))
        self._distinct |= new

    def result(self) -> Any:
        match self._metric.kind:
            case MetricKind.COUNT:
                return self._count
            case MetricKind.DISTINCT_COUNT:
                return len(self._distinct)
            case MetricKind.SUM:
                return float(self._sum.result())
            case MetricKind.AVG:
                return self._sum.result() / self._count if self._count else 0.0
            case MetricKind.MIN:
                return math.inf if self._least is None else float(self._least)
            case MetricKind.MAX:
                return -math.inf if self._most is None else float(self._most)


class _Percentiles(_Accumulator):
    def __init__(self, percentiles: Percentiles, budget: _Budget) -> None:
        self._percentiles = percentiles
        self._budget = budget
        self._values: list[Any] = []

    def add(self, hit: Hit) -> None:
        values = grouped_values(self._percentiles.field, hit.document)
        if not values and self._percentiles.missing is not None:
            values = [self._percentiles.missing]
        self._budget.take(kept_bytes=_KEPT_BYTES * len(values))
        self._values += values

    def result(self) -> list[tuple[float, Any]]:
        """Return (percentage, value) by percentage, with values between two neighbors interpolated."""
        values = sorted(self._values)
        return [(each, self._at(values, each)) for each in sorted(self._percentiles.percentages) if values]

    def _at(self, values: Sequence[Any], percentage: float) -> Any:
        place = min(max(percentage / 100 * len(values) - 0.5, 0), len(values) - 1)
        low, share = int(place), place - int(place)
        high = min(low + 1, len(values) - 1)
        value = values[low] if not share else values[low] + (values[high] - values[low]) * share
        if self._percentiles.field.type is FieldType.DOUBLE:
            return value
        return max(values[low], min(int(value), values[high]))  # beyond 2^53, a float is inexact


class _TopRows(_Accumulator):
    def __init__(self, top: TopRows, budget: _Budget) -> None:
        self._top = top
        self._budget = budget
        self._hits: list[tuple[bytes, Position]] = []

    def add(self, hit: Hit) -> None:
        key = order_key(self._top.sorters, hit.document, hit.key, check_time=self._budget.check_time)
        self._budget.take(kept_bytes=_KEPT_BYTES + len(key))
        self._hits.append((key, hit.position))
        if len(self._hits) > 1000 + self._top.limit:
            self._hits.sort()
            dropped = self._hits[self._top.limit :]
            del self._hits[self._top.limit :]
            self._budget.take(kept_bytes=-sum(_KEPT_BYTES + len(each) for each, _ in dropped))

    def result(self) -> list[Position]:
        return [position for _, position in heapq.nsmallest(self._top.limit, self._hits)]


class Collector:
    """The accumulators of one level: of a whole search, or of a group. Raises LimitExceeded."""

    def __init__(
        self, inner: Inner, budget: _Budget | None = None, check_time: CheckTime = without_limit
    ) -> None:
        budget = budget or _Budget(check_time=check_time)
        self.count = 0
        self._check_time = budget.check_time
        self._aggregations = [_ACCUMULATORS[type(each)](each, budget) for each in inner.aggregations]
        self._groups = [_GROUPINGS[type(each)](each, budget) for each in inner.groups]
        self._names = [each.name for each in inner.aggregations]

    def add(self, hit: Hit) -> None:
        self.count += 1
        for accumulator in self._aggregations:
            accumulator.add(hit)
        for groups in self._groups:
            self._check_time()
            groups.add(hit)

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

    def __init__(self, grouping: KeyedGrouping, budget: _Budget) -> None:
        self._grouping = grouping
        self._budget = budget
        self._collectors: dict[Hashable, tuple[Any, Collector]] = {}

    def add(self, hit: Hit) -> None:
        for key in self._grouping.keys_of(hit.document):
            self._collector(key).add(hit)

    def _collector(self, key: Any) -> Collector:
        hashable = hash_key(key)
        found = self._collectors.get(hashable)
        if found is None:
            self._budget.take(groups=1)
            found = self._collectors[hashable] = key, Collector(self._grouping.inner, self._budget)
        return found[1]

    def result(self) -> list[Group]:
        grouping = self._grouping
        min_count, size = 1, None
        sorters: tuple[GroupSorter, ...] = _BY_COUNT
        if isinstance(grouping, GroupByHistogram):
            if grouping.min_doc_count <= 0:
                self._add_empty_groups(grouping)
            min_count, sorters = grouping.min_doc_count, grouping.sorters
        elif isinstance(grouping, GroupByField):
            min_count, size, sorters = grouping.min_doc_count, grouping.size, grouping.sorters or _BY_COUNT
        else:
            size = grouping.size
        found = [item for item in self._collectors.values() if item[1].count >= min_count]
        found.sort(key=lambda item: item[0])
        for sorter in reversed(sorters):
            found.sort(key=_sort_value(sorter), reverse=sorter.descending)
        return [collector.group(key) for key, collector in found[:size]]

    def _add_empty_groups(self, grouping: GroupByHistogram) -> None:
        keys = [key for key, _ in self._collectors.values()]
        low = grouping.low if grouping.low is not None else min(keys, default=None)
        high = grouping.high if grouping.high is not None else max(keys, default=None)
        if low is None or high is None:
            return
        key = grouping.intervals.start_of(low)
        while key < high:
            self._collector(key)
            previous, key = key, grouping.intervals.next_start(key)
            if key == previous:  # the interval is less than the precision of the values
                raise LimitExceeded("search-groups", MOST_GROUPS, MOST_GROUPS + 1)


_BY_COUNT = (GroupSorter(GroupOrder.COUNT, True),)


def _sort_value(sorter: GroupSorter) -> Callable[[tuple[Any, Collector]], Any]:
    match sorter.by:
        case GroupOrder.KEY:
            return lambda item: item[0]
        case GroupOrder.COUNT:
            return lambda item: item[1].count
    return lambda item: item[1].number(sorter.aggregation)


class _Composite(_Accumulator):
    """Composite groups in the order of their keys. Groups that cannot be among the first ones are dropped."""

    def __init__(self, grouping: GroupByComposite, budget: _Budget) -> None:
        self._grouping = grouping
        self._budget = budget
        self._collectors: dict[CompositeKey, tuple[Collector, _Budget]] = {}
        self._last: bytes | None = None

    def add(self, hit: Hit) -> None:
        for key in self._keys(hit):
            if key.order > self._grouping.after and (self._last is None or key.order <= self._last):
                self._collector(key).add(hit)
        if len(self._collectors) > 2 * (self._grouping.size + 1):
            self._drop_last()

    def _keys(self, hit: Hit) -> Iterator[CompositeKey]:
        parts = [
            [
                (key_bytes(key, source.descending), key)
                for key in source.grouping.keys_of(hit.document) or (None,)
            ]
            for source in self._grouping.sources
        ]
        number = math.prod(map(len, parts))
        if number > MOST_GROUPS:
            raise LimitExceeded("search-groups", MOST_GROUPS, number)
        for chosen in itertools.product(*parts):
            yield CompositeKey(b"".join(order for order, _ in chosen), tuple(key for _, key in chosen))

    def _collector(self, key: CompositeKey) -> Collector:
        if key not in self._collectors:
            budget = _Budget(self._budget)
            budget.take(groups=1)
            self._collectors[key] = Collector(self._grouping.inner, budget), budget
        return self._collectors[key][0]

    def _drop_last(self) -> None:
        keys = sorted(self._collectors)
        kept = self._grouping.size + 1
        self._last = keys[kept - 1].order
        for key in keys[kept:]:
            _, budget = self._collectors.pop(key)
            budget.release()

    def result(self) -> list[Group]:
        """Return the groups of a page and one more."""
        keys = sorted(self._collectors)[: self._grouping.size + 1]
        return [self._collectors[key][0].group(key) for key in keys]


class _Ranged(_Accumulator):
    def __init__(self, grouping: GroupByRange, budget: _Budget) -> None:
        self._grouping = grouping
        budget.take(groups=len(grouping.ranges))
        self._collectors = [Collector(grouping.inner, budget) for _ in grouping.ranges]

    def add(self, hit: Hit) -> None:
        grouping = self._grouping
        values = grouped_values(grouping.field, hit.document)
        if grouping.origin is not None:
            values = [field_values.distance_m(grouping.origin, value) for value in values]
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
        self._check_time = budget.check_time
        budget.take(groups=len(grouping.filters))
        self._collectors = [Collector(grouping.inner, budget) for _ in grouping.filters]

    def add(self, hit: Hit) -> None:
        for query, collector in zip(self._grouping.filters, self._collectors, strict=True):
            if matches(query, hit.document, self._check_time):
                collector.add(hit)

    def result(self) -> list[Group]:
        return [collector.group(None) for collector in self._collectors]


_ACCUMULATORS: Mapping[type, Callable[[Any, _Budget], _Accumulator]] = {
    Metric: _Metric,
    Percentiles: _Percentiles,
    TopRows: _TopRows,
}
_GROUPINGS: Mapping[type, Callable[[Any, _Budget], _Accumulator]] = {
    GroupByField: _Keyed,
    GroupByGrid: _Keyed,
    GroupByHistogram: _Keyed,
    GroupByComposite: _Composite,
    GroupByRange: _Ranged,
    GroupByFilter: _Filtered,
}
