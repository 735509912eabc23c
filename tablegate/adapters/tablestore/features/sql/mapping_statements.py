"""The statements on mappings: CREATE TABLE, ALTER TABLE, DROP MAPPING TABLE, DESCRIBE and SHOW.

Source: "DDL operations" of Tablestore's SQL, and "Query index information about tables" of its Python SDK.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

from tablegate.adapters.tablestore import DIALECT
from tablegate.adapters.tablestore.call import CallContext, find_table
from tablegate.adapters.tablestore.features.sql import mappings, searches
from tablegate.adapters.tablestore.features.sql.operators import is_match, like_pattern
from tablegate.adapters.tablestore.features.sql.parsing import (
    AlterMapping,
    CreateMapping,
    ShowColumns,
    ShowIndex,
    ShowTables,
)
from tablegate.adapters.tablestore.features.sql.searches import SearchedIndex
from tablegate.adapters.tablestore.features.sql.selecting import Result
from tablegate.adapters.tablestore.features.sql.sources import (
    MappedTable,
    check_database,
    find_mapped,
    find_owner,
    mapped_names,
)
from tablegate.adapters.tablestore.features.sql.sql_values import ResultColumn, SqlType, sql_error
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import ServiceError
from tablegate.adapters.tablestore.wire.names import check_table_name
from tablegate.gateway.model.authorization.permissions import Channel, Permission
from tablegate.gateway.model.commands.table_commands import AlterTable, ListTables
from tablegate.gateway.model.errors import TableMissing
from tablegate.gateway.model.tables.indexes import Index
from tablegate.gateway.model.tables.tables import Table

_TEXT, _NUMBER = SqlType.STRING, SqlType.LONG
_DESCRIBED = ("Field", "Type", "Null", "Key", "Default", "Extra")
_FULLY_DESCRIBED = (
    "Field", "Type", "Collation", "Null", "Key", "Default", "Extra", "Privileges", "Comment",
)  # fmt: skip
_INDEXED = (
    ("Table", _TEXT), ("Non_unique", _NUMBER), ("Key_name", _TEXT), ("Seq_in_index", _NUMBER),
    ("Column_name", _TEXT), ("Is_defined_column", _TEXT), ("Search_type", _TEXT), ("Collation", _TEXT),
    ("Cardinality", _NUMBER), ("Sub_part", _NUMBER), ("Packed", _TEXT), ("Null", _TEXT), ("Index_type", _TEXT),
    ("Comment", _TEXT), ("Index_comment", _TEXT), ("Visible", _TEXT), ("Expression", _TEXT),
)  # fmt: skip


def _narrow(call: CallContext, permission: Permission) -> None:
    """Set the permission that a statement needs, which is known only after parsing."""
    if call.authorization is not None:
        purpose = call.authorization.purpose
        call.authorization.purpose = purpose._replace(permissions=(permission,), channel=Channel.STATEMENT)


# Descriptions


async def show_tables(call: CallContext, statement: ShowTables) -> Result:
    """SHOW TABLES: the names of the mappings."""
    _narrow(call, Permission.LIST)
    check_database(call, statement.database)
    tables = await ListTables(call.caller.namespace)
    names = sorted(name for table in tables for name in mapped_names(table))
    rows = [[name] for name in names if _is_like(name, statement.pattern)]
    return Result([ResultColumn(f"Tables_in_{call.caller.instance}", _TEXT)], rows)


async def show_columns(call: CallContext, statement: ShowColumns) -> Result:
    """DESCRIBE and SHOW COLUMNS: the columns of a mapping."""
    _narrow(call, Permission.DESCRIBE)
    check_database(call, statement.database)
    mapped = await find_mapped(call, statement.table)
    labels = _FULLY_DESCRIBED if statement.is_full else _DESCRIBED
    rows = []
    for column in mapped.columns:
        if _is_like(column.name, statement.pattern):
            facts = {
                "Field": column.name,
                "Type": column.declared,
                "Collation": "utf8mb4_bin" if column.type is _TEXT else None,
                "Null": "YES" if column.is_nullable else "NO",
                "Key": "PRI" if column.is_key else "",
                "Extra": "",
                "Privileges": "select",
                "Comment": "",
            }
            rows.append([facts.get(label) for label in labels])
    return Result([ResultColumn(label, _TEXT) for label in labels], rows)


def _is_like(name: str, pattern: str) -> bool:
    """Return True if a name matches a LIKE. Names are compared without case, as MySQL does."""
    return is_match(like_pattern(pattern.lower(), "\\"), name.lower())


async def show_index(call: CallContext, statement: ShowIndex) -> Result:
    """SHOW INDEX: the columns of the key of a table and of its indexes, or of the index that a mapping names."""
    _narrow(call, Permission.DESCRIBE)
    check_database(call, statement.database)
    name = statement.table
    mapped = await find_mapped(call, name)
    table = mapped.table
    if mapped.search_index is not None:
        rows = _search_index_rows(name, mapped.search_index)
    elif mapped.target.index is not None:
        rows = _secondary_index_rows(name, table, mapped.target.index)
    else:
        rows = [
            _index_row(name, "PRIMARY", at, column) for at, column in enumerate(table.key_schema.names, 1)
        ]
        for index in table.indexes:
            if index.dialect == DIALECT:
                rows += _secondary_index_rows(name, table, index)
        for search_index in await searches.installed.of_table(table):
            rows += _search_index_rows(name, search_index)
    return Result([ResultColumn(label, kind) for label, kind in _INDEXED], rows)


def _secondary_index_rows(name: str, table: Table, index: Index) -> list[list[Any]]:
    keys = [*index.key_schema.names, *table.key_schema.names]
    names = dict.fromkeys([*keys, *index.included])
    kind = "LocalIndex" if index.local else "GlobalIndex"
    return [
        _index_row(name, index.name, at, column, "NO" if column in keys else "YES", "", kind)
        for at, column in enumerate(names, 1)
    ]


def _search_index_rows(name: str, index: SearchedIndex) -> list[list[Any]]:
    return [
        _index_row(name, index.name, at, field, "NO", kind, "SearchIndex")
        for at, (field, kind) in enumerate(index.fields, 1)
    ]


def _index_row(
    table: str, key: str, at: int, column: str, defined: str | None = None, search: str = "", kind: str = ""
) -> list[Any]:
    is_primary = key == "PRIMARY"
    return [
        table, 0 if is_primary else 1, key, at, column, defined, search, "A",
        0, None, None, "" if is_primary else "YES", kind, "", "", "YES", "NULL",
    ]  # fmt: skip


# Changes


class _Engine(NamedTuple):
    """The options of CREATE TABLE. `search_index`: the search index of a table, both by name."""

    search_index: str = ""
    table: str = ""
    is_strong: bool = False


async def create(call: CallContext, statement: CreateMapping) -> None:
    """CREATE TABLE: map an existing table or index."""
    _narrow(call, Permission.ALTER)
    tree = statement.tree
    if tree.this.key != "schema" or tree.args.get("expression") is not None:
        raise sql_error("CREATE TABLE must list the columns.")
    name, engine = tree.this.this.name, _engine_of(tree.args.get("properties"))
    if engine.search_index:
        is_new = await _create_of_search_index(call, name, tree, engine)
    else:
        is_new = await _create_of_table(call, name, tree, engine)
    if not is_new and not tree.args.get("exists"):
        raise sql_error(f"Table '{name}' already exists.")


async def _create_of_table(call: CallContext, name: str, tree: Any, engine: _Engine) -> bool:
    mapped = await find_mapped(call, name)
    if _is_stored(mapped):
        return False
    table, index = mapped.table, mapped.target.index
    mapping = mappings.declared_mapping(tree, mapped.target.key)
    if index is not None:
        await _store_index_mapping(table, name, mappings.IndexMapping("", mapping))
        return True
    properties = {
        mappings.PROPERTY: mappings.document_of(mapping),
        mappings.IS_STRONG_PROPERTY: engine.is_strong,
    }
    await AlterTable(DIALECT, table, properties=properties, instant=True)
    return True


async def _create_of_search_index(call: CallContext, name: str, tree: Any, engine: _Engine) -> bool:
    check_table_name(name)
    table = await find_table(call, engine.table)
    index = await searches.installed.find(table, engine.search_index)
    mapping = mappings.declared_mapping(tree, ())
    for column in mapping:
        index.check_column(column)
    try:
        await find_mapped(call, name)
    except TableMissing:
        await _store_index_mapping(table, name, mappings.IndexMapping(index.name, mapping))
        return True
    except ServiceError as error:  # a mapping of a search index that was deleted
        if error.code != "OTSMetaNotMatch":
            raise
    return False


def _is_stored(mapped: MappedTable) -> bool:
    """Return True if CREATE TABLE has stored a mapping. A table without one has that of its columns."""
    if mapped.target.index is None and mapped.search_index is None:
        return mappings.has_mapping(mapped.table)
    return mapped.name in mappings.index_mappings(mapped.table)


async def _store_index_mapping(table: Table, name: str, mapping: mappings.IndexMapping) -> None:
    stored = mappings.index_mappings(table)
    if len(stored) >= limits.SQL_INDEX_MAPPINGS_MAX:
        raise sql_error(f"The number of mappings of indexes exceeds {limits.SQL_INDEX_MAPPINGS_MAX}.")
    await _store(table, {**stored, name: mapping})


async def _store(table: Table, stored: dict[str, mappings.IndexMapping]) -> None:
    properties = {mappings.OF_INDEXES_PROPERTY: mappings.document_of_index_mappings(stored)}
    await AlterTable(DIALECT, table, properties=properties, instant=True)


def _engine_of(properties: Any) -> _Engine:
    """Return the options of a CREATE TABLE. Raises ServiceError."""
    engine, attributes = "tablestore", {}
    for option in () if properties is None else properties.expressions:
        is_attribute = option.key == "property" and option.this.name.upper() == "ENGINE_ATTRIBUTE"
        if option.key == "engineproperty":
            engine = option.this.name.lower()
        elif is_attribute:
            attributes = _json_of(option.args["value"].name)
        else:
            raise sql_error("Unsupported clause of CREATE TABLE: options of the table.")
    if engine == "searchindex":
        index, table = attributes.get("index_name"), attributes.get("table_name")
        if not (isinstance(index, str) and index and isinstance(table, str)):
            raise sql_error("ENGINE_ATTRIBUTE must have the index_name and the table_name.")
        return _Engine(index, table)
    if engine != "tablestore":
        raise sql_error(f"Unknown storage engine '{engine[:64]}'.")
    consistency = attributes.get("consistency", "eventual")
    if consistency not in ("eventual", "strong"):
        raise sql_error("The consistency must be 'eventual' or 'strong'.")
    return _Engine(is_strong=consistency == "strong")


def _json_of(text: str) -> dict[str, Any]:
    try:
        attributes = orjson.loads(text)
    except orjson.JSONDecodeError:
        attributes = None
    if not isinstance(attributes, dict):
        raise sql_error("ENGINE_ATTRIBUTE must be a JSON object.")
    return attributes


async def drop(call: CallContext, names: tuple[str, ...]) -> None:
    """DROP MAPPING TABLE: remove mappings. The tables and indexes stay.

    It succeeds without a mapping too (aliyun-tablestore-nodejs-sdk, test/sql.test.js).
    """
    _narrow(call, Permission.ALTER)
    if len(names) > limits.SQL_INDEX_MAPPINGS_MAX:
        raise sql_error(f"The number of mappings exceeds {limits.SQL_INDEX_MAPPINGS_MAX}.")
    for name in names:
        table = await find_owner(call, name)
        stored = mappings.index_mappings(table)
        if table.name == name and mappings.has_mapping(table):
            properties = {mappings.PROPERTY: None, mappings.IS_STRONG_PROPERTY: False}
            await AlterTable(DIALECT, table, properties=properties, instant=True)
        elif table.name != name and name in stored:
            await _store(table, {each: stored[each] for each in stored if each != name})


async def alter(call: CallContext, statement: AlterMapping) -> None:
    """ALTER TABLE: add or drop one attribute column of a stored mapping."""
    _narrow(call, Permission.ALTER)
    tree = statement.tree
    [action, *others] = tree.args["actions"]
    is_drop = action.key == "drop" and action.args.get("kind") == "COLUMN"
    if others or not (is_drop or action.key == "columndef"):
        raise sql_error("ALTER TABLE must add or drop one column.")
    name = tree.this.name
    mapped = await find_mapped(call, name)
    table, stored = mapped.table, mappings.index_mappings(mapped.table)
    if not _is_stored(mapped):
        raise sql_error(f"Table '{name}' has no mapping that CREATE TABLE made.")
    columns = _without(mapped, action) if is_drop else _with(mapped, action)
    if mapped.target.index is None and mapped.search_index is None:
        properties = {mappings.PROPERTY: mappings.document_of(columns)}
        await AlterTable(DIALECT, table, properties=properties, instant=True)
    else:
        await _store(table, {**stored, name: stored[name]._replace(columns=columns)})


def _with(mapped: MappedTable, definition: Any) -> mappings.Mapping:
    added = mappings.declared_column(definition)
    index = mapped.search_index
    if any(column.name.lower() == added.name.lower() for column in mapped.columns):
        raise sql_error(f"Duplicate column name '{added.name}'.")
    if index is not None:
        index.check_column(added)
    if len(mapped.columns) >= limits.COLUMNS_MAX:
        raise sql_error(f"The number of columns must be in range: [1, {limits.COLUMNS_MAX}].")
    return (*mapped.columns, added)


def _without(mapped: MappedTable, action: Any) -> mappings.Mapping:
    dropped = list(_dropped_names(action))
    kept = tuple(column for column in mapped.columns if column.name.lower() not in dropped)
    if len(dropped) != 1 or len(kept) == len(mapped.columns):
        raise sql_error("Unknown column in ALTER TABLE.")
    if not kept or any(column.is_key for column in mapped.columns if column not in kept):
        raise sql_error("ALTER TABLE cannot drop a column of the primary key, nor the last column.")
    return kept


def _dropped_names(action: Any) -> Iterator[str]:
    targets = action.args.get("tables") or [action.this]
    yield from (target.name.lower() for target in targets if target is not None)
