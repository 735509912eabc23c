"""The command that searches a vector index, and its outcome."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tablegate.gateway.model.authorization.accesses import Access, any_rows
from tablegate.gateway.model.authorization.conditions import ConditionKey, FactValues
from tablegate.gateway.model.authorization.permissions import Permission, Purpose
from tablegate.gateway.model.authorization.quotas import READ_UNITS, Cost, read_units
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.tables.vector_indexes import VectorIndex
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import Value


@dataclass(frozen=True, slots=True)
class SearchVectors(Command["list[VectorMatch]"]):
    """Find the `count` nearest vectors in an index. Outcome: list of VectorMatch, nearest first.

    `vector`: packed as in model/values/vectors.py. `partition`: the partition to search, if the index has partitions.
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
