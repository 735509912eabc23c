"""The entry of the DynamoDB dialect: how requests reach their handlers, and how answers and errors are sent.

The checks have the service's order (docs/protocols/dynamodb.md rule 5): size, method and content type, JSON, target,
signature, then operation_schemas.check, then the handler.
"""

from __future__ import annotations

import gc
import logging
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import orjson

from tablegate.adapters.dynamodb import DIALECT, request_facts, security_tokens
from tablegate.adapters.dynamodb.capacity.throughput import Throttle
from tablegate.adapters.dynamodb.jobs import workers
from tablegate.adapters.dynamodb.operation_table import OF_NEW_TABLES, OPERATIONS, READING, purpose_of
from tablegate.adapters.dynamodb.tables.descriptions import shown_table_keys
from tablegate.adapters.dynamodb.validation import operation_schemas
from tablegate.adapters.dynamodb.values import keys
from tablegate.adapters.dynamodb.wire import auth, http, limits, planted_errors
from tablegate.adapters.dynamodb.wire.call_context import Answer, CallContext, Caller
from tablegate.adapters.dynamodb.wire.errors import ServiceError, internal, render, serialization
from tablegate.adapters.dynamodb.wire.gateway_errors import service_error_of
from tablegate.adapters.dynamodb.wire.named_resources import named_resources
from tablegate.adapters.dynamodb.wire.refusals import not_permitted
from tablegate.adapters.dynamodb.wire.styles import json_encoder
from tablegate.gateway.configuration.settings import BadSetting
from tablegate.gateway.dialect import Begun, Dialect, Gateway, Seed
from tablegate.gateway.exchanges import SingleStep, Steps, exchange_of
from tablegate.gateway.http import Reply, Request
from tablegate.gateway.model.authorization.authorizations import Authorization
from tablegate.gateway.model.errors import Busy, GatewayError, LimitExceeded, NotPermitted
from tablegate.gateway.model.request_facts import RequestFacts, RequestKind
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.request_memory import MIN_PARSED_BYTES
from tablegate.gateway.security.credentials import Scheme

_SCHEME = Scheme.AWS.value
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
    """Create the dialect for a gateway."""
    return DynamoDB(gateway)


def listed(table: Table) -> tuple[str, str, str]:
    """Return (name, key attributes, ARN) of a table of any dialect, for `tablegate tables`.

    In the ARN, "*" stands for any account and region.
    """
    key_text = ", ".join(f"{key.name} {key.role} {key.type}" for key in shown_table_keys(table.key_schema))
    return table.name, key_text, f"arn:aws:dynamodb:*:*:table/{table.name}"


def _deliver_to_kinesis(gateway: Gateway) -> None:
    """Register delivery of changes to Kinesis. Raises BadSetting if boto3 is not installed."""
    try:
        from tablegate.adapters.dynamodb.kinesis.destinations import KIND
        from tablegate.adapters.dynamodb.kinesis.producer import Producer
    except ModuleNotFoundError:
        raise BadSetting("{} needs boto3: pip install 'tablegate[clouds]'", "kinesis_endpoint_url") from None
    gateway.engine.deliveries[KIND] = Producer(gateway.settings).deliver


