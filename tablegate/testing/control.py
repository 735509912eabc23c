"""A client of the control API (docs/test/control.md): one method for each operation.

Uses the standard library only, keeps one connection, and heeds no proxy.
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
    """What the control API has refused. `status` is HTTP's; the text says what would be right."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class ControlClient:
    """The control API of the server at `url`; `token`: the administrator's, where one is wanted. Safe for several threads."""

    def __init__(self, url: str, token: str = "") -> None:
        self._address = urlsplit(url)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._lock = threading.Lock()
        self._connection: http.client.HTTPConnection | None = None

    # What tables hold

    def reset(
        self, *, namespace: str | None = None, tables: Sequence[str] | None = None, keep_tables: bool = False
    ) -> int:
        """Drop all tables, or those of a namespace, or of these the named ones; `keep_tables`: only empty them. How many."""
        document = {
            "namespace": namespace,
            "tables": None if tables is None else [*tables],
            "mode": "rows" if keep_tables else "tables",
        }
        return int(self._ask("POST", "/reset", document)["tables"])

    def seed(self, *documents: Mapping[str, Any]) -> dict[str, Any]:
        """Make tables and put rows, of documents as files of `--seed` have them: {"name": file name, "text": content}."""
        return self._ask("POST", "/seed", {"files": [dict(document) for document in documents]})

    # Time

    def clock(self) -> dict[str, Any]:
        """What the clock shows (`now`, `now_ms`), whether it is `frozen`, and how far `ahead_ms` of the real time it is."""
        return self._ask("GET", "/clock")

    def freeze(self, at: datetime | str | int | None = None) -> dict[str, Any]:
        """Let time stand still, now or `at` a moment that is to come."""
        return self.set_clock(at, frozen=True)

    def unfreeze(self) -> dict[str, Any]:
        """Let time go on from where it stands."""
        return self.set_clock(frozen=False)

    def set_clock(self, at: datetime | str | int | None = None, frozen: bool | None = None) -> dict[str, Any]:
        """Go to a moment: ISO 8601 with a zone, milliseconds since 1970, or a datetime that knows its zone."""
        if isinstance(at, datetime):
            at = at.isoformat()
        return self._ask("PUT", "/clock", {"at": at, "frozen": frozen})

    def advance(self, by: timedelta | float) -> dict[str, Any]:
        """Let seconds pass at once; what has become due is done before this returns."""
        seconds = by.total_seconds() if isinstance(by, timedelta) else by
        return self._ask("POST", "/clock/advance", {"seconds": seconds})

    # States

    def save(self, name: str, *, namespace: str | None = None) -> dict[str, Any]:
        """Save all tables, or those of a namespace, as a snapshot."""
        return self._ask("POST", "/snapshots", {"name": name, "namespace": namespace})

    def load(self, name: str) -> dict[str, Any]:
        """Make the tables those of a snapshot."""
        return self._ask("POST", f"/snapshots/{quote(name, safe='')}/load")

    def fork(self, name: str, namespace: str, *, of: str | None = None) -> dict[str, Any]:
        """Make the tables of a namespace those that a snapshot has, of its only namespace or of another."""
        return self._ask(
            "POST", f"/snapshots/{quote(name, safe='')}/fork", {"namespace": namespace, "of": of}
        )

    def snapshots(self) -> dict[str, Any]:
        """What snapshots there are, by name."""
        return dict(self._ask("GET", "/snapshots")["snapshots"])

    def forget(self, name: str) -> None:
        """Remove a snapshot."""
        self._ask("DELETE", f"/snapshots/{quote(name, safe='')}")

    def export(self, name: str, path: str | Path) -> None:
        """Write a snapshot to a file, which `Server(start_from=path)` and `import_snapshot` read."""
        status, body = self._send("GET", f"/snapshots/{quote(name, safe='')}/file", None, {})
        if status != 200:
            raise _error(status, body)
        Path(path).write_bytes(body)

    def import_snapshot(self, name: str, path: str | Path) -> dict[str, Any]:
        """Make a snapshot of a file that was exported, by this server or any other."""
        content = Path(path).read_bytes()
        return self._answer(
            *self._send(
                "PUT",
                f"/snapshots/{quote(name, safe='')}/file",
                content,
                {"Content-Type": "application/gzip"},
            )
        )

    # Failures

    def add_fault(self, **fault: Any) -> str:
        """Plant a fault; its id. Whom it meets: dialect, operation, table, caller. What it does: error, latency_ms, cut,
        unprocessed, capacity. How often: rate, seed, count, after."""
        return str(self._ask("POST", "/faults", fault)["id"])

    @contextlib.contextmanager
    def fault(self, **fault: Any) -> Iterator[str]:
        """A fault that is there within the block."""
        fault_id = self.add_fault(**fault)
        try:
            yield fault_id
        finally:
            self._ask("DELETE", f"/faults/{fault_id}")

    def faults(self) -> list[dict[str, Any]]:
        """The faults there are, with how many requests each has `seen` and `met`."""
        return list(self._ask("GET", "/faults")["faults"])

    def clear_faults(self) -> None:
        """Take all faults away."""
        self._ask("DELETE", "/faults")

    # Requests

    def record(self, most: int = 1000) -> None:
        """Keep the last so many requests from now on."""
        self._ask("PUT", "/requests", {"most": most})

    def requests(self, **wanted: Any) -> list[dict[str, Any]]:
        """The requests that were recorded, the oldest first; `wanted`: only those whose members are these."""
        found: list[dict[str, Any]] = self._ask("GET", "/requests")["requests"]
        return [line for line in found if all(line.get(name) == value for name, value in wanted.items())]

    def forget_requests(self) -> None:
        """Forget the requests that were recorded; the next is number 1."""
        self._ask("DELETE", "/requests")

    # The wire

    def close(self) -> None:
        """Close the connection; the next operation opens another."""
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
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], **query: str
    ) -> tuple[int, bytes]:
        target = f"/_tablegate{path}" + (f"?{urlencode(query)}" if query else "")
        with self._lock:
            is_reused = self._connection is not None
            try:
                return self._send_once(method, target, body, headers)
            except (http.client.HTTPException, OSError):
                # The server closes connections that were idle for long; a new one tells whether it is there at all.
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
            # The server that a test has started made its certificate itself.
            context = ssl._create_unverified_context()
            return http.client.HTTPSConnection(host, port, timeout=_TIMEOUT_S, context=context)
        return http.client.HTTPConnection(host, port, timeout=_TIMEOUT_S)


def _error(status: int, body: bytes) -> ControlError:
    try:
        text = json.loads(body)["message"]
    except (ValueError, KeyError, TypeError):
        text = body.decode("utf-8", "replace").strip()
    return ControlError(status, f"{status}: {text}")
