"""Indexes of tables: what all kinds have in common, and the ordered indexes with the entry of a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum
from typing import Any, ClassVar

from tablegate.gateway.model.values.keys import KeySchema, Position
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import Value, size_bytes

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
class BaseIndex:
    """The common part of indexes of all kinds. `kind` is the name of its IndexKind (store/tables/index_kinds.py).

    - `table_keys`: the names of the table's key columns.
    - `filled`: all rows from before its creation have entries.
    - `dialect`: created the index. `view` is the view of that dialect on the indexed columns.
    """

    kind: ClassVar[str]
    id: int
    name: str
    _: KW_ONLY
    table_keys: tuple[str, ...] = ()
    filled: bool = True
    busy_until_ms: int = 0
    properties: Mapping[str, Any] = field(default_factory=dict)
    dialect: str = ""
    view: IndexView | None = field(default=None, compare=False)

    def is_active(self, now_ms: int) -> bool:
        """Return True if the index can be read."""
        return self.filled and now_ms >= self.busy_until_ms


@dataclass(frozen=True, slots=True)
class Index(BaseIndex):
    """An ordered index. `local`: it shares the table's partition key. A row is not indexed if `view` returns None."""

    kind = "index"
    key_schema: KeySchema
    projection: IndexProjection
    included: tuple[str, ...] = ()
    local: bool = False

    @property
    def projected_names(self) -> frozenset[str] | None:
        """Names of the attributes that the index shows, or None if it shows all."""
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
