"""Mappings: the columns of a table in SQL. CREATE TABLE stores one in the table's properties.

A table without a mapping has one of its key and defined columns. DROP MAPPING TABLE removes the stored one.
"""

from __future__ import annotations

from typing import Any

from tablegate.adapters.tablestore.sql.sql_types import SqlColumn, SqlType, sql_error
from tablegate.adapters.tablestore.tables.options import TableOptions
from tablegate.adapters.tablestore.values.values import key_type
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.tables.tables import Table

PROPERTY = "sql_mapping"
Mapping = tuple[SqlColumn, ...]
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


def mapping_of(table: Table) -> Mapping:
    """Return the columns of a table in SQL."""
    stored = table.properties.get(PROPERTY)
    if stored:
        return tuple(
            SqlColumn(name, SqlType(kind), declared, is_key, is_nullable)
            for name, kind, declared, is_key, is_nullable in stored
        )
    columns = [
        SqlColumn(column.name, *_OF_KEYS[key_type(column)], is_key=True, is_nullable=False)
        for column in table.key_schema.columns
    ]
    return (
        *columns,
        *(SqlColumn(name, *_OF_COLUMNS[kind]) for name, kind in TableOptions.of(table).defined),
    )


def document_of(mapping: Mapping) -> list[list[Any]]:
    """Return a mapping as the table's properties store it."""
    return [
        [column.name, column.type.value, column.declared, column.is_key, column.is_nullable]
        for column in mapping
    ]


def declared_mapping(tree: Any, table: Table) -> Mapping:
    """Return the mapping that a CREATE TABLE declares. Raises ServiceError if it does not fit the table."""
    columns: dict[str, SqlColumn] = {}
    keys: list[str] = []
    for part in tree.this.expressions:
        if part.key == "primarykey":
            keys += [each.name for each in part.expressions]
        elif part.key == "columndef":
            column = _declared_column(part)
            if column.name in columns:
                raise sql_error(f"Duplicate column name '{column.name}'.")
            columns[column.name] = column
            if any(each.kind.key == "primarykeycolumnconstraint" for each in part.args["constraints"]):
                keys.append(column.name)
        else:
            raise sql_error(f"Unsupported part of CREATE TABLE: {part.key}.")
        if len(columns) > limits.COLUMNS_MAX:
            raise sql_error(f"The number of columns must be in range: [1, {limits.COLUMNS_MAX}].")
    _check_keys(keys, columns, table)
    return tuple(
        SqlColumn(
            column.name, column.type, column.declared, name in keys, column.is_nullable and name not in keys
        )
        for name, column in columns.items()
    )


def _declared_column(part: Any) -> SqlColumn:
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
        for each in part.args["constraints"]
    )
    return SqlColumn(name, sql_type, f"{shown}({parameter})" if parameter else shown, is_nullable=is_nullable)


def _check_keys(keys: list[str], columns: dict[str, SqlColumn], table: Table) -> None:
    schema = table.key_schema
    if tuple(keys) != schema.names:
        raise sql_error(f"The primary key must be ({', '.join(schema.names)}).")
    for column in schema.columns:
        declared = columns.get(column.name)
        wanted = _OF_KEYS[key_type(column)][0]
        if declared is None or declared.type is not wanted:
            raise sql_error(f"Column '{column.name}' does not have the type of the primary key column.")
