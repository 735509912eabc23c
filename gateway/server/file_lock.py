"""One server process for a SQLite file: locks of the operating system, which die with their holder.

The file itself is locked, on Linux, so that it does not matter by which of its names it is opened; and a file beside it,
which also says who holds it. Knows nothing of what the file is.
"""

from __future__ import annotations

import fcntl
import os
import struct
import sys
from pathlib import Path

# Beyond every file, and beyond the bytes that SQLite locks (1 GiB and the 511 after it).
_LOCKED_BYTE = 1 << 62


class LockAlreadyHeld(Exception):
    """Another process has the lock; `pid` is 0 if it has not yet said which."""

    def __init__(self, pid: int) -> None:
        super().__init__(pid)
        self.pid = pid


class FileLock:
    """Held from creation to `release()`, or the end of the process, however it ends. Not inherited by children."""

    def __init__(self, path: Path) -> None:
        """Lock a file that is there or raise LockAlreadyHeld at once. The file beside it stays: removing it would let two in
        where the file itself is not locked."""
        path = path.resolve()
        beside = path.with_name(path.name + ".lock")
        self._beside = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._itself = -1
        try:
            fcntl.flock(self._beside, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._itself = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            _lock_inode(self._itself)
        except OSError as error:
            holder = os.pread(self._beside, 20, 0).strip()
            self._close()
            if not isinstance(error, BlockingIOError):
                raise
            raise LockAlreadyHeld(int(holder) if holder.isdigit() else 0) from None
        os.ftruncate(self._beside, 0)
        os.pwrite(self._beside, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Let others in. The number is wiped first, so that nobody is told of a process that has gone. Only after SQLite has
        closed the file: closing it here ends the locks that SQLite holds in this process."""
        os.ftruncate(self._beside, 0)
        self._close()

    def _close(self) -> None:
        if self._itself >= 0:
            os.close(self._itself)
        os.close(self._beside)


def _lock_inode(descriptor: int) -> None:
    """An "open file description" lock: unlike others it does not end when SQLite closes the file in this process, and unlike
    flock it covers one byte only, so that where flock is made of the same locks as SQLite's (NFS) both hold."""
    if sys.platform == "linux":
        wanted = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, _LOCKED_BYTE, 1, 0)
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, wanted)
