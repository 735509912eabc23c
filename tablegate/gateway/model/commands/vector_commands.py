"""The command that searches a vector index, and its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from tablegate.gateway.model.commands.command import BaseCommand
from tablegate.gateway.model.tables.indexes import VectorIndex
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import Value


@dataclass(frozen=True, slots=True)
class SearchVectors(BaseCommand["list[VectorMatch]"]):
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
    may_be_old: ClassVar[bool] = False


class VectorMatch(NamedTuple):
    """A row that a search found, its score in the metric of the index, and its indexed vector."""

    row: Row
    score: float
    vector: bytes
