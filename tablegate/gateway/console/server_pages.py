"""Pages about the server: jobs and background work, the audit log, and the findings of `tablegate doctor`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

import flask

from tablegate.gateway.console import searches
from tablegate.gateway.console.pages import Pages, Route, number_of, render
from tablegate.gateway.console.searches import BadSearch
from tablegate.gateway.console.sign_in import ConsoleUser
from tablegate.gateway.control import access
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.doctor.examination import BoundedExamination
from tablegate.gateway.doctor.findings import DOCUMENTATION
from tablegate.gateway.features.jobs.job_commands import Job
from tablegate.gateway.observability.audit_sinks import is_readable

if TYPE_CHECKING:
    from tablegate.gateway.control.administration import Administration
    from tablegate.gateway.store.sql.databases import Database


_ROWS = ("processed", "items")
"""The members of a job's progress that count rows. Each kind of job has one of them."""


class WorkProgress(NamedTuple):
    """The progress of background work.

    `rate`: rows per second since it was first shown, 0 if unknown. `left_s`: expected time until its end.
    """

    work: str
    name: str
    done: int
    total: int
    rate: float
    left_s: int | None


class JobProgress(NamedTuple):
    """A job with its rows and rows per second since its start, and its expected end."""

    job: Job
    rows: int
    rate: float
    left_s: int | None


class JobPages(Pages):
    """The unfinished jobs with their progress, the form that cancels one, and background work."""

    def __init__(self, gateway: Gateway, administration: Callable[[], Administration] | None) -> None:
        super().__init__(gateway)
        self._administration = administration
        self._seen: dict[tuple[str, str], tuple[float, int]] = {}
        """(work, name) -> time and rows when it was first shown."""

    def reads(self) -> Sequence[Route]:
        return (Route("/jobs", self.jobs),)

    def writes(self) -> Sequence[Route]:
        return (Route("/jobs/cancel", self.cancel),)

    def jobs(self, visitor: ConsoleUser) -> Any:
        """Show the unfinished jobs. Background work is shown to a visitor that sees everything."""
        found = [self._progress(job) for job in self._reading(visitor).jobs()]
        return render(
            "jobs.html", visitor=visitor, jobs=found, writes=self._gateway.settings.console_writes,
            works=self._work() if visitor.sees_everything and self._administration is not None else [],
        )  # fmt: skip

    def _progress(self, job: Job) -> JobProgress:
        rows = next((job.progress[name] for name in _ROWS if isinstance(job.progress.get(name), int)), 0)
        elapsed_s = max(1.0, (self._gateway.now_ms() - job.created_at_ms) / 1000)
        done, total = job.done_of_total or (0, 0)
        left_s = round(elapsed_s * max(0, total - done) / done) if done else None
        return JobProgress(job, rows, rows / elapsed_s, left_s)

    def _work(self) -> list[WorkProgress]:
        """Return the unfinished background work, with the rate since it was first shown."""
        assert self._administration is not None
        now_s, found = monotonic(), []
        pieces = self._administration().unfinished_work()
        keys = {(each["work"], each["name"]) for each in pieces}
        self._seen = {key: first for key, first in self._seen.items() if key in keys}
        for each in pieces:
            done, left = each["rows_done"], each["rows_left"]
            first_s, first_rows = self._seen.setdefault((each["work"], each["name"]), (now_s, done))
            rate = (done - first_rows) / (now_s - first_s) if now_s - first_s >= 1 else 0.0
            left_s = round(left / rate) if rate > 0 else None
            found.append(WorkProgress(each["work"], each["name"], done, done + left, rate, left_s))
        return found

    def cancel(self, visitor: ConsoleUser) -> Any:
        """Cancel a job."""
        wanted = flask.request.form.get("id", "")
        if not (wanted.isascii() and wanted.isdecimal() and len(wanted) < 19):
            raise searches.BadSearch("The id of a job must be a number.")
        self._reading(visitor).cancel(int(wanted))
        return flask.redirect(flask.url_for("console.jobs"), 303)


EVENTS = 100
"""Maximum number of events on a page."""
LINES = 20_000
"""Maximum number of lines that are searched for a page."""
_LATEST_MS = 253_402_300_799_000
_FILTERS = ("event", "who", "table", "operation")


