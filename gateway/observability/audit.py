"""What was done, by whom and with what result, on record: one JSON object a line.

    record(event, **facts)     a change of a definition, a credential or a grant: whoever makes it says so
    Trail.answered(...)        a request that was answered: refusals always, writes or all requests as the settings say

Nobody waits for the record. Events go into a bounded queue; a thread of its own looks at each request again, writes lines to the
sink, and counts what there was no room for. Switched off there is no trail, and whoever might tell it something asks no more
than that. Secrets and data of items are in no event; keys are as the settings say (Keys).

Knows no dialect: what a request did its dialect tells (`Dialect.facts`); nor where lines go (audit_sinks.py).
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
from typing import Any, NamedTuple

import orjson

from tablegate.gateway.http import Reply, Request, new_request_id
from tablegate.gateway.model.request_facts import MAX_TEXT_LENGTH, RequestFacts, RequestKind
from tablegate.gateway.observability import logs, metrics

MOST_EVENTS = 8192
MOST_BODY_BYTES = 64 << 20
_PERIOD_S = 0.05
_AFTER_FAILURE_S = 1.0
_MOST_KEYS = 100
_DIGEST_CHARACTERS = 16
_ALWAYS_TOLD = frozenset({RequestKind.DEFINITION, RequestKind.SIGN_IN})
GATEWAY = "gateway"
"""What stands for a dialect in lines about the control API, the console and the command line."""


class KeyForm:
    """How keys of items are told: as they are, or as digests. A digest under a secret tells nobody a key by guessing."""

    def __init__(self, are_plain: bool, secret: str) -> None:
        self._are_plain = are_plain
        self._secret = hashlib.sha256(b"tablegate audit\0" + secret.encode()).digest()

    def shown(self, key: Any) -> Any:
        """A key as it is told. The same key of one table is always told alike."""
        if self._are_plain:
            return key
        plain = orjson.dumps(key, option=orjson.OPT_SORT_KEYS, default=repr)
        return hmac.digest(self._secret, plain, "sha256").hex()[:_DIGEST_CHARACTERS]


class AuditSink(ABC):
    """Where lines go. Called by one thread."""

    @abstractmethod
    def write(self, lines: Sequence[bytes]) -> None:
        """Keep these lines. Raises whatever went wrong, and then none may be kept."""

    def close(self) -> None:  # noqa: B027 - not every sink has something to close
        """No more lines will come."""


class AuditScope(NamedTuple):
    """Which requests are told besides definitions and refusals."""

    writes: bool
    requests: bool


class AuditTrail:
    """Takes events from any thread and writes them from its own, from `start()` to `close()`."""

    def __init__(self, sink: AuditSink, keys: KeyForm, wanted: AuditScope) -> None:
        self._sink = sink
        self._keys = keys
        self._wanted = wanted
        self._queue: deque[dict[str, Any] | _AnsweredRequest] = deque()
        # Of bodies that have come, and that are done with: each is counted by one thread alone.
        self._bytes_in = self._bytes_out = 0
        self._ending = threading.Event()
        self._is_failing = False
        self._thread = threading.Thread(target=self._work, name="audit", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def close(self) -> None:
        """Write what is there, and no more."""
        self._ending.set()
        self._thread.join(5)
        self._sink.close()

    def put(self, event: dict[str, Any]) -> None:
        """Tell an event."""
        if len(self._queue) >= MOST_EVENTS:
            metrics.audit_lost(1)
        else:
            self._queue.append(event)

    def answered(self, request: Request, reply: Reply, dialect: Any, operation: str) -> None:
        """Take a request that was answered. `dialect`: None if it was for the gateway itself, whose handlers have noted what it
        did (`Request.facts`). Looks no further than it must: the thread does."""
        if request.authorization is not None and request.authorization.exceeded_quota is not None:
            is_told = True
        elif dialect is None:
            is_told = bool(self._event_of(_own_facts(request, reply), reply.status))
        else:
            kind = dialect.operation_kinds.get(operation, RequestKind.READ)
            is_told = (
                kind is RequestKind.DEFINITION
                or reply.status in dialect.refusal_statuses
                or self._wanted.requests
                or (kind is RequestKind.WRITE and self._wanted.writes)
                or ((mark := dialect.refused_part_marks.get(operation)) is not None and mark in reply.body)
            )
        if not is_told:
            return
        size = len(request.body)
        if len(self._queue) >= MOST_EVENTS or self._bytes_in + size - self._bytes_out > MOST_BODY_BYTES:
            metrics.audit_lost(1)
            return
        self._bytes_in += size
        self._queue.append(_AnsweredRequest(time.time(), request, reply, dialect, operation))

    # In the thread

    def _work(self) -> None:
        is_over = False
        while not is_over:
            is_over = self._ending.wait(_AFTER_FAILURE_S if self._is_failing else _PERIOD_S)
            while self._queue:
                self._write_some()
                if self._is_failing:
                    break

    def _write_some(self) -> None:
        lines: list[bytes] = []
        while self._queue and len(lines) < 256:
            event = self._queue.popleft()
            if isinstance(event, _AnsweredRequest):
                self._bytes_out += len(event.request.body)
                lines += [orjson.dumps(told) for told in self._told(event)]
            else:
                lines.append(orjson.dumps(event, default=repr))
        if not lines:
            return
        try:
            self._sink.write(lines)
        except Exception as error:
            metrics.audit_lost(len(lines))
            if not self._is_failing:
                logs.error("the audit cannot be written", None, reason=" ".join(repr(error).split()))
            self._is_failing = True
            return
        self._is_failing = False
        metrics.audit_written(len(lines))

    def _told(self, answered: _AnsweredRequest) -> Iterator[dict[str, Any]]:
        at, request, reply, dialect, operation = answered
        if dialect is None:
            known = _own_facts(request, reply)
            operation = f"{request.method} {request.path}"[:MAX_TEXT_LENGTH]
        else:
            try:
                known = dialect.facts(request, reply)
            except Exception as error:  # a request that its dialect refused may be anything
                logs.info("a request is not told in full", reason=repr(error), request_id=request.id)
                known = RequestFacts()
        facts = {
            "dialect": GATEWAY if dialect is None else dialect.name,
            "operation": operation or request.path[:MAX_TEXT_LENGTH],
            "tables": list(known.tables),
            "result": known.error_code or reply.status,
            "request_id": request.id,
        }
        throttling = None if known.is_refusal else _throttling(request)
        event = self._event_of(known, reply.status) if throttling is None or reply.status < 400 else ""
        if event:
            keys = [self._keys.shown(key) for _, key in known.keys[:_MOST_KEYS]]
            yield line(at, event, known.caller, request.client, {**facts, "keys": keys} if keys else facts)
        if throttling is not None:
            who, quota = throttling
            yield line(at, "throttled", who, request.client, {**facts, **quota})
        parts = known.refused_parts
        if parts is not None:
            part = {**facts, "tables": list(parts.tables), "result": parts.code}
            yield line(at, "refusal", known.caller, request.client, part)

    def _event_of(self, facts: RequestFacts, status: int) -> str:
        """What the event is called; "" if it is not to be told."""
        if facts.is_refusal:
            return "refusal"
        if facts.kind in _ALWAYS_TOLD and status < 400:
            return facts.kind.value
        is_wanted = self._wanted.requests or (facts.kind is RequestKind.WRITE and self._wanted.writes)
        return facts.kind.value if is_wanted else ""


def _throttling(request: Request) -> tuple[str, dict[str, str]] | None:
    """(caller, facts of the quota) of a request that a quota refused, or None."""
    authorization = request.authorization
    error = None if authorization is None else authorization.exceeded_quota
    if authorization is None or error is None:
        return None
    return authorization.identity.access_id, {"owner": error.owner, "limit": error.kind}


def _own_facts(request: Request, reply: Reply) -> RequestFacts:
    """What a request for the gateway itself did."""
    facts = request.facts or RequestFacts()
    return facts._replace(is_refusal=facts.is_refusal or reply.status in (401, 403))


class _AnsweredRequest(NamedTuple):
    at: float
    request: Request
    reply: Reply
    dialect: Any
    operation: str


def line(at: float, event: str, who: str, client: str, facts: dict[str, Any]) -> dict[str, Any]:
    """An event as it is written. `at`: seconds since 1970."""
    whole, part = divmod(round(at * 1_000_000), 1_000_000)
    told = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole)) + f".{part:06}Z"
    return {"time": told, "event": event, "who": who[:MAX_TEXT_LENGTH], "from": client, **facts}


_trail: AuditTrail | None = None


def start(trail: AuditTrail) -> None:
    """From now on events of this process go there."""
    global _trail
    _trail = trail
    trail.start()


def stop() -> None:
    """Write what has come, and take no more."""
    global _trail
    trail, _trail = _trail, None
    if trail is not None:
        trail.close()


def record(event: str, who: str = "", client: str = "", **facts: Any) -> None:
    """Put a change on record: of a definition, a credential or a grant. Without a trail it does nothing. `who`: the access id of
    the caller; "" is the operator at a command line. No fact may be a secret or the data of an item."""
    if _trail is not None:
        _trail.put(line(time.time(), event, who or _operator(), client or "command line", facts))


def record_operation(
    operation: str,
    tables: Iterable[str],
    result: str,
    who: str = "",
    client: str = "",
    dialect: str = GATEWAY,
) -> None:
    """Put something on record that was no request, in the form of requests. `who`: "" is the operator at a command line."""
    record(
        RequestKind.DEFINITION.value, who, client, dialect=dialect, operation=operation, tables=list(tables), result=result,
        request_id=new_request_id(),
    )  # fmt: skip


def is_on() -> bool:
    """True if events of this process go on record."""
    return _trail is not None


def answered(request: Request, reply: Reply, dialect: Any, operation: str) -> None:
    """Take a request that was answered under a WSGI server. Our own server has a trail at hand."""
    if _trail is not None:
        _trail.answered(request, reply, dialect, operation)


def _operator() -> str:
    with contextlib.suppress(KeyError):
        return f"user {pwd.getpwuid(os.getuid()).pw_name}"
    return f"user {os.getuid()}"
