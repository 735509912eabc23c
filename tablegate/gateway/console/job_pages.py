"""Pages about jobs and background work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

import flask

from tablegate.gateway.console import searches
from tablegate.gateway.console.pages import Pages, Route
from tablegate.gateway.console.rendering import render
from tablegate.gateway.console.sign_in import ConsoleUser
from tablegate.gateway.dialect import Gateway
from tablegate.gateway.features.jobs.job_commands import Job

if TYPE_CHECKING:
    from tablegate.gateway.control.administration import Administration

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
