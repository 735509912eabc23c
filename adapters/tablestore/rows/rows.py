"""GetRow, PutRow, UpdateRow, DeleteRow; and the parsing of single writes and reads that batches are built from."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, cast

from google.protobuf.message import Message

from tablegate.adapters.tablestore.capacity import capacity, consumed_capacity
from tablegate.adapters.tablestore.rows import fast_rows, selections
from tablegate.adapters.tablestore.rows.fast_rows import PlainPut
from tablegate.adapters.tablestore.rows.filters import parse_condition
from tablegate.adapters.tablestore.rows.foreign_names import checked
from tablegate.adapters.tablestore.rows.transactions import get, write_groups
from tablegate.adapters.tablestore.tables.options import (
    allows_update,
    defined_types,
    kept_for_ms,
    stamp_deviation_s,
)
from tablegate.adapters.tablestore.values import keys
from tablegate.adapters.tablestore.values.lengths import check_request, check_value
from tablegate.adapters.tablestore.values.values import DEFINED_KINDS, TYPE_NAMES, key_value_shown, restored
from tablegate.adapters.tablestore.values.views import view
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.call_context import Call, Target, find_target, find_written
from tablegate.adapters.tablestore.wire.errors import RowError, invalid
from tablegate.adapters.tablestore.wire.names import ColumnNameInvalid, check_column_name
from tablegate.adapters.tablestore.wire.plainbuffer import HEADER, Operation, WireCell, WireRow, encode_row
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.exchanges import SingleStep, Steps, after, exchange_of
from tablegate.gateway.model import fast_paths
from tablegate.gateway.model.commands.commands import Exchange
from tablegate.gateway.model.commands.row_commands import Get, Outcome, Read, WriteGroup
from tablegate.gateway.model.commands.writes import Change, Edit, Remove, Replace, RowRule, Write
from tablegate.gateway.model.errors import GatewayError
from tablegate.gateway.model.expressions.predicates import ALWAYS, And, Not, Predicate, RowExists
from tablegate.gateway.model.expressions.updates import Action, DeleteCell, DeleteCells, Increment, PutCell
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import Key
from tablegate.gateway.model.values.rows import Cell, Contents, Row
from tablegate.gateway.model.values.values import Kind, Value

ROW_EXISTS = RowExists()
ROW_MISSING = Not(ROW_EXISTS)
NEVER = Not(ALWAYS)


# Reading


def get_row(call: Call) -> Steps[Message]:
    """GetRow: the columns and versions of a row that are asked for, or zero bytes where there is no row. Raises ServiceError,
    TableMissing."""
    message = call.message
    selection = selections.parse(message, selections.NO_VERSION)
    wire = keys.decode(message.primary_key)
    step_of = partial(_get_step, call, wire, selection)
    table = call.known_table(message.table_name)
    if table is not None:
        return step_of(Target.of_table(table))
    return after(find_target(call, message.table_name), step_of)


def _get_step(call: Call, wire: WireRow, selection: selections.Selection, target: Target) -> SingleStep:
    command = _asked_row(call, target, wire, call.message.transaction_id, selection)
    return SingleStep(command, partial(_got, target, selection))


def _asked_row(
    call: Call, target: Target, wire: WireRow, transaction: str, selection: selections.Selection
) -> Get | Read:
    """The command that reads the row with a key, of a table or of an index. Raises ServiceError."""
    shown = selection if selection.columns else None
    if target.index is not None:
        return keys.index_get(target, wire.key)._replace(may_be_old=call.may_be_old, shown=shown)
    keys.check_values(wire.key, may_draw=False)
    key = keys.key_of(target.table, wire.key)
    return get(target.table, key.position, transaction, call.may_be_old, shown)


def _got(target: Target, selection: selections.Selection, outcome: Any) -> Message:
    row = outcome if target.index is None else outcome.rows[0] if outcome.rows else None
    row_data, consumed = shown_row(target, selection, row)
    consumed_capacity.count_read(target, consumed)
    return messages.GetRowResponse(consumed=consumed, row=row_data)


def shown_row(
    target: Target, selection: selections.Selection, row: Row | None
) -> tuple[bytes, messages.ConsumedCapacity]:
    """A row for an answer (zero bytes if it is not there or not selected), and what reading it costs."""
    if row is None:
        return b"", capacity.of_read(0)
    seen = selection.encoder(target)(row)
    consumed = capacity.of_read(seen.size_bytes)
    if not selection.shows(target, seen):
        return b"", consumed
    return HEADER + selection.row_bytes(target, seen), consumed


# Writing


class RowWrite(NamedTuple):
    """A parsed write, and what its answer needs: the capacity it consumes, the bytes of its names and values, and the part
    of the row to be returned."""

    write: Write
    consumed: messages.ConsumedCapacity
    size: int
    return_type: int
    return_columns: frozenset[str]

    def returned(self, outcome: Outcome) -> bytes | None:
        """The row of the answer, or None."""
        if self.return_type == messages.RT_NONE:
            return None
        target = Target.of_table(self.write.table)
        if self.return_type == messages.RT_PK or not self.return_columns or outcome.new is None:
            return encode_row(WireRow(self._key_cells(target, outcome)))
        selection = selections.everything(self.return_columns)
        seen = selection.cutter(target)(outcome.new)
        return encode_row(selection.wire_row(target, seen))

    def _key_cells(self, target: Target, outcome: Outcome) -> list[WireCell]:
        """The key of the row written, with the number that was drawn for it."""
        if outcome.new is not None:
            return keys.key_cells(target, outcome.new)
        values = zip(target.key_names, self.write.key.values, strict=True)
        return [WireCell(name, key_value_shown(value)) for name, value in values]


# The operations themselves are at the end of this module, made of what follows.


@dataclass(frozen=True, slots=True)
class _Writing:
    """One of the three operations that write a row. `field`: where the row stands in the message; `check`: what is wrong with
    it whatever its table; `parse`: then what is wrong with it in its table; `answer`: the message of the answer."""

    field: str
    check: Callable[..., Any]
    parse: Callable[..., RowWrite]
    answer: Callable[..., Message]

    def __call__(self, call: Call) -> Steps[Message]:
        """The operation as a handler. Raises ServiceError, TableMissing, ConditionFailed."""
        message = call.message
        table = None if message.transaction_id else call.known_table(message.table_name)
        if table is None:
            return self._looked_up(call)
        try:
            wire = self.check(getattr(message, self.field))
        except ColumnNameInvalid:
            return self._looked_up(call)
        return self._step(call, wire, table)

    def _looked_up(self, call: Call) -> Exchange[Message]:
        """The operation where the table, or the names that the row's columns may have, must be looked up first."""
        message = call.message
        wire = yield from checked(call, message.table_name, self.check, getattr(message, self.field))
        table = yield from find_written(call, message.table_name)
        step = self._step(call, wire, table)
        if not message.transaction_id:
            return (yield from exchange_of(step))
        [outcomes] = yield from write_groups([cast(WriteGroup, step.command)], message.transaction_id)
        answer: Message = step.result(outcomes)
        return answer

    def _step(self, call: Call, wire: WireRow | PlainPut, table: Table) -> SingleStep:
        message = call.message
        written = self.parse(call, Destination.of(call, table), wire, message)
        return SingleStep(
            WriteGroup((written.write,)), partial(self._answered, written), partial(_refused, written)
        )

    def _answered(self, written: RowWrite, outcomes: Any) -> Message:
        consumed_capacity.count_write(written.write, written.consumed)
        return self.answer(consumed=written.consumed, row=written.returned(outcomes[0]))


