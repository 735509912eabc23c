"""The DynamoDB dialect: its class, its background work, and the errors that tests can inject.

dispatch.py makes a call of a request. The class sends answers and errors.

The modules of background work (jobs on objects, delivery to Kinesis) are imported if the settings ask for it.

Fault injection (control/faults.py) produces codes that the SDKs handle, with the service's texts. Texts: developer
guide, "Error handling with DynamoDB". Those for gateway errors are from gateway_errors.py.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Coroutine, Mapping
from typing import Any

import orjson

from tablegate.adapters.dynamodb import DIALECT, dispatch, request_info, security_tokens
from tablegate.adapters.dynamodb.call import Answer, CallContext
from tablegate.adapters.dynamodb.detection import DynamoDBDetection
from tablegate.adapters.dynamodb.operation_table import NAMES, OPERATIONS
from tablegate.adapters.dynamodb.tables.table_definitions import shown_table_keys
from tablegate.adapters.dynamodb.throughput import Throttle
from tablegate.adapters.dynamodb.wire import auth, http
from tablegate.adapters.dynamodb.wire.errors import (
    ServiceError,
    cancelled,
    condition_failed,
    internal,
    render,
)
from tablegate.adapters.dynamodb.wire.gateway_errors import error_for_caller, service_error_of
from tablegate.adapters.dynamodb.wire.signature_claims import Caller
from tablegate.gateway.configuration.settings import BadSetting
from tablegate.gateway.dialects.adapter import Adapter, ConsolePart
from tablegate.gateway.dialects.dialect import CONFLICT, INTERNAL, LIMIT, THROTTLING, Dialect, Gateway, Seed
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.model import errors
from tablegate.gateway.model.authorization.permissions import Channel
from tablegate.gateway.model.errors import GatewayError, LimitExceeded, NotPermitted
from tablegate.gateway.model.request_info import RequestInfo, RequestKind, kind_of, only_reads_rows
from tablegate.gateway.model.tables.tables import Table

# Background work


def _register_background_work(gateway: Gateway) -> None:
    """Register the work that the settings ask for. Raises BadSetting."""
    if gateway.settings.has_object_store:
        from tablegate.adapters.dynamodb.features.exports_imports import operations

        operations.register_workers(gateway)
    if gateway.settings.kinesis_endpoint_url:
        _deliver_to_kinesis(gateway)


def _deliver_to_kinesis(gateway: Gateway) -> None:
    """Register delivery of changes to Kinesis. Raises BadSetting if boto3 is not installed."""
    try:
        from tablegate.adapters.dynamodb.features.kinesis.operations import KIND
        from tablegate.adapters.dynamodb.features.kinesis.producer import Producer
    except ModuleNotFoundError:
        raise BadSetting("{} needs boto3: pip install 'tablegate[clouds]'", "kinesis_endpoint_url") from None
    gateway.engine.add_delivery(KIND, Producer(gateway.settings).deliver)


# Injected faults


_CONFLICT_ERROR = service_error_of(errors.PartitionLocked(), "")
_ERRORS = (
    service_error_of(errors.Throttled("", "write"), ""),
    internal(),
    _CONFLICT_ERROR,
    service_error_of(errors.Busy(), ""),
    service_error_of(errors.NotAuthenticated(""), ""),
    service_error_of(errors.PositionExpired(), ""),
    service_error_of(errors.TokenReused(), ""),
    condition_failed(),
    cancelled([_CONFLICT_ERROR]),
    ServiceError("AccessDeniedException", "Access denied."),
    ServiceError(
        "ExpiredIteratorException", "Iterator expired. The iterator was created at time too long ago."
    ),
    ServiceError("ItemCollectionSizeLimitExceededException", "Collection size exceeded."),
    ServiceError("LimitExceededException", "Too many operations for a given subscriber."),
    ServiceError(
        "RequestLimitExceeded",
        "Throughput exceeds the current throughput limit for your account. Please contact AWS Support to request a limit "
        "increase",
    ),
    ServiceError("ResourceInUseException", "The resource which you are attempting to change is in use."),
    ServiceError("ResourceNotFoundException", "Requested resource not found"),
    ServiceError("ThrottlingException", "Rate of requests exceeds the allowed throughput."),
    ServiceError(
        "TransactionInProgressException",
        "The transaction with the given request token is already in progress.",
    ),
    ServiceError("ValidationException", "The provided request is not valid."),
)
_INJECTABLE_ERRORS: Mapping[str, ServiceError] = {error.code: error for error in _ERRORS}
INJECTABLE_FAULTS: Mapping[str, str] = {
    **{code: code for code in _INJECTABLE_ERRORS},
    THROTTLING: "ProvisionedThroughputExceededException",
    INTERNAL: "InternalServerError",
    CONFLICT: "TransactionConflictException",
    LIMIT: "RequestLimitExceeded",
}


# The dialect


log = logging.getLogger("tablegate")


def listed(table: Table) -> tuple[str, str, str]:
    """Return (name, key attributes, ARN) of a table of any dialect, for `tablegate tables`.

    In the ARN, "*" stands for any account and region.
    """
    key_text = ", ".join(f"{key.name} {key.role} {key.type}" for key in shown_table_keys(table.key_schema))
    return table.name, key_text, f"arn:aws:dynamodb:*:*:table/{table.name}"


class DynamoDB(DynamoDBDetection, Dialect):
    """The dialect for a gateway, with values read once from the settings."""

    faults = INJECTABLE_FAULTS
    refused_part_marks = request_info.PART_MARKS
    operations = frozenset(OPERATIONS) | security_tokens.OPERATIONS
    batches = frozenset(
        name for name, row in OPERATIONS.loaded.items() if row.purpose.channel is Channel.BATCH
    )
    blocking_operations = OPERATIONS.blocking
    refusal_statuses = frozenset({400, 403})

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(gateway)
        _register_background_work(gateway)
        self._calls = dispatch.CallParser(gateway)
        self._throttle = Throttle(gateway.now_ms) if gateway.settings.throughput == "enforce" else None

    def operation(self, request: Request) -> str:
        """Return the name of the operation, or "" if there is none."""
        name = NAMES.get(request.header_map.get("x-amz-target", ""))
        if name is not None:
            return name
        return security_tokens.operation(request) if security_tokens.matches(request) else ""

    def refusal_of_head(self, request: Request) -> Reply | None:
        """Return the error reply if the signature fails regardless of the body (Dialect.refusal_of_head)."""
        if security_tokens.matches(request):  # its requests are short
            return http.too_large(request)
        try:
            auth.check_head(request, self.gateway.credentials, self.gateway.real_now_ms())
        except ServiceError as error:
            is_call = http.is_call(request)
            return self.render_error(request, None, error) if is_call else http.plain_answer(request)
        return None

    @classmethod
    def kind_of(cls, operation: str) -> RequestKind:
        """Return the kind of an operation (Dialect.kind_of)."""
        if operation in security_tokens.OPERATIONS:
            return RequestKind.SIGN_IN
        row = OPERATIONS.get(operation)
        return super().kind_of(operation) if row is None else kind_of(row.purpose)

    def long_from_bytes(self, operation: str) -> int:
        """Return the length from which a request takes long (Dialect.long_from_bytes)."""
        row = OPERATIONS.loaded.get(operation)
        return super().long_from_bytes(operation) if row is None else row.long_from_bytes

    def only_reads(self, request: Request) -> bool:
        """Return True if a request only reads rows (Dialect.only_reads)."""
        row = OPERATIONS.get(self.operation(request))
        return row is not None and only_reads_rows(row.purpose) and self._throttle is None

    def request_info(self, request: Request, reply: Reply | None = None) -> RequestInfo:
        """Return the description of a request (Dialect.request_info)."""
        if request.info is not None:  # those of a request to the token service
            return request.info
        head = super().request_info(request)
        credentials = self.gateway.credentials
        if reply is not None:
            caller = auth.claimed(request, credentials, self.gateway.real_now_ms())
            return request_info.read(head, request, reply, caller, self.gateway)
        try:
            verified = auth.verify(request, credentials, self.gateway.real_now_ms())
        except ServiceError:
            return head
        return request_info.read(head, request, None, verified, self.gateway)

    def load_seed(self, seed: Seed) -> dict[str, int]:
        """Load the tables and items of a seed (Dialect.load_seed)."""
        from tablegate.adapters.dynamodb import seeds

        return seeds.load_seed(self.gateway, seed)

    def fault(self, request: Request, name: str) -> Reply:
        """Return an error reply injected by a test (Dialect.fault)."""
        service_error = _INJECTABLE_ERRORS[name]
        return http.reply(request, service_error.status, render(service_error))

    # From request to reply

    def handle(self, request: Request) -> Coroutine[Any, Any, Reply]:
        """Answer a request (Dialect.handle). The token service, health checks and CORS are answered directly."""
        return super().handle(request) if http.is_call(request) else self._answer_directly(request)

    async def _answer_directly(self, request: Request) -> Reply:
        if security_tokens.matches(request):
            return security_tokens.answer(request, self.gateway)
        health = http.emulator_health(request) if self.gateway.settings.emulator_health else None
        return health or http.plain_answer(request)

    def authenticate(self, request: Request) -> Caller | None:
        """Return the caller (Dialect.authenticate).

        Returns None with auth `dev`: nothing is verified, and errors come in the service's order, in which broken JSON
        precedes a missing signature (docs/protocols/dynamodb.md rule 5).
        """
        credentials = self.gateway.credentials
        if credentials.is_dev:
            return None
        return auth.verify(request, credentials, self.gateway.real_now_ms())

    def parse(self, request: Request, caller: Caller | None) -> CallContext:
        """Return the call (Dialect.parse). Raises BodyTooLarge, ServiceError, Busy."""
        return self._calls.parse(request, caller)

    def execute(self, call: CallContext) -> Awaitable[Answer]:
        """Authorize the resources that a call names, and carry out its operation (Dialect.execute)."""
        operation = dispatch.execute(call)
        return operation if self._throttle is None else self._throttle.limited(call, operation)

    def render(self, request: Request, caller: Caller | None, answer: Answer) -> Reply:
        """Return the reply with an answer (Dialect.render)."""
        if not isinstance(answer, bytes):
            answer = b"" if answer is None else orjson.dumps(answer)
        return http.reply(request, 200, answer)

    def finalize_authorization(self, request: Request, reply: Reply) -> Reply:
        """Return the reply to a restricted request that failed early (Dialect.finalize_authorization)."""
        try:
            dispatch.authorize_rejected(request, self.gateway)
        except NotPermitted as refusal:
            return self.render_error(request, None, refusal)
        return super().finalize_authorization(request, reply)

    def render_error(self, request: Request, caller: Caller | None, error: Exception) -> Reply:
        """Return the error reply (Dialect.render_error).

        Server errors are logged with the request id that the client gets.
        """
        if isinstance(error, http.BodyTooLarge):
            return http.too_large(request)
        service_error = error_for_caller(error, self.operation(request), request.authorization)
        if service_error.status >= 500:
            unforeseen = not isinstance(error, (ServiceError, GatewayError))
            facts = {"dialect": DIALECT, "operation": self.operation(request), "request_id": request.id}
            level = logging.ERROR if unforeseen else logging.WARNING
            log.log(level, "a request failed: %r", error, exc_info=unforeseen, extra={"facts": facts})
        return http.reply(request, service_error.status, render(service_error))

    def refuse(self, request: Request, error: Exception) -> Reply | None:
        """Return the reply to a request that the server itself rejects (Dialect.refuse)."""
        if isinstance(error, LimitExceeded):
            return http.too_large(request)
        service_error = internal()
        if isinstance(error, GatewayError):
            service_error = error_for_caller(error, self.operation(request), request.authorization)
        return http.reply(request, service_error.status, render(service_error))


def _console() -> ConsolePart:
    from tablegate.adapters.dynamodb.administration import ADMINISTRATION
    from tablegate.adapters.dynamodb.display import DISPLAY

    return ConsolePart(DISPLAY, ADMINISTRATION)


ADAPTER = Adapter(DynamoDB, listed, _console)
