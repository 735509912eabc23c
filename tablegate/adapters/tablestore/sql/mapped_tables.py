"""The tables and indexes that statements name.

A name is that of a table, of a secondary index, or of a mapping of a search index.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tablegate.adapters.tablestore import DIALECT
from tablegate.adapters.tablestore.search.search_indexes import find_search_index
from tablegate.adapters.tablestore.sql import mappings
from tablegate.adapters.tablestore.sql.sql_types import SqlColumn, SqlType, sql_error
from tablegate.adapters.tablestore.wire.call_context import CallContext, TableOrIndex
from tablegate.adapters.tablestore.wire.names import check_table_name
from tablegate.gateway.model.commands.table_commands import FindTable, ListTables
from tablegate.gateway.model.errors import NotPermitted, TableMissing
from tablegate.gateway.model.search.schema import FieldType, SearchField, SearchIndex
from tablegate.gateway.model.tables.tables import Table

VIRTUAL_TYPES = {
    FieldType.KEYWORD: SqlType.STRING,
    FieldType.TEXT: SqlType.STRING,
    FieldType.LONG: SqlType.LONG,
    FieldType.DOUBLE: SqlType.DOUBLE,
}
"""The types of virtual fields in SQL, and those of their columns ("Virtual columns of search indexes")."""


@dataclass(frozen=True, slots=True)
class MappedTable:
    """A table or a secondary index with its columns in SQL. `search_index`: rows are read by this search index only."""

    name: str
    target: TableOrIndex
    columns: mappings.Mapping
    search_index: SearchIndex | None = None

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
    search_index = await find_search_index(table, mapping.search_index)
    columns = with_fields(mapping.columns, mapped_fields(search_index))
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


def with_fields(columns: mappings.Mapping, fields: Mapping[str, SearchField]) -> mappings.Mapping:
    """Return columns with the fields of a search index that have their values, by name."""
    return tuple(dataclasses.replace(column, field=fields.get(column.name)) for column in columns)


def column_fields(index: SearchIndex) -> dict[str, SearchField]:
    """Return the fields of a search index that copy a column, by its name."""
    return {field.source: field for field in index.schema.fields if not field.is_virtual}


def mapped_fields(index: SearchIndex) -> dict[str, SearchField]:
    """Return the fields that a mapping of a search index can have: those of columns, and virtual ones of plain types."""
    virtual = {
        field.name: field
        for field in index.schema.fields
        if field.is_virtual and not field.is_array and field.type in VIRTUAL_TYPES
    }
    return virtual | column_fields(index)


def check_mapped(column: SqlColumn, index: SearchIndex) -> None:
    """Raise ServiceError if a mapping of a search index cannot have a column."""
    field = mapped_fields(index).get(column.name)
    if field is None:
        raise sql_error(f"Column '{column.name}' is not in the search index '{index.name}'.")
    if field.is_virtual and VIRTUAL_TYPES[field.type] is not column.type:
        raise sql_error(f"Column '{column.name}' must have the type of the virtual field.")
