"""The files of an open SQLite database: their existence, the check of all pages, and an online backup into one file.

SQLite keeps both open and does not notice if they are removed, renamed or replaced. It then writes to files that no
other process can open ("How To Corrupt An SQLite Database File", 4.1).

SQLite's online backup copies a snapshot page by page inside a read transaction. Without that transaction, every write
of another process would restart the copy ("Using the SQLite Online Backup API", https://sqlite.org/backup.html). Later
commits stay in the write-ahead log: no checkpoint passes a reader's snapshot, and the log is not restarted while it has
readers (https://sqlite.org/wal.html, section 2.2). So the log is copied after the pages, its last part while writers
are locked out. SQLite replays it when it opens the copy.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from tablegate.gateway.store.sql.databases import DatabaseUnusable


class OpenFiles:
    """The identities of the open files. That of the log is recorded when both exist for the first time."""

    def __init__(self, path: Path) -> None:
        self._paths = os.fspath(path), f"{path}-wal"
        self._database = _identity(self._paths[0])
        self._open: list[tuple[int, int]] | None = None

    def find_lost_database(self) -> str:
        """Return the path of the database if it was removed or replaced, or "". A new connection would open another file."""
        return "" if _identity(self._paths[0]) == self._database else self._paths[0]

    def find_lost(self) -> str:
        """Return the path of the first file that was removed or replaced, or "". Takes 2 microseconds."""
        identities = [_identity(path) for path in self._paths]
        if self._open == identities:
            return ""
        if self._open is None:
            if None not in identities:
                self._open = [identity for identity in identities if identity is not None]
            return ""
        return next(
            path for path, old, new in zip(self._paths, self._open, identities, strict=True) if old != new
        )


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino


_MOST_NAMED = 20
_STEPS = 10_000  # of SQLite between two looks at the time


def damaged_pages(path: Path, limit_s: float, steps: int = _STEPS) -> list[str]:
    """Return the damage in the structure of pages, as SQLite describes it. Raises TimeoutError, sqlite3.Error."""
    # A connection of its own, because it is interrupted. mode=rw creates no file.
    with contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True)) as connection:
        until_s = time.monotonic() + limit_s
        connection.set_progress_handler(lambda: time.monotonic() > until_s, steps)
        try:
            found = [text for (text,) in connection.execute(f"PRAGMA quick_check({_MOST_NAMED})")]
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
                raise TimeoutError from None
            raise
    return [] if found == ["ok"] else found


BackupProgress = Callable[[int, int], None]
"""Called with the number of pages copied and of all pages."""

_PAGES_AT_ONCE = 256
_WRITERS_WAIT_S = 30.0
# Below this size, the rest of the log is copied while writers are locked out.
_FINAL_COPY_BYTES = 1 << 20
_MAX_PASSES = 20
_FRAMES_AT_ONCE = 64
_WAL_HEADER_BYTES, _FRAME_HEADER_BYTES = 32, 24


def back_up(source: Path, target: Path, progress: BackupProgress) -> float:
    """Copy a database to a new file, which appears when it is complete and on disk.

    Return the time of the copy (seconds since 1970). Writes acknowledged before it are included. Raises
    DatabaseUnusable, OSError, sqlite3.Error.
    """
    if not source.is_file():
        raise DatabaseUnusable(f"there is no database {source}")
    if os.path.lexists(target):
        raise DatabaseUnusable(f"{target} already exists and is not overwritten: choose another file")
    if not target.parent.is_dir():
        raise DatabaseUnusable(f"the folder {target.parent} does not exist: create it first")
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    with _removed_at_exit(part):
        os.close(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        moment = _copy(source, part, progress)
        _apply_log(part)
        _fsync(part)
        _publish(part, target)
    return moment


@contextlib.contextmanager
def _removed_at_exit(part: Path) -> Iterator[None]:
    try:
        yield
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            part.with_name(part.name + suffix).unlink(missing_ok=True)


def _copy(source: Path, part: Path, progress: BackupProgress) -> float:
    with contextlib.closing(_open(source)) as reader, contextlib.closing(_open(part)) as copy:
        reader.execute("BEGIN")
        reader.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()  # the snapshot is taken here
        copy.execute("PRAGMA journal_mode = OFF")
        copy.execute("PRAGMA synchronous = OFF")
        reader.backup(
            copy, pages=_PAGES_AT_ONCE, progress=lambda _, left, total: progress(total - left, total)
        )
        copy.close()
        moment = _copy_log(source, part)
        reader.execute("ROLLBACK")
    return moment


def _copy_log(source: Path, part: Path) -> float:
    """Copy the write-ahead log while a reader keeps it from being restarted. Return the time of the copy."""
    wal = source.with_name(source.name + "-wal")
    descriptor = os.open(
        part.with_name(part.name + "-wal"), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600
    )
    with os.fdopen(descriptor, "r+b") as log_copy, contextlib.closing(_open(source)) as writer:
        passes = 0
        while _copy_new_frames(wal, log_copy, is_quiet=False) > _FINAL_COPY_BYTES and passes < _MAX_PASSES:
            passes += 1
        writer.execute("BEGIN IMMEDIATE")
        moment = time.time()
        _copy_new_frames(wal, log_copy, is_quiet=True)
        writer.execute("ROLLBACK")
    return moment


def _copy_new_frames(wal: Path, log_copy: BinaryIO, is_quiet: bool) -> int:
    """Append the new frames of the log to its copy, or all if the log was restarted. Return their number of bytes.

    A restarted log has other salts in its header and is overwritten from its start. Frames after its end may be left
    over from the earlier log, with the earlier salts ("WAL File Format",
    https://sqlite.org/fileformat2.html#the_write_ahead_log). All frames of the earlier log are then in the copied
    database file, since frames after the snapshot prevent a restart.

    Unless `is_quiet`, a write may be in progress. Then frames are taken only up to a commit that another frame follows.
    """
    try:
        log = wal.open("rb")
    except FileNotFoundError:
        return 0  # no write since the database was last closed by all
    with log:
        header = log.read(_WAL_HEADER_BYTES)
        log_copy.seek(0)
        if log_copy.read(_WAL_HEADER_BYTES) != header:
            log_copy.seek(0)
            log_copy.truncate()
            log_copy.write(header)
        began = log_copy.seek(0, os.SEEK_END)
        log.seek(began)
        return _append_frames(log, log_copy, header, is_quiet) if len(header) == _WAL_HEADER_BYTES else 0


def _append_frames(log: BinaryIO, log_copy: BinaryIO, header: bytes, is_quiet: bool) -> int:
    frame_bytes = _FRAME_HEADER_BYTES + int.from_bytes(header[8:12], "big")
    salts = header[16:24]
    frames: list[bytes] = []
    committed = after_commit = size = 0
    while len(frame := log.read(frame_bytes)) == frame_bytes and frame[8:16] == salts:
        frames.append(frame)
        if not is_quiet and after_commit:  # a frame after the commit proves that the commit is complete
            committed = after_commit
        if any(frame[4:8]):  # a commit frame: the size of the database in pages
            after_commit = len(frames)
        if committed and len(frames) >= _FRAMES_AT_ONCE:
            size += log_copy.write(b"".join(frames[:committed]))
            frames, after_commit, committed = frames[committed:], after_commit - committed, 0
    size += log_copy.write(b"".join(frames if is_quiet else frames[:committed]))
    return size


def _apply_log(part: Path) -> None:
    """Replay the log into the copy, and check its integrity."""
    with contextlib.closing(_open(part)) as copy:
        copy.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        copy.execute("PRAGMA journal_mode = DELETE")
        [(verdict,)] = copy.execute("PRAGMA quick_check(1)").fetchall()
    if verdict != "ok":
        raise DatabaseUnusable(f"the copy failed the integrity check of SQLite: {verdict}")


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _publish(part: Path, target: Path) -> None:
    """Rename the finished copy to its target. Raises DatabaseUnusable if the target exists by now."""
    try:
        os.link(part, target)
    except FileExistsError:
        raise DatabaseUnusable(
            f"{target} already exists and is not overwritten: choose another file"
        ) from None
    except OSError:  # a file system without hard links
        part.rename(target)
    part.unlink(missing_ok=True)
    _fsync(target.parent)


def _open(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, timeout=_WRITERS_WAIT_S)
