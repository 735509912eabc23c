"""Calls of operations: how a request becomes a call, and how a call is carried out.

The checks have the service's order (docs/protocols/dynamodb.md rule 5): JSON, target, signature, then
Operation.check, then the handler.
"""

from __future__ import annotations

import gc
from collections.abc import Coroutine
from typing import Any

import orjson

from tablegate.adapters.dynamodb.call import Answer, CallContext, authorize_names, named_resources
from tablegate.adapters.dynamodb.operation import Operation
from tablegate.adapters.dynamodb.operation_table import NAMES, OPERATIONS
from tablegate.adapters.dynamodb.wire import auth, http, limits
from tablegate.adapters.dynamodb.wire.errors import ServiceError, serialization
from tablegate.adapters.dynamodb.wire.signature_claims import Caller
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.http.messages import Request
from tablegate.gateway.http.request_bodies import MIN_PARSED_BYTES
from tablegate.gateway.model.authorization.authorizations import Authorization
from tablegate.gateway.model.errors import Busy
from tablegate.gateway.security.credentials import Scheme

_SCHEME = Scheme.AWS.value


class CallParser:
    """The parser of requests for a gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def parse(self, request: Request, caller: Caller | None) -> CallContext:
        """Return the call (Dialect.parse). Raises BodyTooLarge, ServiceError, Busy."""
        # Nothing can be authorized until the operation is known.
        authorization, request.authorization = request.authorization, None
        name = NAMES.get(request.header_map.get("x-amz-target", ""))
        operation = None if name is None else OPERATIONS.loaded.get(name) or OPERATIONS[name]
        text = self._text(request) if "content-encoding" in request.header_map else request.body
        if len(text) > limits.LARGE_REQUEST_BYTES:
            return self._parse_large(request, operation, text, caller, authorization)
        if len(text) > MIN_PARSED_BYTES:
            self._gateway.memory.hold_json(request, text)
        return self._read(request, operation, text, caller, authorization)

    def _parse_large(
        self,
        request: Request,
        operation: Operation | None,
        text: bytes,
        caller: Caller | None,
        authorization: Authorization | None,
    ) -> CallContext:
        """Do what `parse` does for a large body.

        The garbage collector is off while it is parsed. JSON has no cycles, and the collections caused by a million new
        objects took five times as long as the parsing.
        """
        dense = None if operation is None else operation.refusal_of_dense(text)
        if dense is None:
            self._gateway.memory.hold_json(request, text)
        if not gc.isenabled():
            return self._read(request, operation, text, caller, authorization, dense)
        gc.disable()
        try:
            return self._read(request, operation, text, caller, authorization, dense)
        except ServiceError as error:
            # The parsed text is released before the collector runs.
            error.__traceback__ = error.__context__ = None
            raise
        finally:
            gc.enable()

    def _text(self, request: Request) -> bytes:
        """Return the body without its content coding. Raises BodyTooLarge, ServiceError, Busy."""
        memory = self._gateway.memory
        memory.hold_inflated(request, limits.REQUEST_BYTES)
        text = http.body_of(request)
        memory.hold(request, len(text))
        return text

    def _read(
        self,
        request: Request,
        operation: Operation | None,
        text: bytes,
        caller: Caller | None,
        authorization: Authorization | None,
        dense: ServiceError | None = None,
    ) -> CallContext:
        """Parse the body. `operation`: None if it is unknown.

        `caller`: None if still unknown (auth `dev`). `authorization`: None if the caller is unrestricted. `dense`: the
        refusal of a body that is not parsed.
        """
        is_large = len(text) > limits.LARGE_REQUEST_BYTES
        parse = operation.parse if is_large and operation is not None else orjson.loads
        try:
            body = parse(text) if text and dense is None else None
        except Exception as error:  # also nesting bombs, lone surrogates, NaN and bytes that are not UTF-8
            raise http.json_failure(error) from None
        if operation is None:
            raise ServiceError("UnknownOperationException", None)
        gateway = self._gateway
        if caller is None:
            caller = auth.verify(request, gateway.credentials, 0)
        if authorization is not None:
            authorization.purpose = operation.purpose_of(body)
            request.authorization = authorization
        if gateway.quotas.is_on:
            gateway.quotas.enter(request, _SCHEME, caller.access_id, caller.namespace)
        if dense is not None:
            raise dense
        if not text:
            raise serialization()
        if is_large:
            operation.shorten(body)
        try:
            checked = operation.check(body)
        except ServiceError as refusal:
            raise operation.error_for_body(text, refusal) from None
        return CallContext(
            operation.name, checked, caller, gateway, request.header_map, request.authorization
        )


def execute(call: CallContext) -> Coroutine[Any, Any, Answer]:
    """Authorize the resources that a call names, and return the coroutine of its operation. Raises NotPermitted."""
    operation = OPERATIONS.loaded[call.operation]
    if call.authorization is not None and not operation.is_one_command:
        authorize_names(call, call.authorization)
    return operation.handler(call)


def authorize_rejected(request: Request, gateway: Gateway) -> None:
    """Authorize the resources that a rejected request of a restricted caller names. Raises NotPermitted.

    Large and compressed bodies are not read again. That costs more than a refusal may.
    """
    authorization = request.authorization
    assert authorization is not None
    if "content-encoding" in request.header_map or len(request.body) > limits.LARGE_REQUEST_BYTES:
        return
    identity, region = authorization.identity, authorization.source.region
    namespace = gateway.credentials.aws_namespace(identity.access_id, identity.account, region)
    try:
        body = http.document_of(request)
    except (http.BodyTooLarge, ServiceError, Busy):
        return
    authorization.require_named(named_resources(body, authorization.purpose, namespace))