def _refused(written: RowWrite, error: GatewayError) -> GatewayError:
    consumed_capacity.count_failed_write(written.write, error)
    return error


# First what is wrong with a row whatever its table; the service says that before it looks for one
# (aliyun-tablestore-java-sdk, functiontest/RestrictedItemTest, testCase12).


def checked_put(data: bytes, known: Container[str] = ()) -> WireRow | PlainPut:
    """The row of a put. `known`: names that columns may have whatever they are. Raises ServiceError."""
    return _fast_put_of(data) or checked_put_cells(data, known)


def _no_fast_put(data: bytes) -> PlainPut | None:
    return None


_fast_put_of = fast_paths.choose(fast_rows.put_of, _no_fast_put)


def checked_put_cells(data: bytes, known: Container[str] = ()) -> WireRow:
    """The cells of a put of any form: the general way of `fast_rows.put_of`. Raises ServiceError."""
    wire = _checked(data, "PutRow", known)
    for cell in wire.cells:
        if cell.operation is not None or not isinstance(cell.value, Value):
            raise invalid(f"The value of column '{cell.name}' is missing.")
    return wire


def checked_update(data: bytes, known: Container[str] = ()) -> WireRow:
    """The cells of an update. Raises ServiceError."""
    wire = _checked(data, "UpdateRow", known)
    if not wire.cells:
        raise invalid("Attribute column is missing.")
    return wire


