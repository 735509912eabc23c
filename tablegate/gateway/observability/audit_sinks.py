"""Sinks of the audit log: a rotating file, standard output, or a table of the database."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.observability import audit
from tablegate.gateway.observability.audit import AuditScope, AuditSink, AuditTrail, KeyForm
from tablegate.gateway.store import accounts
from tablegate.gateway.store.store import Store

_TRIMMING_S = 600.0
_ROWS_AT_ONCE = 1000
_READ_BYTES = 8 << 20
# Lines are stored with the time of their writing, shortly after the event.
_WRITTEN_AFTER_MS = 60_000


def trail_of(settings: Settings, store: Store, output: TextIO = sys.stdout) -> AuditTrail | None:
    """Return the trail of the settings, not started. None if the audit log is disabled. Raises OSError.

    `output` is the stream of the setting `-`.
    """
    sink: AuditSink
    match settings.audit:
        case "":
            return None
        case "-":
            sink = StreamSink(output)
        case "database":
            sink = DatabaseSink(store, settings.audit_days)
        case path:
            sink = FileSink(Path(path), settings.audit_file_bytes, settings.audit_files)
    keys = KeyForm(settings.audit_keys == "plain", settings.secret_key)
    return AuditTrail(sink, keys, AuditScope(settings.audit_writes, settings.audit_requests))


@contextlib.contextmanager
def recording(settings: Settings, store: Store, output: TextIO = sys.stdout) -> Iterator[None]:
    """Record the events of this process in the audit log of the settings, for work without a server. Raises OSError."""
    trail = trail_of(settings, store, output)
    if trail is not None:
        audit.start(trail)
    try:
        yield
    finally:
        audit.stop()


class StreamSink(AuditSink):
    """A sink for standard output or another stream."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, lines: Sequence[bytes]) -> None:
        self._stream.write(b"".join(line + b"\n" for line in lines).decode())
        self._stream.flush()


class FileSink(AuditSink):
    """A rotating file. Closed files have the suffixes .1, .2 and so on, the newest first.

    Several processes can write to it. A lock serialises them, and each checks for a rotation by another one.
    """

    def __init__(self, path: Path, max_bytes: int, max_files: int) -> None:
        """Raises OSError."""
        self._path = path
        self._max_bytes = max_bytes
        self._max_files = max_files
        self._lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._file = _open(path)

    def write(self, lines: Sequence[bytes]) -> None:
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        try:
            self._reopen_if_replaced()
            size = os.fstat(self._file).st_size
            batch = bytearray()
            for line in lines:
                if self._max_bytes and size and size + len(line) >= self._max_bytes:
                    self._append(batch)
                    self._rotate()
                    batch, size = bytearray(), 0
                batch += line + b"\n"
                size += len(line) + 1
            self._append(batch)
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self._file)
        os.close(self._lock)

    def _append(self, data: bytearray) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._file, view) :]

    def _reopen_if_replaced(self) -> None:
        """Open the file again if it was rotated, moved or deleted."""
        with contextlib.suppress(FileNotFoundError):
            if os.stat(self._path).st_ino == os.fstat(self._file).st_ino:
                return
        os.close(self._file)
        self._file = _open(self._path)

    def _rotate(self) -> None:
        for number in range(self._max_files, 0, -1):
            earlier = self._path if number == 1 else Path(f"{self._path}.{number - 1}")
            with contextlib.suppress(FileNotFoundError):
                os.replace(earlier, f"{self._path}.{number}")
        if not self._max_files:
            self._path.unlink()
        os.close(self._file)
        self._file = _open(self._path)


def _open(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


class DatabaseSink(AuditSink):
    """The table audit_events. Lines older than a number of days are deleted in batches."""

    def __init__(self, store: Store, days: float) -> None:
        self._store = store
        self._days = days
        self._process = secrets.token_hex(4)
        self._number = 0
        self._next_trimming = 0.0

    def write(self, lines: Sequence[bytes]) -> None:
        now_ms = time.time_ns() // 1_000_000
        with self._store.write() as session:
            for line in lines:
                self._number += 1
                accounts.add_audit_line(session, now_ms, f"{self._process}-{self._number:012}", line.decode())
        if time.monotonic() >= self._next_trimming:
            with self._store.write() as session:
                deleted = accounts.trim_audit_lines(
                    session, now_ms - round(self._days * 86_400_000), _ROWS_AT_ONCE
                )
            if deleted < _ROWS_AT_ONCE:
                self._next_trimming = time.monotonic() + _TRIMMING_S


def is_readable(settings: Settings) -> bool:
    """True if the server can read the audit log of the settings: a table or a file."""
    return settings.audit not in ("", "-")


def newest_lines(settings: Settings, store: Store, earliest_ms: int, latest_ms: int) -> Iterator[str]:
    """Yield lines of the audit log, newest first, of about a range of times. Of a file only the last _READ_BYTES."""
    if settings.audit == "database":
        until = latest_ms + _WRITTEN_AFTER_MS, ""
        while True:
            with store.read() as session:
                rows = accounts.audit_lines_before(session, until, earliest_ms, _ROWS_AT_ONCE)
            yield from (line for _, _, line in rows)
            if len(rows) < _ROWS_AT_ONCE:
                return
            until = rows[-1][:2]
    with contextlib.suppress(FileNotFoundError), Path(settings.audit).open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _READ_BYTES))
        lines = file.read(_READ_BYTES).decode("utf-8", "replace").splitlines()
        # The first line may be a part of one.
        yield from reversed(lines if size <= _READ_BYTES else lines[1:])
