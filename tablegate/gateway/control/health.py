"""Health and metrics: the replies to /healthz, /health, /readyz and /metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tablegate.gateway.control import access
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.http.messages import Reply, Request, text_reply
from tablegate.gateway.model.errors import DataCorrupted, OutOfSpace, SchemaTooNew, TooManyAttempts
from tablegate.gateway.observability import logs, metrics

if TYPE_CHECKING:
    from tablegate.gateway.store.replicas import StandbyStatus
    from tablegate.gateway.store.sql.databases import NodeState

_ALIVE_PATH = "/healthz"
_DYNAMODB_PATH = "/health"
PATHS = frozenset((_ALIVE_PATH, _DYNAMODB_PATH, "/readyz", "/metrics"))
_METHODS = ("GET", "HEAD")
_ALIVE = text_reply(200, "ok")


def is_for(request: Request) -> bool:
    """True if `reply` answers a request to one of PATHS. A table or an account can be named health, so /health is one
    without credentials and query."""
    is_of_dialect = request.path == _DYNAMODB_PATH and (
        request.query or "authorization" in request.header_map
    )
    return request.method in _METHODS and not is_of_dialect


def reply_at_once(request: Request) -> Reply | None:
    """Return the reply to a request that the event loop answers itself, even if all threads are busy, or None."""
    return _ALIVE if request.path == _ALIVE_PATH and request.method in _METHODS else None


def reply(gateway: Gateway, request: Request) -> Reply | None:
    """Return the reply to a request for health or metrics, or None for another request.

    - /healthz: the process answers.
    - /health: the process answers, in the words of DynamoDB's health check (scylladb/scylladb#26079).
    - /readyz: the database answers on a read connection, no write has failed for lack of space since the last success, and no
      damaged data was read since the start.
    - /metrics: the metrics, unless they have a port of their own.
    """
    if request.method not in _METHODS:
        return None
    at_once = reply_at_once(request)
    if at_once is not None:
        return at_once
    if request.path == "/metrics" and gateway.settings.metrics_port is None:
        return figures(gateway, request, is_public=gateway.settings.auth == "strict")
    if request.path == _DYNAMODB_PATH:
        return text_reply(200, f"healthy: {request.header('host')} ")
    if request.path != "/readyz":
        return None
    try:
        gateway.engine.ping()
    except OutOfSpace as error:
        return text_reply(503, f"writes are refused: {error}")
    except SchemaTooNew as error:
        return text_reply(503, str(error))
    except DataCorrupted as error:
        return text_reply(503, f"damaged data was read: {error}")
    except Exception as error:
        logs.error("not ready", None, reason=repr(error))
        return text_reply(503, "the database does not answer")
    replicas = gateway.engine.replicas
    lags = [] if replicas is None else replicas.lags()
    node_lines = map(_node_line, gateway.engine.node_states())
    return text_reply(200, "\n".join(["ready", *map(_replica_line, lags), *filter(None, node_lines)]))


def figures(gateway: Gateway, request: Request, is_public: bool) -> Reply:
    """Return the reply to /metrics. Metrics contain names of tables, so a public port requires the token."""
    token = gateway.settings.metrics_token
    if token:
        try:
            has_token = access.has_token(request, token, "/metrics", gateway.attempts)
        except TooManyAttempts as error:
            refusal = text_reply(429, error.text)
            return refusal._replace(headers=(*refusal.headers, ("Retry-After", str(error.retry_after_s))))
        if not has_token:
            refusal = text_reply(401, "the metrics token is required: send Authorization: Bearer TOKEN")
            return refusal._replace(headers=(*refusal.headers, ("WWW-Authenticate", "Bearer")))
    elif is_public:
        return text_reply(403, "with auth strict, /metrics needs --metrics-token or --metrics-port")
    body, content_type = metrics.exposition(_table_names(gateway))
    return Reply(200, (("Content-Type", content_type),), body)


def _table_names(gateway: Gateway) -> frozenset[str] | None:
    try:
        return gateway.engine.table_names()
    except Exception as error:
        logs.error("cannot list tables, so metrics of dropped tables are kept", None, reason=repr(error))
        return None


def _node_line(node: NodeState) -> str:
    """Return the trouble of a node of a distributed database, or an empty text."""
    if not node.answers:
        return f"node {node.name} does not answer"
    return f"node {node.name}: {node.stuck} transactions are stuck for 30 s or more" if node.stuck else ""


def _replica_line(lag: StandbyStatus) -> str:
    behind = (
        "it is not known how far behind" if lag.milliseconds is None else f"{lag.milliseconds:.0f} ms behind"
    )
    return f"replica {lag.replica}: {behind}" + ("" if lag.is_used else ", not used")
