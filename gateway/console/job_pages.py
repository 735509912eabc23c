"""Pages about jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flask

from tablegate.gateway.console import searches
from tablegate.gateway.console.pages import Pages, Route
from tablegate.gateway.console.rendering import render
from tablegate.gateway.console.sign_in import ConsoleUser
from tablegate.gateway.model.errors import InvalidInput
from tablegate.gateway.model.tables.namespaces import served_by_job


class JobPages(Pages):
    """The unfinished jobs, and the form that cancels one."""

    def reads(self) -> Sequence[Route]:
        return (Route("/jobs", self.jobs),)

    def writes(self) -> Sequence[Route]:
        return (Route("/jobs/cancel", self.cancel),)

    def jobs(self, visitor: ConsoleUser) -> Any:
        """Show the unfinished jobs."""
        found = [(job, served_by_job(job.namespace)) for job in self._reading(visitor).jobs()]
        return render("jobs.html", visitor=visitor, jobs=found, writes=self._gateway.settings.console_writes)

    def cancel(self, visitor: ConsoleUser) -> Any:
        """Cancel a job."""
        wanted = flask.request.form.get("id", "")
        if not (wanted.isascii() and wanted.isdecimal() and len(wanted) < 19):
            raise searches.BadSearch("The id of a job must be a number.")
        try:
            self._reading(visitor).cancel(int(wanted))
        except InvalidInput:
            raise searches.BadSearch(
                "This job cannot be cancelled. It ends when its backup is deleted."
            ) from None
        return flask.redirect(flask.url_for("console.jobs"), 303)
