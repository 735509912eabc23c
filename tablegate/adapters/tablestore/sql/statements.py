"""SQLQuery: run one statement."""

from __future__ import annotations

from google.protobuf.message import Message

from tablegate.adapters.tablestore.sql import mapping_statements, results
from tablegate.adapters.tablestore.sql.parsing import (
    AlterMapping,
    CreateMapping,
    DropMapping,
    Explain,
    Select,
    ShowColumns,
    ShowIndex,
    ShowTables,
    parse_statement,
)
from tablegate.adapters.tablestore.sql.selecting import Result, explain, run_select
from tablegate.adapters.tablestore.wire.call_context import CallContext
from tablegate.adapters.tablestore.wire.errors import invalid
from tablegate.adapters.tablestore.wire.protocol import sql_pb2 as messages


async def sql_query(call: CallContext) -> Message:
    """SQLQuery: run one statement. Raises ServiceError, TableMissing."""
    if call.message.version == messages.SQL_PLAIN_BUFFER and call.message.HasField("version"):
        raise invalid("SQL payload version must be SQL_FLAT_BUFFERS.")
    statement = parse_statement(call.message.query)
    match statement:
        case Select():
            return _answer(messages.SQL_SELECT, await run_select(call, statement))
        case Explain(select):
            return _answer(messages.SQL_SELECT, await explain(call, select))
        case ShowTables():
            result = await mapping_statements.show_tables(call, statement)
            return _answer(messages.SQL_SHOW_TABLE, result)
        case ShowColumns():
            result = await mapping_statements.show_columns(call, statement)
            return _answer(messages.SQL_DESCRIBE_TABLE, result)
        case ShowIndex():
            result = await mapping_statements.show_index(call, statement)
            return _answer(messages.SQL_SHOW_TABLE, result)
        case DropMapping(names):
            await mapping_statements.drop(call, names)
            return _answer(messages.SQL_DROP_TABLE, None)
        case CreateMapping():
            await mapping_statements.create(call, statement)
            return _answer(messages.SQL_CREATE_TABLE, None)
        case AlterMapping():
            await mapping_statements.alter(call, statement)
            return _answer(messages.SQL_ALTER_TABLE, None)


def _answer(kind: int, result: Result | None) -> Message:
    answer = messages.SQLQueryResponse(type=kind, version=messages.SQL_FLAT_BUFFERS)  # type: ignore[arg-type]
    if result is not None:
        answer.rows = results.encode(result)
        for table, units in result.units.items():
            answer.consumes.add(table_name=table, consumed=_consumed(units))
        for (table, index), units in result.search_units.items():
            answer.search_consumes.add(table_name=table, index_name=index, consumed=_consumed(units))
    return answer


def _consumed(units: int) -> messages.SQLConsumedCapacity:
    return messages.SQLConsumedCapacity(capacity_unit=messages.SQLCapacityUnit(read=units, write=0))
