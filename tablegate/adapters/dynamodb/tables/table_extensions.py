"""Extensions of tables by capabilities: indexes of other kinds, settings, members of requests and descriptions, counters of keys.

Each of these capabilities has a TableExtension or a KeyCounter, which capabilities.py lists. Common modules call them in
the order of that list and know none by name. Handlers call the counters for tables with contributor insights
(properties.INSIGHTS).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tablegate.adapters.dynamodb.tables.properties import IndexProperties, TableProperties
from tablegate.adapters.dynamodb.wire.signature_claims import Caller
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.commands.row_commands import Get, Read, WriteOutcome
from tablegate.gateway.model.commands.table_commands import TableStatistics
from tablegate.gateway.model.commands.writes import Write
from tablegate.gateway.model.tables.indexes import BaseIndex, Index
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.rows import Contents, Row

Input = dict[str, Any]
Indexes = tuple[BaseIndex, ...]


def _nothing(*_: Any) -> None:
    pass


@dataclass(frozen=True)
class TableExtension:
    """The part of one capability in the common operations. A default adds nothing."""

    members: tuple[str, ...]
    """Members of requests that need the capability. A server without it refuses them."""
    check_new_table: Callable[[Input, Sequence[str]], None] = _nothing
    """Checks a CreateTable without its table: (input, names in AttributeDefinitions). Raises ServiceError."""
    key_names: Callable[[Input], list[str]] = lambda data: []
    """Returns the key attributes of the new indexes of a CreateTable."""
    projected_number: Callable[[Input], int] = lambda data: 0
    """Returns the number of attributes that the new indexes of a CreateTable project."""
    check_update: Callable[[Input], None] = _nothing
    """Checks an UpdateTable without its table. Raises ServiceError."""
    new_indexes: Callable[[Mapping[str, Any]], Indexes] = lambda arguments: ()
    """Returns the new indexes of a CreateTable. Raises NotInstalled."""
    index_changes: Callable[[Table, Mapping[str, Any], str, int], tuple[Indexes, tuple[str, ...]]] = (
        lambda table, arguments, mode, now_ms: ((), ())
    )
    """Returns (indexes to create, names to drop) of an UpdateTable: (table, input, billing mode after it, time).

    Raises ServiceError, NotInstalled."""
    described_indexes: Callable[[Mapping[str, Any]], Indexes] = lambda description: ()
    """Returns the indexes in a table definition, also on a server that lacks a package for them."""
    add_definitions: Callable[[dict[str, Any], Sequence[BaseIndex]], None] = _nothing
    """Adds indexes, and the types of their columns, to a table definition."""
    restored_indexes: Callable[[Table, Mapping[str, Any]], Indexes] = lambda source, arguments: ()
    """Returns the indexes of a table that a request restores from a source. Raises ServiceError."""
    table_properties: Callable[[Table, TableProperties], TableProperties] = lambda table, stored: stored
    """Returns the properties that apply to a table with these stored ones."""
    index_properties: Callable[[Table, Index, IndexProperties], IndexProperties] = (
        lambda table, index, stored: stored
    )
    """Returns the properties that apply to an index with these stored ones."""
    describe: Callable[[dict[str, Any], Table, TableStatistics, Caller, int], None] = _nothing
    """Adds members to a TableDescription, at a time."""
    check_item: Callable[[Table, Contents, bool], None] = _nothing
    """Checks an item that a write stores: (table, item, True for an update). Raises RowRuleViolated."""
    item_bytes: Callable[[Table, Row, int], int] = lambda table, row, size: size
    """Returns the billed size of a written item: (table, item, size in a table without the extension)."""
    consumed_members: Callable[[Sequence[tuple[Table, WriteOutcome]]], dict[str, Any]] = lambda writes: {}
    """Returns the members of ConsumedCapacity for writes in tables with indexes of other kinds."""


EXTENSIONS: list[TableExtension] = []
"""The extensions of all capabilities. capabilities.py fills the list."""


def table_properties(table: Table) -> TableProperties:
    """Return the properties that apply to a table."""
    properties = TableProperties.of(table)
    for extension in EXTENSIONS:
        properties = extension.table_properties(table, properties)
    return properties


def index_properties(table: Table, index: Index) -> IndexProperties:
    """Return the properties that apply to an index."""
    properties = IndexProperties.of(index)
    for extension in EXTENSIONS:
        properties = extension.index_properties(table, index, properties)
    return properties


def described_indexes(description: Mapping[str, Any]) -> Indexes:
    """Return the indexes of other kinds than the ordered ones in a table definition."""
    return tuple(index for extension in EXTENSIONS for index in extension.described_indexes(description))


def add_definitions(description: dict[str, Any], indexes: Indexes) -> None:
    """Add indexes of other kinds than the ordered ones to a table definition."""
    for extension in EXTENSIONS:
        extension.add_definitions(description, indexes)


class KeyCounter(Protocol):
    """Counts the accesses to keys of a capability."""

    def count_read(self, get: Get) -> None: ...

    def count_write(self, write: Write, outcome: WriteOutcome) -> None: ...

    def count_query(self, read: Read) -> None: ...

    def count_throttled(self, command: Command[Any]) -> None: ...


KEY_COUNTERS: list[KeyCounter] = []
"""The counters of all capabilities. capabilities.py fills the list."""
