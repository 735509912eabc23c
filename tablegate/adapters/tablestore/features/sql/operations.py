"""SQLQuery: run one statement, and return its result as FlatBuffers.

A result has columns of values, as the SDKs read them (docs/protocols/table-store.md section 2.8). The numbers of the
fields are those of the schema `SQLResponseColumns`, which all SDKs have.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from google.protobuf.message import Message

from tablegate.adapters.tablestore.call import CallContext
from tablegate.adapters.tablestore.features.sql import mapping_statements, parsing
from tablegate.adapters.tablestore.features.sql.parsing import (
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
from tablegate.adapters.tablestore.features.sql.selecting import Result, explain, run_select
from tablegate.adapters.tablestore.features.sql.sql_values import ResultColumn, SqlType
from tablegate.adapters.tablestore.operation_table import Operation
from tablegate.adapters.tablestore.wire.errors import invalid
from tablegate.adapters.tablestore.wire.protocol import sql_pb2 as messages
from tablegate.gateway.model.authorization.permissions import Channel, Permission, Purpose

if TYPE_CHECKING:
    from flatbuffers import Builder


_LONG, _BOOL, _DOUBLE, _STRING, _BINARY, _COMPLEX = 1, 2, 3, 4, 5, 7
_TYPES = {
    SqlType.LONG: _LONG,
    SqlType.BOOL: _BOOL,
    SqlType.DOUBLE: _DOUBLE,
    SqlType.STRING: _STRING,
    SqlType.BINARY: _BINARY,
    SqlType.NULL: _STRING,
}
_LOGICAL = {SqlType.DATETIME: 1, SqlType.DATE: 2, SqlType.TIME: 3}
_EPOCH, _EPOCH_DAY = datetime(1970, 1, 1), date(1970, 1, 1)
# Fields of ColumnValues.
_IS_NULL, _LONGS, _BOOLS, _DOUBLES, _STRINGS, _BINARIES = range(6)
_COLUMN_VALUES = 7  # with run-length encoded text


def encode_result(result: Result) -> bytes:
    """Return a result as FlatBuffers."""
    from flatbuffers import Builder

    builder = Builder(1024)
    columns = [
        _column(builder, column, [row[at] for row in result.rows]) for at, column in enumerate(result.columns)
    ]
    vector = _offsets(builder, columns)
    builder.StartObject(2)
    builder.PrependUOffsetTRelativeSlot(0, vector, 0)
    builder.PrependInt64Slot(1, len(result.rows), 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


def _column(builder: Builder, column: ResultColumn, values: list[Any]) -> int:
    """Write a column and return its offset."""
    contents = _contents(builder, column.type, values)
    name = builder.CreateString(column.name)
    logical = _LOGICAL.get(column.type, 0)
    builder.StartObject(2)  # the Go SDK fails without it, whatever the type of the column
    builder.PrependInt8Slot(0, logical, 0)
    builder.PrependInt8Slot(1, _LONG if logical else 0, 0)
    complex_type = builder.EndObject()
    builder.StartObject(4)
    builder.PrependUOffsetTRelativeSlot(0, name, 0)
    builder.PrependInt8Slot(1, _COMPLEX if logical else _TYPES[column.type], 0)
    builder.PrependUOffsetTRelativeSlot(2, contents, 0)
    builder.PrependUOffsetTRelativeSlot(3, complex_type, 0)
    return int(builder.EndObject())


def _contents(builder: Builder, kind: SqlType, values: list[Any]) -> int:
    """Write the values of a column, and which of them are NULL. Return the offset."""
    field, write = _WRITERS[kind]
    vector = write(builder, values)
    nulls = _bytes(builder, bytes(value is None for value in values), 1)
    builder.StartObject(_COLUMN_VALUES)
    builder.PrependUOffsetTRelativeSlot(_IS_NULL, nulls, 0)
    builder.PrependUOffsetTRelativeSlot(field, vector, 0)
    return int(builder.EndObject())


def _bytes(builder: Builder, data: bytes, size: int) -> int:
    """Write a vector of numbers of `size` bytes, which are encoded already."""
    builder.StartVector(size, len(data) // size, size)
    builder.head -= len(data)
    builder.Bytes[builder.head : builder.head + len(data)] = data
    return int(builder.EndVector())


def _offsets(builder: Builder, offsets: Sequence[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return int(builder.EndVector())


def _packed(code: str, size: int, of: Callable[[Any], Any]) -> Callable[[Builder, list[Any]], int]:
    def write(builder: Builder, values: list[Any]) -> int:
        numbers = [of(value) if value is not None else 0 for value in values]
        return _bytes(builder, struct.pack(f"<{len(numbers)}{code}", *numbers), size)

    return write


def _texts(builder: Builder, values: list[Any]) -> int:
    return _offsets(builder, [builder.CreateString("" if value is None else value) for value in values])


def _blobs(builder: Builder, values: list[Any]) -> int:
    offsets = []
    for value in values:
        data = builder.CreateByteVector(value or b"")
        builder.StartObject(1)
        builder.PrependUOffsetTRelativeSlot(0, data, 0)
        offsets.append(int(builder.EndObject()))
    return _offsets(builder, offsets)


def _micros(value: datetime) -> int:
    return (value - _EPOCH) // timedelta(microseconds=1)


_WRITERS: dict[SqlType, tuple[int, Callable[[Builder, list[Any]], int]]] = {
    SqlType.LONG: (_LONGS, _packed("q", 8, int)),
    SqlType.BOOL: (_BOOLS, _packed("B", 1, bool)),
    SqlType.DOUBLE: (_DOUBLES, _packed("d", 8, float)),
    SqlType.STRING: (_STRINGS, _texts),
    SqlType.NULL: (_STRINGS, _texts),
    SqlType.BINARY: (_BINARIES, _blobs),
    SqlType.DATETIME: (_LONGS, _packed("q", 8, _micros)),
    SqlType.DATE: (_LONGS, _packed("q", 8, lambda value: (value - _EPOCH_DAY).days * 86_400)),
    SqlType.TIME: (_LONGS, _packed("q", 8, lambda value: value // timedelta(microseconds=1) * 1000)),
}


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
        answer.rows = encode_result(result)
        for table, units in result.units.items():
            answer.consumes.add(table_name=table, consumed=_consumed(units))
        for (table, index), units in result.search_units.items():
            answer.search_consumes.add(table_name=table, index_name=index, consumed=_consumed(units))
    return answer


def _consumed(units: int) -> messages.SQLConsumedCapacity:
    return messages.SQLConsumedCapacity(capacity_unit=messages.SQLCapacityUnit(read=units, write=0))


_P = Permission


def _tables_of(message: Any) -> list[str]:
    return parsing.tables_of(message.query)


OPERATIONS: Mapping[str, Operation] = {
    "SQLQuery": Operation(
        messages.SQLQueryRequest, sql_query, Purpose((_P.SCAN, _P.QUERY, _P.ALTER), Channel.STATEMENT),
        may_block=True, tables_of=_tables_of,
    ),
}  # fmt: skip