def checked_delete(data: bytes) -> WireRow:
    """The key of a delete. Raises ServiceError."""
    wire = keys.decode(data)
    keys.check_values(wire.key, may_draw=False)
    return wire._replace(cells=())


def _checked(data: bytes, operation: str, known: Container[str]) -> WireRow:
    wire = keys.decode(data)
    keys.check_values(wire.key, may_draw=True)
    _check_columns(wire.cells, known)
    if len(data) > limits.WRITE_MAX_BYTES:
        check_request(capacity.request_size(wire), operation)
    return wire


# Then what is wrong with it in its table.


@dataclass(frozen=True, slots=True)
class Destination:
    """A table, and what each write into it needs to know of it. `refuses_absent`: an update or delete of a row that must not be
    there fails either way, as in 2017."""

    table: Table
    key_names: tuple[str, ...]
    defined: Mapping[str, Kind]
    has_indexes: bool
    refuses_absent: bool
    rule: RowRule

    @classmethod
    def of(cls, call: Call, table: Table) -> Destination:
        """What writes of a call to a table have in common."""
        names = table.key_schema.names
        defined = {name: DEFINED_KINDS[kind] for name, kind in defined_types(table).items()}
        refuses_absent = call.gateway.settings.tablestore_expect_not_exist == "2017"
        return cls(table, names, defined, bool(table.indexes), refuses_absent, partial(_restored, names))


def parse_put(call: Call, into: Destination, put: WireRow | PlainPut, message: Any) -> RowWrite:
    """A put of a row that has been checked; `message` carries condition and return_content. Raises ServiceError."""
    table = into.table
    if isinstance(put, PlainPut):
        stamp_ms = call.now_ms if table.rules.stamped else None
        made = fast_rows.key_and_contents(put, table.key_schema, into.defined, stamp_ms)
        if made is not None:
            return _row_write(into, made[0], (put.key_size, put.size), Replace(made[1]), message)
        put = checked_put_cells(put.data)
    key = keys.key_of(table, put.key, may_draw=True)
    _check_against(call, into, put.cells)
    return _row_write(into, key, _sizes(put), Replace(_contents(call, into, key, put.cells)), message)


def parse_update(call: Call, into: Destination, wire: WireRow, message: Any) -> RowWrite:
    """An update by cells that have been checked. Raises ServiceError."""
    table = into.table
    key = keys.key_of(table, wire.key, may_draw=True)
    _check_against(call, into, wire.cells)
    if not allows_update(table):
        raise invalid("Can not update row when allow update is false.")
    actions = tuple(_action(cell) for cell in wire.cells)
    incremented = [action.name for action in actions if isinstance(action, Increment)]
    if incremented and len({cell.name for cell in wire.cells}) < len(wire.cells):
        names = [cell.name for cell in wire.cells]
        for name in incremented:
            if names.count(name) > 1:
                raise invalid(f"Column '{name}' can not be incremented and changed in one request.")
    may_create = any(isinstance(action, PutCell | Increment) for action in actions)
    return _row_write(into, key, _sizes(wire), Edit(actions, may_create), message)


