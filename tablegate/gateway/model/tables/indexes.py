"""Secondary and vector indexes: their definitions, and the entry of a row in each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from tablegate.gateway.model.values import vectors
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema, Position
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, Value, size_bytes

IndexView = Callable[[Value, bool], Value | None]
"""The value of a key column as the dialect of an index sees it: (value, is partition column) -> value.

None if the value is not indexed.
"""


class IndexProjection(Enum):
    """The attributes that an index shows besides its own key and the table's."""

    ALL = "all"
    KEYS = "keys"
    INCLUDE = "include"


@dataclass(frozen=True, slots=True)
class Index:
    """A secondary index. `local`: it shares the table's partition key. `filled`: all rows from before its creation have
    entries.

    `dialect` created the index. `view` is the view of that dialect on the key columns. A row is not indexed if it
    returns None.
    """

    id: int
    name: str
    key_schema: KeySchema
    projection: IndexProjection
    table_keys: tuple[str, ...]
    included: tuple[str, ...] = ()
    local: bool = False
    filled: bool = True
    busy_until_ms: int = 0
    properties: Mapping[str, Any] = field(default_factory=dict)
    dialect: str = ""
    view: IndexView | None = field(default=None, compare=False)

    def is_active(self, now_ms: int) -> bool:
        """Return True if the index can be read."""
        return self.filled and now_ms >= self.busy_until_ms

    @property
    def projected_names(self) -> frozenset[str] | None:
        """Names of the attributes that the index shows. None: all."""
        if self.projection is IndexProjection.ALL:
            return None
        return frozenset(self.key_schema.names + self.table_keys + self.included)

    def entry(self, row: Row) -> Entry | None:
        """Return the row's entry. None if a key column is missing or of another kind. No other code decides this."""
        contents = row.contents
        key_values = []
        split = len(self.key_schema.partition)
        for at, column in enumerate(self.key_schema.columns):
            value = contents.value(column.name)
            if value is not None and self.view is not None:
                value = self.view(value, at < split)
            if value is None or value.kind is not column.kind:
                return None
            key_values.append(value)
        head = self.key_schema.position(key_values)
        position = Position(head.partition, head.sort + row.position.partition + row.position.sort)
        return Entry(position, row, projected_size_bytes(row, self.projected_names))


@dataclass(frozen=True, slots=True)
class Entry:
    """One index entry. Its position ends in the row's own key bytes, so entries are unique and totally ordered.

    `size_bytes`: billed size of the attributes that the index shows.
    """

    position: Position
    row: Row
    size_bytes: int


def projected_size_bytes(row: Row, names: frozenset[str] | None) -> int:
    """Return the billed size of the attributes of a row that an index shows."""
    if names is None:
        return row.size_bytes
    latest = row.latest
    return sum(len(name.encode()) + size_bytes(latest[name]) for name in names if name in latest)


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """An index of the vectors in `attribute`.

    - `partition`: the column that every search must specify, if there is one.
    - `filters`: columns that searches can filter by.
    - `filled`: all rows from before its creation have entries.
    - `dialect`: created the index. `view` is the view of that dialect on the columns.
    """

    id: int
    name: str
    attribute: str
    dimensions: int
    metric: vectors.Metric
    projection: IndexProjection
    table_keys: tuple[str, ...]
    partition: KeyColumn | None = None
    filters: tuple[KeyColumn, ...] = ()
    included: tuple[str, ...] = ()
    filled: bool = True
    busy_until_ms: int = 0
    dialect: str = ""
    view: IndexView | None = field(default=None, compare=False)

    def is_active(self, now_ms: int) -> bool:
        """Return True if the index can be searched."""
        return self.filled and now_ms >= self.busy_until_ms

    @property
    def columns(self) -> tuple[KeyColumn, ...]:
        """The columns of the search schema: the partition column first."""
        return self.filters if self.partition is None else (self.partition, *self.filters)

    @property
    def projected_names(self) -> frozenset[str] | None:
        """Names of the attributes that the index shows. None: all."""
        if self.projection is IndexProjection.ALL:
            return None
        return frozenset((*self.table_keys, *(column.name for column in self.columns), *self.included))

    def entry(self, row: Row) -> VectorEntry | None:
        """Return the row's entry. No other code decides this.

        None if the row has no valid vector, no value for the partition column, or a value of another kind in a column.
        """
        contents = row.contents
        vector = vectors.vector_of(contents.members.get(self.attribute), self.dimensions)
        if vector is None:
            return None
        partition = b""
        if self.partition is not None:
            value = self._column_value(contents, self.partition)
            if value is None or not vectors.is_of_kind(value, self.partition.kind):
                return None
            partition = vectors.digest_of(value)
        filters = []
        for column in self.filters:
            value = self._column_value(contents, column)
            if value is not None and not vectors.is_of_kind(value, column.kind):
                return None
            filters.append(vectors.ABSENT if value is None else vectors.digest_of(value))
        return VectorEntry(row, vector, partition, b"".join(filters), self.size_bytes(contents))

    def _column_value(self, contents: Contents, column: KeyColumn) -> Value | None:
        value = contents.value(column.name)
        if value is None or self.view is None:
            return value
        if column is not self.partition and value.kind in (Kind.TEXT, Kind.BYTES):
            return value  # the view checks the length of keys, and a filter may be longer
        return self.view(value, True)

    def size_bytes(self, contents: Contents) -> int:
        """Return the billed size of an entry: vector, its name, and the other attributes that the index shows.

        Source: docs/protocols/dynamodb.md rule 42.
        """
        size = len(self.attribute.encode()) + vectors.COMPONENT_BYTES * self.dimensions
        members, names = contents.members, self.projected_names
        for name in members if names is None else names:
            if name != self.attribute and name in members:
                value = contents.value(name)
                assert value is not None
                size += len(name.encode()) + size_bytes(value)
        return size


class VectorEntry(NamedTuple):
    """One entry of a vector index.

    `partition`: digest of the value of the partition column, b"" without one. `filters`: concatenated digests of the
    filter columns.
    """

    row: Row
    vector: bytes
    partition: bytes
    filters: bytes
    size_bytes: int

    def is_stored_as(self, other: VectorEntry) -> bool:
        """Return True if the entries of one row are equal in the database."""
        return self[1:] == other[1:]
