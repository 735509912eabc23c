"""What a check looks at, and what it finds. Knows no check."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.store.sql.databases import Database, Row


class Severity(Enum):
    """How bad a finding is. A server will not start, or not serve, with one that FAILED."""

    OK = "ok"
    SKIPPED = "skipped"
    WARNING = "warning"
    FAILED = "failed"


class CheckResult(NamedTuple):
    """What a check says: how bad it is, one sentence, and the figures of it for programs."""

    level: Severity
    text: str
    facts: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class CheckContext:
    """What checks look at. `database`: what the settings name, open, or None where it could not be opened or is not there."""

    settings: Settings
    database: Database | None

    @property
    def is_a_server(self) -> bool:
        """Whether the database is a server, with roles, a clock and settings of its own."""
        return not self.settings.database.startswith("sqlite")

    def ask(self, statement: str) -> list[Row]:
        """The rows of one statement. On PostgreSQL every column is a text, which the statement has to make of it."""
        assert self.database is not None  # checks that need a database are not called without one
        with self.database.read_one() as session:
            return session.query(statement)


class Check(NamedTuple):
    """A check of that name. With `needs_database` it is skipped where there is none."""

    name: str
    run: Callable[[CheckContext], Iterator[CheckResult]]
    needs_database: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check said, with its name."""

    check: str
    level: Severity
    text: str
    facts: Mapping[str, Any] = field(default_factory=dict)


def findings_of(check: Check, examined: CheckContext) -> Iterator[Finding]:
    """What a check finds. One that raises has found that."""
    if check.needs_database and examined.database is None:
        yield Finding(check.name, Severity.SKIPPED, "there is no database to ask")
        return
    try:
        for level, text, facts in check.run(examined):
            yield Finding(check.name, level, text, facts)
    except Exception as error:
        yield Finding(check.name, Severity.FAILED, " ".join(f"{type(error).__name__}: {error}".split()))
