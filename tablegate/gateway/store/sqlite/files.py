"""The files of an open database: the database itself and its write-ahead log.

SQLite keeps both open and does not notice if they are removed, renamed or replaced. It then writes to files that no
other process can open ("How To Corrupt An SQLite Database File", 4.1).
"""

from __future__ import annotations

import os
from pathlib import Path


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
