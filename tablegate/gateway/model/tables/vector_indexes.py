"""Vector indexes: their definitions, and the entry of a row in each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tablegate.gateway.model.tables.indexes import BaseIndex, IndexProjection
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values import vectors
from tablegate.gateway.model.values.keys import KeyColumn
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, Value, size_bytes


@dataclass(frozen=True, slots=True)
class VectorIndex(BaseIndex):
    """An index of the vectors in `attribute`.

    - `partition`: the column that every search must specify, if there is one.
    - `filters`: columns that searches can filter by.
    """

    kind = "vectors"
    attribute: str
    dimensions: int
    metric: vectors.Metric
    projection: IndexProjection
    included: tuple[str, ...] = ()
    partition: KeyColumn | None = None
    filters: tuple[KeyColumn, ...] = ()

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


def vector_indexes(table: Table) -> tuple[VectorIndex, ...]:
    """Return the vector indexes of a table."""
    return tuple([index for index in table.other_indexes if isinstance(index, VectorIndex)])


def vector_index(table: Table, name: str) -> VectorIndex | None:
    """Return the vector index with this name, or None."""
    return next((index for index in vector_indexes(table) if index.name == name), None)
