"""Forms that change rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flask
import orjson

from tablegate.gateway.console import searches
from tablegate.gateway.console.pages import Pages, Route
from tablegate.gateway.console.reading import DELETING, PUTTING
from tablegate.gateway.console.rendering import address
from tablegate.gateway.console.sign_in import ConsoleUser
from tablegate.gateway.model.commands.row_commands import WriteGroup
from tablegate.gateway.model.commands.writes import Remove, Write
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import Key
from tablegate.gateway.server.flask_bridge import current_request


class EditPages(Pages):
    """The forms that put and delete a row."""

    def writes(self) -> Sequence[Route]:
        deleting = Route("/row/delete", self.delete)
        return (deleting,) if self._writable is None else (deleting, Route("/row/put", self.put))

    def delete(self, visitor: ConsoleUser) -> Any:
        reading = self._reading(visitor)
        table = self._table(reading, DELETING)
        row = reading.row(table, searches.position_of(flask.request.form.get("at", "")))
        if row is not None:
            key = table.key_schema.key(row.latest)
            _note_key(table, key)
            reading.run(WriteGroup((Write(table, Key(key.values, row.position), Remove()),)), DELETING)
        return flask.redirect(address("console.rows", table), 303)

    def put(self, visitor: ConsoleUser) -> Any:
        """Put a row in the form of `writable`."""
        reading = self._reading(visitor)
        table = self._table(reading, PUTTING)
        assert self._writable is not None
        put_of = self._writable.put_of
        assert put_of is not None
        try:
            document = orjson.loads(flask.request.form.get("row", ""))
            write = put_of(table, document)
        except (ValueError, TypeError) as error:
            raise searches.BadSearch(f"This is not a valid item of {table.name}: {error}") from None
        _note_key(table, write.key)
        reading.run(WriteGroup((write,)), PUTTING)
        return flask.redirect(address("console.row", table, at=searches.place_of(write.key.position)), 303)


def _note_key(table: Table, key: Key) -> None:
    """Note the key of the request's row for the audit log."""
    request = current_request()
    if request.facts is not None:
        values = zip(table.key_schema.names, key.values, strict=True)
        shown = {name: str(value.data) for name, value in values}
        request.facts = request.facts._replace(keys=[(table.name, shown)])
