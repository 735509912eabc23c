"""Pages about the changes of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flask

from tablegate.gateway.console.pages import Pages, Route, stream_of
from tablegate.gateway.console.reading import STREAMING
from tablegate.gateway.console.rendering import render
from tablegate.gateway.console.sign_in import ConsoleUser


class StreamPages(Pages):
    """The changes of a table as they arrive."""

    def reads(self) -> Sequence[Route]:
        return (
            Route("/changes", self.changes),
            Route("/changes.json", self.latest_changes),
        )

    def changes(self, visitor: ConsoleUser) -> Any:
        """Show the changes of a table as they arrive."""
        reading = self._reading(visitor)
        table = self._table(reading, STREAMING)
        return render("changes.html", visitor=visitor, table=table, stream=stream_of(table))

    def latest_changes(self, visitor: ConsoleUser) -> Any:
        """Return the changes since a position as JSON, with the next position as `place`."""
        reading = self._reading(visitor)
        table = self._table(reading, STREAMING)
        found, place = reading.latest_changes(table, flask.request.args.get("since", "")[:50_000])
        return {"changes": [self._change(table, change) for change in found], "place": place}
