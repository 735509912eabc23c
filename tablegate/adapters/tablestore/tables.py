"""The operations on tables: CreateTable, ListTable, DescribeTable, UpdateTable, DeleteTable, defined columns, split points.

OPERATIONS lists them, and those on secondary indexes (secondary_indexes.py).
"""

from __future__ import annotations

import dataclasses
import hashlib
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from google.protobuf.message import Message

from tablegate.adapters.tablestore import DIALECT, capacity, secondary_indexes, table_properties
from tablegate.adapters.tablestore.call import CallContext, TableOrIndex, find_table
from tablegate.adapters.tablestore.operation_table import Operation
from tablegate.adapters.tablestore.secondary_indexes import check_names_are_free, index_meta, new_index
from tablegate.adapters.tablestore.table_properties import TableOptions
from tablegate.adapters.tablestore.values import KEY_KINDS, key_cells, key_type
from tablegate.adapters.tablestore.wire import limits, plainbuffer
from tablegate.adapters.tablestore.wire.errors import ServiceError, invalid
from tablegate.adapters.tablestore.wire.names import check_schema_name, check_table_name
from tablegate.adapters.tablestore.wire.plainbuffer import Bound, WireCell, WireRow, encode_row
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.authorization.permissions import Permission, Purpose
from tablegate.gateway.model.commands.row_commands import Read
from tablegate.gateway.model.commands.table_commands import AlterTable, CreateTable, DropTable, ListTables
from tablegate.gateway.model.expressions.predicates import Or
from tablegate.gateway.model.expressions.ranges import EVERYTHING, KeyRange
from tablegate.gateway.model.tables.pages import PageLimits
from tablegate.gateway.model.tables.tables import Rules, Table
from tablegate.gateway.model.values.keys import HIGHEST, KeyColumn, KeySchema, Position
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import INT64_MAX, INT64_MIN, Kind, Value, size_bytes

_LOCATION = hashlib.md5(
    b"tablegate", usedforsecurity=False
).hexdigest()  # the service also returns 32 characters
# Maximum number of rows that one read counts, to limit the time that other requests wait for the database session.
_RANGE_ROWS = 50_000
_NOTHING = Or(())


async def compute_split_points_by_size(call: CallContext) -> Message:
    """ComputeSplitPointsBySize: split points between partitions.

    The parts between them have split_size or a little more. Raises ServiceError, TableMissing.
    """
    message = call.message
    table = await find_table(call, message.table_name)
    size = _split_size(message)
    limit = message.split_point_limit if message.HasField("split_point_limit") else None
    points = await _points(table, size, limit)
    target = TableOrIndex.of(table)
    return messages.ComputeSplitPointsBySizeResponse(
        consumed=capacity.of_read(0),
        schema=[
            messages.PrimaryKeySchema(name=column.name, type=key_type(column))
            for column in table.key_schema.columns
        ],
        split_points=[_point(target, row) for row in points],
        locations=[messages.SplitLocation(location=_LOCATION, repeat=len(points) + 1)],
    )


async def _points(table: Table, size: int, limit: int | None) -> list[Row]:
    """Return the first rows of the partitions that follow a full part of the table.

    The database counts the rows in between: the filter passes no row. Expired cells count until the expiry job deletes
    them.
    """
    table_without_expiry = replace(table, rules=replace(table.rules, expiry=None))
    points: list[Row] = []
    rest, part_size = EVERYTHING, 0
    while limit is None or len(points) < limit:
        range_limits = PageLimits(scanned=_RANGE_ROWS, filled_bytes=size - part_size)
        page = await Read(table_without_expiry, rest, range_limits, filter=_NOTHING)
        if page.last is None:
            break
        rest, part_size = rest.after(page.last.position), part_size + page.scanned_bytes
        if part_size < size:
            continue
        rest = rest.after(Position(page.last.position.partition, HIGHEST))
        page = await Read(table_without_expiry, rest, PageLimits(returned=1))
        if not page.rows:
            break
        points += page.rows
        rest, part_size = KeyRange(page.rows[0].position, rest.upper), 0
    return points


def _split_size(message: messages.ComputeSplitPointsBySizeRequest) -> int:
    """Source of the texts: aliyun-tablestore-java-sdk, functiontest/TestComputeSplitPointsBySize."""
    unit, unit_min = limits.SPLIT_SIZE_UNIT_BYTES, limits.SPLIT_SIZE_UNIT_MIN_BYTES
    if message.HasField("split_size_unit_in_byte"):
        unit = message.split_size_unit_in_byte
    if message.split_size <= 0:
        raise invalid("The split_size should be greater than 0.")
    if unit < unit_min:
        raise invalid(f"The split_size_unit_in_byte should be greater equal than: {unit_min}")
    return message.split_size * unit


