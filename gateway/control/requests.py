"""The request log: recent requests, for assertions of tests and for inspecting an SDK. It is off by default.

A line has the time of the tables' clock, and neither id nor address. So two runs of a test with a frozen clock log equal lines.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import orjson

from tablegate.gateway.control.answers import BadRequest, only
from tablegate.gateway.dialect import Dialect
from tablegate.gateway.model.request_facts import RequestFacts

_MOST = 100_000
_MOST_BYTES = 32 << 20
_MOST_KEYS = 100
USUAL = 1000


class RequestLog:
    """A ring buffer of requests, bounded in number and bytes, for several threads.

    `changed` is called when recording begins or ends.
    """

    def __init__(self, most: int, changed: Callable[[], None]) -> None:
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
        facts: RequestFacts,
        status: int,
        units: dict[str, float],
        times_ns: tuple[int, int],
    ) -> None:
        """Add an answered request. `times_ns`: its arrival and its reply, by the clock of the tables."""
        came_ns, answered_ns = times_ns
        keys = [{"table": table, "key": key} for table, key in facts.keys[:_MOST_KEYS]]
        with self._lock:
            self._number += 1
            line = orjson.dumps(
                {
                    "number": self._number,
                    "dialect": dialect.name,
                    "operation": facts.operation,
                    "caller": facts.caller,
                    "tables": facts.tables[:_MOST_KEYS],
                    "keys": keys,
                    "status": status,
                    "units": units,
                    "at_ms": came_ns // 1_000_000,
                    "duration_us": (answered_ns - came_ns) // 1000,
                }
            )
            self._lines.append(line)
            self._bytes += len(line)
            while len(self._lines) > self._most or self._bytes > _MOST_BYTES:
                self._bytes -= len(self._lines.popleft())

    # Operations of the control API

    def listed(self) -> dict[str, Any]:
        """Return the requests, oldest first, and the maximum number."""
        with self._lock:
            lines = [orjson.Fragment(line) for line in self._lines]
        return {"most": self._most, "requests": lines}

    def change(self, given: dict[str, Any]) -> dict[str, Any]:
        """Set the maximum number of requests (`most`). 0 ends the recording. Raises BadRequest."""
        most = only(given, most=int).get("most", USUAL)
        if not 0 <= most <= _MOST:
            raise BadRequest(f"most must be from 0 to {_MOST}")
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
