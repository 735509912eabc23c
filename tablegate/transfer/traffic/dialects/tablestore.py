"""Table Store in traffic: protobuf with PlainBuffer rows, the operation in the path."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, EncodeError, Message
from google.protobuf.message_factory import GetMessageClass

from tablegate.adapters.tablestore.operation_table import OPERATIONS, operation_name
from tablegate.adapters.tablestore.request_info import kind_of
from tablegate.adapters.tablestore.wire import replies
from tablegate.adapters.tablestore.wire.errors import RETRIED, ServiceError
from tablegate.adapters.tablestore.wire.plainbuffer import PlainBufferError, WireCell, WireRow, decode_rows
from tablegate.adapters.tablestore.wire.protocol import search_pb2
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.model.request_info import RequestKind
from tablegate.gateway.model.values.values import Value
from tablegate.transfer.traffic.comparing import ParsedReply, Tokens
from tablegate.transfer.traffic.dialects.dialect import (
    READING_METHODS,
    ProxiedDialect,
    UnknownToken,
    headers_of,
)
from tablegate.transfer.traffic.rules import TABLE_STORE, ComparisonRule, tokens_sent

_HEADERS = frozenset({"x-ots-contenttype"})
_ROWS = frozenset({"row", "rows", "record", "origin_record", "next_start_primary_key", "split_points"})


_QUERIES = {"search_query": search_pb2.SearchQuery, "scan_query": search_pb2.ScanQuery}
"""Members of searches that are serialized messages with tokens -> their types."""


class TableStore(ProxiedDialect):
    """The Table Store API. Replies contain no address."""

    name = TABLE_STORE
    passing_codes = RETRIED

    def operation(self, request: Request) -> str:
        return operation_name(request.path)

    def is_write(self, request: Request) -> bool:
        row = OPERATIONS.get(self.operation(request))
        if row is None:
            return request.method not in READING_METHODS
        try:
            message = row.request.FromString(replies.inflated(request))
        except (DecodeError, ServiceError):
            message = row.request()
        return kind_of(self.operation(request), message) is not RequestKind.READ

    def base(self, request: Request) -> str:
        return ""

    def moved(self, request: Request, origin: str, account: str) -> Request:
        return request

    def with_live_tokens(self, request: Request, tokens: Tokens, is_done: bool) -> Request:
        operation = self.operation(request)
        row = OPERATIONS.get(operation)
        kind = None if row is None else row.request
        rules_by_member = tokens_sent(TABLE_STORE, operation)
        if kind is None:
            return request
        message = kind()
        try:
            message.ParseFromString(replies.inflated(request))
        except (DecodeError, ServiceError):
            return request
        is_changed = _set_live_tokens(message, rules_by_member, tokens, is_done)
        return _with_body(request, message) if is_changed else request

    def answer(self, request: Request, reply: Reply) -> ParsedReply:
        headers = headers_of(reply, _HEADERS)
        if reply.status >= 400:
            error = _message_or_none(messages.Error, reply.body)
            if error is None:
                return ParsedReply(reply.status, "", headers, reply.body.decode("utf-8", "replace"))
            return ParsedReply(reply.status, error.code, headers, {"message": error.message})
        row = OPERATIONS.get(self.operation(request))
        message = None if row is None else _message_or_none(_reply_type(row.request), reply.body)
        body = base64.b64encode(reply.body).decode() if message is None else _tree(message)
        return ParsedReply(reply.status, "", headers, body)

    def refusal(self, request: Request, status: int, text: str) -> Reply:
        code = "OTSRequestBodyTooLarge" if status == 413 else "OTSServerBusy"
        body = messages.Error(code=code, message=text).SerializeToString()
        return Reply(status, [("x-ots-contenttype", "protocol buffer")], body)


def _set_live_tokens(
    message: Message, rules_by_member: Mapping[str, ComparisonRule], tokens: Tokens, is_done: bool
) -> bool:
    """Set the live tokens of a message and the messages in it. Return True if one differs. Raises UnknownToken."""
    is_changed = False
    for member, value in message.ListFields():
        rule = rules_by_member.get(member.name)
        if rule is not None and isinstance(value, str | bytes):
            live = tokens.live(rule.name, "", _scalar(value))
            if live is None and is_done:
                raise UnknownToken(f"{rule.name} in {member.name}")
            if live is not None and live != _scalar(value):
                setattr(message, member.name, base64.b64decode(live) if isinstance(value, bytes) else live)
                is_changed = True
        elif member.name in _QUERIES:
            query = _message_or_none(_QUERIES[member.name], value)
            if query is not None and _set_live_tokens(query, rules_by_member, tokens, is_done):
                setattr(message, member.name, query.SerializeToString())
                is_changed = True
        elif member.message_type is not None:
            for each in [value] if isinstance(value, Message) else value:
                is_changed |= _set_live_tokens(each, rules_by_member, tokens, is_done)
    return is_changed


def _with_body(request: Request, message: Message) -> Request:
    try:
        body = message.SerializeToString()
    except EncodeError:
        return request
    if not request.header("x-ots-request-compress-type"):
        return replace(request, body=body)
    headers = tuple(
        (name, str(len(body)) if name == "x-ots-request-compress-size" else value)
        for name, value in request.headers
    )
    return replace(request, headers=headers, body=zlib.compress(body))


def _reply_type(request: type[Message]) -> type[Message]:
    """Return the type of the reply to a request. It stands in the same file of the protocol."""
    name = request.DESCRIPTOR.name.removesuffix("Request") + "Response"
    descriptor: Any = request.DESCRIPTOR.file.message_types_by_name[name]
    return GetMessageClass(descriptor)


def _message_or_none(kind: type[Any], data: bytes) -> Any:
    """Return the message in `data`, or None."""
    message = kind()
    try:
        message.ParseFromString(data)
    except DecodeError:
        return None
    return message if message.IsInitialized() else None


# Messages as trees


def _tree(message: Message) -> dict[str, Any]:
    return {field.name: _member(field, value) for field, value in message.ListFields()}


def _member(field: FieldDescriptor, value: Any) -> Any:
    if field.name in _ROWS and field.type == FieldDescriptor.TYPE_BYTES:
        return _rows(value) if isinstance(value, bytes) else [_rows(element) for element in value]
    if field.message_type is not None:
        return _tree(value) if isinstance(value, Message) else [_tree(element) for element in value]
    return (
        _scalar(value)
        if isinstance(value, str | bytes | int | float)
        else [_scalar(element) for element in value]
    )


def _scalar(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _rows(data: bytes) -> Any:
    """Return the rows in PlainBuffer bytes. Other bytes become base64."""
    try:
        return [_row(row) for row in decode_rows(data)]
    except PlainBufferError:
        return base64.b64encode(data).decode()


def _row(row: WireRow) -> dict[str, Any]:
    """Return a row as a tree. Cells keep their order, because clients see it."""
    tree: dict[str, Any] = {
        "key": [_cell(cell) for cell in row.key],
        "cells": [_cell(cell) for cell in row.cells],
    }
    if row.is_delete:
        tree["is_delete"] = True
    if row.extension is not None:
        tree["extension"] = list(row.extension)
    return tree


def _cell(cell: WireCell) -> dict[str, Any]:
    tree: dict[str, Any] = {"name": cell.name}
    if isinstance(cell.value, Value):
        tree["kind"], tree["value"] = cell.value.kind.name, _plain(cell.value.data)
    elif cell.value is not None:
        tree["value"] = repr(cell.value)
    if cell.operation is not None:
        tree["operation"] = cell.operation.name
    if cell.stamp_ms is not None:
        tree["stamp_ms"] = cell.stamp_ms
    return tree


def _plain(value: Any) -> Any:
    """Return a cell's value for JSON. NaN becomes text, because it is not equal to itself."""
    if isinstance(value, Enum | float) and value != value:
        return "NaN"
    return _scalar(value)