def _point(target: TableOrIndex, row: Row) -> bytes:
    first, *rest = key_cells(target, row)
    return encode_row(WireRow([first, *(WireCell(cell.name, Bound.INF_MIN) for cell in rest)]))


async def create_table(call: CallContext) -> Message:
    """CreateTable: create a table with its indexes. Raises ServiceError, TableExists."""
    message = call.message
    meta = message.table_meta
    check_table_name(meta.table_name)
    schema = _key_schema(meta.primary_key)
    rules = table_properties.rules_with(Rules(stamped=True), message.table_options)
    table_options = TableOptions(
        table_id=secrets.token_hex(16),
        defined=_defined_columns((), meta.defined_column, schema),
        encryption=_encryption(message.sse_spec),
        local_transactions=not message.HasField("enable_local_txn") or message.enable_local_txn,
        update_full_row=message.table_options.update_full_row,
        splits=_splits(message.partitions, schema),
    )
    table_options = table_properties.with_table_options(table_options, message.table_options)
    table_options = table_properties.with_throughput(table_options, message.reserved_throughput, call.now_ms)
    if message.HasField("stream_spec"):
        rules = dataclasses.replace(
            rules, stream=table_properties.stream_rule(None, message.stream_spec, call.now_ms)
        )
    indexes = [new_index(schema, table_options, rules, index) for index in message.index_metas]
    _check_index_names(meta.table_name, [index.name for index in indexes])
    tables = await ListTables(call.caller.namespace)
    check_names_are_free(tables, [meta.table_name, *(index.name for index in indexes)])
    _check_quota(call, tables)
    await CreateTable(
        DIALECT,
        call.caller.namespace,
        meta.table_name,
        schema,
        tuple(indexes),
        rules,
        table_options.as_properties(),
    )
    return messages.CreateTableResponse()


def _check_quota(call: CallContext, tables: Sequence[Table]) -> None:
    quota = call.gateway.settings.tablestore_tables
    if quota and sum(DIALECT in table.properties for table in tables) >= quota:
        raise ServiceError("OTSQuotaExhausted", f"Number of tables exceeds the quota:{quota}.")


def _check_index_names(table_name: str, names: Sequence[str]) -> None:
    if len(names) > limits.INDEXES_MAX:
        raise invalid(f"Number of index per table exceeds the quota:{limits.INDEXES_MAX}.")
    if len({table_name, *names}) <= len(names):
        raise invalid("Duplicated index name.")


def _key_schema(columns: Sequence[messages.PrimaryKeySchema]) -> KeySchema:
    if not 1 <= len(columns) <= limits.KEY_COLUMNS_MAX:
        raise invalid(f"The number of primary key columns must be in range: [1, {limits.KEY_COLUMNS_MAX}].")
    names: set[str] = set()
    key_columns: list[KeyColumn] = []
    for number, column in enumerate(columns):
        check_schema_name(column.name)
        if column.name in names:
            raise invalid(f"Duplicated primary key name: '{column.name}'.")
        names.add(column.name)
        is_drawn = column.option == messages.AUTO_INCREMENT and column.HasField("option")
        if is_drawn:
            if number == 0:
                raise invalid("The first primary key column can not be auto increment.")
            if column.type != messages.INTEGER:
                raise invalid("The type of an auto increment primary key column must be INTEGER.")
            if any(earlier.auto_increment for earlier in key_columns):
                raise invalid("The number of auto increment primary key columns must be in range: [0, 1].")
        key_columns.append(KeyColumn(column.name, KEY_KINDS[column.type], is_drawn))
    return KeySchema(tuple(key_columns[:1]), tuple(key_columns[1:]))


def _encryption(requested: messages.SSESpecification) -> dict[str, object]:
    """Return the requested encryption. It is stored and reported, but the database handles encryption at rest."""
    if not requested.enable:
        return {}
    return {
        "key_type": requested.key_type,
        "key_id": requested.key_id.decode("latin-1"),
        "role_arn": requested.role_arn.decode("latin-1"),
    }


def _splits(ranges: Sequence[messages.PartitionRange], schema: KeySchema) -> tuple[str, ...]:
    """Return the split points of the requested partitions. They are stored and reported, but have no effect.

    Source of the texts: aliyun-tablestore-java-sdk, functiontest/SplitPointTest.
    """
    if len(ranges) > limits.PARTITIONS_MAX:
        raise invalid(f"The count of partitions cannot be greater than {limits.PARTITIONS_MAX}")
    points = []
    first, *rest = schema.columns
    for bounds in ranges:
        try:
            begin, end = plainbuffer.decode_value(bounds.begin), plainbuffer.decode_value(bounds.end)
        except plainbuffer.PlainBufferError as error:
            raise invalid(f"Invalid partition range: {error}.") from None
        for value in (begin, end):
            if not isinstance(value, plainbuffer.Bound):
                _check_split(value, first)
        if isinstance(begin, Value):
            key = [
                plainbuffer.WireCell(first.name, begin),
                *(plainbuffer.WireCell(column.name, plainbuffer.Bound.INF_MIN) for column in rest),
            ]
            points.append(plainbuffer.encode_row(plainbuffer.WireRow(key)).hex())
    return tuple(points)


