"""What capabilities add to tables: indexes of other kinds, settings, and members of requests and descriptions.

A capability derives a TableExtension and lists it in capabilities.py. Common modules call the extensions in the order
of that list and know none by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tablegate.adapters.dynamodb.tables.properties import IndexProperties, TableProperties
from tablegate.adapters.dynamodb.wire.signature_claims import Caller
from tablegate.gateway.model.commands.row_commands import WriteOutcome
from tablegate.gateway.model.commands.table_commands import TableStatistics
from tablegate.gateway.model.tables.indexes import BaseIndex, Index
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.rows import Contents, Row

Wire = Mapping[str, Any]


class TableExtension:
    """The part of one capability in the common operations. A method that is not overridden adds nothing.

    `members`: members of requests that need the capability. Without it they are refused.
    """

    members: tuple[str, ...] = ()

    # Rules that need no table

    def check_new_table(self, data: dict[str, Any], definitions: Sequence[str]) -> None:
        """Check a CreateTable. Raises ServiceError. `definitions`: the names in AttributeDefinitions."""

    def key_names(self, data: Wire) -> list[str]:
        """Return the key attributes of the new indexes of a CreateTable."""
        return []

    def projected_number(self, data: Wire) -> int:
        """Return the number of attributes that the new indexes of a CreateTable project."""
        return 0

    def check_update(self, data: dict[str, Any]) -> None:
        """Check an UpdateTable. Raises ServiceError."""

    # Indexes

    def new_indexes(self, arguments: Wire) -> tuple[BaseIndex, ...]:
        """Return the new indexes of a CreateTable. Raises NotInstalled."""
        return ()

    def index_changes(
        self, table: Table, arguments: Wire, mode: str, now_ms: int
    ) -> tuple[tuple[BaseIndex, ...], tuple[str, ...]]:
        """Return (indexes to create, names to drop) of an UpdateTable.

        `mode`: the billing mode after it. Raises ServiceError, NotInstalled.
        """
        return (), ()

    def restored_indexes(self, source: Table, arguments: Wire) -> tuple[BaseIndex, ...]:
        """Return the indexes of a table that a request restores. Raises ServiceError."""
        return ()

    # Settings and descriptions

    def table_properties(self, table: Table, properties: TableProperties) -> TableProperties:
        """Return the properties that apply to a table with these stored ones."""
        return properties

    def index_properties(self, table: Table, index: Index, properties: IndexProperties) -> IndexProperties:
        """Return the properties that apply to an index with these stored ones."""
        return properties

    def describe(
        self,
        description: dict[str, Any],
        table: Table,
        statistics: TableStatistics,
        caller: Caller,
        now_ms: int,
    ) -> None:
        """Add members to a TableDescription."""

    # Items

    def check_item(self, table: Table, contents: Contents, is_update: bool) -> None:
        """Check an item that a write stores. Raises RowRuleViolated. `is_update`: UpdateItem stores it."""

    def item_bytes(self, table: Table, row: Row, size: int) -> int:
        """Return the billed size of a written item whose size in a plain table is `size`."""
        return size

    def consumed_members(self, writes: Sequence[tuple[Table, WriteOutcome]]) -> dict[str, Any]:
        """Return the members of ConsumedCapacity for writes in tables with indexes of other kinds."""
        return {}


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
