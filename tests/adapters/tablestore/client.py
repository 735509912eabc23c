"""A small client of the Table Store wire: signed requests, checked replies. It uses a real engine without a server."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

from tablegate.adapters.tablestore.dialect import TableStore
from tablegate.adapters.tablestore.operation_table import OPERATIONS
from tablegate.adapters.tablestore.wire.auth import string_to_sign
from tablegate.adapters.tablestore.wire.plainbuffer import (
    WireCell,
    WireRow,
    decode_row,
    decode_rows,
    encode_row,
)
from tablegate.adapters.tablestore.wire.protocol import search_pb2, sql_pb2, tunnel_pb2
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.adapters.tablestore.wire.replies import date_text
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.model.values.values import Kind, Value
from tests.support.service import Service

INSTANCE = "inst"


class Refused(Exception):
    """An error reply: status, code, message."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(status, code, message)
        self.status = status
        self.code = code
        self.message = message


def signed(
    operation: str, body: bytes, now_ms: int, secret: str = "tablegate", **more: str
) -> tuple[tuple[str, str], ...]:
    """Return the headers of a V2 request.

    `more` adds or replaces headers (underscores for dashes). An empty text removes one.
    """
    headers = {
        "x-ots-date": date_text(now_ms)[:-4] + "Z",
        "x-ots-apiversion": "2015-12-31",
        "x-ots-accesskeyid": "tablegate",
        "x-ots-instancename": INSTANCE,
        "x-ots-contentmd5": base64.b64encode(hashlib.md5(body).digest()).decode(),
    }
    headers.update({name.replace("_", "-"): value for name, value in more.items()})
    headers = {name: value for name, value in headers.items() if value}
    signature = hmac.digest(secret.encode(), string_to_sign(operation, headers), "sha1")
    headers.setdefault("x-ots-signature", base64.b64encode(signature).decode())
    return tuple(headers.items())


def answer_type(operation: str) -> Any:
    """Return the type of the answer of an operation."""
    name = OPERATIONS[operation].request.__name__.removesuffix("Request") + "Response"
    modules = (tunnel_pb2,) if operation.startswith("tunnel/") else (messages, search_pb2, sql_pb2)
    return next(getattr(module, name) for module in modules if hasattr(module, name))


class TableStoreCalls:
    """The calls that tests of Table Store make often, over any way to send a request."""

    clock: Any

    def handle(self, request: Request) -> Reply:
        """The reply to any request."""
        raise NotImplementedError

    def post(self, operation: str, body: bytes, **headers: str) -> Reply:
        """The reply to a signed request with any body."""
        return self.handle(
            Request("POST", f"/{operation}", signed(operation, body, self.clock.ms, **headers), body)
        )

    def call(self, operation: str, **members: Any) -> Any:
        """Return the answer to an operation. Raises Refused for an error."""
        return self.ask(operation, OPERATIONS[operation].request(**members))

    def ask(self, operation: str, message: Any) -> Any:
        """Return the answer to a message. Raises Refused for an error."""
        reply = self.post(operation, message.SerializeToString())
        if reply.status != 200:
            error = messages.Error.FromString(reply.body)
            raise Refused(reply.status, error.code, error.message)
        answer = answer_type(operation).FromString(reply.body)
        assert answer.IsInitialized()
        return answer

    def create(self, name: str = "t", *key: tuple[str, int], **members: Any) -> None:
        """Create a table. Its key is one INTEGER column `pk` by default."""
        columns = [
            messages.PrimaryKeySchema(name=column, type=kind)
            for column, kind in key or (("pk", messages.INTEGER),)
        ]
        meta = messages.TableMeta(
            table_name=name, primary_key=columns, defined_column=members.pop("defined", ())
        )
        members.setdefault("table_options", messages.TableOptions(time_to_live=-1, max_versions=1))
        self.call("CreateTable", table_meta=meta, reserved_throughput=no_throughput(), **members)

    def put(self, key: dict[str, Any], cells: Any = (), table: str = "t", **members: Any) -> Any:
        """Send a PutRow of plain Python values. Cells are a dict or a list of WireCell."""
        return self.call(
            "PutRow", table_name=table, row=row(key, cells), condition=condition(members), **members
        )

    def update(self, key: dict[str, Any], cells: Any, table: str = "t", **members: Any) -> Any:
        """UpdateRow."""
        return self.call(
            "UpdateRow", table_name=table, row_change=row(key, cells), condition=condition(members), **members
        )

    def delete(self, key: dict[str, Any], table: str = "t", **members: Any) -> Any:
        """DeleteRow."""
        data = encode_row(WireRow(cells_of(key), (), is_delete=True))
        return self.call(
            "DeleteRow", table_name=table, primary_key=data, condition=condition(members), **members
        )

    def get(self, key: dict[str, Any], table: str = "t", **members: Any) -> WireRow | None:
        """GetRow: the row, or None."""
        if "time_range" not in members:
            members.setdefault("max_versions", 1)
        answer = self.call("GetRow", table_name=table, primary_key=row(key), **members)
        return decode_row(answer.row) if answer.row else None

    def range(self, start: dict[str, Any], end: dict[str, Any], table: str = "t", **members: Any) -> Any:
        """Return the answer of a GetRange. See `rows_of`."""
        members.setdefault("direction", messages.FORWARD)
        if "time_range" not in members:
            members.setdefault("max_versions", 1)
        return self.call(
            "GetRange",
            table_name=table,
            inclusive_start_primary_key=row(start),
            exclusive_end_primary_key=row(end),
            **members,
        )


class TableStoreService(Service, TableStoreCalls):
    """Table Store in this process."""

    kind = TableStore


def no_throughput() -> messages.ReservedThroughput:
    return messages.ReservedThroughput(capacity_unit=messages.CapacityUnit(read=0, write=0))


def datum(value: Any) -> Any:
    """Return the wire form of a plain Python value. Other values are unchanged."""
    match value:
        case bool():
            return Value(Kind.BOOL, value)
        case int():
            return Value(Kind.INT64, value)
        case float():
            return Value(Kind.DOUBLE, value)
        case str():
            return Value(Kind.TEXT, value)
        case bytes():
            return Value(Kind.BYTES, value)
    return value


def cells_of(values: dict[str, Any]) -> list[WireCell]:
    return [WireCell(name, datum(value)) for name, value in values.items()]


def row(key: dict[str, Any], cells: Any = ()) -> bytes:
    """A row in PlainBuffer."""
    return encode_row(WireRow(cells_of(key), cells_of(cells) if isinstance(cells, dict) else list(cells)))


def plain(wire: WireRow | None) -> dict[str, Any] | None:
    """A row as a dict of plain Python values, newest versions."""
    if wire is None:
        return None
    found: dict[str, Any] = {}
    for cell in (*wire.key, *wire.cells):
        assert isinstance(cell.value, Value)
        found.setdefault(cell.name, cell.value.data)
    return found


def rows_of(answer: Any) -> list[dict[str, Any] | None]:
    """The rows of a GetRange as plain dicts."""
    return [plain(wire) for wire in decode_rows(answer.rows)]


def units_of(answer: Any) -> tuple[int, int]:
    """(read, write) units of an answer."""
    unit = answer.consumed.capacity_unit
    assert unit.HasField("read")
    assert unit.HasField("write")
    return unit.read, unit.write


def condition(members: dict[str, Any]) -> messages.Condition:
    """The condition of a write, from `expect` and `column_condition` among its members."""
    made = messages.Condition(row_existence=members.pop("expect", messages.IGNORE))
    if "column_condition" in members:
        made.column_condition = members.pop("column_condition")
    return made
