"""HTTP in, HTTP out: authenticate, find the operation, read the message, run the handler, sign the reply.

A request is Table Store's if it has an x-ots- header; its operation is the path. Knows no operation itself.
"""

from __future__ import annotations

import logging

from google.protobuf.message import Message

from adapters.tablestore import DIALECT, audited, summaries
from adapters.tablestore.claims import CLAIMS
from adapters.tablestore.operation_table import OPERATIONS
from adapters.tablestore.values.values import key_type
from adapters.tablestore.values.views import index_view
from adapters.tablestore.wire import auth, replies
from adapters.tablestore.wire.auth import Caller
from adapters.tablestore.wire.calls import Call, check_names
from adapters.tablestore.wire.errors import (
    INTERNAL,
    PLANTED,
    ServiceError,
    invalid,
    planted,
    service_error_of,
)
from adapters.tablestore.wire.parsing import parse
from adapters.tablestore.wire.protocol import table_store_pb2 as messages
from gateway.audit import Deed
from gateway.dialect import Dialect, Gateway, Summary
from gateway.http import Reply, Request
from gateway.model.commands import Exchange
from gateway.model.errors import GatewayError, LimitExceeded
from gateway.model.tables import Table
from gateway.security.credentials import Scheme

log = logging.getLogger(__name__)


def create(gateway: Gateway) -> Dialect:
    """Make the dialect on a gateway."""
    return TableStore(gateway)


def listed(table: Table) -> tuple[str, str, str]:
    """(name, primary key, address) of a table of any dialect, for `tablegate tables`: the table of that name in any instance."""
    columns = table.key_schema.columns
    keys = ", ".join(f"{column.name} {messages.PrimaryKeyType.Name(key_type(column))}" for column in columns)
    return table.name, keys, f"*/{table.name}"


class TableStore(Dialect):
    """The dialect on a gateway, with what it reads once from the settings."""

    name = DIALECT
    hint = CLAIMS.hint
    service_hosts = CLAIMS.service_hosts
    faults = PLANTED
    batches = frozenset({"BatchGetRow", "BatchWriteRow", "BulkImport"})
    audited_operations = audited.KINDS

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(gateway)
        gateway.engine.register_view(DIALECT, index_view)
        self._operations = OPERATIONS
        self._style = gateway.settings.tablestore_message_style

    # Which requests are this dialect's

    def claims(self, request: Request) -> bool:
        """Whether a request is Table Store's: no other has such headers."""
        return CLAIMS.claims(request)

    def operation(self, request: Request) -> str:
        """The operation's name, or "unknown" where there is none."""
        name = _operation_name(request.path)
        return name if name in self._operations else "unknown"

    def summary(self, request: Request) -> Summary:
        """What a request asks for, in short (Dialect.summary)."""
        operation, caller = self.operation(request), self._caller(request)
        row = self._operations.get(operation)
        if row is None or caller is None:
            return Summary(operation)
        return summaries.summary(request, operation, row.request, caller)

    def fault(self, request: Request, name: str) -> Reply:
        """An error reply that was planted (Dialect.fault), signed for a caller who is known."""
        operation, caller = _operation_name(request.path), self._caller(request)
        return replies.reply(request, operation, caller, planted(name), self.gateway.real_now_ms())

    def _caller(self, request: Request) -> Caller | None:
        try:
            return auth.verify(
                request, _operation_name(request.path), self.gateway.credentials, self.gateway.real_now_ms()
            )
        except (ServiceError, GatewayError):
            return None

    def deed(self, request: Request, reply: Reply, operation: str) -> Deed:
        """What a request did, for the audit."""
        return audited.deed_of(request, reply, operation)

    # From request to reply

    def handle(self, request: Request) -> Exchange[Reply]:
        """Answer a request: an exchange that yields commands and returns a Reply, also where it refuses. Raises nothing."""
        gateway = self.gateway
        now_ms = gateway.now_ms()
        operation = request.path.lstrip("/")
        caller: Caller | None = None
        answer: bytes | ServiceError
        try:
            if request.method != "POST":
                raise ServiceError("OTSMethodNotAllowed", "Only POST method for requests is supported.")
            operation = _operation_name(request.path)
            caller = auth.verify(request, operation, gateway.credentials, gateway.real_now_ms())
            row = self._operations.get(operation)
            if row is None:
                raise invalid(f"Unsupported operation: {operation}.")
            message = parse(row.request, replies.inflated(request), "the ProtoBuf message")
            may_be_old = gateway.settings.replica_reads == "all"
            call = Call(operation, message, caller, gateway, now_ms, may_be_old)
            yield from check_names(call)
            exchange = row.handler(call)
            if gateway.quotas.is_on:
                exchange = gateway.quotas.limited(
                    request, Scheme.TABLESTORE.value, caller.access_id, caller.namespace, exchange
                )
            made: Message = yield from exchange
            answer = made.SerializeToString()
        except ServiceError as error:
            answer = error
        except GatewayError as error:
            answer = service_error_of(error, self._style)
        except Exception:
            log.exception("request %s (%s) failed", request.id, replies.request_id(request))
            answer = INTERNAL
        return replies.reply(request, operation, caller, answer, gateway.real_now_ms())

    def refuse(self, request: Request, error: Exception) -> Reply | None:
        """The reply to a request that the server itself refuses, in this dialect's words (Dialect.refuse). It is not signed: who
        sent the request is not proven."""
        if isinstance(error, LimitExceeded):
            told = ServiceError("OTSRequestBodyTooLarge", "The size of POST data is too large.")
        else:
            told = service_error_of(error) if isinstance(error, GatewayError) else INTERNAL
        return replies.reply(request, _operation_name(request.path), None, told, self.gateway.real_now_ms())


def _operation_name(path: str) -> str:
    """The last part of the path, or the last two of the tunnel service's."""
    parts = path.strip("/").split("/")
    return "/".join(parts[-2:]) if parts[-2:-1] == ["tunnel"] else parts[-1]
