"""HTTP in, HTTP out: authenticate, find the operation, read the message, run the handler, sign the reply.

A request is Table Store's if it has an x-ots- header; its operation is the path. Knows no operation itself.
"""

from __future__ import annotations

import logging
import re
from functools import partial

import flask

from adapters.tablestore.operation_table import OPERATIONS
from adapters.tablestore.tables.options import DIALECT
from adapters.tablestore.values.values import index_view
from adapters.tablestore.wire import auth, replies
from adapters.tablestore.wire.auth import Caller
from adapters.tablestore.wire.calls import Call, check_names
from adapters.tablestore.wire.errors import INTERNAL, ServiceError, invalid, of
from adapters.tablestore.wire.parsing import parse
from gateway.engine.engine import drive
from gateway.http import Dialect, Gateway, Handler, Reply, Request, current_request, flask_response
from gateway.model.commands import Exchange
from gateway.model.errors import GatewayError, LimitExceeded

log = logging.getLogger(__name__)

_HEADER = "x-ots-"
_HINT = 'OTSClient("{url}", "tablegate", "tablegate", "instance")'
# "Endpoints" (Tablestore developer guide).
_SERVICE_HOSTS = re.compile(
    r"[a-z0-9-]+\.[a-z0-9-]+\.(?:ots|ots-internal|vpc\.tablestore|tablestore)\.aliyuncs\.com"
)
_METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]


def create(gateway: Gateway) -> Dialect:
    """The dialect, ready to be mounted."""
    gateway.engine.register_view(DIALECT, index_view)
    handler = partial(handle, gateway)
    blueprint = flask.Blueprint(DIALECT, __name__)

    def reply(**_: str) -> flask.Response:
        request = current_request()
        return flask_response(drive(gateway.engine, lambda: handler(request)))

    # One rule for all paths: what is meant is read from the raw target.
    for route in ("/", "/<path:operation>"):
        blueprint.add_url_rule(route, "reply", reply, methods=_METHODS, provide_automatic_options=False)

    def enter(request: Request) -> Handler | None:
        return handler if claims(request) else None

    return Dialect(
        DIALECT, blueprint, enter, claims, metric_name, partial(refuse, gateway), _HINT, _SERVICE_HOSTS
    )


def claims(request: Request) -> bool:
    """Whether a request is this dialect's: no other has such headers."""
    return any(name.startswith(_HEADER) for name, _ in request.headers)


def metric_name(request: Request) -> str:
    """A name for metrics, from a closed set."""
    name = _operation_name(request.path)
    return name if name in OPERATIONS else "unknown"


def refuse(gateway: Gateway, request: Request, error: Exception) -> Reply:
    """What the server itself has to say, in this dialect's words. The caller is not proven, so nothing is signed."""
    if isinstance(error, LimitExceeded):
        told = ServiceError("OTSRequestBodyTooLarge", "The size of POST data is too large.")
    else:
        told = of(error) if isinstance(error, GatewayError) else INTERNAL
    return replies.reply(request, _operation_name(request.path), None, told, gateway.now_ms())


def handle(gateway: Gateway, request: Request) -> Exchange[Reply]:
    """Begin to answer a request. Returns a Reply, whatever happens."""
    now_ms = gateway.now_ms()
    operation = request.path.lstrip("/")
    caller: Caller | None = None
    answer: bytes | ServiceError
    try:
        if request.method != "POST":
            raise ServiceError("OTSMethodNotAllowed", "Only POST method for requests is supported.")
        operation = _operation_name(request.path)
        caller = auth.verify(request, operation, gateway.credentials, now_ms)
        known = OPERATIONS.get(operation)
        if known is None:
            raise invalid(f"Unsupported operation: {operation}.")
        message = parse(known.request, replies.inflated(request), "the ProtoBuf message")
        call = Call(operation, message, caller, gateway, now_ms)
        yield from check_names(call)
        made = yield from known.handle(call)
        answer = made.SerializeToString()
    except ServiceError as error:
        answer = error
    except GatewayError as error:
        answer = of(error, gateway.settings.tablestore_message_style)
    except Exception:
        log.exception("request %s (%s) failed", request.id, replies.request_id(request))
        answer = INTERNAL
    return replies.reply(request, operation, caller, answer, gateway.now_ms())


def _operation_name(path: str) -> str:
    """The last part of the path, or the last two of the tunnel service's."""
    parts = path.strip("/").split("/")
    return "/".join(parts[-2:]) if parts[-2:-1] == ["tunnel"] else parts[-1]
