"""The input and the result of a check."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.store.sql.databases import Database, Row


class Severity(Enum):
    """The severity of a finding. With FAILED, a server cannot start or cannot serve requests."""

    OK = "ok"
    SKIPPED = "skipped"
    WARNING = "warning"
    FAILED = "failed"


class CheckResult(NamedTuple):
    """A result of a check: severity, one sentence, and its figures for programs."""

    level: Severity
    text: str
    facts: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class CheckContext:
    """The settings and the open database to check. `database` is None if it is absent or could not be opened."""

    settings: Settings
    database: Database | None

    @property
    def is_a_server(self) -> bool:
        """True if the database is a server, with its own roles, clock and settings."""
        return not self.settings.database.startswith("sqlite")

    def query(self, statement: str) -> list[Row]:
        """Return the rows of one statement. On PostgreSQL the statement must cast every column to text."""
        assert self.database is not None  # checks that need a database are not called without one
        with self.database.read_one() as session:
            return session.query(statement)


DOCUMENTATION = "https://github.com/tablegate/tablegate/blob/main/docs/"
"""The address of the pages that checks name."""


class Check(NamedTuple):
    """A named check. With `needs_database` it is skipped if there is no database.

    `advice`: the first step if it finds a problem. `page`: the page of docs that explains more.
    """

    name: str
    run: Callable[[CheckContext], Iterator[CheckResult]]
    advice: str
    page: str
    needs_database: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """A result of a check with the name, the advice and the page of the check."""

    check: str
    level: Severity
    text: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    advice: str = ""
    page: str = ""

    @property
    def is_problem(self) -> bool:
        """True for a warning or a failure."""
        return self.level in (Severity.WARNING, Severity.FAILED)


def findings_of(check: Check, context: CheckContext) -> Iterator[Finding]:
    """Run a check and yield its findings. An exception becomes a finding that FAILED."""
    if check.needs_database and context.database is None:
        yield Finding(check.name, Severity.SKIPPED, "there is no database to check")
        return
    try:
        for level, text, facts in check.run(context):
            yield Finding(check.name, level, text, facts, check.advice, check.page)
    except Exception as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())
        yield Finding(check.name, Severity.FAILED, text, {}, check.advice, check.page)
