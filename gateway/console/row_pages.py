"""Pages about rows: search results, and one row with its history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import flask
import orjson

from tablegate.gateway.console import searches
from tablegate.gateway.console.pages import Pages, Route, stream_of
from tablegate.gateway.console.reading import CHANGES, LOOKING_UP, READING_A_ROW, TableReader
from tablegate.gateway.console.rendering import refusal, render
from tablegate.gateway.console.sign_in import ConsoleUser
from tablegate.gateway.model.authorization.permissions import Permission
from tablegate.gateway.model.errors import NotPermitted
from tablegate.gateway.model.tables.indexes import Index
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.rows import Row


class RowPages(Pages):
    """The rows of a table, and the page of a row."""

    def reads(self) -> Sequence[Route]:
        return (
            Route("/rows", self.rows),
            Route("/row", self.row),
        )

    def rows(self, visitor: ConsoleUser) -> Any:
        """Show a page of rows by key, index and filter, or only the form if the visitor lacks the permission."""
        reading = self._reading(visitor)
        table = self._table(reading, LOOKING_UP)
        search = searches.Search.of_form(flask.request.args)
        status, reason, found = 200, "", None
        try:
            found = reading.rows(table, search)
        except searches.BadSearch as error:
            status, reason = 400, str(error)
        except NotPermitted as error:
            status, reason = 403, refusal(error)
            if error.permission is Permission.SCAN:
                reason += " Rows can be looked up by a value of the first key column."
        indexes = [each for each in table.indexes if self._may_read(reading, table, each)]
        index = table.index(search.index) if search.index else None
        schema = table.key_schema if index is None else index.key_schema
        shown = (
            [(searches.place_of(row.position), self._summary(table, row)) for row in found.rows]
            if found
            else []
        )
        onward = ""
        if found is not None and found.after:
            onward = urlencode({**flask.request.args.to_dict(), "after": found.after})
        return render(
            "rows.html", status, visitor=visitor, table=table, search=search, schema=schema, indexes=indexes,
            rows=shown, found=found, onward=onward, problem=reason, key_operators=searches.KEY_OPERATORS,
            operators=searches.OPERATORS,
        )  # fmt: skip

    def row(self, visitor: ConsoleUser) -> Any:
        """Show a row in the form of each dialect, and its changes in the stream."""
        reading = self._reading(visitor)
        table = self._table(reading, READING_A_ROW)
        position = searches.position_of(flask.request.args.get("at", ""))
        row = reading.row(table, position)
        forms = [(each.form, each.shown_row(table, row)) for each in self._displays.values()] if row else []
        try:
            history = [self._change(table, change) for change in reading.history(table, position)]
            shows_history = True
        except NotPermitted:
            history, shows_history = [], False
        return render(
            "row.html", 200 if row or history else 404, visitor=visitor, table=table, row=row, forms=forms,
            history=history, stream=stream_of(table), place=searches.place_of(position),
            writes=self._gateway.settings.console_writes,
            writable=self._writable, changes=CHANGES, shows_history=shows_history,
        )  # fmt: skip

    def _may_read(self, reading: TableReader, table: Table, index: Index) -> bool:
        path = f"{table.name}/index/{index.name}"
        return any(reading.may(each, table.namespace, path) for each in (Permission.QUERY, Permission.SCAN))

    def _summary(self, table: Table, row: Row) -> tuple[list[str], str]:
        """Return (key values, the row in one line)."""
        keys = [str(row.latest[name].data) for name in table.key_schema.names]
        document = next(iter(self._displays.values())).shown_row(table, row)
        return keys, orjson.dumps(document).decode()[:400]
