"""The audit log: actions with caller and result, one JSON object per line.

    record(event, **facts)     a change of a definition, a credential or a grant, recorded by the code that makes it
    AuditTrail.record_request(...)   an answered request: refusals always, writes or all requests depending on the settings

Recording does not block requests. Events go into a bounded queue. The audit thread describes each request, writes
lines to the sink, and counts the events that did not fit. If the audit log is disabled, there is no trail. Events contain no
secrets and no data of items. Credentials in URLs are masked in every text of a line. The settings determine the form of keys
(KeyForm).

The dialect provides the description of a request (`Dialect.request_info`). The sinks are in audit_sinks.py.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import pwd
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

import orjson

from tablegate.gateway.configuration.secrets import masked_target, masked_values
from tablegate.gateway.http.messages import Reply, Request, new_request_id
from tablegate.gateway.model.request_info import MAX_TEXT_LENGTH, RequestInfo, RequestKind
from tablegate.gateway.observability import logs, metrics

MAX_EVENTS = 8192
MAX_BODY_BYTES = 64 << 20
_PERIOD_S = 0.05
_AFTER_FAILURE_S = 1.0
_MAX_KEYS = 100
_DIGEST_CHARACTERS = 16
_ALWAYS_RECORDED = frozenset({RequestKind.DEFINITION, RequestKind.SIGN_IN})
GATEWAY = "gateway"
_requester: ContextVar[tuple[str, str] | None] = ContextVar("requester", default=None)
"""The `dialect` in lines about the control API, the console and the command line."""
MCP_AGENT = "tablegate-mcp/"
"""The beginning of the User-Agent of `tablegate mcp`."""


class KeyForm:
    """The form of item keys in the audit log: plain, or digests with a secret key, which do not reveal guessed keys."""

    def __init__(self, are_plain: bool, secret: str) -> None:
        self._are_plain = are_plain
        self._secret = hashlib.sha256(b"tablegate audit\0" + secret.encode()).digest()

    def format(self, key: Any) -> Any:
        """Return a key in its form for the audit log. Equal keys have equal forms."""
        if self._are_plain:
            return key
        plain = orjson.dumps(key, option=orjson.OPT_SORT_KEYS, default=repr)
        return hmac.digest(self._secret, plain, "sha256").hex()[:_DIGEST_CHARACTERS]


class AuditSink(ABC):
    """The destination of lines. One thread calls it."""

    @abstractmethod
    def write(self, lines: Sequence[bytes]) -> None:
        """Write these lines. Raises any exception on failure. It is undefined which lines are written then."""

    def close(self) -> None:  # noqa: B027 - not every sink has something to close
        """Release the resources of the sink."""


class AuditScope(NamedTuple):
    """The kinds of requests that are recorded besides definitions and refusals."""

    writes: bool
    requests: bool


class AuditTrail:
    """A queue of events from any thread, which a thread of its own writes to the sink from `start()` to `close()`."""

    def __init__(self, sink: AuditSink, keys: KeyForm, scope: AuditScope) -> None:
        self._sink = sink
        self._keys = keys
        self._scope = scope
        self._queue: deque[dict[str, Any] | _RequestRecord] = deque()
        # Bytes of bodies that were queued, and that were written. Each number is changed by one thread only.
        self._bytes_in = self._bytes_out = 0
        self._ending = threading.Event()
        self._is_failing = False
        self._thread = threading.Thread(target=self._work, name="audit", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """Write the queued events and stop the thread."""
        self._ending.set()
        self._thread.join(5)
        self._sink.close()

    def add(self, event: dict[str, Any]) -> None:
        """Queue an event. It is counted as lost if the queue is full."""
        if len(self._queue) >= MAX_EVENTS:
            metrics.record_audit_loss(1)
        else:
            self._queue.append(event)

    def record_request(self, request: Request, reply: Reply, dialect: Any, operation: str) -> None:
        """Queue an answered request, if it may have to be recorded. The thread makes the exact decision.

        `dialect` is None for the control API and the console, whose handlers have set `Request.info`.
        """
        if request.authorization is not None and request.authorization.exceeded_quota is not None:
            is_recorded = True
        elif dialect is None:
            is_recorded = bool(self._event_of(_gateway_info(request, reply), reply.status))
        else:
            kind = dialect.kind_of(operation)
            is_recorded = (
                kind in _ALWAYS_RECORDED
                or reply.status in dialect.refusal_statuses
                or self._scope.requests
                or (kind is RequestKind.WRITE and self._scope.writes)
                or ((mark := dialect.refused_part_marks.get(operation)) is not None and mark in reply.body)
            )
        if not is_recorded:
            return
        size = len(request.body)
        if len(self._queue) >= MAX_EVENTS or self._bytes_in + size - self._bytes_out > MAX_BODY_BYTES:
            metrics.record_audit_loss(1)
            return
        self._bytes_in += size
        self._queue.append(_RequestRecord(time.time(), request, reply, dialect, operation))

    # Called by the thread

    def _work(self) -> None:
        is_ending = False
        while not is_ending:
            is_ending = self._ending.wait(_AFTER_FAILURE_S if self._is_failing else _PERIOD_S)
            while self._queue:
                self._write_batch()
                if self._is_failing:
                    break

    def _write_batch(self) -> None:
        lines: list[bytes] = []
        while self._queue and len(lines) < 256:
            event = self._queue.popleft()
            try:
                lines += self._encode(event)
            except Exception as error:  # a bug: without this, it would end the thread and the audit
                metrics.record_audit_loss(1)
                logs.error("cannot encode an event of the audit log", error)
        if not lines:
            return
        try:
            self._sink.write(lines)
        except Exception as error:
            metrics.record_audit_loss(len(lines))
            if not self._is_failing:
                reason = " ".join(repr(error).split())
                logs.error(
                    "cannot write the audit log: events are lost until it can be written", None, reason=reason
                )
            self._is_failing = True
            return
        self._is_failing = False
        metrics.record_audit_lines(len(lines))

    def _encode(self, event: dict[str, Any] | _RequestRecord) -> list[bytes]:
        if not isinstance(event, _RequestRecord):
            return [orjson.dumps(masked_values(event), default=repr)]
        self._bytes_out += len(event.request.body)
        return [orjson.dumps(masked_values(document)) for document in self._lines_of(event)]

    def _lines_of(self, record: _RequestRecord) -> Iterator[dict[str, Any]]:
        at, request, reply, dialect, operation = record
        if dialect is None:
            info = _gateway_info(request, reply)
            operation = (
                info.operation
                or f"{request.method} {masked_target(request.path[:MAX_TEXT_LENGTH])}"[:MAX_TEXT_LENGTH]
            )
        else:
            try:
                info = dialect.request_info(request, reply)
            except Exception as error:  # a request that its dialect refused can be malformed
                logs.info("cannot audit a request wholly", reason=repr(error), request_id=request.id)
                info = RequestInfo()
        columns = {
            "dialect": GATEWAY if dialect is None else dialect.name,
            "operation": operation or masked_target(request.path[:MAX_TEXT_LENGTH]),
            "tables": list(info.tables),
            "result": info.error_code or reply.status,
            "request_id": request.id,
        }
        if request.header("user-agent").startswith(MCP_AGENT):
            columns["channel"] = "mcp"
        throttling = None if info.is_refusal else _throttling(request)
        event = self._event_of(info, reply.status) if throttling is None or reply.status < 400 else ""
        if event:
            keys = [self._keys.format(key) for _, key in info.keys[:_MAX_KEYS]]
            yield line(at, event, info.caller, request.client, {**columns, "keys": keys} if keys else columns)
        if throttling is not None:
            caller, quota = throttling
            yield line(at, "throttled", info.caller or caller, request.client, {**columns, **quota})
        parts = info.refused_parts
        if parts is not None:
            part = {**columns, "tables": list(parts.tables), "result": parts.code}
            yield line(at, "refusal", info.caller, request.client, part)

    def _event_of(self, info: RequestInfo, status: int) -> str:
        """Return the name of the event. "" if it is not recorded."""
        if info.is_refusal:
            return "refusal"
        if info.kind in _ALWAYS_RECORDED and status < 400:
            return info.kind.value
        is_in_scope = self._scope.requests or (info.kind is RequestKind.WRITE and self._scope.writes)
        return info.kind.value if is_in_scope else ""


def _throttling(request: Request) -> tuple[str, dict[str, str]] | None:
    """Return (caller, facts of the quota) of a request that exceeded a quota. Otherwise None."""
    authorization = request.authorization
    error = None if authorization is None else authorization.exceeded_quota
    if authorization is None or error is None:
        return None
    # The name of the caller, as of a page of the console. An ARN has `entra/alice`, and the access id is `alice`.
    identity = authorization.identity
    name = identity.arn.partition(":user/")[2] or identity.access_id
    return name, {"owner": error.owner, "limit": error.kind}


def _gateway_info(request: Request, reply: Reply) -> RequestInfo:
    info = request.info or RequestInfo()
    return info._replace(is_refusal=info.is_refusal or reply.status in (401, 403))


class _RequestRecord(NamedTuple):
    at: float
    request: Request
    reply: Reply
    dialect: Any
    operation: str


def line(at: float, event: str, who: str, client: str, facts: dict[str, Any]) -> dict[str, Any]:
    """Return a line of the audit log. `at` is in seconds since 1970."""
    seconds, part = divmod(round(at * 1_000_000), 1_000_000)
    timestamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{part:06}Z"
    return {"time": timestamp, "event": event, "who": who[:MAX_TEXT_LENGTH], "from": client, **facts}


_trail: AuditTrail | None = None


def start(trail: AuditTrail) -> None:
    """Record the events of this process in this trail from now on."""
    global _trail
    _trail = trail
    trail.start()


def stop() -> None:
    """Write the queued events and stop recording."""
    global _trail
    trail, _trail = _trail, None
    if trail is not None:
        trail.close()


def record(event: str, who: str = "", client: str = "", **facts: Any) -> None:
    """Record a change of a definition, a credential or a grant. Without a trail it does nothing.

    `who` is the access id of the caller, and `client` its address. Without them it is the caller of the request that runs
    (`request_of`), or the operator at a command line. Facts must not contain secrets or data of items.
    """
    if _trail is None:
        return
    requester = _requester.get()
    if requester is not None and not who and not client:
        who, client = requester
    else:
        who, client = who or _operator(), client or "command line"
    _trail.add(line(time.time(), event, who, client, facts))


@contextlib.contextmanager
def request_of(who: str, client: str) -> Iterator[None]:
    """Record the changes of a request under its caller and address. `who` is "" if the caller needs no credential."""
    token = _requester.set((who, client))
    try:
        yield
    finally:
        _requester.reset(token)


def record_operation(
    operation: str,
    tables: Iterable[str],
    result: str,
    who: str = "",
    client: str = "",
    dialect: str = GATEWAY,
) -> None:
    """Record an action that was not a request, in the form of requests. `who` is as in `record`."""
    record(
        RequestKind.DEFINITION.value, who, client, dialect=dialect, operation=operation, tables=list(tables), result=result,
        request_id=new_request_id(),
    )  # fmt: skip


def is_on() -> bool:
    """True if the audit log is enabled."""
    return _trail is not None


def record_request(request: Request, reply: Reply, dialect: Any, operation: str) -> None:
    """Queue a request that was answered under a WSGI server. The server of the gateway calls its trail directly."""
    if _trail is not None:
        _trail.record_request(request, reply, dialect, operation)


def _operator() -> str:
    with contextlib.suppress(KeyError):
        return f"user {pwd.getpwuid(os.getuid()).pw_name}"
    return f"user {os.getuid()}"
