"""The SQL statements of this release as text, for tests of later migrations.

    python -m tests.support.released_statements

runs the tests of the engine and writes one file for each database into tests/gateway/store/statements/REVISION/. Two
tests that inspect the methods of sessions fail during this run. Run it for each release, and before the first migration
after it. Statements that differ only in the length of a parameter list count as one.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tablegate.gateway.store.opening.migrating import steps
from tablegate.gateway.store.postgresql import pipeline
from tablegate.gateway.store.sql import databases
from tests.support.running import ROOT

FOLDER = ROOT / "tests" / "gateway" / "store" / "statements"
SEPARATOR = "\n\n"
_ASKING = ("query", "ask", "send", "execute", "execute_many")
_LIST = re.compile(r"(\(?\?\)?, )+(?=\(?\?)")
# Statements that use no table: transactions, settings, requests to the server.
_NOT_OURS = re.compile(
    r"(BEGIN|COMMIT|ROLLBACK|SET|PRAGMA|COPY|SAVEPOINT|RELEASE|CREATE|ALTER|DROP|VACUUM|EXPLAIN)\b"
)


class Recorder:
    """Texts of statements, each form once."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}

    def note(self, statement: str) -> None:
        statement = statement.strip()
        if not _NOT_OURS.match(statement):
            self.found.setdefault(_LIST.sub("", statement), statement)


def record() -> dict[str, Recorder]:
    """Record the statements that are executed from now on, by database."""
    recorders = {"sqlite": Recorder(), "postgresql": Recorder()}

    def noting(method: Callable[..., Any]) -> Callable[..., Any]:
        def ask(session: Any, statement: str, *given: Any) -> Any:
            recorders["sqlite"].note(statement)
            return method(session, statement, *given)

        return ask

    for name in _ASKING:
        setattr(databases.Session, name, noting(getattr(databases.Session, name)))
    send = pipeline.Pipeline.send

    def noting_send(self: Any, text: str, *given: Any) -> Any:
        recorders["postgresql"].note(text)
        return send(self, text, *given)

    pipeline.Pipeline.send = noting_send  # type: ignore[method-assign]
    return recorders


def main(folders: list[str]) -> int:
    recorders = record()
    status = pytest.main(["-q", "-p", "no:cacheprovider", *folders])
    target = FOLDER / steps()[-1]
    target.mkdir(parents=True, exist_ok=True)
    for database, recorder in recorders.items():
        (target / f"{database}.sql").write_text(SEPARATOR.join(sorted(recorder.found.values())) + "\n")
    return int(status)


def statements_of(revision: str, database: str) -> list[str]:
    """The statements that were written down at a revision."""
    path = FOLDER / revision / f"{database}.sql"
    return path.read_text().strip().split(SEPARATOR)


def revisions() -> list[str]:
    """Return the revisions with recorded statements."""
    return sorted(path.name for path in Path(FOLDER).iterdir() if path.is_dir())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["tests/gateway/engine"]))