def _check_split(value: plainbuffer.Datum, column: KeyColumn) -> None:
    if not isinstance(value, Value) or value.kind is not column.kind:
        raise invalid("The value type of partition does not match with primary key.")
    if value.data in (INT64_MIN, INT64_MAX):
        raise invalid("The value of partition range can not be INT64_MIN or INT64_MAX.")
    if value.data in ("", b""):
        kind = "string" if value.kind is Kind.TEXT else "binary"
        raise invalid(f"The value of partition range can not be empty {kind}.")
    size, size_max = size_bytes(value), limits.PARTITION_BOUND_MAX_BYTES
    if size > size_max:
        raise invalid(
            f"The value of partition range exceeds the MaxLength:{size_max} with CurrentLength:{size}."
        )


async def list_table(call: CallContext) -> Message:
    """ListTable: the names of all tables of the instance, of all dialects."""
    tables = await ListTables(call.caller.namespace)
    return messages.ListTableResponse(table_names=[table.name for table in tables])


async def describe_table(call: CallContext) -> Message:
    """DescribeTable: the key, options, indexes and stream of a table. Raises ServiceError, TableMissing."""
    table = await find_table(call, call.message.table_name)
    table_options = TableOptions.of(table)
    return messages.DescribeTableResponse(
        table_meta=messages.TableMeta(
            table_name=table.name,
            primary_key=[_key_message(column) for column in table.key_schema.columns],
            defined_column=[_defined_message(name, kind) for name, kind in table_options.defined],
            table_id=table_options.table_id or f"{table.id:032x}",
        ),
        reserved_throughput_details=table_properties.throughput_message(table_options),
        table_options=table_properties.table_options_message(table),
        table_status=messages.ACTIVE,
        stream_details=table_properties.stream_message(table),
        shard_splits=[bytes.fromhex(point) for point in table_options.splits],
        sse_details=_encryption_message(table_options),
        index_metas=[index_meta(table, index) for index in table.indexes],
        creation_time=table.created_at_ms * 1000,
    )


def _defined_message(name: str, kind: int) -> messages.DefinedColumnSchema:
    return messages.DefinedColumnSchema(name=name, type=kind)  # type: ignore[arg-type]


def _key_message(column: KeyColumn) -> messages.PrimaryKeySchema:
    key_message = messages.PrimaryKeySchema(name=column.name, type=key_type(column))
    if column.auto_increment:
        key_message.option = messages.AUTO_INCREMENT
    return key_message


def _encryption_message(table_options: TableOptions) -> messages.SSEDetails:
    if not table_options.encryption:
        return messages.SSEDetails(enable=False)
    return messages.SSEDetails(
        enable=True,
        key_type=table_options.encryption["key_type"],
        key_id=table_options.encryption["key_id"].encode("latin-1"),
        role_arn=table_options.encryption["role_arn"].encode("latin-1"),
    )


async def update_table(call: CallContext) -> Message:
    """UpdateTable: change throughput, options or stream. Omitted parts stay. Raises ServiceError, TableMissing,
    TableBusy."""
    message = call.message
    table = await find_table(call, message.table_name)
    if not any(message.HasField(name) for name in ("reserved_throughput", "table_options", "stream_spec")):
        raise invalid(
            "UpdateTable must have at least one of reserved throughput, table options and stream spec."
        )
    rules, table_options = table.rules, TableOptions.of(table)
    if message.HasField("reserved_throughput"):
        table_options = table_properties.with_throughput(
            table_options, message.reserved_throughput, call.now_ms
        )
    if message.HasField("table_options"):
        requested = message.table_options
        if requested.HasField("update_full_row"):
            raise invalid("UpdateTable can not contain updateFullRow.")
        rules = table_properties.rules_with(rules, requested)
        table_options = table_properties.with_table_options(table_options, requested)
        _check_indexed(table, rules)
        for check in table_properties.UPDATE_CHECKS:
            await check(table, rules, table_options)
    if message.HasField("stream_spec"):
        rules = dataclasses.replace(
            rules, stream=table_properties.stream_rule(rules.stream, message.stream_spec, call.now_ms)
        )
    altered = await AlterTable(DIALECT, table, rules, table_options.as_properties())
    return messages.UpdateTableResponse(
        reserved_throughput_details=table_properties.throughput_message(table_options),
        table_options=table_properties.table_options_message(altered),
        stream_details=table_properties.stream_message(altered),
    )


