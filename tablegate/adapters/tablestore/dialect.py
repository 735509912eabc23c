"""The Table Store dialect: authenticates requests, parses messages, runs handlers, and signs replies.

The operation of a request is its path.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from functools import partial

from google.protobuf.message import Message

from tablegate.adapters.tablestore import request_info
from tablegate.adapters.tablestore.call import CallContext, execute
from tablegate.adapters.tablestore.detection import TableStoreDetection
from tablegate.adapters.tablestore.operation_table import OPERATIONS, operation_name
from tablegate.adapters.tablestore.values import key_type
from tablegate.adapters.tablestore.wire import auth, errors, limits, replies
from tablegate.adapters.tablestore.wire.auth import Caller
from tablegate.adapters.tablestore.wire.parsing import parse
from tablegate.adapters.tablestore.wire.plainbuffer import CELL_BEGINNING
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.dialects.adapter import Adapter, ConsolePart
from tablegate.gateway.dialects.dialect import Dialect
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.http.request_bodies import MIN_PARSED_BYTES
from tablegate.gateway.model.authorization.quotas import account_of
from tablegate.gateway.model.errors import GatewayError, HeadTooLong, LimitExceeded
from tablegate.gateway.model.request_info import RequestInfo, RequestKind, kind_of, only_reads_rows
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.security.credentials import Scheme

log = logging.getLogger(__name__)


def listed(table: Table) -> tuple[str, str, str]:
    """Return name, primary key and address of a table of any dialect, for `tablegate tables`.

    The address has the name of the table in any instance.
    """
    columns = table.key_schema.columns
    keys = ", ".join(f"{column.name} {messages.PrimaryKeyType.Name(key_type(column))}" for column in columns)
    return table.name, keys, f"*/{table.name}"


class TableStore(TableStoreDetection, Dialect):
    """The Table Store dialect of a gateway."""

    faults = errors.INJECTABLE_FAULTS
    operations = frozenset(OPERATIONS)
    blocking_operations = OPERATIONS.blocking
    batches = frozenset({"BatchGetRow", "BatchWriteRow", "BulkImport"})
    refusal_statuses = frozenset({400, 403})  # 400: without key or signature

    def operation(self, request: Request) -> str:
        """Return the name of the operation, or "unknown"."""
        name = operation_name(request.path)
        return name if name in self.operations else "unknown"

    def request_info(self, request: Request, reply: Reply | None = None) -> RequestInfo:
        """Return the description of a request (Dialect.request_info)."""
        head = super().request_info(request)
        if reply is None and self._caller(request) is None:
            return head
        caller = auth.claimed(request, self.gateway.credentials, self.gateway.real_now_ms())
        return request_info.read(head, request, reply, caller)

    def fault(self, request: Request, name: str) -> Reply:
        """Return the reply for an injected fault (Dialect.fault), signed if the caller is authenticated."""
        operation, caller = operation_name(request.path), self._caller(request)
        return replies.reply(
            request, operation, caller, errors.injected_error(name), self.gateway.real_now_ms()
        )

    def _caller(self, request: Request) -> Caller | None:
        try:
            return auth.verify(
                request, operation_name(request.path), self.gateway.credentials, self.gateway.real_now_ms()
            )
        except (errors.ServiceError, GatewayError):
            return None

    # From request to reply

    def refusal_of_head(self, request: Request) -> Reply | None:
        """Return the error reply for an unauthenticated request, or None (Dialect.refusal_of_head).

        The signature covers the digest of the body in the headers, so the body is not needed.
        """
        try:
            self.authenticate(request, has_body=False)
        except (errors.ServiceError, GatewayError) as error:
            return self.render_error(request, None, error)
        return None

    def takes_long(self, request: Request, operation: str) -> bool:
        """Return True for statements and searches, and for long bodies (Dialect.takes_long)."""
        return operation in self.blocking_operations or super().takes_long(request, operation)

    @classmethod
    def kind_of(cls, operation: str) -> RequestKind:
        """Return the kind of an operation (Dialect.kind_of)."""
        row = OPERATIONS.get(operation)
        return super().kind_of(operation) if row is None else kind_of(row.purpose)

    def only_reads(self, request: Request) -> bool:
        """Return True if the operation only reads rows (Dialect.only_reads)."""
        row = OPERATIONS.get(operation_name(request.path))
        return row is not None and only_reads_rows(row.purpose)

    def authenticate(self, request: Request, has_body: bool = True) -> Caller:
        """Return the caller (Dialect.authenticate). Raises ServiceError, NotAuthenticated."""
        if request.method != "POST":
            raise errors.ServiceError("OTSMethodNotAllowed", "Only POST method for requests is supported.")
        gateway = self.gateway
        operation = operation_name(request.path)
        return auth.verify(request, operation, gateway.credentials, gateway.real_now_ms(), has_body)

    def execute(self, call: CallContext) -> Awaitable[Message]:
        """Authorize the tables that a call names, and carry out its operation (Dialect.execute)."""
        return execute(call, OPERATIONS.loaded[call.operation].handler)

    def render(self, request: Request, caller: Caller, answer: Message) -> Reply:
        """Return the signed reply (Dialect.render)."""
        now_ms = self.gateway.real_now_ms()
        return replies.reply(
            request, operation_name(request.path), caller, answer.SerializeToString(), now_ms
        )

    def render_error(self, request: Request, caller: Caller | None, error: Exception) -> Reply:
        """Return the error reply, signed if the caller is known (Dialect.render_error)."""
        operation = operation_name(request.path) if request.method == "POST" else request.path.lstrip("/")
        service_error = self._service_error(request, error)
        return replies.reply(request, operation, caller, service_error, self.gateway.real_now_ms())

    def parse(self, request: Request, caller: Caller) -> CallContext:
        """Return the call (Dialect.parse). Raises ServiceError, QuotaExceeded, Busy."""
        operation = operation_name(request.path)
        if operation not in self.operations:
            raise errors.invalid(f"Unsupported operation: {operation}.")
        row = OPERATIONS.loaded.get(operation) or OPERATIONS[operation]
        if request.authorization is not None:
            request.authorization.purpose = row.purpose
        if self.gateway.quotas.is_on:
            self._enter_quotas(request, caller)
        gateway = self.gateway
        body = request.body
        if len(body) > MIN_PARSED_BYTES or "x-ots-request-compress-type" in request.header_map:
            body = self._uncompressed(request)
        message = parse(row.request, body, "the ProtoBuf message")
        may_be_old = gateway.settings.replica_reads == "all"
        hold = partial(gateway.memory.hold, request)
        return CallContext(
            operation,
            message,
            caller,
            gateway,
            gateway.now_ms(),
            may_be_old,
            request.authorization,
            hold,
            request.check_client,
        )

    def _enter_quotas(self, request: Request, caller: Caller) -> None:
        """Charge the request to its quotas. Raises QuotaExceeded.

        A credential for several instances has one allowance for all of them.
        """
        credential = self.gateway.credentials.find(Scheme.TABLESTORE, caller.access_id)
        scope = None
        if credential is not None and credential.place != caller.instance:
            scope = account_of(caller.namespace).partition("/")[0]
        self.gateway.quotas.enter(request, Scheme.TABLESTORE.value, caller.access_id, caller.namespace, scope)

    def _uncompressed(self, request: Request) -> bytes:
        """Return the uncompressed message. Raises ServiceError, Busy."""
        if "x-ots-request-compress-type" in request.header_map:
            self.gateway.memory.hold_inflated(request, limits.BODY_MAX_BYTES)
        body = replies.inflated(request)
        if len(body) > MIN_PARSED_BYTES:
            cells = body.count(CELL_BEGINNING)
            self.gateway.memory.hold(request, 3 * len(body) + limits.CELL_BYTES * cells)
        return body

    def _service_error(self, request: Request, error: Exception) -> errors.ServiceError:
        """Return the error of the service for any exception. Unexpected ones are logged."""
        if isinstance(error, errors.ServiceError):
            return error
        if isinstance(error, GatewayError):
            return errors.service_error_of(error)
        log.error("request %s (%s) failed", request.id, replies.request_id(request), exc_info=error)
        return errors.INTERNAL

    def refuse(self, request: Request, error: Exception) -> Reply | None:
        """Return the reply to a request that the server refuses (Dialect.refuse). It is unsigned, because no caller is
        authenticated."""
        if isinstance(error, LimitExceeded):
            service_error = errors.ServiceError(
                "OTSRequestBodyTooLarge", "The size of POST data is too large."
            )
        elif isinstance(error, HeadTooLong):
            service_error = errors.invalid(error.text)
        else:
            service_error = (
                errors.service_error_of(error) if isinstance(error, GatewayError) else errors.INTERNAL
            )
        return replies.reply(
            request, operation_name(request.path), None, service_error, self.gateway.real_now_ms()
        )


def _console() -> ConsolePart:
    from tablegate.adapters.tablestore.administration import ADMINISTRATION
    from tablegate.adapters.tablestore.display import DISPLAY

    return ConsolePart(DISPLAY, ADMINISTRATION)


ADAPTER = Adapter(TableStore, listed, _console)