def parse_delete(call: Call, into: Destination, wire: WireRow, message: Any) -> RowWrite:
    """A delete of the row with a key that has been checked. Raises ServiceError."""
    key = keys.key_of(into.table, wire.key)
    return _row_write(into, key, _sizes(wire), Remove(), message)


def _sizes(wire: WireRow) -> tuple[int, int]:
    """Bytes of the key, and of key and cells."""
    key_size = capacity.cells_size(wire.key)
    return key_size, key_size + capacity.cells_size(wire.cells)


def _row_write(into: Destination, key: Key, sizes: tuple[int, int], change: Change, message: Any) -> RowWrite:
    condition = condition_of(message.condition, into.refuses_absent and not isinstance(change, Replace))
    write = Write(into.table, key, change, condition, view, into.rule)
    consumed = capacity.of_write(*sizes, condition is not ALWAYS, into.has_indexes)
    if not message.HasField("return_content"):
        return RowWrite(write, consumed, sizes[1], messages.RT_NONE, frozenset())
    content = message.return_content
    _check_returned(content, change)
    return RowWrite(write, consumed, sizes[1], content.return_type, frozenset(content.return_column_names))


def _check_returned(content: messages.ReturnContent, change: Change) -> None:
    """Of columns only those that the request increments are returned, and only after the change.

    Source: aliyun-tablestore-java-sdk, functiontest/IncrementRequest, testReturnColumnNames; the text is ours.
    """
    if content.return_type == messages.RT_NONE or not content.return_column_names:
        return
    actions = change.actions if isinstance(change, Edit) else ()
    incremented = {action.name for action in actions if isinstance(action, Increment)}
    for name in content.return_column_names:
        if content.return_type != messages.RT_AFTER_MODIFY or name not in incremented:
            raise invalid(f"Column '{name}' can not be returned: it is not incremented.")


def _restored(key_names: tuple[str, ...], old: Row | None, contents: Contents) -> Contents:
    return restored(old, contents, key_names)


def condition_of(condition: messages.Condition, refuses_absent: bool = False) -> Predicate:
    """Row existence first, then the column condition. `refuses_absent`: to expect no row fails either way.

    Source: Table Store, "Data operations", 3 August 2017 ("The operation DeleteRow or UpdateRow will fail if ...").
    """
    parts: list[Predicate] = []
    if condition.row_existence == messages.EXPECT_EXIST:
        parts.append(ROW_EXISTS)
    elif condition.row_existence == messages.EXPECT_NOT_EXIST:
        parts += (ROW_MISSING, NEVER) if refuses_absent else (ROW_MISSING,)
    columns = parse_condition(condition.column_condition)
    if columns is not ALWAYS:
        parts.append(columns)
    if not parts:
        return ALWAYS
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _check_columns(cells: Sequence[WireCell], known: Container[str]) -> None:
    """Attribute cells whatever their table: how many, their names, lengths and stamps."""
    if len(cells) > limits.COLUMNS_MAX:
        raise invalid(
            "The number of attribute columns exceeds the limit,"
            f" limit count: {limits.COLUMNS_MAX}, column count: {len(cells)}."
        )
    for name, value, stamp_ms, _ in cells:
        check_column_name(name, known)
        if isinstance(value, Value):
            check_value(name, value)
        elif value is not None:
            raise invalid(f"The type of column '{name}' is invalid.")
        if stamp_ms is not None and not 0 <= stamp_ms < limits.STAMP_END_MS:
            raise invalid("Timestamp must be in range [0, INT64_MAX/1000).")


