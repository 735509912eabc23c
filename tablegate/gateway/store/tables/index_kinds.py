"""Kinds of indexes: the stored form of their definitions, and their entries. Ordered indexes have their SQL here.

The core has the ordered indexes. A capability registers each other kind, and the core calls it in the transaction of a
write.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tablegate.gateway.model.errors import DatabaseFailed
from tablegate.gateway.model.tables.indexes import BaseIndex, Entry, Index, IndexProjection
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import key_schema_document, key_schema_of
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.store.rows.row_counts import Count, CountChanges
from tablegate.gateway.store.sql.databases import Key, Session
from tablegate.gateway.store.sql.owned_rows import KINDS
from tablegate.gateway.store.sql.positions import stored_position

ENTRY_COLUMNS = "index_id, partition, sort, slot, size_bytes, row_partition, row_sort, row_slot, full_key"

# Statements for one entry, for every database. `Statements` handles sets of entries.
RESIZE_ENTRY = " ON CONFLICT (index_id, partition, sort, slot) DO UPDATE SET size_bytes = excluded.size_bytes"
ADD_ENTRY = f"INSERT INTO entries ({ENTRY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?){RESIZE_ENTRY}"
REMOVE_ENTRY = "DELETE FROM entries WHERE index_id = ? AND partition = ? AND sort = ? AND slot = ?"


def add_entries(session: Session, entries: Iterable[tuple[int, Entry]]) -> None:
    """Insert entries, given as (index id, entry). An existing entry gets the new size."""
    values = []
    for index_id, entry in entries:
        stored_key, row = stored_position(entry.position), stored_position(entry.row.position)
        values.append(
            (
                index_id,
                stored_key.partition,
                stored_key.sort,
                stored_key.slot,
                entry.size_bytes,
                row.partition,
                row.sort,
                row.slot,
                stored_key.full_key,
            )
        )
    if values:
        session.statements.add_entries(session, sorted(values))


def remove_entries(session: Session, entries: Sequence[tuple[int, Entry]]) -> None:
    """Delete entries, given as (index id, entry)."""
    keys: list[Key] = [(index_id, *stored_position(entry.position)[:3]) for index_id, entry in entries]
    if keys:
        session.statements.remove_entries(session, sorted(keys))


T = TypeVar("T", bound=BaseIndex)

RowPair = tuple[Row | None, Row | None]
"""The old and the new row of a write."""


class IndexKind(ABC, Generic[T]):
    """A kind of index.

    - `name`: BaseIndex.kind, and the kind of its entries in store/sql/owned_rows.py.
    - `member`: the member of a stored definition that no other kind has.
    - `columns`: the columns of the SQL table of its entries. They begin with index_id, and one is size_bytes.
    """

    name: str
    member: str
    columns: str

    @abstractmethod
    def definition_of(self, index: T) -> dict[str, Any]:
        """Return the stored definition of an index, as JSON."""

    @abstractmethod
    def index_of(self, definition: Mapping[str, Any]) -> T:
        """Return the index of a stored definition, without its id, its name and its state."""

    @abstractmethod
    def update(
        self, session: Session, indexes: Sequence[T], pairs: Sequence[RowPair], counts: CountChanges
    ) -> None:
        """Update the entries of indexes of one table for the rows of a write, and add their numbers to `counts`."""

    @abstractmethod
    def fill(self, session: Session, index: T, rows: Iterable[Row]) -> None:
        """Add the entries of rows from before the creation of an index. Entries that writers stored meanwhile stay."""

    def count(self, session: Session, index_id: int) -> Count:
        """Return the number of entries of an index and their billed bytes."""
        table = KINDS[self.name].table
        [(number, size)] = session.query(
            f"SELECT count(*), COALESCE(sum(size_bytes), 0) FROM {table} WHERE index_id = ?", (index_id,)
        )
        return Count(number, int(size))

    def copy(self, session: Session, index_id: int, to: int) -> None:
        """Copy the entries of an index to another one that is empty."""
        table, columns = KINDS[self.name].table, self.columns.removeprefix("index_id, ")
        session.execute(
            f"INSERT INTO {table} ({self.columns}) SELECT {session.statements.big_number}, {columns}"
            f" FROM {table} WHERE index_id = ?",
            (to, index_id),
        )


class OrderedIndexKind(IndexKind[Index]):
    """The ordered indexes (store/tables/index_kinds.py)."""

    name = Index.kind
    member = "key_schema"
    columns = ENTRY_COLUMNS

    def definition_of(self, index: Index) -> dict[str, Any]:
        return {
            "key_schema": key_schema_document(index.key_schema),
            "projection": index.projection.value,
            "included": index.included,
            "local": index.local,
            "dialect": index.dialect,
        }

    def index_of(self, definition: Mapping[str, Any]) -> Index:
        return Index(
            id=0,
            name="",
            key_schema=key_schema_of(definition["key_schema"]),
            projection=IndexProjection(definition["projection"]),
            included=tuple(definition["included"]),
            local=definition["local"],
            dialect=definition["dialect"],
        )

    def update(
        self, session: Session, indexes: Sequence[Index], pairs: Sequence[RowPair], counts: CountChanges
    ) -> None:
        old_entries, new_entries = differences(indexes, pairs, counts)
        remove_entries(session, old_entries)
        add_entries(session, new_entries)

    def fill(self, session: Session, index: Index, rows: Iterable[Row]) -> None:
        add_entries(session, [(index.id, entry) for row in rows if (entry := index.entry(row)) is not None])


def differences(
    indexes: Sequence[Index], pairs: Iterable[RowPair], counts: CountChanges
) -> tuple[list[tuple[int, Entry]], list[tuple[int, Entry]]]:
    """Return the entries that a write removes and those that it adds, each with its index id.

    Unchanged entries are omitted. The numbers and sizes are added to `counts`.
    """
    old_entries: list[tuple[int, Entry]] = []
    new_entries: list[tuple[int, Entry]] = []
    for old, new in pairs:
        for index in indexes:
            before = None if old is None else index.entry(old)
            after = None if new is None else index.entry(new)
            counts.add(index.id, before, after)
            if before is not None and (after is None or after.position != before.position):
                old_entries.append((index.id, before))
            if after is not None and (
                before is None or after.position != before.position or after.size_bytes != before.size_bytes
            ):
                new_entries.append((index.id, after))
    return old_entries, new_entries


@dataclass(frozen=True, slots=True)
class UnknownIndex(BaseIndex):
    """An index of a kind that this server does not have. Its table cannot be used.

    `member`: the first member of its definition, which names the kind.
    """

    kind = "unknown"
    member: str


ORDERED = OrderedIndexKind()
_kinds: dict[str, IndexKind[Any]] = {ORDERED.name: ORDERED}
_importers: list[Callable[[], object]] = []


def register(kind: IndexKind[Any]) -> None:
    """Register a kind of index."""
    _kinds[kind.name] = kind


def when_unknown(import_others: Callable[[], object]) -> None:
    """Add a function that imports the modules of other kinds. It is called for a definition of an unknown kind."""
    _importers.append(import_others)


def kind_of(index: BaseIndex) -> IndexKind[Any]:
    """Return the kind of an index. Raises DatabaseFailed if this server does not have it."""
    kind = _kinds.get(index.kind)
    if kind is None:
        raise DatabaseFailed(f"the index {index.name} is of a kind that this server does not have")
    return kind


def defined_index(definition: Mapping[str, Any]) -> BaseIndex:
    """Return the index of a stored definition, without its id, its name and its state."""
    kind = _kind_of_definition(definition)
    if kind is None:
        for import_others in _importers:
            import_others()
        kind = _kind_of_definition(definition)
    return UnknownIndex(0, "", next(iter(definition), "")) if kind is None else kind.index_of(definition)


def _kind_of_definition(definition: Mapping[str, Any]) -> IndexKind[Any] | None:
    return next((kind for kind in _kinds.values() if kind.member in definition), None)


def unknown_index(table: Table) -> UnknownIndex | None:
    """Return an index of a table that is of an unknown kind, or None."""
    return next((index for index in table.other_indexes if isinstance(index, UnknownIndex)), None)
