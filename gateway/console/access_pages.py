"""Pages about access rights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tablegate.gateway.console.pages import Pages, Route
from tablegate.gateway.console.rendering import render
from tablegate.gateway.console.sign_in import ConsoleUser


class AccessPages(Pages):
    """The grants."""

    def reads(self) -> Sequence[Route]:
        return (Route("/grants", self.grants),)

    def grants(self, visitor: ConsoleUser) -> Any:
        """Show all grants to an unrestricted visitor, otherwise those of the visitor's own key."""
        kept = self._gateway.grants
        held = [] if kept is None else kept.held_by(visitor.grantee)
        return render("grants.html", visitor=visitor, grants=held)
