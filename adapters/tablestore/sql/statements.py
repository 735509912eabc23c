"""SQLQuery: the statements on mappings, and SELECT."""

from __future__ import annotations

from google.protobuf.message import Message

from tablegate.adapters.tablestore import DIALECT
from tablegate.adapters.tablestore.sql import mappings, results
from tablegate.adapters.tablestore.sql.parsing import (
    CreateMapping,
    DescribeMapping,
    DropMapping,
    Select,
    ShowIndex,
    ShowTables,
    parse_statement,
)
from tablegate.adapters.tablestore.sql.selecting import Result, ResultColumn, run_select
from tablegate.adapters.tablestore.sql.sql_types import SqlType, sql_error
from tablegate.adapters.tablestore.wire.call_context import CallContext, find_table
from tablegate.adapters.tablestore.wire.errors import invalid
from tablegate.adapters.tablestore.wire.protocol import sql_pb2 as messages
from tablegate.gateway.exchanges import one
from tablegate.gateway.model.authorization.permissions import Channel, Permission
from tablegate.gateway.model.commands.commands import Exchange
from tablegate.gateway.model.commands.table_commands import AlterTable, ListTables
from tablegate.gateway.model.tables.tables import Table

_TEXT = SqlType.STRING
_DESCRIBED = ("Field", "Type", "Null", "Key", "Default", "Extra")
_INDEXED = ("Table", "Non_unique", "Key_name", "Seq_in_index", "Column_name", "Index_type")


def sql_query(call: CallContext) -> Exchange[Message]:
    """SQLQuery: run one statement. Raises ServiceError, TableMissing."""
    if call.message.version == messages.SQL_PLAIN_BUFFER and call.message.HasField("version"):
        raise invalid("SQL payload version must be SQL_FLAT_BUFFERS.")
    statement = parse_statement(call.message.query)
    match statement:
        case Select():
            result = yield from run_select(call, statement)
            return _answer(messages.SQL_SELECT, result)
        case ShowTables():
            return _answer(messages.SQL_SHOW_TABLE, (yield from _show_tables(call)))
        case DescribeMapping(name):
            return _answer(messages.SQL_DESCRIBE_TABLE, (yield from _describe(call, name)))
        case ShowIndex(name):
            return _answer(messages.SQL_SHOW_TABLE, (yield from _show_index(call, name)))
        case DropMapping():
            yield from _drop(call, statement.table)
            return _answer(messages.SQL_DROP_TABLE, None)
        case CreateMapping():
            yield from _create(call, statement)
            return _answer(messages.SQL_CREATE_TABLE, None)


def _answer(kind: int, result: Result | None) -> Message:
    answer = messages.SQLQueryResponse(type=kind, version=messages.SQL_FLAT_BUFFERS)  # type: ignore[arg-type]
    if result is not None:
        answer.rows = results.encode(result)
        for table, units in result.units.items():
            capacity = messages.SQLConsumedCapacity(
                capacity_unit=messages.SQLCapacityUnit(read=units, write=0)
            )
            answer.consumes.add(table_name=table, consumed=capacity)
    return answer


def _narrow(call: CallContext, permission: Permission) -> None:
    """Set the permission that a statement needs, which is known only after parsing."""
    if call.authorization is not None:
        purpose = call.authorization.purpose
        call.authorization.purpose = purpose._replace(permissions=(permission,), channel=Channel.STATEMENT)


def _show_tables(call: CallContext) -> Exchange[Result]:
    """SHOW TABLES: the tables with a mapping."""
    _narrow(call, Permission.LIST)
    tables = yield from one(ListTables(call.caller.namespace))
    names = [table.name for table in tables if mappings.has_mapping(table)]
    return Result([ResultColumn(f"Tables_in_{call.caller.instance}", _TEXT)], [[name] for name in names])


def _describe(call: CallContext, name: str) -> Exchange[Result]:
    """DESCRIBE: the columns of a mapping."""
    _narrow(call, Permission.DESCRIBE)
    table = yield from find_table(call, name)
    rows = [
        [
            column.name,
            column.declared,
            "YES" if column.is_nullable else "NO",
            "PRI" if column.is_key else "",
            None,
            "",
        ]
        for column in mappings.mapping_of(table)
    ]
    return Result([ResultColumn(label, _TEXT) for label in _DESCRIBED], rows)


def _show_index(call: CallContext, name: str) -> Exchange[Result]:
    """SHOW INDEX: the key columns of a table and of its indexes."""
    _narrow(call, Permission.DESCRIBE)
    table = yield from find_table(call, name)
    keys = [("PRIMARY", 0, table.key_schema.names, "PrimaryKey")]
    keys += [
        (index.name, 1, index.key_schema.names, "SecondaryIndex")
        for index in table.indexes
        if index.dialect == DIALECT
    ]
    rows = [
        [table.name, non_unique, key, at, column, kind]
        for key, non_unique, names, kind in keys
        for at, column in enumerate(names, 1)
    ]
    numbers = {"Non_unique", "Seq_in_index"}
    columns = [ResultColumn(label, SqlType.LONG if label in numbers else _TEXT) for label in _INDEXED]
    return Result(columns, rows)


def _create(call: CallContext, statement: CreateMapping) -> Exchange[None]:
    """CREATE TABLE: map an existing table."""
    _narrow(call, Permission.ALTER)
    tree = statement.tree
    if tree.this.key != "schema" or tree.args.get("expression") is not None:
        raise sql_error("CREATE TABLE must list the columns.")
    if tree.args.get("properties") is not None:
        raise sql_error("Unsupported clause of CREATE TABLE: options of the table.")
    table = yield from find_table(call, tree.this.this.name)
    mapping = mappings.declared_mapping(tree, table)
    if mappings.has_mapping(table):
        if tree.args.get("exists"):
            return
        raise sql_error(f"Table '{table.name}' already exists.")
    yield from _store(table, mapping)


def _drop(call: CallContext, name: str) -> Exchange[None]:
    """DROP MAPPING TABLE: remove a mapping. The table stays.

    It succeeds without one too (aliyun-tablestore-nodejs-sdk, test/sql.test.js).
    """
    _narrow(call, Permission.ALTER)
    table = yield from find_table(call, name)
    if mappings.has_mapping(table):
        yield from _store(table, ())


def _store(table: Table, mapping: mappings.Mapping) -> Exchange[None]:
    document = mappings.document_of(mapping) or None
    properties = {mappings.PROPERTY: document}
    yield from one(AlterTable(DIALECT, table, properties=properties, instant=True))
