"""The routes of the control API, with JSON requests and replies.

Each operation is a function in another module of this package. A refused request gets a status and
`{"error": "...", "message": "..."}`, and changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

import orjson

from tablegate.gateway.control import access, clocks, seeds, snapshots
from tablegate.gateway.control.access import PREFIX
from tablegate.gateway.control.administration import Administration
from tablegate.gateway.control.clocks import BadTime, Clock
from tablegate.gateway.control.documents import BadRequest, OperationRejected
from tablegate.gateway.control.interceptor import RequestInterceptor
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.http.request_bodies import Undecodable, has_at_most, parse_json
from tablegate.gateway.model.errors import GatewayError, NotAllowed, TooManyAttempts
from tablegate.gateway.model.request_info import RequestInfo, RequestKind, table_names
from tablegate.gateway.observability import audit

_HEADERS = (("Content-Type", "application/json"), ("Cache-Control", "no-store"))
_OF_ACCOUNTS = ("/credentials", "/grants", "/quotas")
_OF_ONE_PROCESS = ("/clock", "/faults", "/requests")
_DOCUMENT_NODES = 200_000  # as many table names, or files of a seed
Operation = Callable[..., Any]


class Routes:
    """The control API of a gateway.

    `clock` is the clock of its tables. `administration` is None if it has no stored credentials.
    """

    def __init__(
        self,
        gateway: Gateway,
        clock: Clock,
        interceptor: RequestInterceptor,
        administration: Administration | None = None,
    ) -> None:
        self._settings = gateway.settings
        self._attempts = gateway.attempts
        self._routes = [
            (method, path, re.compile(re.sub(r"<(\w+)>", r"(?P<\1>[^/]+)", re.escape(path))), operation)
            for method, path, operation in (
                *_operations(gateway, clock, interceptor),
                *(() if administration is None else administration.operations()),
            )
        ]

    @property
    def paths(self) -> list[tuple[str, str]]:
        """The (method, path) pairs of all routes, with <name> for parameters."""
        return [(method, path) for method, path, _, _ in self._routes]

    def reply(self, request: Request) -> Reply:
        """Return the answer to a request for a path of the control API."""
        kind = RequestKind.READ if request.method in ("GET", "HEAD") else RequestKind.DEFINITION
        request.info = RequestInfo(kind=kind)
        try:
            caller = access.check(request, self._settings, self._attempts)
            request.info = RequestInfo(kind=kind, caller=caller, tables=_tables_in(request.body))
            with audit.request_of(caller, request.client):
                answer = self._answer(request, caller)
            return answer if isinstance(answer, Reply) else _json(200, answer)
        except TooManyAttempts as error:
            request.info = RequestInfo(kind=kind, is_refusal=True)
            refusal = _json(429, {"error": "TooManyAttempts", "message": error.text})
            return refusal._replace(headers=(*refusal.headers, ("Retry-After", str(error.retry_after_s))))
        except NotAllowed as error:
            return _json(403, {"error": "NotAllowed", "message": error.facts.get("text", "")})
        except (BadRequest, BadTime) as error:
            return _json(400, {"error": "BadRequest", "message": str(error)})
        except OperationRejected as error:
            return _json(error.status, {"error": "Refused", "message": str(error)})
        except GatewayError as error:
            return _json(503, {"error": type(error).__name__, "message": f"the database failed: {error!r}"})

    def _answer(self, request: Request, caller: str) -> Any:
        wanted = unquote(request.path.removeprefix(PREFIX.rstrip("/")))
        methods: list[str] = []
        for method, path, pattern, operation in self._routes:
            found = pattern.fullmatch(wanted)
            if found is None:
                continue
            if method == request.method:
                if path in _OF_ACCOUNTS:
                    access.check_administrator(caller)
                if path.startswith(_OF_ONE_PROCESS) and self._settings.workers > 1:
                    raise OperationRejected(
                        409,
                        "the clock, faults and requests belong to one process: run the server with --workers 1",
                    )
                return operation(_given(request, path), **found.groupdict())
            methods.append(method)
        if methods:
            raise OperationRejected(405, f"{wanted[:255]} accepts {', '.join(methods)}")
        raise OperationRejected(404, f"there is nothing at {wanted[:255]}")


def _operations(
    gateway: Gateway, clock: Clock, interceptor: RequestInterceptor
) -> Sequence[tuple[str, str, Operation]]:
    engine = gateway.engine
    return (
        ("POST", "/reset", lambda given: seeds.reset(engine, given)),
        ("GET", "/clock", lambda given: clocks.described(clock)),
        ("PUT", "/clock", lambda given: clocks.change(engine, clock, given)),
        ("POST", "/clock/advance", lambda given: clocks.advance(engine, clock, given)),
        ("GET", "/snapshots", lambda given: snapshots.listed(engine)),
        ("POST", "/snapshots", lambda given: snapshots.save(engine, given, gateway.now_ms())),
        ("POST", "/snapshots/<name>/load", lambda given, name: snapshots.load(engine, name)),
        ("POST", "/snapshots/<name>/fork", lambda given, name: snapshots.fork(engine, name, given)),
        ("DELETE", "/snapshots/<name>", lambda given, name: snapshots.remove(engine, name)),
        ("GET", "/snapshots/<name>/file", lambda given, name: snapshots.export(engine, name)),
        ("PUT", "/snapshots/<name>/file", lambda given, name: snapshots.put(engine, given, name)),
        ("POST", "/seed", lambda given: seeds.from_request(interceptor.dialects(), given)),
        ("GET", "/openapi.json", lambda given: _document_of_this()),
        ("GET", "/faults", lambda given: interceptor.faults.listed()),
        ("POST", "/faults", interceptor.faults.add),
        ("DELETE", "/faults", lambda given: interceptor.faults.clear()),
        ("DELETE", "/faults/<fault_id>", lambda given, fault_id: interceptor.faults.remove(fault_id)),
        ("GET", "/requests", interceptor.requests.listed),
        ("PUT", "/requests", interceptor.requests.change),
        ("DELETE", "/requests", lambda given: interceptor.requests.clear()),
    )


def _document_of_this() -> Reply:
    """Return the OpenAPI document of these routes."""
    return Reply(200, _HEADERS, Path(__file__).with_name("openapi.json").read_bytes())


def _tables_in(body: bytes) -> list[str]:
    """Return the tables in a document, for the audit log. Snapshot files have none."""
    if not body.startswith(b"{"):
        return []
    with suppress(BadRequest, AttributeError, TypeError):
        return table_names(_document(body).get("tables") or ())
    return []


def _given(request: Request, path: str) -> Any:
    """Return the input of an operation: the bytes of a file, the parameters of a GET, or a JSON document."""
    if path.endswith("/file"):
        return request.body
    return dict(parse_qsl(request.query)) if request.method == "GET" else _document(request.body)


def _document(body: bytes) -> dict[str, Any]:
    if not body:
        return {}
    if not has_at_most(_DOCUMENT_NODES, body):
        raise BadRequest(f"the body must have at most {_DOCUMENT_NODES:,} members and elements")
    try:
        document = parse_json(body)
    except Undecodable as error:
        raise BadRequest(f"the body is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise BadRequest("the body must be a JSON object")
    return document


def _json(status: int, document: Any) -> Reply:
    return Reply(status, _HEADERS, orjson.dumps(document) + b"\n")
