"""Exclusive use of a SQLite file by one server, with operating system locks that end with their holder.

On Linux the file itself is locked, so that its other names (links) are locked too. A second file beside it is also
locked, and contains the process id of the holder. This module does not depend on the contents of the file.
"""

from __future__ import annotations

import fcntl
import os
import struct
import sys
from pathlib import Path

# A byte after the end of every file and after the bytes that SQLite locks (1 GiB and the next 511).
_LOCKED_BYTE = 1 << 62


class LockAlreadyHeld(Exception):
    """Another process holds the lock. `pid` is 0 if the holder has not written its number yet."""

    def __init__(self, pid: int) -> None:
        super().__init__(pid)
        self.pid = pid


class FileLock:
    """A lock from creation to `release()` or the end of the process. Child processes do not inherit it."""

    def __init__(self, path: Path) -> None:
        """Lock an existing file, or raise LockAlreadyHeld at once.

        The lock file is never removed. Otherwise two processes could hold the lock if the file itself is not locked.
        """
        path = path.resolve()
        lock_path = path.with_name(path.name + ".lock")
        self._lock_descriptor = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._file_descriptor = -1
        try:
            fcntl.flock(self._lock_descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._file_descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            _lock_inode(self._file_descriptor)
        except OSError as error:
            holder = os.pread(self._lock_descriptor, 20, 0).strip()
            self._close()
            if not isinstance(error, BlockingIOError):
                raise
            raise LockAlreadyHeld(int(holder) if holder.isdigit() else 0) from None
        os.ftruncate(self._lock_descriptor, 0)
        os.pwrite(self._lock_descriptor, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Release the lock, after SQLite has closed the file. Closing it here ends SQLite's own locks in this process.

        The process id is removed first, so that no stale one is reported.
        """
        os.ftruncate(self._lock_descriptor, 0)
        self._close()

    def _close(self) -> None:
        if self._file_descriptor >= 0:
            os.close(self._file_descriptor)
        os.close(self._lock_descriptor)


def _lock_inode(descriptor: int) -> None:
    """Take an "open file description" lock on one byte.

    Unlike other locks, it does not end when SQLite closes the file in this process. Unlike flock, it covers one byte.
    This matters on NFS, where flock uses the same locks as SQLite.
    """
    if sys.platform == "linux":
        lock = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, _LOCKED_BYTE, 1, 0)
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, lock)
