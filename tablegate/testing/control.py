"""A client of the control API (docs/test/control.md), with one method for each operation.

Uses only the standard library, keeps one connection, and ignores proxy settings.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

_TIMEOUT_S = 60.0


class ControlError(Exception):
    """The control API rejected a request. `status`: the HTTP status. The text says what is accepted."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class ControlClient:
    """The control API of the server at `url`. Thread-safe. `token`: the administrator's token, if the server requires
    one."""

    def __init__(self, url: str, token: str = "") -> None:
        self._address = urlsplit(url)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._lock = threading.Lock()
        self._connection: http.client.HTTPConnection | None = None

    # Data

    def reset(
        self, *, namespace: str | None = None, tables: Sequence[str] | None = None, keep_tables: bool = False
    ) -> int:
        """Drop all tables, or those of a namespace, or only the named ones. Return their number.

        `keep_tables`: only delete the rows.
        """
        document = {
            "namespace": namespace,
            "tables": None if tables is None else [*tables],
            "mode": "rows" if keep_tables else "tables",
        }
        return int(self._ask("POST", "/reset", document)["tables"])

    def seed(self, *documents: Mapping[str, Any]) -> dict[str, Any]:
        """Create tables and put rows. Documents are like files of `--seed`: {"name": file name, "text": content}."""
        return self._ask("POST", "/seed", {"files": [dict(document) for document in documents]})

    # Time

    def clock(self) -> dict[str, Any]:
        """Return the clock: its time (`now`, `now_ms`), if it is `frozen`, and its offset from real time (`ahead_ms`)."""
        return self._ask("GET", "/clock")

    def freeze(self, at: datetime | str | int | None = None) -> dict[str, Any]:
        """Freeze the clock, now or at a future time."""
        return self.set_clock(at, frozen=True)

    def unfreeze(self) -> dict[str, Any]:
        """Let the clock run again from its current time."""
        return self.set_clock(frozen=False)

    def set_clock(self, at: datetime | str | int | None = None, frozen: bool | None = None) -> dict[str, Any]:
        """Set the clock to a time: ISO 8601 with a zone, milliseconds since 1970, or a datetime with a zone."""
        if isinstance(at, datetime):
            at = at.isoformat()
        return self._ask("PUT", "/clock", {"at": at, "frozen": frozen})

    def advance(self, by: timedelta | float) -> dict[str, Any]:
        """Advance the clock by seconds. Work that becomes due is done before this returns."""
        seconds = by.total_seconds() if isinstance(by, timedelta) else by
        return self._ask("POST", "/clock/advance", {"seconds": seconds})

    # Snapshots

    def save(self, name: str, *, namespace: str | None = None) -> dict[str, Any]:
        """Save all tables, or those of a namespace, as a snapshot."""
        return self._ask("POST", "/snapshots", {"name": name, "namespace": namespace})

    def load(self, name: str) -> dict[str, Any]:
        """Replace the tables by those of a snapshot."""
        return self._ask("POST", f"/snapshots/{quote(name, safe='')}/load")

    def fork(self, name: str, namespace: str, *, of: str | None = None) -> dict[str, Any]:
        """Replace the tables of a namespace by those of a snapshot. `of`: their namespace in it, if it has several."""
        return self._ask(
            "POST", f"/snapshots/{quote(name, safe='')}/fork", {"namespace": namespace, "of": of}
        )

    def snapshots(self) -> dict[str, Any]:
        """Return the snapshots by name."""
        return dict(self._ask("GET", "/snapshots")["snapshots"])

    def forget(self, name: str) -> None:
        """Delete a snapshot."""
        self._ask("DELETE", f"/snapshots/{quote(name, safe='')}")

    def export(self, name: str, path: str | Path) -> None:
        """Write a snapshot to a file for `Server(start_from=path)` and `import_snapshot`."""
        status, body = self._send("GET", f"/snapshots/{quote(name, safe='')}/file", None, {})
        if status != 200:
            raise _error(status, body)
        Path(path).write_bytes(body)

    def import_snapshot(self, name: str, path: str | Path) -> dict[str, Any]:
        """Create a snapshot from a file that any server exported."""
        content = Path(path).read_bytes()
        return self._answer(
            *self._send(
                "PUT",
                f"/snapshots/{quote(name, safe='')}/file",
                content,
                {"Content-Type": "application/gzip"},
            )
        )

    # Faults

    def add_fault(self, **fault: Any) -> str:
        """Add a fault and return its id.

        Filters: dialect, operation, table, caller. Effects: error, latency_ms, cut, unprocessed, capacity. Frequency:
        rate, seed, count, after.
        """
        return str(self._ask("POST", "/faults", fault)["id"])

    @contextlib.contextmanager
    def fault(self, **fault: Any) -> Iterator[str]:
        """Add a fault for the duration of the block."""
        fault_id = self.add_fault(**fault)
        try:
            yield fault_id
        finally:
            self._ask("DELETE", f"/faults/{fault_id}")

    def faults(self) -> list[dict[str, Any]]:
        """Return the faults, each with its number of requests `seen` and `met`."""
        return list(self._ask("GET", "/faults")["faults"])

    def clear_faults(self) -> None:
        """Remove all faults."""
        self._ask("DELETE", "/faults")

    # Requests

    def record(self, most: int = 1000) -> None:
        """Record requests from now on, and keep the last `most`."""
        self._ask("PUT", "/requests", {"most": most})

    def requests(
        self,
        *,
        dialect: str | None = None,
        operation: str | None = None,
        table: str | None = None,
        caller: str | None = None,
        status: int | None = None,
    ) -> list[dict[str, Any]]:
        """Return the recorded requests, or those with these members, oldest first.

        An operation that no dialect has is an error, so a misspelt name does not look like a request that was not sent.
        """
        wanted = {
            "dialect": dialect, "operation": operation, "table": table, "caller": caller, "status": status
        }  # fmt: skip
        query = urlencode({name: value for name, value in wanted.items() if value is not None})
        return list(self._ask("GET", f"/requests{query and '?' + query}")["requests"])

    def forget_requests(self) -> None:
        """Delete the recorded requests. The next one has number 1."""
        self._ask("DELETE", "/requests")

    # Transport

    def close(self) -> None:
        """Close the connection. The next operation opens another."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _ask(self, method: str, path: str, document: Mapping[str, Any] | None = None) -> dict[str, Any]:
        body = None
        if document is not None:
            given = {name: value for name, value in document.items() if value is not None}
            body = json.dumps(given).encode()
        return self._answer(*self._send(method, path, body, {"Content-Type": "application/json"}))

    @staticmethod
    def _answer(status: int, body: bytes) -> dict[str, Any]:
        if status != 200:
            raise _error(status, body)
        answer: dict[str, Any] = json.loads(body)
        return answer

    def _send(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        target = f"/_tablegate{path}"
        with self._lock:
            is_reused = self._connection is not None
            try:
                return self._send_once(method, target, body, headers)
            except (http.client.HTTPException, OSError):
                # The server closes idle connections. A new one shows if the server is running.
                self._connection = None
                if not is_reused:
                    raise
                return self._send_once(method, target, body, headers)

    def _send_once(
        self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = self._connected()
        self._connection.request(method, target, body, {**self._headers, **headers})
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    def _connected(self) -> http.client.HTTPConnection:
        host, port = self._address.hostname or "localhost", self._address.port
        if self._address.scheme == "https":
            # A server for tests has a self-signed certificate.
            context = ssl._create_unverified_context()
            return http.client.HTTPSConnection(host, port, timeout=_TIMEOUT_S, context=context)
        return http.client.HTTPConnection(host, port, timeout=_TIMEOUT_S)


def _error(status: int, body: bytes) -> ControlError:
    try:
        text = json.loads(body)["message"]
    except (ValueError, KeyError, TypeError):
        text = body.decode("utf-8", "replace").strip()
    return ControlError(status, f"{status}: {text}")
