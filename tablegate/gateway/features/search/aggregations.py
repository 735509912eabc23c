"""Aggregations and groups over the results of a search: definitions and outcomes. collecting.py computes them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Any, NamedTuple

from tablegate.gateway.features.search import field_values
from tablegate.gateway.features.search.documents import Document
from tablegate.gateway.features.search.field_values import NS_PER_MS, Point
from tablegate.gateway.features.search.queries import Query, fields_of
from tablegate.gateway.features.search.ranking import Sorter, fields_of_sorters, values_at
from tablegate.gateway.features.search.schema import FieldType, SearchField
from tablegate.gateway.model.values.values import INT64_MAX, INT64_MIN, distinct

_DAY_MS = 86_400_000
# The calendar repeats after 400 years.
_CYCLE_DAYS, _CYCLE_MONTHS = 146_097, 4_800
_EPOCH_DAY = date(1970, 1, 1).toordinal() - 1
_FIRST_MONDAY_MS = 4 * _DAY_MS
_MONTH_MIN_MS = 28 * _DAY_MS


@dataclass(frozen=True, slots=True)
class NumberIntervals:
    """Intervals of equal length. One of them begins at `offset`."""

    length: float
    offset: float = 0

    @property
    def length_min(self) -> float:
        """The length of each interval."""
        return self.length

    def start_of(self, value: float) -> float:
        """Return the start of the interval of a value."""
        return _within_int64((value - self.offset) // self.length * self.length + self.offset)

    def next_start(self, start: float) -> float:
        """Return the start of the next interval."""
        return start + self.length


@dataclass(frozen=True, slots=True)
class DateIntervals:
    """Intervals of `months`, or of `length_ms` if that is 0. Values are milliseconds since 1970.

    `shift_ms`: added to a value before its interval is determined.
    """

    months: int
    length_ms: int
    shift_ms: int = 0

    @property
    def length_min(self) -> float:
        """The length of the shortest interval in milliseconds."""
        return self.months * _MONTH_MIN_MS or self.length_ms

    @classmethod
    def of_weeks(cls, weeks: int, shift_ms: int) -> DateIntervals:
        """Return intervals of weeks, which begin on Mondays."""
        return cls(0, weeks * 7 * _DAY_MS, shift_ms - _FIRST_MONDAY_MS)

    def start_of(self, value: int) -> float:
        """Return the start of the interval of a value."""
        shifted = value + self.shift_ms
        if self.months:
            start = _start_of_month(_month_of(shifted // _DAY_MS) // self.months * self.months) * _DAY_MS
        else:
            start = shifted // self.length_ms * self.length_ms
        return _within_int64(start - self.shift_ms)

    def next_start(self, start: float) -> float:
        """Return the start of the next interval."""
        if not self.months:
            return start + self.length_ms
        month = _month_of((int(start) + self.shift_ms) // _DAY_MS)
        return _start_of_month(month + self.months) * _DAY_MS - self.shift_ms


def _within_int64(value: float) -> float:
    return max(INT64_MIN, min(value, INT64_MAX)) if isinstance(value, int) else value


def _month_of(day: int) -> int:
    """Return the number of the month of a day, counted from January of the year 1. `day`: days since 1970."""
    cycle, day_of_cycle = divmod(day + _EPOCH_DAY, _CYCLE_DAYS)
    found = date.fromordinal(day_of_cycle + 1)
    return cycle * _CYCLE_MONTHS + (found.year - 1) * 12 + found.month - 1


def _start_of_month(month: int) -> int:
    """Return the first day of a month, in days since 1970."""
    cycle, month_of_cycle = divmod(month, _CYCLE_MONTHS)
    first = date(month_of_cycle // 12 + 1, month_of_cycle % 12 + 1, 1)
    return cycle * _CYCLE_DAYS + first.toordinal() - 1 - _EPOCH_DAY


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
    """A number. `missing`: the value of a document without the field. With None, such a document does not count."""

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
    """The value that groups are sorted by."""

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


def grouped_values(field: SearchField, document: Document) -> list[Any]:
    """Return the values of a field as percentiles and groups count them: dates in milliseconds."""
    values = values_at(field, document)
    return [value // NS_PER_MS for value in values] if field.type is FieldType.DATE else values


@dataclass(frozen=True, slots=True)
class GroupByField:
    """A group for each value of a field: the first `size` of them with at least `min_doc_count` results."""

    name: str
    field: SearchField
    inner: Inner
    size: int
    sorters: tuple[GroupSorter, ...] = ()
    min_doc_count: int = 1

    def keys_of(self, document: Document) -> Iterable[Any]:
        """Return the keys of the groups of a document."""
        return distinct(grouped_values(self.field, document))


@dataclass(frozen=True, slots=True)
class GroupByGrid:
    """A group for each cell of a grid of points, by its geohash of `precision` characters: the first `size`."""

    name: str
    field: SearchField
    inner: Inner
    size: int
    precision: int

    def keys_of(self, document: Document) -> Iterable[Any]:
        """Return the keys of the groups of a document."""
        return {field_values.geohash_of(point, self.precision) for point in values_at(self.field, document)}


@dataclass(frozen=True, slots=True)
class GroupByHistogram:
    """A group for each interval of values in [`low`, `high`). None leaves an end open.

    - `missing`: the value of a document without the field.
    - `min_doc_count`: the number of results that a group has at least. With 0, groups between others may be empty.
    """

    name: str
    field: SearchField
    inner: Inner
    intervals: NumberIntervals | DateIntervals
    missing: Any = None
    sorters: tuple[GroupSorter, ...] = ()
    min_doc_count: int = 1
    low: Any = None
    high: Any = None

    def keys_of(self, document: Document) -> Iterable[Any]:
        """Return the keys of the groups of a document."""
        values = grouped_values(self.field, document)
        if not values and self.missing is not None:
            values = [self.missing]
        return distinct(
            self.intervals.start_of(value)
            for value in values
            if (self.low is None or value >= self.low) and (self.high is None or value < self.high)
        )


class CompositeSource(NamedTuple):
    """A part of composite keys. A document without a key of it has the key None, which is first."""

    grouping: GroupByField | GroupByHistogram
    descending: bool = False


class CompositeKey(NamedTuple):
    """The key of a composite group. `order`: bytes that order the groups."""

    order: bytes
    parts: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class GroupByComposite:
    """A group for each combination of keys, in their order: the first `size` after the order `after`, and one more."""

    name: str
    sources: tuple[CompositeSource, ...]
    inner: Inner
    size: int
    after: bytes = b""


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


KeyedGrouping = GroupByField | GroupByGrid | GroupByHistogram
Grouping = KeyedGrouping | GroupByComposite | GroupByRange | GroupByFilter


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
        elif isinstance(grouping, GroupByComposite):
            fields += [source.grouping.field for source in grouping.sources]
        else:
            fields.append(grouping.field)
        fields += sources_of(grouping.inner)
    return fields
