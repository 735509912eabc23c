"""Vector indexes: encoded vectors, definitions of indexes and the entry of a row in each, and the command that searches one.

A vector is a list of numbers in an attribute. An index stores it as concatenated 32-bit floating-point numbers,
little-endian. Searching is in other modules. The module does not use numpy, so that tables with vector indexes can be
written without it.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple

from tablegate.gateway.model.authorization.accesses import Access, any_rows
from tablegate.gateway.model.authorization.conditions import ConditionKey, FactValues
from tablegate.gateway.model.authorization.permissions import Permission, Purpose
from tablegate.gateway.model.authorization.quotas import READ_UNITS, Cost, read_units
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.tables.indexes import BaseIndex, IndexProjection
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import KeyColumn, encode_column
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, Value, number_of, size_bytes

DIGEST_BYTES = 16
ABSENT = bytes(DIGEST_BYTES)
"""The digest of a missing value."""
COMPONENT_BYTES = 4
"""Bytes of one component of a vector."""


class Metric(Enum):
    """The distance of two vectors: one minus the cosine of their angle, Euclidean distance, or dot product.

    A greater dot product is nearer.
    """

    COSINE = "cosine"
    EUCLIDEAN = "euclidean"
    DOT_PRODUCT = "dot_product"


def vector_of(member: Any, dimensions: int) -> bytes | None:
    """Return the vector in a tagged value (bodies.py), or None if it is not a list of `dimensions` 32-bit numbers."""
    elements = member.get("L") if member is not None else None
    if elements is None or len(elements) != dimensions:
        return None
    try:
        return pack([float(element["N"]) for element in elements])
    except (KeyError, OverflowError):
        return None


def pack(components: Sequence[float]) -> bytes:
    """Return the encoded vector of numbers. Raises OverflowError if one is too great for 32 bits."""
    return _form(len(components)).pack(*components)


def float_of(text: str) -> float:
    """Return the 32-bit number that is nearest to a decimal."""
    return unpack(pack([float(text)]))[0]


def unpack(vector: bytes) -> tuple[float, ...]:
    """Return the components of a vector."""
    return _form(len(vector) // COMPONENT_BYTES).unpack(vector)


def components_of(vector: bytes) -> list[Decimal]:
    """Return the components of a vector, each as the shortest decimal that converts back to it."""
    components = []
    for component in unpack(vector):
        shortest = next(
            text for digits in range(6, 10) if float_of(text := f"{component:.{digits}g}") == component
        )
        components.append(Decimal(shortest))
    return components


@lru_cache(64)
def _form(dimensions: int) -> struct.Struct:
    return struct.Struct(f"<{dimensions}f")


def is_of_kind(value: Value, kind: Kind) -> bool:
    """Return True if a value fits the kind of a column. Numbers of all kinds fit DECIMAL."""
    return value.kind is kind or (kind is Kind.DECIMAL and number_of(value) is not None)


def digest_of(value: Value) -> bytes:
    """Return the digest of a TEXT, a BYTES or a number. Equal values have equal digests, and none is ABSENT."""
    number = number_of(value)
    if number is not None:
        value = Value(Kind.DECIMAL, number)
    return hashlib.sha256(encode_column(value)).digest()[:DIGEST_BYTES]


@dataclass(frozen=True, slots=True)
class VectorIndex(BaseIndex):
    """An index of the vectors in `attribute`.

    - `partition`: the column that every search must specify, if there is one.
    - `filters`: columns that searches can filter by.
    """

    kind = "vectors"
    attribute: str
    dimensions: int
    metric: Metric
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
        """Names of the attributes that the index shows, or None if it shows all."""
        if self.projection is IndexProjection.ALL:
            return None
        return frozenset((*self.table_keys, *(column.name for column in self.columns), *self.included))

    def entry(self, row: Row) -> VectorEntry | None:
        """Return the row's entry. No other code decides this.

        None if the row has no valid vector, no value for the partition column, or a value of another kind in a column.
        """
        contents = row.contents
        vector = vector_of(contents.members.get(self.attribute), self.dimensions)
        if vector is None:
            return None
        partition = b""
        if self.partition is not None:
            value = self._column_value(contents, self.partition)
            if value is None or not is_of_kind(value, self.partition.kind):
                return None
            partition = digest_of(value)
        filters = []
        for column in self.filters:
            value = self._column_value(contents, column)
            if value is not None and not is_of_kind(value, column.kind):
                return None
            filters.append(ABSENT if value is None else digest_of(value))
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
        size = len(self.attribute.encode()) + COMPONENT_BYTES * self.dimensions
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


@dataclass(frozen=True, slots=True)
class SearchVectors(Command["list[VectorMatch]"]):
    """Find the `count` nearest vectors in an index. Outcome: list of VectorMatch, nearest first.

    `vector`: packed as in features/vectors/vectors.py. `partition`: the partition to search, if the index has partitions.
    `filters`: required values of columns of the index, by name. Errors: IndexMissing, TableBusy, NotInstalled.
    """

    table: Table
    index: VectorIndex
    vector: bytes
    count: int
    partition: Value | None = None
    filters: Mapping[str, Value] = field(default_factory=dict)

    only_reads = True
    is_sliced = True
    rate = READ_UNITS

    def accesses(self, purpose: Purpose) -> Iterable[Access]:
        """Return the accesses to the table and its index. The resulting rows are not known before the search."""
        table = self.table
        for path in (table.name, f"{table.name}/index/{self.index.name}"):
            yield Access(Permission.SEARCH, purpose.channel, table.namespace, path, self, table)

    def fact(self, key: ConditionKey) -> FactValues:
        return any_rows(key)

    def cost(self, outcome: list[VectorMatch]) -> Cost:
        return Cost(max(1.0, read_units([nearest.row.size_bytes for nearest in outcome])))


class VectorMatch(NamedTuple):
    """A row that a search found, its score in the metric of the index, and its indexed vector."""

    row: Row
    score: float
    vector: bytes
