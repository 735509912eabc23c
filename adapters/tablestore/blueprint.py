"""HTTP in, HTTP out: authenticate, find the operation, read the message, run the handler, sign the reply.

A request is Table Store's if it has an x-ots- header; its operation is the path. Knows no operation itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any

from google.protobuf.message import Message

from adapters.tablestore import DIALECT
from adapters.tablestore.claims import CLAIMS
from adapters.tablestore.operation_table import OPERATIONS, READING, Operation
from adapters.tablestore.values.values import key_type
from adapters.tablestore.values.views import index_view
from adapters.tablestore.wire import auth, replies
from adapters.tablestore.wire.auth import Caller
from adapters.tablestore.wire.calls import Call, OneCommand, check_names, named_tables
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
from gateway.dialect import Dialect, Gateway, Handler, Round, Summary
from gateway.http import Reply, Request
from gateway.model.authorizations import Authorization
from gateway.model.commands import Exchange
from gateway.model.errors import GatewayError, LimitExceeded
from gateway.model.late_modules import LateModule
from gateway.model.tables import Table
from gateway.security.credentials import Scheme

if TYPE_CHECKING:
    from adapters.tablestore import audited, summaries
    from gateway.audit import Deed, Kind
else:
    audited = LateModule("adapters.tablestore.audited")
    summaries = LateModule("adapters.tablestore.summaries")

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
        return summaries.summary(request, operation, row.request, caller.access_id)

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

    @cached_property
    def audited_operations(self) -> Mapping[str, Kind]:
        """What operations are for the audit (Dialect.audited_operations)."""
        return audited.kinds()

    def deed(self, request: Request, reply: Reply, operation: str) -> Deed:
        """What a request did, for the audit."""
        return audited.deed_of(request, reply, operation)

    # From request to reply

    def only_reads(self, request: Request) -> bool:
        """Whether a request wants nothing but to read rows (Dialect.only_reads)."""
        return _operation_name(request.path) in READING

    def enter(self, request: Request) -> Handler | None:
        """The handler of a request for the server's tick: in parts, where nothing but the operation itself asks the engine."""
        return self.handle if self.gateway.quotas.is_on else self._begin

    def _begin(self, request: Request) -> Round | Reply | Exchange[Reply]:
        """What `handle` does, without a generator for an operation that one command is enough for and whose table is known."""
        caller: Caller | None = None
        try:
            caller = self._verified(request)
            row, call = self._read(request, caller)
            handler = row.handler
            asked = handler.known(call) if type(handler) is OneCommand else None
        except Exception as error:
            return self._reply(request, caller, self._told(request, error))
        if asked is None:
            return self._exchange(request, row, call)
        return Round([asked[0]], partial(self._finish, request, caller, asked[1]))

    def _finish(
        self,
        request: Request,
        caller: Caller,
        answer: Callable[[Any], Message],
        outcomes: list[Any] | Exception,
    ) -> Reply:
        told: bytes | ServiceError
        try:
            if isinstance(outcomes, Exception):
                raise outcomes
            told = answer(outcomes[0]).SerializeToString()
        except Exception as error:
            told = self._told(request, error)
        return self._reply(request, caller, told)

    def handle(self, request: Request) -> Exchange[Reply]:
        """Answer a request: an exchange that yields commands and returns a Reply, also where it refuses. Raises nothing."""
        caller: Caller | None = None
        try:
            caller = self._verified(request)
            row, call = self._read(request, caller)
        except Exception as error:
            return self._reply(request, caller, self._told(request, error))
        return (yield from self._exchange(request, row, call))

    def _exchange(self, request: Request, row: Operation, call: Call) -> Exchange[Reply]:
        """The reply to a request that has been read."""
        answer: bytes | ServiceError
        try:
            yield from check_names(call)
            exchange = row.handler(call)
            caller, quotas = call.caller, self.gateway.quotas
            if quotas.is_on:
                exchange = quotas.limited(
                    request, Scheme.TABLESTORE.value, caller.access_id, caller.namespace, exchange
                )
            made: Message = yield from exchange
            answer = made.SerializeToString()
        except Exception as error:
            answer = self._told(request, error)
        return self._reply(request, call.caller, answer)

    def _verified(self, request: Request) -> Caller:
        """Who a request is from. Raises ServiceError, NotAuthenticated."""
        if request.method != "POST":
            raise ServiceError("OTSMethodNotAllowed", "Only POST method for requests is supported.")
        gateway = self.gateway
        return auth.verify(request, _operation_name(request.path), gateway.credentials, gateway.real_now_ms())

    def _read(self, request: Request, caller: Caller) -> tuple[Operation, Call]:
        """The operation and the call of a request. Raises ServiceError, NotPermitted."""
        operation = _operation_name(request.path)
        row = self._operations.get(operation)
        if row is None:
            raise invalid(f"Unsupported operation: {operation}.")
        if request.authorization is not None:
            request.authorization.purpose = row.purpose
        message = parse(row.request, replies.inflated(request), "the ProtoBuf message")
        gateway = self.gateway
        may_be_old = gateway.settings.replica_reads == "all"
        call = Call(operation, message, caller, gateway, gateway.now_ms(), may_be_old)
        return row, call

    def _told(self, request: Request, error: Exception) -> ServiceError:
        """What a client is told of an error. What nobody foresaw is logged."""
        if isinstance(error, ServiceError):
            return error
        if isinstance(error, GatewayError):
            return service_error_of(error, self._style)
        log.error("request %s (%s) failed", request.id, replies.request_id(request), exc_info=error)
        return INTERNAL

    def _reply(self, request: Request, caller: Caller | None, answer: bytes | ServiceError) -> Reply:
        is_post = request.method == "POST"
        operation = _operation_name(request.path) if is_post else request.path.lstrip("/")
        return replies.reply(request, operation, caller, answer, self.gateway.real_now_ms())

    def names(self, request: Request, authorization: Authorization) -> Iterable[tuple[str, str]]:
        """The tables that a request names (Dialect.names). What is no table is perhaps an index, and judged when it is found."""
        row = self._operations.get(_operation_name(request.path))
        instance = request.header("x-ots-instancename").strip()
        namespace = self.gateway.credentials.namespace(Scheme.TABLESTORE, instance)
        try:
            assert row is not None
            named = named_tables(parse(row.request, replies.inflated(request), "the ProtoBuf message"))
        except (ServiceError, AssertionError):
            return []
        known = self.gateway.engine.cached_table
        return [(namespace, name) for name in named if known(namespace, name) is not None]

    def refuse(self, request: Request, error: Exception) -> Reply | None:
        """The reply to a request that the server itself refuses, in this dialect's words (Dialect.refuse). It is not signed: who
        sent the request is not proven."""
        if isinstance(error, LimitExceeded):
            told = ServiceError("OTSRequestBodyTooLarge", "The size of POST data is too large.")
        else:
            told = service_error_of(error) if isinstance(error, GatewayError) else INTERNAL
        return replies.reply(request, _operation_name(request.path), None, told, self.gateway.real_now_ms())


@lru_cache(maxsize=256)
def _operation_name(path: str) -> str:
    """The last part of the path, or the last two of the tunnel service's."""
    parts = path.strip("/").split("/")
    return "/".join(parts[-2:]) if parts[-2:-1] == ["tunnel"] else parts[-1]
