"""Aggregations and groups over the results of a search: definitions and outcomes. collecting.py computes them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from tablegate.gateway.model.search import geography
from tablegate.gateway.model.search.dates import NS_PER_MS
from tablegate.gateway.model.search.documents import Document
from tablegate.gateway.model.search.geography import Point
from tablegate.gateway.model.search.intervals import DateIntervals, NumberIntervals
from tablegate.gateway.model.search.ordering import Sorter, fields_of_sorters, values_at
from tablegate.gateway.model.search.queries import Query, fields_of
from tablegate.gateway.model.search.schema import FieldType, SearchField
from tablegate.gateway.model.values.hash_keys import distinct

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
        return {geography.geohash_of(point, self.precision) for point in values_at(self.field, document)}


@dataclass(frozen=True, slots=True)
class GroupByHistogram:
    """A group for each interval of values in [`low`, `high`). None: open.

    - `missing`: the value of a document without the field.
    - `min_doc_count`: the number of results that a group has at least. 0: the groups between others may be empty.
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