class DynamoDB(Dialect):
    """The dialect for a gateway, with values read once from the settings."""

    name = DIALECT
    hint = _HINT
    service_hosts = _SERVICE_HOSTS
    faults = planted_errors.NAMES
    operation_kinds: ClassVar[Mapping[str, RequestKind]] = {
        **request_facts.KINDS,
        **dict.fromkeys(security_tokens.OPERATIONS, RequestKind.SIGN_IN),
    }
    refused_part_marks = request_facts.PART_MARKS
    operations = frozenset({target.partition(".")[2] for target in OPERATIONS} | security_tokens.OPERATIONS)
    batches = frozenset({"BatchGetItem", "BatchWriteItem"})
    blocking_operations = frozenset(
        target.partition(".")[2] for target, row in OPERATIONS.items() if row.may_block
    )
    refusal_statuses = frozenset({400, 403})

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(gateway)
        gateway.engine.register_view(DIALECT, keys.index_view)
        if gateway.settings.has_object_store:
            workers.register(gateway)
        self._operations = OPERATIONS
        self._handlers = {target.partition(".")[2]: row.handler for target, row in OPERATIONS.items()}
        self._style = gateway.settings.message_style
        self._schemas = operation_schemas.of(self._style)
        self._encode = json_encoder(self._style)
        if gateway.settings.kinesis_endpoint_url:
            _deliver_to_kinesis(gateway)
        self._throttle = Throttle(gateway.now_ms) if gateway.settings.throughput == "enforce" else None

    # Detection of the dialect

    def matches(self, request: Request) -> bool:
        """Return True for a request of DynamoDB (Dialect.matches).

        It has the target or signature of AWS, or is at the root without marks of Azure. Azure accounts may be in the
        host name.
        """
        headers = request.header_map
        if headers.get("x-amz-target") or headers.get("authorization", "").startswith("AWS4"):
            return True
        if request.path not in ("/", ""):
            return False
        if "\nx-ms-" in "\n" + "\n".join(headers):  # header names contain no line break
            return False
        return not any(mark in f"&{request.query}" for mark in ("&comp=", "&restype=", "&sig="))

    def operation(self, request: Request) -> str:
        """Return the name of the operation, or "" if there is none."""
        target = request.header_map.get("x-amz-target", "")
        if target in self._operations:
            return target.partition(".")[2]
        return security_tokens.operation(request) if security_tokens.matches(request) else ""

    def refusal_of_head(self, request: Request) -> Reply | None:
        """Return the error reply if the signature fails regardless of the body (Dialect.refusal_of_head)."""
        if security_tokens.matches(request):  # its requests are short
            return http.too_large(request)
        try:
            auth.check_head(request, self.gateway.credentials, self.gateway.real_now_ms())
        except ServiceError as error:
            return http.plain_answer(request) or self.render_error(request, None, error)
        return None

    def only_reads(self, request: Request) -> bool:
        """Return True if a request only reads rows (Dialect.only_reads)."""
        return self.operation(request) in READING and self._throttle is None

    def facts(self, request: Request, reply: Reply | None = None) -> RequestFacts:
        """Return the facts of a request (Dialect.facts)."""
        if request.facts is not None:  # those of a request to the token service
            return request.facts
        head = super().facts(request)
        credentials = self.gateway.credentials
        if reply is not None:
            caller = auth.claimed(request, credentials, self.gateway.real_now_ms())
            return request_facts.read(head, request, reply, caller, self.gateway)
        try:
            verified = auth.verify(request, credentials, self.gateway.real_now_ms())
        except ServiceError:
            return head
        return request_facts.read(head, request, None, verified, self.gateway)

    def load_seed(self, seed: Seed) -> dict[str, int]:
        """Load the tables and items of a seed (Dialect.load_seed)."""
        from tablegate.adapters.dynamodb import seeds

        return seeds.load_seed(self.gateway, seed)

    def fault(self, request: Request, name: str) -> Reply:
        """Return an error reply injected by a test (Dialect.fault)."""
        service_error = planted_errors.PLANTED[name]
        return http.reply(request, service_error.status, render(service_error, self._style))

    # From request to reply

    def handle(self, request: Request) -> Begun:
        """Start answering a request (Dialect.handle). Health checks and CORS are answered directly."""
        if security_tokens.matches(request):
            return security_tokens.answer(request, self.gateway)
        plain = http.plain_answer(request)
        if plain is None:
            return super().handle(request)
        return (http.emulator_health(request) if self.gateway.settings.emulator_health else None) or plain

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
        """Return the call (Dialect.parse). Raises BodyTooLarge, ServiceError, Busy.

        The garbage collector is off while a large body is parsed. JSON has no cycles, and the collections caused by a
        million new objects took five times as long as the parsing.
        """
        # Nothing can be authorized until the operation is known.
        authorization, request.authorization = request.authorization, None
        text = self._text(request) if "content-encoding" in request.header_map else request.body
        if len(text) > MIN_PARSED_BYTES:
            self.gateway.memory.hold_json(request, text)
        if len(text) <= limits.LARGE_REQUEST_BYTES or not gc.isenabled():
            return self._read(request, text, caller, authorization)
        gc.disable()
        try:
            return self._read(request, text, caller, authorization)
        except ServiceError as error:
            # The parsed text is released before the collector runs.
            error.__traceback__ = error.__context__ = None
            raise
        finally:
            gc.enable()

    def begin(self, call: CallContext) -> Steps[Answer]:
        """Authorize the resources that a call names, and start its operation (Dialect.begin).

        A single step needs no authorization here: its command names its only table and is authorized before the engine.
        """
        steps = self._handlers[call.operation](call)
        if call.authorization is not None and type(steps) is not SingleStep:
            purpose = call.authorization.purpose
            call.authorization.require_named(named_resources(call.input, purpose, call.caller.namespace))
        return steps if self._throttle is None else self._throttle.limited(call, exchange_of(steps))

    def render(self, request: Request, caller: Caller | None, answer: Answer) -> Reply:
        """Return the reply with an answer (Dialect.render)."""
        # Answers of statement batches contain errors. Their texts depend on the message style.
        if not isinstance(answer, bytes):
            answer = b"" if answer is None else self._encode(answer)
        return http.reply(request, 200, answer)

    def _text(self, request: Request) -> bytes:
        """Return the body without its content coding. Raises BodyTooLarge, ServiceError, Busy."""
        memory = self.gateway.memory
        memory.hold_inflated(request, limits.REQUEST_BYTES)
        text = http.body_of(request)
        memory.hold(request, len(text))
        return text

    def _read(
        self, request: Request, text: bytes, caller: Caller | None, authorization: Authorization | None
    ) -> CallContext:
        """Parse the body.

        `caller`: None if still unknown (auth `dev`). `authorization`: None if the caller is unrestricted.
        """
        target = request.header_map.get("x-amz-target", "")
        name = target.partition(".")[2]
        dense = None
        parse: Callable[[bytes], Any] = orjson.loads
        if len(text) > limits.LARGE_REQUEST_BYTES:
            dense = self._schemas.refusal_of_dense(name, text)
            parse = partial(self._schemas.parse, name)
        try:
            body = parse(text) if text and dense is None else None
        except Exception as error:  # also nesting bombs, lone surrogates, NaN and bytes that are not UTF-8
            raise http.json_failure(error) from None
        row = self._operations.get(target)
        if row is None:
            raise ServiceError("UnknownOperationException", None)
        gateway = self.gateway
        if caller is None:
            caller = auth.verify(request, gateway.credentials, 0)
        if authorization is not None:
            is_new = row.purpose is OF_NEW_TABLES and isinstance(body, dict)
            authorization.purpose = purpose_of(row.purpose, body or {}) if is_new else row.purpose
            request.authorization = authorization
        if gateway.quotas.is_on:
            gateway.quotas.enter(request, _SCHEME, caller.access_id, caller.namespace)
        if dense is not None:
            raise dense
        if not text:
            raise serialization()
        if len(text) > limits.LARGE_REQUEST_BYTES:
            self._schemas.shorten(name, body)
        try:
            checked = self._schemas.checker(name)(body)
        except ServiceError as refusal:
            raise self._schemas.error_for_body(name, text, refusal) from None
        return CallContext(name, checked, caller, gateway, request.header_map, request.authorization)

    def finalize_authorization(self, request: Request, reply: Reply) -> Reply:
        """Return the reply to a restricted request that failed early (Dialect.finalize_authorization)."""
        authorization = request.authorization
        assert authorization is not None
        if "content-encoding" in request.header_map or len(request.body) > limits.LARGE_REQUEST_BYTES:
            return super().finalize_authorization(
                request, reply
            )  # to read it again costs more than a refusal may
        identity, region = authorization.identity, authorization.source.region
        namespace = self.gateway.credentials.aws_namespace(identity.access_id, identity.account, region)
        try:
            body = http.document_of(request)
            authorization.require_named(named_resources(body, authorization.purpose, namespace))
        except NotPermitted as refusal:
            return self.render_error(request, None, refusal)
        except (http.BodyTooLarge, ServiceError, Busy):
            pass
        return super().finalize_authorization(request, reply)

    def _service_error(self, request: Request, error: Exception) -> ServiceError:
        if isinstance(error, NotPermitted) and request.authorization is not None:
            return not_permitted(error, self.operation(request), request.authorization)
        return service_error_of(error, self.operation(request))

    def render_error(self, request: Request, caller: Caller | None, error: Exception) -> Reply:
        """Return the error reply (Dialect.render_error).

        Server errors are logged with the request id that the client gets.
        """
        if isinstance(error, http.BodyTooLarge):
            return http.too_large(request)
        service_error = self._service_error(request, error)
        if service_error.status >= 500:
            unforeseen = not isinstance(error, (ServiceError, GatewayError))
            facts = {"dialect": DIALECT, "operation": self.operation(request), "request_id": request.id}
            level = logging.ERROR if unforeseen else logging.WARNING
            log.log(level, "a request failed: %r", error, exc_info=unforeseen, extra={"facts": facts})
        return http.reply(request, service_error.status, render(service_error, self._style))

    def refuse(self, request: Request, error: Exception) -> Reply | None:
        """Return the reply to a request that the server itself rejects (Dialect.refuse)."""
        if isinstance(error, LimitExceeded):
            return http.too_large(request)
        service_error = self._service_error(request, error) if isinstance(error, GatewayError) else internal()
        return http.reply(request, service_error.status, render(service_error, self._style))
