"""The check of all pages of an SQLite file, bounded in time."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from pathlib import Path

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
