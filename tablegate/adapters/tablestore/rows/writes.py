"""Written rows: their validation, and their conversion to writes with condition, change, and the data for the reply.

The service reports errors of keys, and of names, lengths and stamps of cells, before it looks up the table
(aliyun-tablestore-java-sdk, functiontest/RestrictedItemTest, testCase12). All other rules depend on the table.

Column names of other dialects that Table Store forbids are accepted in a row that has them already, and in a table that
another dialect created. So a row can be written back as it was read. The look-up happens only if a request has such a
name.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from tablegate.adapters.tablestore import capacity, table_properties, values
from tablegate.adapters.tablestore.call import CallContext, TableOrIndex, find_written
from tablegate.adapters.tablestore.rows import fast_rows, selections
from tablegate.adapters.tablestore.rows.fast_rows import PlainPut
from tablegate.adapters.tablestore.rows.filters import parse_condition
from tablegate.adapters.tablestore.table_properties import was_created_by_table_store
from tablegate.adapters.tablestore.values import (
    DEFINED_KINDS,
    VT_NAMES,
    check_attribute,
    key_value_shown,
    restored,
)
from tablegate.adapters.tablestore.views import view
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import RowError, ServiceError, invalid
from tablegate.adapters.tablestore.wire.names import ColumnNameInvalid, check_column_name
from tablegate.adapters.tablestore.wire.plainbuffer import CellOperation, WireCell, WireRow, encode_row
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model import fast_paths
from tablegate.gateway.model.commands.row_commands import Get, WriteOutcome
from tablegate.gateway.model.commands.writes import Change, Edit, Remove, Replace, RowRule, Write
from tablegate.gateway.model.errors import TableMissing
from tablegate.gateway.model.expressions.predicates import ALWAYS, And, Not, Predicate, RowExists
from tablegate.gateway.model.expressions.updates import Action, DeleteCell, DeleteCells, Increment, PutCell
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import AUTO_INCREMENT, Key
from tablegate.gateway.model.values.rows import Cell, Contents
from tablegate.gateway.model.values.values import Kind, Value

Made = TypeVar("Made")
RowCheck = Callable[..., Made]
"""`check(data)`, `check(data, known)`: a function that decodes and validates a row, but accepts the known names."""


async def check_with_known_names(
    call: CallContext, table_name: str, check: RowCheck[Made], data: bytes
) -> Made:
    """Return the result of `check` for a row to be written. Raises ServiceError."""
    try:
        return check(data)
    except ColumnNameInvalid:
        permitted_names = await _permitted_names(call, table_name, values.decode_key(data))
        return check(data, permitted_names)


async def _permitted_names(call: CallContext, table_name: str, wire: WireRow) -> Container[str]:
    """Return the forbidden names that the row may have. Empty if the table or the key is invalid, so that names are
    reported first."""
    permitted_names: Container[str] = ()
    try:
        table = await find_written(call, table_name)
        key = values.key_of(table, wire.key)
    except (TableMissing, ServiceError):
        return permitted_names
    if not was_created_by_table_store(table):
        return {cell.name for cell in wire.cells}
    row = await Get(table, key.position)
    return permitted_names if row is None else row.latest


def checked_put(data: bytes, permitted_names: Container[str] = ()) -> WireRow | PlainPut:
    """Validate the row of a put. `permitted_names`: additional permitted names of columns. Raises ServiceError."""
    return _fast_put_of(data) or checked_put_cells(data, permitted_names)


def _no_fast_put(data: bytes) -> PlainPut | None:
    return None


_fast_put_of = fast_paths.choose(fast_rows.put_of, _no_fast_put)


def checked_put_cells(data: bytes, permitted_names: Container[str] = ()) -> WireRow:
    """Validate a put of any form: the general path of `fast_rows.put_of`. Raises ServiceError."""
    wire = _validate(data, "PutRow", permitted_names)
    for cell in wire.cells:
        if cell.operation is not None or not isinstance(cell.value, Value):
            raise invalid(f"The value of column '{cell.name}' is missing.")
    return wire


def checked_update(data: bytes, permitted_names: Container[str] = ()) -> WireRow:
    """Validate the cells of an update. Raises ServiceError."""
    wire = _validate(data, "UpdateRow", permitted_names)
    if not wire.cells:
        raise invalid("Attribute column is missing.")
    return wire


def checked_delete(data: bytes) -> WireRow:
    """Validate the key of a delete. Raises ServiceError."""
    wire = values.decode_key(data)
    values.check_key_values(wire.key, allows_auto_increment=False)
    return wire._replace(cells=())


def _validate(data: bytes, operation: str, permitted_names: Container[str]) -> WireRow:
    wire = values.decode_key(data)
    values.check_key_values(wire.key, allows_auto_increment=True)
    _check_columns(wire.cells, permitted_names)
    if len(data) > limits.WRITE_MAX_BYTES:
        check_request(capacity.request_size(wire), operation)
    return wire


def _check_columns(cells: Sequence[WireCell], permitted_names: Container[str]) -> None:
    """Validate the number of cells, and their names, lengths and stamps."""
    if len(cells) > limits.COLUMNS_MAX:
        raise invalid(
            "The number of attribute columns exceeds the limit,"
            f" limit count: {limits.COLUMNS_MAX}, column count: {len(cells)}."
        )
    for name, value, stamp_ms, _ in cells:
        check_column_name(name, permitted_names)
        if isinstance(value, Value):
            check_attribute(name, value)
        elif value is not None:
            raise invalid(f"The type of column '{name}' is invalid.")
        if stamp_ms is not None and not 0 <= stamp_ms < limits.STAMP_END_MS:
            raise invalid("Timestamp must be in range [0, INT64_MAX/1000).")


def check_counts(text_if_empty: str, rows_max: int, tables: Sequence[tuple[str, int]]) -> None:
    """Refuse a batch of too many rows, and one without rows with the text `text_if_empty`. `tables`: names and numbers of
    rows."""
    if not tables:
        raise invalid(text_if_empty)
    count = sum(count for _, count in tables)
    if count > rows_max or len(tables) > rows_max:
        raise invalid(f"Rows count exceeds the upper limit: {rows_max}.")


def check_request(size: int, operation: str) -> None:
    """Refuse a request if its names and values together are too long. Raises ServiceError."""
    if size > limits.WRITE_MAX_BYTES:
        raise invalid(
            f"The total data size of {operation} request exceeds the limit, limit size: {limits.WRITE_MAX_BYTES},"
            f" data size: {size}."
        )


ROW_EXISTS = RowExists()
ROW_MISSING = Not(ROW_EXISTS)


class RowWrite(NamedTuple):
    """A parsed write and the data for its reply.

    These are the consumed capacity, the size of names and values in bytes, and the part of the row to return.
    """

    write: Write
    consumed: messages.ConsumedCapacity
    size: int
    return_type: int
    return_columns: frozenset[str]

    def returned(self, outcome: WriteOutcome) -> bytes | None:
        """Return the row for the reply, or None."""
        if self.return_type == messages.RT_NONE:
            return None
        target = TableOrIndex.of(self.write.table)
        if self.return_type == messages.RT_PK or not self.return_columns or outcome.new is None:
            return encode_row(WireRow(self._key_cells(target, outcome)))
        selection = selections.everything(self.return_columns)
        visible = selection.cutter(target)(outcome.new)
        return encode_row(selection.wire_row(target, visible))

    def _key_cells(self, target: TableOrIndex, outcome: WriteOutcome) -> list[WireCell]:
        """Return the key of the written row, with an assigned auto-increment number."""
        if outcome.new is not None:
            return values.key_cells(target, outcome.new)
        columns = zip(target.key_names, self.write.key.values, strict=True)
        return [WireCell(name, key_value_shown(value)) for name, value in columns]


class WriteTarget(NamedTuple):
    """A table, with the properties that every write needs.

    `numbers`: the table has an auto-increment column.
    """

    table: Table
    key_names: tuple[str, ...]
    defined: Mapping[str, Kind]
    has_indexes: bool
    rule: RowRule
    numbers: bool

    @classmethod
    def of(cls, call: CallContext, table: Table) -> WriteTarget:
        names = table.key_schema.names
        defined = {name: DEFINED_KINDS[kind] for name, kind in table_properties.defined_types(table).items()}
        numbers = any(column.auto_increment for column in table.key_schema.columns)
        rule = partial(restored, names)
        return cls(table, names, defined, bool(table.indexes), rule, numbers)


def parse_put(call: CallContext, target: WriteTarget, put: WireRow | PlainPut, message: Any) -> RowWrite:
    """Return the write of a validated put. `message` has the condition and return_content. Raises ServiceError."""
    table = target.table
    if isinstance(put, PlainPut):
        stamp_ms = call.now_ms if table.rules.stamped else None
        row = fast_rows.key_and_contents(put, table.key_schema, target.defined, stamp_ms)
        if row is not None:
            return _row_write(target, row[0], (put.key_size, put.size), Replace(row[1]), message)
        put = checked_put_cells(put.data)
    key = values.key_of(table, put.key)
    _check_against(call, target, put.cells)
    return _row_write(target, key, _sizes(put), Replace(_contents(call, target, key, put.cells)), message)


def parse_update(call: CallContext, target: WriteTarget, wire: WireRow, message: Any) -> RowWrite:
    """Return the write of a validated update. Raises ServiceError."""
    table = target.table
    key = values.key_of(table, wire.key)
    _check_against(call, target, wire.cells)
    if not table_properties.allows_update(table):
        raise invalid("Can not update row when allow update is false.")
    actions = tuple(_action(cell) for cell in wire.cells)
    incremented = [action.name for action in actions if isinstance(action, Increment)]
    if incremented and len({cell.name for cell in wire.cells}) < len(wire.cells):
        names = [cell.name for cell in wire.cells]
        for name in incremented:
            if names.count(name) > 1:
                raise invalid(f"Column '{name}' can not be incremented and changed in one request.")
    may_create = any(isinstance(action, PutCell | Increment) for action in actions)
    return _row_write(target, key, _sizes(wire), Edit(actions, may_create), message)


def parse_delete(call: CallContext, target: WriteTarget, wire: WireRow, message: Any) -> RowWrite:
    """Return the write of a validated delete. Raises ServiceError."""
    key = values.key_of(target.table, wire.key)
    return _row_write(target, key, _sizes(wire), Remove(), message)


def _sizes(wire: WireRow) -> tuple[int, int]:
    key_size = capacity.cells_size(wire.key)
    return key_size, key_size + capacity.cells_size(wire.cells)


def _row_write(
    target: WriteTarget, key: Key, sizes: tuple[int, int], change: Change, message: Any
) -> RowWrite:
    if target.numbers:
        _check_expectation(key, message.condition.row_existence)
    condition = condition_of(message.condition)
    consumed = capacity.of_write(*sizes, condition is not ALWAYS, target.has_indexes)
    if target.numbers and _names_new_row(key, change):
        condition = ROW_EXISTS if condition is ALWAYS else And((ROW_EXISTS, condition))
    write = Write(target.table, key, change, condition, view, target.rule)
    if not message.HasField("return_content"):
        return RowWrite(write, consumed, sizes[1], messages.RT_NONE, frozenset())
    content = message.return_content
    _check_returned(content, change)
    return RowWrite(write, consumed, sizes[1], content.return_type, frozenset(content.return_column_names))


def _check_expectation(key: Key, expectation: int) -> None:
    """Check that a write that asks for a number expects nothing of its row, which is always new. Raises ServiceError.

    Source: aliyun-tablestore-python-sdk issue 3 (EXPECT_NOT_EXIST). EXPECT_EXIST, which never holds, is refused alike.
    """
    if expectation != messages.IGNORE and AUTO_INCREMENT in key.values:  # type: ignore[comparison-overlap]
        name = messages.RowExistenceExpectation.Name(expectation)
        raise invalid(f"Invalid expect:{name} when modify row with pk auto increment")


def _names_new_row(key: Key, change: Change) -> bool:
    """Return True if a write may create a row with a number of the client. Only the server gives numbers to new rows.

    Sources: aliyun-tablestore-go-sdk, tunnel/restore, Test_AutoIncrementPk_RecordRestore_WithoutRegenerate;
    aliyun-tablestore-java-sdk, TestTimeline testUpdateAutoSeqId.
    """
    may_create = isinstance(change, Replace) or (isinstance(change, Edit) and change.may_create)
    return may_create and AUTO_INCREMENT not in key.values  # type: ignore[comparison-overlap]


def _check_returned(content: messages.ReturnContent, change: Change) -> None:
    """Validate return_content. Only columns that the request increments can be returned, and only after the change.

    Source: aliyun-tablestore-java-sdk, functiontest/IncrementRequest, testReturnColumnNames. The text is ours.
    """
    if content.return_type == messages.RT_NONE or not content.return_column_names:
        return
    actions = change.actions if isinstance(change, Edit) else ()
    incremented = {action.name for action in actions if isinstance(action, Increment)}
    for name in content.return_column_names:
        if content.return_type != messages.RT_AFTER_MODIFY or name not in incremented:
            raise invalid(f"Column '{name}' can not be returned: it is not incremented.")


def condition_of(condition: messages.Condition) -> Predicate:
    """Return the condition: first the existence of the row, then the column condition."""
    parts: list[Predicate] = []
    if condition.row_existence == messages.EXPECT_EXIST:
        parts.append(ROW_EXISTS)
    elif condition.row_existence == messages.EXPECT_NOT_EXIST:
        parts.append(ROW_MISSING)
    columns = parse_condition(condition.column_condition)
    if columns is not ALWAYS:
        parts.append(columns)
    if not parts:
        return ALWAYS
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _check_against(call: CallContext, target: WriteTarget, cells: Sequence[WireCell]) -> None:
    """Validate attribute cells against the table: no key columns, defined types, and stamps within the allowed
    deviation."""
    table, key_names, defined = target.table, target.key_names, target.defined
    for name, value, stamp_ms, operation in cells:
        if defined and name in defined:
            _check_type(name, value, defined[name])
        if name in key_names:
            raise invalid(f"Duplicated attribute column name with primary key column: '{name}'.")
        if stamp_ms is not None and operation is not CellOperation.DELETE_ONE:
            _check_stamp(table, call.now_ms, name, stamp_ms)


def _check_stamp(table: Table, now_ms: int, name: str, stamp_ms: int) -> None:
    """Validate a stamp, in seconds: from min(deviation, time to live) before now, to less than the deviation after now.

    Source: "Error codes" and "Data versions and TTL" (Alibaba Cloud help, Tablestore, 2026): the valid version range.
    """
    now_s, deviation_s = now_ms // 1000, table_properties.stamp_deviation_s(table)
    first_s = now_s - min(deviation_s, table_properties.cell_lifetime_ms(table) // 1000)
    if not first_s <= stamp_ms // 1000 < now_s + deviation_s:
        raise invalid(f"Invalid timestamp. Cell:{name}.")


def _check_type(name: str, value: Any, defined: Kind) -> None:
    """Validate the type of a defined column's value.

    Source: aliyun-tablestore-java-sdk, functiontest/TestBulkImportFunction, testInvalidParam.
    """
    if isinstance(value, Value) and value.kind is not defined:
        expected, actual = VT_NAMES[defined], VT_NAMES[value.kind]
        raise RowError(
            "OTSParameterInvalid",
            f"Invalid column type for column {name} expect VT_{expected} actual VT_{actual}",
        )


def _contents(call: CallContext, target: WriteTarget, key: Key, cells: Sequence[WireCell]) -> Contents:
    """Return the contents of a put. Of cells with equal name and stamp the last one counts."""
    table = target.table
    key_values = {
        name: value
        for name, value in zip(target.key_names, key.values, strict=True)
        if isinstance(value, Value)
    }
    versions: dict[str, dict[int, Value]] = {}
    for name, value, stamp_ms, _ in cells:
        assert isinstance(value, Value)
        versions.setdefault(name, {})[call.now_ms if stamp_ms is None else stamp_ms] = value
    if not table.rules.stamped:
        newest = {name: stamped[max(stamped)] for name, stamped in versions.items()}
        return Contents.of_values({**key_values, **newest})
    max_versions = table.rules.max_versions
    return Contents.of_cells(
        key_values,
        {
            name: tuple(Cell(stamped[stamp], stamp) for stamp in sorted(stamped, reverse=True)[:max_versions])
            for name, stamped in versions.items()
        },
    )


def _action(cell: WireCell) -> Action:
    name, value, stamp_ms, operation = cell
    match operation:
        case None if isinstance(value, Value):
            return PutCell(name, value, stamp_ms)
        case CellOperation.DELETE_ONE if stamp_ms is not None and value is None:
            return DeleteCell(name, stamp_ms)
        case CellOperation.DELETE_ALL if value is None:
            return DeleteCells(name)
        case CellOperation.INCREMENT if isinstance(value, Value):
            if value.kind not in (Kind.INT64, Kind.DOUBLE):
                raise invalid(f"The type of column '{name}' does not support increment.")
            return Increment(name, value, stamp_ms)
    raise invalid(f"The update of column '{name}' is malformed.")
