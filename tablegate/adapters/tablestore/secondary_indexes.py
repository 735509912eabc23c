"""Secondary indexes, which clients read as tables. Search indexes are in features/search.

The key of an index consists of key columns and defined columns. The remaining key columns of its table are appended,
which makes its rows unique. Source: docs/protocols/table-store.md section 4.7.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from google.protobuf.message import Message

from tablegate.adapters.tablestore import DIALECT
from tablegate.adapters.tablestore.call import CallContext, find_table
from tablegate.adapters.tablestore.table_properties import TableOptions
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import ServiceError, invalid
from tablegate.adapters.tablestore.wire.names import check_table_name
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.commands.table_commands import AlterTable, ListTables, NewIndex
from tablegate.gateway.model.errors import TableExists
from tablegate.gateway.model.tables.indexes import Index, IndexProjection
from tablegate.gateway.model.tables.tables import Rules, Table
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.values import Kind

_INDEX_KINDS: dict[int, Kind] = {
    messages.DCT_INTEGER: Kind.INT64,
    messages.DCT_STRING: Kind.TEXT,
    messages.DCT_BLOB: Kind.BYTES,
}


async def create_index(call: CallContext) -> Message:
    """CreateIndex: create an index. Existing rows are added only with include_base_data.

    Raises ServiceError, TableMissing, TableExists.
    """
    message = call.message
    _check_counts(message.index_meta)
    table = await find_table(call, message.main_table_name)
    if sum(index.dialect == DIALECT for index in table.indexes) >= limits.INDEXES_MAX:
        raise invalid(f"Number of index per table exceeds the quota:{limits.INDEXES_MAX}.")
    index = new_index(table.key_schema, TableOptions.of(table), table.rules, message.index_meta)
    index = dataclasses.replace(index, fill=message.include_base_data)
    check_names_are_free(await ListTables(call.caller.namespace), [index.name])
    await AlterTable(DIALECT, table, add_indexes=(index,))
    return messages.CreateIndexResponse()


async def drop_index(call: CallContext) -> Message:
    """DropIndex: drop an index. Raises ServiceError, TableMissing, IndexMissing."""
    message = call.message
    table = await find_table(call, message.main_table_name)
    if table.index(message.index_name) is None:
        raise ServiceError("OTSObjectNotExist", "Requested index does not exist.")
    await AlterTable(DIALECT, table, drop_indexes=(message.index_name,))
    return messages.DropIndexResponse()


async def list_timeseries_table(call: CallContext) -> Message:
    """ListTimeseriesTable: always empty."""
    return messages.ListTimeseriesTableResponse()


def check_names_are_free(tables: Sequence[Table], names: Iterable[str]) -> None:
    """Raise TableExists if a name is in use. Tables and their Table Store indexes share one set of names in an
    instance.

    Names of indexes of other dialects are local to their tables.
    """
    used_names = {table.name for table in tables}
    used_names.update(index.name for table in tables for index in table.indexes if index.dialect == DIALECT)
    for name in names:
        if name in used_names:
            raise TableExists(name)


def new_index(schema: KeySchema, options: TableOptions, rules: Rules, meta: messages.IndexMeta) -> NewIndex:
    """Return the index that a request defines. Raises ServiceError."""
    _check_counts(meta)
    if rules.max_versions != 1:
        raise invalid("The max versions of a table with index must be 1.")
    local = meta.index_type == messages.IT_LOCAL_INDEX
    if local and meta.primary_key[0] != schema.columns[0].name:
        raise invalid("The first primary key column of a local index must be that of its table.")
    if len(set(meta.primary_key)) < len(meta.primary_key):
        raise invalid("Duplicated primary key name in index.")
    columns = [_column(schema, options, name) for name in meta.primary_key]
    for name in meta.defined_column:
        if options.defined_type(name) is None:
            raise invalid(f"Column '{name}' of index is not a defined column.")
        if name in meta.primary_key:
            raise invalid(f"Duplicated column name in index: '{name}'.")
    return NewIndex(
        meta.name,
        KeySchema(tuple(columns[:1]), tuple(columns[1:])),
        IndexProjection.INCLUDE,
        tuple(meta.defined_column),
        local,
        {"update_mode": meta.index_update_mode},
    )


def _check_counts(meta: messages.IndexMeta) -> None:
    """Validate what does not depend on the table."""
    check_table_name(meta.name)
    if not 1 <= len(meta.primary_key) <= limits.KEY_COLUMNS_MAX:
        raise invalid(
            f"The number of primary key columns must be in range: [1, {limits.KEY_COLUMNS_MAX}] in index."
        )
    if len(meta.defined_column) > limits.DEFINED_COLUMNS_MAX:
        raise invalid(
            f"The number of attribute columns must be in range: [0, {limits.DEFINED_COLUMNS_MAX}] in index."
        )


def _column(schema: KeySchema, options: TableOptions, name: str) -> KeyColumn:
    """Return a key column of an index: one of the table's key, or a defined column of a type that keys can have."""
    for column in schema.columns:
        if column.name == name:
            return KeyColumn(name, column.kind)
    defined = options.defined_type(name)
    if defined is None:
        raise invalid(f"Primary key column '{name}' of index is neither a primary key nor a defined column.")
    kind = _INDEX_KINDS.get(defined)
    if kind is None:
        raise invalid(f"The type of column '{name}' is invalid for the primary key of index.")
    return KeyColumn(name, kind)


def index_meta(table: Table, index: Index) -> messages.IndexMeta:
    """Return the description of an index for DescribeTable, with the columns in its definition."""
    included = index.included
    if index.projection is IndexProjection.ALL:
        own = {*index.key_schema.names, *table.key_schema.names}
        included = tuple(name for name, _ in TableOptions.of(table).defined if name not in own)
    return messages.IndexMeta(
        name=index.name,
        primary_key=index.key_schema.names,
        defined_column=included,
        index_update_mode=index.properties.get(
            "update_mode", messages.IUM_SYNC_INDEX if index.local else messages.IUM_ASYNC_INDEX
        ),
        index_type=messages.IT_LOCAL_INDEX if index.local else messages.IT_GLOBAL_INDEX,
        index_sync_phase=messages.ISP_INCR if index.filled else messages.ISP_FULL,
    )
