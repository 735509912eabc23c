"""DynamoDB's one endpoint: which handler a request belongs to, and what becomes of it on the way there and back.

The order of checks is the service's (docs/protocols/dynamodb.md rule 5): size, method and content type, JSON, target, signature,
then operation_schemas.check, then the handler. One path serves both entries: the server's tick drives `DynamoDB.handle` itself,
Flask's route drives it to its end.
"""

from __future__ import annotations

import gc
import logging
import re
from collections.abc import Iterable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import orjson

from adapters.dynamodb import DIALECT
from adapters.dynamodb.capacity.throughput import Throttle
from adapters.dynamodb.operation_table import OF_NEW_TABLES, OPERATIONS, READING, Operation, purpose_of
from adapters.dynamodb.tables.descriptions import shown_table_keys
from adapters.dynamodb.validation import operation_schemas
from adapters.dynamodb.values import keys
from adapters.dynamodb.wire import auth, http, limits, planted_errors
from adapters.dynamodb.wire.calls import Answer, Call, OneCommand
from adapters.dynamodb.wire.errors import ServiceError, internal, render, serialization, service_error_of
from adapters.dynamodb.wire.refusals import not_permitted
from adapters.dynamodb.wire.resources import bare_name
from gateway.dialect import Dialect, Gateway, Handler, Round, Seed, Summary
from gateway.http import Reply, Request
from gateway.model.authorizations import Authorization
from gateway.model.commands import AnyCommand, Exchange
from gateway.model.errors import GatewayError, LimitExceeded, NotPermitted
from gateway.model.late_modules import LateModule
from gateway.model.tables import Table
from gateway.security.credentials import Scheme
from gateway.settings import BadSetting

if TYPE_CHECKING:
    from adapters.dynamodb import audited, summaries
    from adapters.dynamodb.jobs import workers
    from gateway.audit import Deed, Kind
else:
    audited = LateModule("adapters.dynamodb.audited")
    summaries = LateModule("adapters.dynamodb.summaries")
    workers = LateModule("adapters.dynamodb.jobs.workers")

_SCHEME = Scheme.AWS.value
_new = tuple.__new__  # makes a named tuple in half the time that its own constructor takes
log = logging.getLogger("tablegate")

_HINT = (
    'boto3.client("dynamodb", endpoint_url="{url}", region_name="us-east-1", '
    'aws_access_key_id="any", aws_secret_access_key="any")'
)
# "Amazon DynamoDB endpoints and quotas" (AWS General Reference).
_SERVICE_HOSTS = re.compile(
    r"(?:(?:streams\.)?dynamodb(?:-fips)?|streams-dynamodb(?:-fips)?|\d{12}\.ddb)\.[a-z0-9-]+\.(?:amazonaws\.com(?:\.cn)?|api\.aws)"
)


def create(gateway: Gateway) -> Dialect:
    """Make the dialect on a gateway."""
    return DynamoDB(gateway)


def listed(table: Table) -> tuple[str, str, str]:
    """(name, key attributes, address) of a table of any dialect, for `tablegate tables`. In the ARN "*" stands for whatever
    account and region a caller has."""
    shown = ", ".join(f"{key.name} {key.role} {key.type}" for key in shown_table_keys(table.key_schema))
    return table.name, shown, f"arn:aws:dynamodb:*:*:table/{table.name}"


def _deliver_to_kinesis(gateway: Gateway) -> None:
    """Have changes delivered to Kinesis. Raises BadSetting where boto3 is not installed."""
    try:
        from adapters.dynamodb.kinesis.destinations import KIND
        from adapters.dynamodb.kinesis.producer import Producer
    except ModuleNotFoundError:
        raise BadSetting("kinesis_endpoint_url: needs boto3 (pip install 'tablegate[clouds]')") from None
    gateway.engine.deliveries[KIND] = Producer(gateway.settings).deliver


