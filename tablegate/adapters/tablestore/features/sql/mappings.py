"""Mappings: the columns of a table or an index in SQL. CREATE TABLE stores them in the table's properties.

A table or secondary index without a mapping has one of its key and defined columns. A mapping of a search index has a
name of its own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

from tablegate.adapters.tablestore.call import TableOrIndex
from tablegate.adapters.tablestore.features.sql.sql_values import SqlColumn, SqlType, sql_error
from tablegate.adapters.tablestore.table_properties import TableOptions
from tablegate.adapters.tablestore.values import key_type
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import KeyColumn

PROPERTY = "sql_mapping"
IS_STRONG_PROPERTY = "sql_is_strong"
"""True if no search index is used, because an index follows its table with a delay."""
OF_INDEXES_PROPERTY = "sql_index_mappings"
"""The mappings of secondary and search indexes by name: the name of a search index or "", and the columns."""
Mapping = tuple[SqlColumn, ...]


class IndexMapping(NamedTuple):
    """A mapping of an index. `search_index`: the name of a search index, or "" if the index is a secondary one."""

    search_index: str
    columns: Mapping


_OF_KEYS = {
    messages.STRING: (SqlType.STRING, "varchar(1024)"),
    messages.INTEGER: (SqlType.LONG, "bigint(20)"),
    messages.BINARY: (SqlType.BINARY, "varbinary(1024)"),
}
_OF_COLUMNS: dict[int, tuple[SqlType, str]] = {
    messages.DCT_INTEGER: (SqlType.LONG, "bigint(20)"),
    messages.DCT_DOUBLE: (SqlType.DOUBLE, "double"),
    messages.DCT_BOOLEAN: (SqlType.BOOL, "tinyint(1)"),
    messages.DCT_STRING: (SqlType.STRING, "mediumtext"),
    messages.DCT_BLOB: (SqlType.BINARY, "mediumblob"),
}
# sqlglot's name of a type -> its values, how it is shown, and the default of its parameter.
_DECLARED = {
    "BIGINT": (SqlType.LONG, "bigint", "20"),
    "DOUBLE": (SqlType.DOUBLE, "double", ""),
    "BOOLEAN": (SqlType.BOOL, "tinyint", "1"),
    "VARCHAR": (SqlType.STRING, "varchar", "1024"),
    "TEXT": (SqlType.STRING, "text", ""),
    "MEDIUMTEXT": (SqlType.STRING, "mediumtext", ""),
    "LONGTEXT": (SqlType.STRING, "longtext", ""),
    "VARBINARY": (SqlType.BINARY, "varbinary", "1024"),
    "BLOB": (SqlType.BINARY, "blob", ""),
    "MEDIUMBLOB": (SqlType.BINARY, "mediumblob", ""),
    "LONGBLOB": (SqlType.BINARY, "longblob", ""),
}


def has_mapping(table: Table) -> bool:
    """Return True if CREATE TABLE has stored a mapping of the table."""
    return bool(table.properties.get(PROPERTY))


def mapping_of(target: TableOrIndex) -> Mapping:
    """Return the columns of a table or a secondary index in SQL."""
    if target.index is None:
        stored = _mapping_of_document(target.table.properties.get(PROPERTY) or ())
    else:
        of_index = index_mappings(target.table).get(target.index.name)
        stored = () if of_index is None else of_index.columns
    if stored:
        return stored
    columns = [
        SqlColumn(column.name, *_OF_KEYS[key_type(column)], is_key=True, is_nullable=False)
        for column in target.key
    ]
    defined = [
        SqlColumn(name, *_OF_COLUMNS[kind])
        for name, kind in TableOptions.of(target.table).defined
        if name not in target.key_names and (target.shown is None or name in target.shown)
    ]
    return (*columns, *defined)


def index_mappings(table: Table) -> dict[str, IndexMapping]:
    """Return the stored mappings of the indexes of a table."""
    return {
        name: IndexMapping(search_index, _mapping_of_document(columns))
        for name, (search_index, columns) in (table.properties.get(OF_INDEXES_PROPERTY) or {}).items()
    }


def search_mappings(table: Table) -> dict[str, IndexMapping]:
    """Return the mappings of the search indexes of a table."""
    return {name: each for name, each in index_mappings(table).items() if each.search_index}


def document_of_index_mappings(stored: dict[str, IndexMapping]) -> dict[str, list[Any]] | None:
    """Return mappings of indexes as the table's properties store them."""
    return {name: [each.search_index, document_of(each.columns)] for name, each in stored.items()} or None


def _mapping_of_document(document: Sequence[Sequence[Any]]) -> Mapping:
    return tuple(
        SqlColumn(name, SqlType(kind), declared, is_key, is_nullable)
        for name, kind, declared, is_key, is_nullable in document
    )


def document_of(mapping: Mapping) -> list[list[Any]]:
    """Return a mapping as the table's properties store it."""
    return [
        [column.name, column.type.value, column.declared, column.is_key, column.is_nullable]
        for column in mapping
    ]


def declared_mapping(tree: Any, key: Sequence[KeyColumn]) -> Mapping:
    """Return the mapping that a CREATE TABLE declares for a table or an index with this key. Raises ServiceError.

    A search index has no key: then the declared one is ignored.
    """
    columns: dict[str, SqlColumn] = {}
    keys: list[str] = []
    for part in tree.this.expressions:
        if part.key == "primarykey":
            keys += [each.name for each in part.expressions]
        elif part.key == "columndef":
            column = declared_column(part)
            if column.name in columns:
                raise sql_error(f"Duplicate column name '{column.name}'.")
            columns[column.name] = column
            if any(
                each.kind.key == "primarykeycolumnconstraint" for each in part.args.get("constraints") or ()
            ):
                keys.append(column.name)
        else:
            raise sql_error(f"Unsupported part of CREATE TABLE: {part.key}.")
        if len(columns) > limits.COLUMNS_MAX:
            raise sql_error(f"The number of columns must be in range: [1, {limits.COLUMNS_MAX}].")
    if not columns:
        raise sql_error("CREATE TABLE must list the columns.")
    if key:
        _check_keys(keys, columns, key)
    return tuple(
        dataclasses.replace(column, is_key=True, is_nullable=False) if key and name in keys else column
        for name, column in columns.items()
    )


def declared_column(part: Any) -> SqlColumn:
    """Return the column of a definition. Raises ServiceError."""
    name, kind = part.name, part.kind
    if not name or len(name.encode()) > limits.NAME_MAX_BYTES:
        raise sql_error("Invalid column name.")
    known = None if kind is None else _DECLARED.get(kind.this.name)
    if known is None:
        raise sql_error(f"Unsupported type of column '{name}'.")
    sql_type, shown, parameter = known
    if parameter and kind.expressions:
        parameter = kind.expressions[0].name
    is_nullable = not any(
        each.kind.key == "notnullcolumnconstraint" and not each.kind.args.get("allow_null")
        for each in part.args.get("constraints") or ()
    )
    return SqlColumn(name, sql_type, f"{shown}({parameter})" if parameter else shown, is_nullable=is_nullable)


def _check_keys(keys: list[str], columns: dict[str, SqlColumn], key: Sequence[KeyColumn]) -> None:
    names = [column.name for column in key]
    if keys != names:
        raise sql_error(f"The primary key must be ({', '.join(names)}).")
    for column in key:
        declared = columns.get(column.name)
        wanted = _OF_KEYS[key_type(column)][0]
        if declared is None or declared.type is not wanted:
            raise sql_error(f"Column '{column.name}' does not have the type of the primary key column.")
