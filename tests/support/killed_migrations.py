"""Kill migrations of databases inside each step, and migrate them in the end.

    python -m tests.support.killed_migrations middle|steps|statements URL...

`steps` kills after the first statement of each step that changes something, `middle` of the step in the middle only.
`statements` kills after every statement.
Each migration begins at the start. The program prints for each database the number of steps, and those inside which it
was killed. It fails if a killed migration changed the revision. Each migration runs in a child of this process, which
has one thread, so that a fork is safe and costs no import.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Iterable
from typing import Any

import alembic.command  # noqa: F401 - the children need it
import sqlalchemy

from tablegate.gateway.store.opening.migrating import migrate, revision_of, steps
from tablegate.gateway.store.opening.opening import open_database


class Killer:
    """Counts the steps and statements of a migration, and kills this process at one of them."""

    def __init__(self, step: int, statement: int) -> None:
        """`step`: the number of a step, or 0 for any. `statement`: the number of its statement."""
        self._step, self._statement = step, statement
        self._begun_step, self._statements = 0, 0

    def report(self, line: str) -> None:
        """Take a line of the migration's report."""
        self._begun_step += 1
        if self._step:
            self._statements = 0

    def executed(self, connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        """Take a statement that has been executed."""
        if not self._begun_step or statement.startswith(("SELECT", "PRAGMA")):
            return
        self._statements += 1
        if self._statements == self._statement and self._step in (0, self._begun_step):
            os.write(1, f" {self._begun_step}".encode())
            os.kill(os.getpid(), signal.SIGKILL)


def main(which: str, urls: list[str]) -> None:
    for url in urls:
        before = _revision(url)
        missing = len(steps()) - steps().index(before) - 1
        os.write(1, f"{missing}:".encode())
        for step, statement in _places(which, missing):
            if not _is_killed(url, Killer(step, statement)):
                break
            assert _revision(url) == before, f"a migration killed at {step}, {statement} was committed"
        else:
            assert not _is_killed(url, Killer(missing + 2, 1))
        assert _revision(url) == steps()[-1]
        os.write(1, b"\n")


def _places(which: str, missing: int) -> Iterable[tuple[int, int]]:
    """Return the steps and statements at which to kill. The last step records which releases can serve the schema."""
    match which:
        case "middle":
            return [(missing // 2 + 1, 1)]
        case "steps":
            return [(step, 1) for step in range(1, missing + 2)]
        case _:
            return ((0, statement) for statement in itertools.count(1))


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
    main(sys.argv[1], sys.argv[2:])
