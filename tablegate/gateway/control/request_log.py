"""The request log: recent requests, for assertions of tests and for inspecting an SDK. It is off by default.

A line has the time of the tables' clock, and neither id nor address. So two runs of a test with a frozen clock log equal lines.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from tablegate.gateway.configuration.url_secrets import masked_values
from tablegate.gateway.control.documents import BadRequest, dialects_of, only
from tablegate.gateway.dialects.dialect import Dialect
from tablegate.gateway.model.request_facts import RequestFacts

_MOST = 100_000
_MOST_BYTES = 32 << 20
_MOST_KEYS = 100
USUAL = 1000


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
            facts_of_line = masked_values(
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
            lines = [line for line in lines if _has(orjson.loads(line), wanted)]
        return {"most": self._most, "requests": [orjson.Fragment(line) for line in lines]}

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


def _has(line: dict[str, Any], wanted: dict[str, str]) -> bool:
    """True if a line has these members. `table` is one of its tables."""
    return all(
        value in line["tables"] if name == "table" else value == str(line[name])
        for name, value in wanted.items()
    )
