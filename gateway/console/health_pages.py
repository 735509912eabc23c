"""The page about the findings of `tablegate doctor`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tablegate.gateway.console.pages import Pages, Route
from tablegate.gateway.console.rendering import render
from tablegate.gateway.console.sign_in import ConsoleUser
from tablegate.gateway.control import access
from tablegate.gateway.dialect import Gateway
from tablegate.gateway.doctor.examination import BoundedExamination

BOUND_S = 10.0
"""Maximum time that a page waits for the checks."""


class HealthPages(Pages):
    """The findings of the checks that are not deep, for the administrator."""

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(gateway)
        self._examination = BoundedExamination(gateway.settings)

    def reads(self) -> Sequence[Route]:
        return (Route("/health", self.health),)

    def health(self, visitor: ConsoleUser) -> Any:
        """Run the checks and show their findings, problems first."""
        access.check_administrator(visitor.name)
        found = self._examination.findings(BOUND_S)
        return render(
            "health.html",
            visitor=visitor,
            problems=[each for each in found if each.is_problem],
            others=[each for each in found if not each.is_problem],
        )