def _check_indexed(table: Table, rules: Rules) -> None:
    if any(index.dialect == DIALECT for index in table.indexes) and rules.max_versions > 1:
        raise invalid("The max versions of a table with index must be 1.")


async def delete_table(call: CallContext) -> Message:
    """DeleteTable: drop a table with its indexes. Raises ServiceError, TableMissing, TableBusy."""
    table = await find_table(call, call.message.table_name)
    await DropTable(table)
    return messages.DeleteTableResponse()


# Defined columns


async def add_defined_column(call: CallContext) -> Message:
    """AddDefinedColumn: define typed columns that indexes can use. Raises ServiceError, TableMissing."""
    message = call.message
    table = await find_table(call, message.table_name)
    if not message.columns:
        raise invalid("No defined column is specified.")
    table_options = TableOptions.of(table)
    table_options = dataclasses.replace(
        table_options, defined=_defined_columns(table_options.defined, message.columns, table.key_schema)
    )
    await AlterTable(DIALECT, table, properties=table_options.as_properties())
    return messages.AddDefinedColumnResponse()


async def delete_defined_column(call: CallContext) -> Message:
    """DeleteDefinedColumn: remove defined columns, except those in an index. Raises ServiceError, TableMissing."""
    message = call.message
    table = await find_table(call, message.table_name)
    if not message.columns:
        raise invalid("No defined column is specified.")
    table_options = TableOptions.of(table)
    for name in message.columns:
        if table_options.defined_type(name) is None:
            raise ServiceError("OTSObjectNotExist", f"Requested defined column does not exist: '{name}'.")
        for index in table.indexes:
            if name in index.key_schema.names or name in index.included:
                raise invalid(f"Defined column '{name}' is used by index '{index.name}'.")
    removed = set(message.columns)
    table_options = dataclasses.replace(
        table_options, defined=tuple(pair for pair in table_options.defined if pair[0] not in removed)
    )
    await AlterTable(DIALECT, table, properties=table_options.as_properties())
    return messages.DeleteDefinedColumnResponse()


def _defined_columns(
    existing: tuple[tuple[str, int], ...], columns: Iterable[messages.DefinedColumnSchema], schema: KeySchema
) -> tuple[tuple[str, int], ...]:
    """Return the defined columns with added ones. Raises ServiceError."""
    types = dict(existing)
    for column in columns:
        check_schema_name(column.name)
        if column.name in schema.names or column.name in types:
            raise invalid(f"Duplicated defined column name: '{column.name}'.")
        types[column.name] = column.type
    if len(types) > limits.DEFINED_COLUMNS_MAX:
        raise invalid(f"The number of defined columns must be in range: [0, {limits.DEFINED_COLUMNS_MAX}].")
    return tuple(types.items())


_P = Permission
OPERATIONS: Mapping[str, Operation] = {
    "CreateTable": Operation(messages.CreateTableRequest, create_table, Purpose((_P.CREATE,))),
    "ListTable": Operation(messages.ListTableRequest, list_table, Purpose((_P.LIST,))),
    "DescribeTable": Operation(messages.DescribeTableRequest, describe_table, Purpose((_P.DESCRIBE,))),
    "UpdateTable": Operation(messages.UpdateTableRequest, update_table, Purpose((_P.ALTER,))),
    "DeleteTable": Operation(messages.DeleteTableRequest, delete_table, Purpose((_P.DROP,))),
    "AddDefinedColumn": Operation(messages.AddDefinedColumnRequest, add_defined_column, Purpose((_P.ADD_COLUMNS,))),
    "DeleteDefinedColumn": Operation(
        messages.DeleteDefinedColumnRequest, delete_defined_column, Purpose((_P.DROP_COLUMNS,)),
    ),
    "ComputeSplitPointsBySize": Operation(
        messages.ComputeSplitPointsBySizeRequest, compute_split_points_by_size, Purpose((_P.SPLIT,)),
    ),
    "CreateIndex": Operation(messages.CreateIndexRequest, secondary_indexes.create_index, Purpose((_P.CREATE_INDEX,))),
    "DropIndex": Operation(messages.DropIndexRequest, secondary_indexes.drop_index, Purpose((_P.DROP_INDEX,))),
    "ListTimeseriesTable": Operation(
        messages.ListTimeseriesTableRequest, secondary_indexes.list_timeseries_table, Purpose((_P.LIST_FEATURES,)),
    ),
}  # fmt: skip
