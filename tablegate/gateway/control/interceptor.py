"""The interceptor in front of the dialects, which applies faults to requests, and the log of requests that it records.

Both entries call it, but only if there are faults or requests are recorded (`RequestInterceptor.is_on`).

The request log is for assertions of tests and for inspecting an SDK. It is off by default. A line has the time of the tables'
clock, and neither id nor address. So two runs of a test with a frozen clock log equal lines.
"""

from __future__ import annotations

import threading
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Sequence
from functools import partial
from typing import Any

import orjson

from tablegate.gateway.configuration.secrets import masked_values
from tablegate.gateway.control.documents import BadRequest, dialects_of, only
from tablegate.gateway.control.faults import FaultEffect, Faults
from tablegate.gateway.dialects.dialect import Dialect, Handler
from tablegate.gateway.http import request_context
from tablegate.gateway.http.messages import CUT, Reply, Request
from tablegate.gateway.http.request_context import RequestContext
from tablegate.gateway.model.request_info import RequestInfo

_MOST_REQUESTS = 100_000
_MOST_BYTES = 32 << 20
_MOST_KEYS = 100
USUAL_REQUESTS = 1000


class RequestLog:
    """A ring buffer of requests, bounded in number and bytes, for several threads.

    `changed` is called when recording begins or ends.
    """

    def __init__(
        self, dialects: Callable[[], Sequence[Dialect]], most: int, changed: Callable[[], None]
    ) -> None:
        self._dialects = dialects
        self._changed = changed
        self._lock = threading.Lock()
        self._most = most
        self._lines: deque[bytes] = deque()
        self._bytes = self._number = 0

    @property
    def is_on(self) -> bool:
        """True if requests are recorded."""
        return self._most > 0

    def add(
        self,
        dialect: Dialect,
        info: RequestInfo,
        status: int,
        units: dict[str, float],
        times_ns: tuple[int, int],
    ) -> None:
        """Add an answered request. `times_ns`: its arrival and its reply, by the clock of the tables."""
        came_ns, answered_ns = times_ns
        keys = [{"table": table, "key": key} for table, key in info.keys[:_MOST_KEYS]]
        with self._lock:
            self._number += 1
            facts_of_line = masked_values(
                {
                    "number": self._number,
                    "dialect": dialect.name,
                    "operation": info.operation,
                    "caller": info.caller,
                    "tables": info.tables[:_MOST_KEYS],
                    "keys": keys,
                    "status": status,
                    "units": units,
                    "at_ms": came_ns // 1_000_000,
                    "duration_us": (answered_ns - came_ns) // 1000,
                }
            )
            line = orjson.dumps(facts_of_line)
            self._lines.append(line)
            self._bytes += len(line)
            while len(self._lines) > self._most or self._bytes > _MOST_BYTES:
                self._bytes -= len(self._lines.popleft())

    # Operations of the control API

    def listed(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the requests with these members, oldest first, and the maximum number. Raises BadRequest."""
        wanted = only(given, dialect=str, operation=str, table=str, caller=str, status=str)
        dialects_of(wanted, self._dialects())
        with self._lock:
            lines = [*self._lines]
        if wanted:
            lines = [line for line in lines if _has_members(orjson.loads(line), wanted)]
        return {"most": self._most, "requests": [orjson.Fragment(line) for line in lines]}

    def change(self, given: dict[str, Any]) -> dict[str, Any]:
        """Set the maximum number of requests (`most`). 0 ends the recording. Raises BadRequest."""
        most = only(given, most=int).get("most", USUAL_REQUESTS)
        if not 0 <= most <= _MOST_REQUESTS:
            raise BadRequest(f"most must be from 0 to {_MOST_REQUESTS}")
        with self._lock:
            self._most = most
            while len(self._lines) > most:
                self._bytes -= len(self._lines.popleft())
        self._changed()
        return {"most": most}

    def clear(self) -> dict[str, Any]:
        """Remove all requests. The next one has number 1."""
        with self._lock:
            removed = len(self._lines)
            self._lines.clear()
            self._bytes = self._number = 0
        return {"requests": removed}


def _has_members(line: dict[str, Any], wanted: dict[str, str]) -> bool:
    """True if a line has these members. `table` is one of its tables."""
    return all(
        value in line["tables"] if name == "table" else value == str(line[name])
        for name, value in wanted.items()
    )


class RequestInterceptor:
    """The faults and the request log of a server process.

    - `dialects`: loads and returns all dialects.
    - `now_ns`: the clock of the tables.
    """

    def __init__(
        self, dialects: Callable[[], Sequence[Dialect]], now_ns: Callable[[], int], most_recorded: int
    ) -> None:
        self.dialects = dialects
        self.faults = Faults(dialects, self._update)
        self.requests = RequestLog(dialects, most_recorded, self._update)
        self.now_ns = now_ns
        self.is_on = False
        """True if requests must be intercepted. It is computed beforehand, since every request reads it."""
        self._lock = threading.Lock()
        self._update()

    def _update(self) -> None:
        with self._lock:
            was_on, self.is_on = self.is_on, self.faults.are_planted or self.requests.is_on
            if self.is_on != was_on:
                request_context.count_interceptor(self.is_on)

    def intercept(self, request: Request, dialect: Dialect) -> InterceptedRequest:
        """Return a request before it is handled, with the effects of faults on it."""
        effects: list[FaultEffect] = []
        if self.faults.are_planted:
            effects = self.faults.effects(
                dialect, _request_info(request, dialect), self.now_ns() // 1_000_000
            )
        return InterceptedRequest(self, request, dialect, effects)


class InterceptedRequest:
    """An intercepted request, from before it is handled until it is answered."""

    def __init__(
        self,
        interceptor: RequestInterceptor,
        request: Request,
        dialect: Dialect,
        effects: Sequence[FaultEffect],
    ) -> None:
        self._interceptor = interceptor
        self._request = request
        self._dialect = dialect
        self._effects = effects
        self._came_ns = interceptor.now_ns()
        self.latency_s = sum(effect.latency_ms for effect in effects) / 1000
        leaves_out = [effect.leaves_out for effect in effects if effect.leaves_out is not None]
        self.context = RequestContext((lambda: any(each() for each in leaves_out)) if leaves_out else None)

    def injected_reply(self) -> Reply | None:
        """Return the reply that replaces the dialect's, or CUT for no reply. None if the dialect handles the request."""
        for effect in self._effects:
            if effect.cut == "before":
                return CUT
            if effect.error:
                return self._dialect.fault(self._request, effect.error)
        return None

    def in_context(self, handler: Handler) -> Handler:
        """Return a handler that runs in the context of this request (gateway/http/request_context.py)."""
        return partial(_handle_in, self.context, handler)

    def answered(self, reply: Reply) -> Reply:
        """Record the reply. Returns the reply to send, or CUT."""
        units = self.context.units
        self._interceptor.faults.charge(self._effects, sum(units.values()))
        if self._interceptor.requests.is_on:
            # Not earlier: the keys of the table are known after the request was handled.
            info = _request_info(self._request, self._dialect)
            times_ns = (self._came_ns, self._interceptor.now_ns())
            self._interceptor.requests.add(self._dialect, info, reply.status, units, times_ns)
        return CUT if any(effect.cut == "after" for effect in self._effects) else reply


async def _handle_in(context: RequestContext, handler: Handler, request: Request) -> Reply:
    return await _run_in(context, handler(request))


@types.coroutine
def _run_in(context: RequestContext, coroutine: Coroutine[Any, Any, Reply]) -> Generator[Any, Any, Reply]:
    outcomes: list[Any] | Exception | None = None
    while True:
        with request_context.current(context):
            try:
                if isinstance(outcomes, Exception):
                    commands = coroutine.throw(outcomes)
                else:
                    commands = coroutine.send(outcomes)
            except StopIteration as end:
                reply: Reply = end.value
                return reply
        try:
            outcomes = yield commands
        except Exception as error:
            outcomes = error


def _request_info(request: Request, dialect: Dialect) -> RequestInfo:
    """Return the description of a request, or only its operation if a fault has answered it before authentication."""
    try:
        return dialect.request_info(request)
    except Exception:
        return RequestInfo(dialect.operation(request))