class AuditPages(Pages):
    """The events of the audit log, for the administrator."""

    def __init__(self, gateway: Gateway, administration: Callable[[], Administration] | None) -> None:
        super().__init__(gateway)
        self._administration = administration

    def reads(self) -> Sequence[Route]:
        return (Route("/audit", self.audit),)

    def audit(self, visitor: ConsoleUser) -> Any:
        """Show the newest events that a filter finds."""
        access.check_administrator(visitor.name)
        given = {
            name: flask.request.args.get(name, "").strip()[:255] for name in (*_FILTERS, "since", "until")
        }
        errors, times = {}, {}
        for name, default in (("since", 0), ("until", _LATEST_MS)):
            try:
                times[name] = _milliseconds(given[name], default)
            except BadSearch as error:
                errors[name], times[name] = str(error), default
        is_available = is_readable(self._gateway.settings) and self._administration is not None
        found: list[dict[str, Any]] = []
        counts = {"lines": 0}
        skipped = number_of(flask.request.args.get("skipped", ""))
        if is_available and not errors:
            found = list(islice(self._events(given, times, counts), skipped, skipped + EVENTS))
        return render(
            "audit.html", 400 if errors else 200, visitor=visitor, given=given, errors=errors, events=found,
            records_writes=self._gateway.settings.audit_writes or self._gateway.settings.audit_requests,
            searched=counts["lines"], is_cut=counts["lines"] >= LINES, most=EVENTS, is_available=is_available,
            older=_older(given, skipped, found) if len(found) == EVENTS else None,
        )  # fmt: skip

    def _events(
        self, given: Mapping[str, str], times: Mapping[str, int], counts: dict[str, int]
    ) -> Iterator[dict[str, Any]]:
        """Yield events that match, newest first, and count the lines that were read."""
        assert self._administration is not None
        lines = self._administration().audit_lines(self._gateway.settings, times["since"], times["until"])
        for line in islice(lines, LINES):
            counts["lines"] += 1
            try:
                event = json.loads(line)
                at_ms = _milliseconds(event["time"][:19], 0)
            except (ValueError, KeyError, TypeError, BadSearch):
                continue
            if times["since"] <= at_ms <= times["until"] and _matches(event, given):
                yield event


def _older(given: Mapping[str, str], skipped: int, found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the fields of the next page. It begins in the last second of this page, after the events of that second."""
    last = found[-1]["time"][:19]
    shown = sum(each["time"][:19] == last for each in found)
    if given["until"] == last:
        shown += skipped
    return {**given, "until": last, "skipped": shown}


def _matches(event: Mapping[str, Any], given: Mapping[str, str]) -> bool:
    """True if an event has the values of the filter. Of an operation a part is enough."""
    tables = event.get("tables") or []
    return (
        (not given["event"] or event.get("event") == given["event"])
        and (not given["who"] or event.get("who") == given["who"])
        and (not given["table"] or given["table"] in tables)
        and (not given["operation"] or given["operation"].lower() in str(event.get("operation", "")).lower())
    )


def _milliseconds(text: str, default: int) -> int:
    """Return a time in UTC as milliseconds since 1970. Raises BadSearch."""
    if not text:
        return default
    try:
        return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise BadSearch("Write the time as 2026-01-31T23:59:59, in UTC.") from None


BOUND_S = 10.0
"""Maximum time that a page waits for the checks."""


class HealthPages(Pages):
    """The findings of the checks that are not deep, for the administrator."""

    def __init__(self, gateway: Gateway, administration: Callable[[], Administration] | None) -> None:
        super().__init__(gateway)
        self._administration = administration
        self._examination = BoundedExamination(gateway.settings, self._database)

    def reads(self) -> Sequence[Route]:
        return (Route("/health", self.health),)

    def _database(self) -> Database | None:
        """Return the database of the server. None if it is in memory, where most checks do not apply."""
        if self._administration is None or self._gateway.settings.memory:
            return None
        return self._administration().database

    def health(self, visitor: ConsoleUser) -> Any:
        """Run the checks and show their findings, problems first."""
        access.check_administrator(visitor.name)
        found = self._examination.findings(BOUND_S)
        return render(
            "health.html",
            visitor=visitor,
            problems=[each for each in found if each.is_problem],
            others=[each for each in found if not each.is_problem],
            documentation=DOCUMENTATION,
        )
