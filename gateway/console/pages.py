"""The pages that a visitor of the console sees: tables, rows, jobs, changes, grants and figures."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import Any
from urllib.parse import urlencode

import flask
import orjson

from tablegate.gateway.adapter_modules import RowDisplay, displays, table_describers
from tablegate.gateway.console import searches
from tablegate.gateway.console.charts import CHARTS, MetricHistory
from tablegate.gateway.console.reading import (
    CHANGES,
    DELETING,
    DESCRIBING,
    LOOKING_UP,
    PUTTING,
    READING_A_ROW,
    STREAMING,
    TableReader,
)
from tablegate.gateway.console.rendering import address, problem, refusal, render
from tablegate.gateway.console.sign_in import ConsoleUser
from tablegate.gateway.dialect import Gateway
from tablegate.gateway.model.authorization.permissions import Permission, Purpose
from tablegate.gateway.model.commands.row_commands import WriteGroup
from tablegate.gateway.model.commands.writes import Remove, Write
from tablegate.gateway.model.errors import InvalidInput, NotPermitted
from tablegate.gateway.model.tables.changes import Change
from tablegate.gateway.model.tables.indexes import Index
from tablegate.gateway.model.tables.namespaces import served_by_job
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import Key
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.server.flask_bridge import current_request

# Counting rows is a scan. The list stops counting after this time, and the page of a table counts its rows.
_COUNTING_S = 1.0
_NO_FIGURES = (
    "Your key is not allowed to describe the tables of this chart. Ask the administrator for a grant."
)
_CHARTS_OF_TABLES = 20


class Pages:
    """The pages of the console, each a function of its visitor and the current request."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._recorder = MetricHistory()
        self._listings = table_describers(gateway.settings)
        self._displays: Mapping[str, RowDisplay] = displays(gateway.settings)
        self.writable = next((each for each in self._displays.values() if each.put_of is not None), None)
        """The dialect whose row form can be written. None if no dialect has one."""

    # Tables

    def tables(self, visitor: ConsoleUser) -> Any:
        """Show a list of tables."""
        reading = self._reading(visitor)
        given = flask.request.args
        found, more = reading.tables((given.get("namespace", ""), given.get("after", "")))
        now_ms = self._gateway.now_ms()
        until = monotonic() + _COUNTING_S
        lines = [
            (
                table,
                table.state_at(now_ms).value,
                reading.statistics(table) if monotonic() < until else None,
                _stream(table),
                self._may_see(reading, table, Permission.DESCRIBE_EXPIRY),
            )
            for table in found
        ]
        last = found[-1] if more else None
        return render("tables.html", visitor=visitor, lines=lines, last=last)

    def table(self, visitor: ConsoleUser) -> Any:
        """Show a table: its names in each dialect, and how each SDK reads it."""
        reading = self._reading(visitor)
        table = self._table(reading, DESCRIBING)
        request = current_request()
        url = f"{'https' if request.secure else 'http'}://{request.header('host')}"
        snippets = [(each.form, each.snippet(table, url)) for each in self._displays.values()]
        names = [(dialect, *listed(table)) for dialect, listed in self._listings.items()]
        return render(
            "table.html", visitor=visitor, table=table, state=table.state_at(self._gateway.now_ms()).value,
            statistics=reading.statistics(table), names=names, snippets=snippets, stream=_stream(table),
            shows_expiry=self._may_see(reading, table, Permission.DESCRIBE_EXPIRY),
            shows_recovery=self._may_see(reading, table, Permission.DESCRIBE_FEATURES),
            shows_figures=reading.shows_figures(table),
        )  # fmt: skip

    def grants(self, visitor: ConsoleUser) -> Any:
        """Show all grants to an unrestricted visitor, otherwise those of the visitor's own key."""
        kept = self._gateway.grants
        held = [] if kept is None else kept.held_by(visitor.grantee)
        return render("grants.html", visitor=visitor, grants=held)

    # Rows

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
            history=history, stream=_stream(table), place=searches.place_of(position),
            writes=self._gateway.settings.console_writes,
            writable=self.writable, changes=CHANGES, shows_history=shows_history,
        )  # fmt: skip

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
        assert self.writable is not None
        put_of = self.writable.put_of
        assert put_of is not None
        try:
            document = orjson.loads(flask.request.form.get("row", ""))
            write = put_of(table, document)
        except (ValueError, TypeError) as error:
            raise searches.BadSearch(f"This is not a valid item of {table.name}: {error}") from None
        _note_key(table, write.key)
        reading.run(WriteGroup((write,)), PUTTING)
        return flask.redirect(address("console.row", table, at=searches.place_of(write.key.position)), 303)

    # Jobs

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

    # Changes

    def changes(self, visitor: ConsoleUser) -> Any:
        """Show the changes of a table as they arrive."""
        reading = self._reading(visitor)
        table = self._table(reading, STREAMING)
        return render("changes.html", visitor=visitor, table=table, stream=_stream(table))

    def latest_changes(self, visitor: ConsoleUser) -> Any:
        """Return the changes since a position as JSON, with the next position as `place`."""
        reading = self._reading(visitor)
        table = self._table(reading, STREAMING)
        found, place = reading.latest_changes(table, flask.request.args.get("since", "")[:50_000])
        return {"changes": [self._change(table, change) for change in found], "place": place}

    # Figures

    def figures(self, visitor: ConsoleUser) -> Any:
        """Show charts of the server to an unrestricted visitor, and of the tables that the visitor can describe."""
        reading = self._reading(visitor)
        found, _ = reading.tables()
        tables = [table for table in found if reading.shows_figures(table)][:_CHARTS_OF_TABLES]
        charts = list(CHARTS) if visitor.sees_everything else []
        self._recorder.look(table.name for table in tables)
        return render("figures.html", visitor=visitor, charts=charts, tables=tables)

    def chart(self, visitor: ConsoleUser) -> Any:
        """Return one chart: of a table if the request has a namespace, otherwise of the server."""
        given, drawn = flask.request.args, None
        if "namespace" in given:
            reading = self._reading(visitor)
            table = self._table(reading, DESCRIBING)
            if reading.shows_figures(table):
                drawn = self._recorder.chart_of_table(table.name)
        elif visitor.sees_everything:
            drawn = self._recorder.chart(given.get("name", ""))
        return flask.Response(drawn, mimetype="image/svg+xml") if drawn else problem(403, _NO_FIGURES)

    # Shared by the pages

    def _reading(self, visitor: ConsoleUser) -> TableReader:
        return TableReader(self._gateway.engine, visitor)

    def _table(self, reading: TableReader, purpose: Purpose) -> Table:
        given = flask.request.values
        return reading.table(given.get("namespace", ""), given.get("name", ""), purpose)

    def _may_see(self, reading: TableReader, table: Table, permission: Permission) -> bool:
        return reading.may(permission, table.namespace, table.name)

    def _may_read(self, reading: TableReader, table: Table, index: Index) -> bool:
        path = f"{table.name}/index/{index.name}"
        return any(reading.may(each, table.namespace, path) for each in (Permission.QUERY, Permission.SCAN))

    def _summary(self, table: Table, row: Row) -> tuple[list[str], str]:
        """Return (key values, the row in one line)."""
        keys = [str(row.latest[name].data) for name in table.key_schema.names]
        document = next(iter(self._displays.values())).shown_row(table, row)
        return keys, orjson.dumps(document).decode()[:400]

    def _change(self, table: Table, change: Change) -> dict[str, Any]:
        display = next(iter(self._displays.values()))
        images = [None if row is None else display.shown_row(table, row) for row in (change.old, change.new)]
        key = ", ".join(str(value.data) for value in change.key_values.values())
        return {
            "kind": change.kind.value, "at_ms": change.at_ms, "key": key, "actor": change.actor,
            "old": images[0], "new": images[1],
        }  # fmt: skip


def _note_key(table: Table, key: Key) -> None:
    """Note the key of the request's row for the audit log."""
    request = current_request()
    if request.facts is not None:
        values = zip(table.key_schema.names, key.values, strict=True)
        shown = {name: str(value.data) for name, value in values}
        request.facts = request.facts._replace(keys=[(table.name, shown)])


def _stream(table: Table) -> str:
    """Return the view of a table's stream. "" if it has none."""
    rule = table.rules.stream
    return rule.view if rule is not None and rule.enabled else ""
