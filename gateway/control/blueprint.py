"""The control API: its paths, what they take and what they answer, as JSON.

Each operation is one function of a module beside this one. What is wrong with a request is answered with a status and
`{"error": "...", "message": "..."}`, and has changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import flask
import orjson

from gateway.clock import BadTime, Clock
from gateway.control import access, clocks, resets, seeds, snapshots
from gateway.control.access import PREFIX
from gateway.control.answers import BadRequest, Refused
from gateway.control.watching import Watch
from gateway.dialect import Gateway
from gateway.http import Reply
from gateway.model.errors import GatewayError, NotAllowed
from gateway.server.flask_bridge import current_request, flask_response

_HEADERS = (("Content-Type", "application/json"), ("Cache-Control", "no-store"))
_OF_ONE_PROCESS = ("/clock", "/faults", "/requests")
Operation = Callable[[dict[str, Any]], Any]


def create(gateway: Gateway, clock: Clock, watch: Watch) -> flask.Blueprint:
    """The routes of a gateway's control API. `clock`: the one that its tables live by; `watch`: of all dialects."""
    made = flask.Blueprint("control", __name__, url_prefix=PREFIX.rstrip("/"))
    engine = gateway.engine
    routes: tuple[tuple[str, str, Callable[..., Any]], ...] = (
        ("POST", "/reset", lambda given: resets.reset(engine, given)),
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
        ("POST", "/seed", lambda given: seeds.from_request(watch.dialects, given)),
        ("GET", "/openapi.json", lambda given: _document_of_this()),
        ("GET", "/faults", lambda given: watch.faults.listed()),
        ("POST", "/faults", watch.faults.add),
        ("DELETE", "/faults", lambda given: watch.faults.clear()),
        ("DELETE", "/faults/<fault_id>", lambda given, fault_id: watch.faults.remove(fault_id)),
        ("GET", "/requests", lambda given: watch.requests.listed()),
        ("PUT", "/requests", watch.requests.change),
        ("DELETE", "/requests", lambda given: watch.requests.clear()),
    )
    for method, path, operation in routes:
        if path.startswith(_OF_ONE_PROCESS) and gateway.settings.workers > 1:
            operation = _refused_to_workers
        _add(made, gateway, method, path, operation)
    return made


def _document_of_this() -> Reply:
    """The OpenAPI document of these routes."""
    return Reply(200, _HEADERS, Path(__file__).with_name("openapi.json").read_bytes())


def _refused_to_workers(given: dict[str, Any], **names: str) -> Any:
    raise Refused(409, "the clock, faults and requests are those of one process: not with --workers")


def _add(
    blueprint: flask.Blueprint, gateway: Gateway, method: str, path: str, operation: Callable[..., Any]
) -> None:
    def answer(**names: str) -> flask.Response:
        return flask_response(_answer(gateway, operation, names, is_file=path.endswith("/file")))

    blueprint.add_url_rule(
        path, f"{method} {path}".replace(".", "-"), answer, methods=[method], provide_automatic_options=False
    )


def _answer(gateway: Gateway, operation: Callable[..., Any], names: dict[str, str], is_file: bool) -> Reply:
    request = current_request()
    try:
        access.check(request, gateway.settings)
        answer = operation(request.body if is_file else _document(request.body), **names)
        return answer if isinstance(answer, Reply) else _json(200, answer)
    except NotAllowed as error:
        return _json(403, {"error": "NotAllowed", "message": error.facts.get("text", "")})
    except (BadRequest, BadTime) as error:
        return _json(400, {"error": "BadRequest", "message": str(error)})
    except Refused as error:
        return _json(error.status, {"error": "Refused", "message": str(error)})
    except GatewayError as error:
        return _json(503, {"error": type(error).__name__, "message": f"the database: {error!r}"})


def _document(body: bytes) -> dict[str, Any]:
    if not body:
        return {}
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is no JSON: {error}") from None
    if not isinstance(document, dict):
        raise BadRequest("the body must be a JSON object")
    return document


def _json(status: int, document: Any) -> Reply:
    return Reply(status, _HEADERS, orjson.dumps(document) + b"\n")
