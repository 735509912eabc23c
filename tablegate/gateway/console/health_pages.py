"""The page about the findings of `tablegate doctor`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tablegate.gateway.console.pages import Pages, Route
from tablegate.gateway.console.rendering import render
from tablegate.gateway.console.sign_in import ConsoleUser
from tablegate.gateway.control import access
from tablegate.gateway.dialect import Gateway
from tablegate.gateway.doctor.examination import BoundedExamination
from tablegate.gateway.doctor.findings import DOCUMENTATION, Severity

if TYPE_CHECKING:
    from tablegate.gateway.control.administration import Administration
    from tablegate.gateway.store.sql.databases import Database

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
            checked=[each.check for each in found if each.level is Severity.OK],
            skipped=[each.check for each in found if each.level is Severity.SKIPPED],
            documentation=DOCUMENTATION,
        )