class DynamoDB(Dialect):
    """The dialect on a gateway, with what it reads once from the settings."""

    name = DIALECT
    hint = _HINT
    service_hosts = _SERVICE_HOSTS
    faults = planted_errors.NAMES
    batches = frozenset({"BatchGetItem", "BatchWriteItem"})
    refusal_statuses = frozenset({400, 403})

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(gateway)
        gateway.engine.register_view(DIALECT, keys.index_view)
        if gateway.settings.has_object_store:
            workers.register(gateway)
        self._operations = OPERATIONS
        self._style = gateway.settings.message_style
        if gateway.settings.kinesis_endpoint_url:
            _deliver_to_kinesis(gateway)
        self._throttle = Throttle(gateway.now_ms) if gateway.settings.throughput == "enforce" else None

    # Which requests are this dialect's

    def claims(self, request: Request) -> bool:
        """Whether a request is DynamoDB's: by its target or signature, else at the root and without the marks of an Azure
        one (whose account may be in the host name)."""
        known = request.header_map
        if known.get("x-amz-target") or known.get("authorization", "").startswith("AWS4"):
            return True
        if request.path not in ("/", ""):
            return False
        if "\nx-ms-" in "\n" + "\n".join(known):  # no name has a line break
            return False
        return not any(mark in f"&{request.query}" for mark in ("&comp=", "&restype=", "&sig="))

    def operation(self, request: Request) -> str:
        """The operation's name, or "" where there is none."""
        target = request.header_map.get("x-amz-target", "")
        return target.partition(".")[2] if target in self._operations else ""

    def only_reads(self, request: Request) -> bool:
        """Whether a request wants nothing but to read rows (Dialect.only_reads)."""
        return self.operation(request) in READING and self._throttle is None

    def enter(self, request: Request) -> Handler | None:
        """The handler of a hot operation, for the server's tick. Everything else goes through Flask."""
        if request.method != "POST" or request.target != "/":
            return None
        row = self._operations.get(request.header_map.get("x-amz-target", ""))
        if row is None or not row.hot:
            return None
        if row.parts is None or self._throttle is not None or self.gateway.quotas.is_on:
            return self.handle
        return self._begin

    @cached_property
    def audited_operations(self) -> Mapping[str, Kind]:
        """What operations are for the audit (Dialect.audited_operations)."""
        return audited.kinds()

    @cached_property
    def refused_part_marks(self) -> Mapping[str, bytes]:
        """Operations whose parts may be refused alone (Dialect.refused_part_marks)."""
        return audited.part_marks()

    def deed(self, request: Request, reply: Reply, operation: str) -> Deed:
        """What a request did, for the audit."""
        return audited.deed_of(request, reply, operation, self.gateway)

    def summary(self, request: Request) -> Summary:
        """What a request asks for, in short (Dialect.summary)."""
        operation = self.operation(request)
        try:
            caller = auth.verify(request, self.gateway.credentials, self.gateway.real_now_ms())
        except ServiceError:
            return Summary(operation)
        return summaries.summary(summaries.document(request), operation, self.gateway, caller)

    def plant(self, seed: Seed) -> dict[str, int]:
        """Make the tables and items of a seed (Dialect.plant)."""
        from adapters.dynamodb import seeds

        return seeds.plant(self.gateway, seed)

    def fault(self, request: Request, name: str) -> Reply:
        """An error reply that was planted (Dialect.fault)."""
        told = planted_errors.PLANTED[name]
        return http.reply(request, told.status, render(told, self._style))

    # From request to reply

    def _begin(self, request: Request) -> Round | Reply | Exchange[Reply]:
        """What `handle` does, without a generator, for an operation that one command is enough for and whose table is known."""
        plain = http.plain_answer(request)
        if plain is not None:
            return plain
        try:
            row, call = self._admit(request)
            table = self.gateway.engine.cached_table(call.caller.namespace, call.input["TableName"])
            parts = row.parts
            if table is None or parts is None:
                return self.handle(request)
            clauses = parts.clauses(call, call.input)
            command = parts.command(call, clauses, table)
        except http.TooLarge:
            return http.too_large(request)
        except Exception as error:
            return self._failure(request, error)
        return _new(Round, ([command], partial(self._finish, request, parts, call, clauses, command)))

    def _finish(
        self,
        request: Request,
        parts: OneCommand[Any, Any],
        call: Call,
        clauses: Any,
        command: AnyCommand,
        outcomes: list[Any] | Exception,
    ) -> Reply:
        try:
            if isinstance(outcomes, Exception):
                raise outcomes
            answer = parts.finish(call, clauses, command, outcomes[0])
        except Exception as error:
            return self._failure(request, error)
        return http.reply(request, 200, answer if type(answer) is bytes else orjson.dumps(answer))

    def handle(self, request: Request) -> Exchange[Reply]:
        """Answer a request: an exchange that yields commands and returns a Reply, also where it refuses. Raises nothing."""
        plain = http.plain_answer(request)
        if plain is not None and self.gateway.settings.emulator_health:
            plain = http.emulator_health(request) or plain
        if plain is not None:
            return plain
        try:
            answer = yield from self._answer(request)
        except http.TooLarge:
            return http.too_large(request)
        except Exception as error:
            return self._failure(request, error)
        return http.reply(request, 200, answer)

    def _answer(self, request: Request) -> Exchange[bytes]:
        """The body of the answer. Raises TooLarge, ServiceError, GatewayError."""
        row, call = self._admit(request)
        exchange = row.handler(call)
        if self._throttle is not None:
            exchange = self._throttle.limited(call, exchange)
        quotas, caller = self.gateway.quotas, call.caller
        if quotas.is_on:
            exchange = quotas.limited(request, _SCHEME, caller.access_id, caller.namespace, exchange)
        answer = yield from exchange
        return _json(answer)

    def _admit(self, request: Request) -> tuple[Operation, Call]:
        """The operation and the call of a request. Raises TooLarge, ServiceError.

        The garbage collector is off while a large body is read: JSON has no circles, and each look through a million new
        objects, whenever they had grown by a quarter, took five times as long as the reading.
        """
        text = http.body_of(request) if "content-encoding" in request.header_map else request.body
        if len(text) <= limits.LARGE_REQUEST_BYTES or not gc.isenabled():
            return self._read(request, text)
        gc.disable()
        try:
            return self._read(request, text)
        except ServiceError as error:
            # What was read is let go before the collector sees it.
            error.__traceback__ = error.__context__ = None
            raise
        finally:
            gc.enable()

    def _read(self, request: Request, text: bytes) -> tuple[Operation, Call]:
        try:
            body = orjson.loads(text) if text else None
        except (
            orjson.JSONDecodeError
        ):  # so are nesting bombs, lone surrogates, NaN and bytes that are no UTF-8
            raise serialization() from None
        target = request.header_map.get("x-amz-target", "")
        row = self._operations.get(target)
        if row is None:
            raise ServiceError("UnknownOperationException", None)
        gateway = self.gateway
        # With auth dev nobody looks at the clock.
        now_ms = 0 if gateway.credentials.is_dev else gateway.real_now_ms()
        caller = auth.verify(request, gateway.credentials, now_ms, self._style)
        name = target.partition(".")[2]
        if request.authorization is not None:
            is_new = row.purpose is OF_NEW_TABLES and isinstance(body, dict)
            request.authorization.purpose = purpose_of(row.purpose, body or {}) if is_new else row.purpose
        if not text:
            raise serialization()
        if len(text) > limits.LARGE_REQUEST_BYTES:
            operation_schemas.shorten(name, body, self._style)
        checked = operation_schemas.checker(name, self._style)(body)
        return row, _new(Call, (name, checked, caller, gateway, request.header_map))

    def names(self, request: Request, authorization: Authorization) -> Iterable[tuple[str, str]]:
        """The table that a request names (Dialect.names)."""
        try:
            name = orjson.loads(request.body).get("TableName")
        except (orjson.JSONDecodeError, AttributeError):
            return []
        identity, region = authorization.identity, authorization.source.region
        namespace = self.gateway.credentials.aws_namespace(identity.access_id, identity.account, region)
        return [(namespace, bare_name(name))] if isinstance(name, str) else []

    def _told(self, request: Request, error: Exception) -> ServiceError:
        if isinstance(error, NotPermitted) and request.authorization is not None:
            authorization = request.authorization
            return not_permitted(
                error, self.operation(request), authorization.identity, authorization.source.region
            )
        return service_error_of(error, self.operation(request), self._style)

    def _failure(self, request: Request, error: Exception) -> Reply:
        """The reply to a request that failed. What nobody foresaw is logged under the id that the client gets too."""
        told = self._told(request, error)
        if told.status >= 500:
            unforeseen = not isinstance(error, (ServiceError, GatewayError))
            facts = {"dialect": DIALECT, "operation": self.operation(request), "request_id": request.id}
            level = logging.ERROR if unforeseen else logging.WARNING
            log.log(level, "a request failed: %r", error, exc_info=unforeseen, extra={"facts": facts})
        return http.reply(request, told.status, render(told, self._style))

    def refuse(self, request: Request, error: Exception) -> Reply | None:
        """The reply to a request that the server itself refuses, in this dialect's words (Dialect.refuse)."""
        if isinstance(error, LimitExceeded):
            return http.too_large(request)
        told = self._told(request, error) if isinstance(error, GatewayError) else internal()
        return http.reply(request, told.status, render(told))


def _json(answer: Answer) -> bytes:
    """The body of an answer."""
    if isinstance(answer, bytes):
        return answer
    return b"" if answer is None else orjson.dumps(answer)
