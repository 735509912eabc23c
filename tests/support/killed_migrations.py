"""Kill migrations of databases after a step, and migrate them in the end.

    python -m tests.support.killed_migrations middle|every URL...

kills after the step in the middle, or after every step, each time from the start. It prints for each database the number
of steps and those after which it was killed. It fails if a killed migration changed the revision. Each migration runs in
a child of this process, which has one thread, so that a fork is safe and costs no import.
"""

from __future__ import annotations

import os
import signal
import sys

import alembic.command  # noqa: F401 - the children need it

from tablegate.gateway.store.opening.migrating import migrate, revision_of, steps
from tablegate.gateway.store.opening.opening import open_database


def main(which: str, urls: list[str]) -> None:
    for url in urls:
        before = _revision(url)
        missing = len(steps()) - steps().index(before) - 1
        numbers = range(1, missing + 1) if which == "every" else [missing // 2 + 1]
        for number in numbers:
            assert _is_killed_after(url, number)
            assert _revision(url) == before, f"step {number} was committed"
        assert not _is_killed_after(url, missing + 1)
        assert _revision(url) == steps()[-1]
        print(f"{missing}:", *numbers)


def _revision(url: str) -> str:
    database = open_database(url)
    revision = revision_of(database)
    database.close()
    return revision


def _is_killed_after(url: str, number: int) -> bool:
    """Migrate in a child that kills itself after a step. Return False if there is no such step, so that it succeeded."""

    def report(line: str) -> None:
        if line.startswith(f"step {number} of "):
            os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if not child:
        database = open_database(url)
        migrate(database, report)
        database.close()
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the migration failed"
    return os.WIFSIGNALED(status)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