def _check_against(call: Call, into: Destination, cells: Sequence[WireCell]) -> None:
    """Attribute cells against their table: no key columns, and no stamps too far from now for its options."""
    table, key_names, defined = into.table, into.key_names, into.defined
    for name, value, stamp_ms, operation in cells:
        if defined and name in defined:
            _check_type(name, value, defined[name])
        if name in key_names:
            raise invalid(f"Duplicated attribute column name with primary key column: '{name}'.")
        if stamp_ms is not None and operation is not Operation.DELETE_ONE:
            _check_stamp(table, call.now_ms, name, stamp_ms)


def _check_stamp(table: Table, now_ms: int, name: str, stamp_ms: int) -> None:
    """A stamp against its table's options, all in seconds: from the nearer of deviation and time to live before now, to less
    than the deviation after it.

    Source: "Error codes" and "Data versions and TTL" (Alibaba Cloud help, Tablestore, 2026): the valid version range.
    """
    now_s, deviation_s = now_ms // 1000, stamp_deviation_s(table)
    first_s = now_s - min(deviation_s, kept_for_ms(table) // 1000)
    if not first_s <= stamp_ms // 1000 < now_s + deviation_s:
        raise invalid(f"Invalid timestamp. Cell:{name}.")


def _check_type(name: str, value: Any, defined: Kind) -> None:
    """A defined column holds values of its type.

    Source: aliyun-tablestore-java-sdk, functiontest/TestBulkImportFunction, testInvalidParam.
    """
    if isinstance(value, Value) and value.kind is not defined:
        expected, actual = TYPE_NAMES[defined], TYPE_NAMES[value.kind]
        raise RowError(
            "OTSParameterInvalid",
            f"Invalid column type for column {name} expect VT_{expected} actual VT_{actual}",
        )


def _contents(call: Call, into: Destination, key: Key, cells: Sequence[WireCell]) -> Contents:
    """The contents of a row that is put. Of cells of one name and stamp the last counts."""
    table = into.table
    key_values = {
        name: value
        for name, value in zip(into.key_names, key.values, strict=True)
        if isinstance(value, Value)
    }
    versions: dict[str, dict[int, Value]] = {}
    for name, value, stamp_ms, _ in cells:
        assert isinstance(value, Value)
        versions.setdefault(name, {})[call.now_ms if stamp_ms is None else stamp_ms] = value
    if not table.rules.stamped:
        newest = {name: stamped[max(stamped)] for name, stamped in versions.items()}
        return Contents.of_values({**key_values, **newest})
    kept = table.rules.max_versions
    return Contents.of_cells(
        key_values,
        {
            name: tuple(Cell(stamped[stamp], stamp) for stamp in sorted(stamped, reverse=True)[:kept])
            for name, stamped in versions.items()
        },
    )


def _action(cell: WireCell) -> Action:
    name, value, stamp_ms, operation = cell
    match operation:
        case None if isinstance(value, Value):
            return PutCell(name, value, stamp_ms)
        case Operation.DELETE_ONE if stamp_ms is not None and value is None:
            return DeleteCell(name, stamp_ms)
        case Operation.DELETE_ALL if value is None:
            return DeleteCells(name)
        case Operation.INCREMENT if isinstance(value, Value):
            if value.kind not in (Kind.INT64, Kind.DOUBLE):
                raise invalid(f"The type of column '{name}' does not support increment.")
            return Increment(name, value, stamp_ms)
    raise invalid(f"The update of column '{name}' is malformed.")


# The operations


put_row = _Writing("row", checked_put, parse_put, messages.PutRowResponse)
"""PutRow: make the row exactly what the request says, if its condition is true. Raises ServiceError, TableMissing,
ConditionFailed."""

update_row = _Writing("row_change", checked_update, parse_update, messages.UpdateRowResponse)
"""UpdateRow: put, delete and increment cells in the order given, if the condition is true. Raises ServiceError,
TableMissing, ConditionFailed."""

delete_row = _Writing("primary_key", checked_delete, parse_delete, messages.DeleteRowResponse)
"""DeleteRow: delete a row with all its versions, if the condition is true. To delete what is not there succeeds unless
the condition wants a row. Raises ServiceError, TableMissing, ConditionFailed."""
