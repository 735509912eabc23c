"""One server process for a SQLite file: a lock of the operating system beside it, which dies with its holder.

Knows who holds it, to tell the second one. Knows nothing of what the file is.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class AlreadyHeld(Exception):
    """Another process has the lock; `pid` is 0 if it has not yet said which."""

    def __init__(self, pid: int) -> None:
        super().__init__(pid)
        self.pid = pid


class FileLock:
    """Held from creation to `release()`, or the end of the process, however it ends. Not inherited by children."""

    def __init__(self, path: Path) -> None:
        """Take the lock or raise AlreadyHeld at once. The file stays: removing it would let two in."""
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._descriptor, 20, 0).strip()
            os.close(self._descriptor)
            if not isinstance(error, BlockingIOError):
                raise
            raise AlreadyHeld(int(holder) if holder.isdigit() else 0) from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Let others in. The number is wiped first, so that nobody is told of a process that has gone."""
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)
