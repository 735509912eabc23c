"""The tables and indexes that statements name.

A name is that of a table, of a secondary index, or of a mapping of a search index.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tablegate.adapters.tablestore import DIALECT
from tablegate.adapters.tablestore.sql import mappings, searches
from tablegate.adapters.tablestore.sql.searches import SearchedIndex
from tablegate.adapters.tablestore.sql.sql_types import sql_error
from tablegate.adapters.tablestore.wire.call_context import CallContext, TableOrIndex
from tablegate.adapters.tablestore.wire.names import check_table_name
from tablegate.gateway.model.commands.table_commands import FindTable, ListTables
from tablegate.gateway.model.errors import NotPermitted, TableMissing
from tablegate.gateway.model.tables.tables import Table


@dataclass(frozen=True, slots=True)
class MappedTable:
    """A table or a secondary index with its columns in SQL. `search_index`: rows are read by this search index only."""

    name: str
    target: TableOrIndex
    columns: mappings.Mapping
    search_index: SearchedIndex | None = None

    @property
    def table(self) -> Table:
        return self.target.table


async def find_mapped(call: CallContext, name: str) -> MappedTable:
    """Return what a name stands for. Raises TableMissing, ServiceError."""
    table = await find_owner(call, name)
    index = None if table.name == name else table.index(name)
    if table.name == name or index is not None:
        target = TableOrIndex.of(table, index)
        return MappedTable(name, target, mappings.mapping_of(target))
    mapping = mappings.search_mappings(table)[name]
    search_index = await searches.installed.find(table, mapping.search_index)
    columns = search_index.with_fields(mapping.columns, has_virtual=True)
    return MappedTable(name, TableOrIndex.of(table), columns, search_index)


def check_database(call: CallContext, name: str) -> None:
    """Raise ServiceError if a statement names a database that is not the instance."""
    if name and name != call.caller.instance:
        raise sql_error(f"Unknown database '{name[:64]}'.")


async def find_owner(call: CallContext, name: str) -> Table:
    """Return the table with a name, or else that with an index or a mapping of the name. Raises TableMissing,
    ServiceError."""
    namespace = call.caller.namespace
    try:
        return await FindTable(namespace, name)
    except (TableMissing, NotPermitted) as unknown:
        owners = await _owners(call, name)
        if not owners:
            if isinstance(unknown, TableMissing):
                check_table_name(name)
            raise unknown
        return await FindTable(namespace, owners[0].name)


async def _owners(call: CallContext, name: str) -> list[Table]:
    """Return the tables with an index or a mapping of that name. The permission is checked when it is read."""
    tables = await ListTables(call.caller.namespace)
    return [
        table
        for table in tables
        if (name in mappings.search_mappings(table) and call.reaches(table))
        or (
            (index := table.index(name)) is not None
            and index.dialect == DIALECT
            and (call.reaches(table, name) or call.reaches(table))
        )
    ]


def mapped_names(table: Table) -> Iterator[str]:
    """Yield the names under which CREATE TABLE has mapped a table and its indexes."""
    if mappings.has_mapping(table):
        yield table.name
    searched = mappings.search_mappings(table)
    yield from (name for name in mappings.index_mappings(table) if name in searched or table.index(name))
