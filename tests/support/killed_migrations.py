"""Kill migrations of databases after each statement, and migrate them in the end.

    python -m tests.support.killed_migrations FOLDER URL...

FOLDER has the migrations. Each migration begins at the start. The program prints for each database the steps inside
which it was killed. It fails if a killed migration changed the revision. Each migration runs in a child of this process,
which has one thread, so that a fork is safe and costs no import.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from pathlib import Path
from typing import Any

import alembic.command  # noqa: F401 - the children need it
import sqlalchemy

from tablegate.gateway.store import migrating
from tablegate.gateway.store.migrating import migrate, revision_of, steps
from tablegate.gateway.store.opening import open_database


class Killer:
    """Counts the steps and statements of a migration, and kills this process at a statement."""

    def __init__(self, statement: int) -> None:
        self._statements_left = statement
        self._begun_step = 0

    def report(self, line: str) -> None:
        """Take a line of the migration's report."""
        self._begun_step += 1

    def executed(self, connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        """Take a statement that has been executed."""
        if not self._begun_step or statement.startswith(("SELECT", "PRAGMA")):
            return
        self._statements_left -= 1
        if not self._statements_left:
            os.write(1, f"{self._begun_step} ".encode())
            os.kill(os.getpid(), signal.SIGKILL)


def main(urls: list[str]) -> None:
    for url in urls:
        before = _revision(url)
        for statement in itertools.count(1):
            if not _is_killed(url, Killer(statement)):
                break
            assert _revision(url) == before, f"a migration killed at statement {statement} was committed"
        assert _revision(url) == steps()[-1]
        os.write(1, b"\n")


def _revision(url: str) -> str:
    database = open_database(url)
    revision = revision_of(database)
    database.close()
    return revision


def _is_killed(url: str, killer: Killer) -> bool:
    """Migrate in a child. Return False if it was not killed, so that it succeeded."""
    child = os.fork()
    if not child:
        database = open_database(url)
        sqlalchemy.event.listen(database.engine, "after_cursor_execute", killer.executed)
        migrate(database, killer.report)
        database.close()
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the migration failed"
    return os.WIFSIGNALED(status)


if __name__ == "__main__":
    migrating.FOLDER = Path(sys.argv[1])
    main(sys.argv[2:])
