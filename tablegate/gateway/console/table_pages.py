"""Pages about tables: the list, the facts and the changes of one table, its creation, its settings and its backups."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from functools import partial
from time import monotonic
from typing import Any

import flask

from tablegate.gateway.console.forms import (
    Attempt,
    OperationRefused,
    Operations,
    attempt_of,
    document_of,
    shown_form,
    shown_sections,
    unplaced_problem,
)
from tablegate.gateway.console.metric_pages import RANGES, table_chart
from tablegate.gateway.console.pages import (
    Pages,
    Route,
    address,
    note_definition,
    render,
    stream_of,
)
from tablegate.gateway.console.reading import DESCRIBING, LOOKING_UP, STREAMING
from tablegate.gateway.console.searches import BadSearch
from tablegate.gateway.console.sign_in import ConsoleUser
from tablegate.gateway.control.access import CONSOLE
from tablegate.gateway.dialects.adapter import DialectAdministration, table_describers
from tablegate.gateway.dialects.administration_forms import BadField, PlacedForm, Section
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.model.authorization.permissions import Permission, Purpose
from tablegate.gateway.model.commands.row_search import RowSearch
from tablegate.gateway.model.errors import GatewayError
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.observability.metrics import history

# Counting rows is a scan. The list stops counting after this time, and the page of a table counts its rows.
_COUNTING_S = 1.0


class TablePages(Pages):
    """The list of tables, and the page of a table."""

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(gateway)
        self._listings = table_describers(gateway.settings)
        self._operations = Operations(gateway)

    def reads(self) -> Sequence[Route]:
        return (
            Route("/", self.tables),
            Route("/table", self.table),
        )

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
                stream_of(table),
                self._may_see(reading, table, Permission.DESCRIBE_EXPIRY),
            )
            for table in found
        ]
        last = found[-1] if more else None
        may_create = self._gateway.settings.console_writes and bool(self._operations.creating(visitor))
        return render("tables.html", visitor=visitor, lines=lines, last=last, may_create=may_create)

    def table(self, visitor: ConsoleUser) -> Any:
        """Show a table: its names in each dialect, and how each SDK reads it."""
        reading = self._reading(visitor)
        table = self._table(reading, DESCRIBING)
        endpoint = self._endpoint()
        snippets = [
            code
            for each in self._ordered(table)
            for code in each.request_code(RowSearch(table), endpoint).items()
        ]
        names = [
            (self._operations.title(dialect), *listed(table)) for dialect, listed in self._listings.items()
        ]
        return render(
            "table.html", visitor=visitor, table=table, state=table.state_at(self._gateway.now_ms()).value,
            statistics=reading.statistics(table), names=names, snippets=snippets, endpoint=endpoint, stream=stream_of(table),
            shows_expiry=self._may_see(reading, table, Permission.DESCRIBE_EXPIRY),
            shows_recovery=self._may_see(reading, table, Permission.DESCRIBE_FEATURES),
            **(self._metrics(table) if reading.shows_metrics(table) else {}),
        )  # fmt: skip

    def _metrics(self, table: Table) -> dict[str, Any]:
        """Return the chart of a table, and the address of the chart alone."""
        period = flask.request.args.get("range", "")
        period = period if period in RANGES else "15m"
        history.sample_if_due()
        chart = table_chart(history, table.name, RANGES[period][1])
        return {
            "chart": chart, "link": address("console.chart", table, range=period), "period": period,
            "periods": RANGES, "own_address": functools.partial(address, "console.table", table),
        }  # fmt: skip


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


_FIELDS = 40


def _restored() -> str:
    """Return the name of the table that the last form of the visitor restores, "" if it restored none."""
    return flask.request.args.get("restored", "")[:255]


_FINDING = Purpose((Permission.DESCRIBE, Permission.ALTER, Permission.DROP))


class AdministrationPages(Pages):
    """The settings of a table in the terms of a dialect, new tables, and backups."""

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(gateway)
        self._operations = Operations(gateway)
        self._writes = gateway.settings.console_writes

    def reads(self) -> Sequence[Route]:
        shown = (Route("/settings", self.settings), Route("/backups", self.backups))
        return (*shown, Route("/tables/new", self.new_table)) if self._writes else shown

    def writes(self) -> Sequence[Route]:
        return (
            Route("/settings/change", self.change, _FIELDS),
            Route("/backups/change", self.change_backup, _FIELDS),
            Route("/tables/create", self.create_table, _FIELDS),
        )

    # A new table

    def new_table(self, visitor: ConsoleUser) -> Any:
        """Show the form of a new table."""
        return self._new_table(visitor, None)

    def create_table(self, visitor: ConsoleUser) -> Any:
        """Create a table."""
        namespace = flask.request.form.get("namespace", "")
        administration = self._named([each for each, _ in self._operations.places(visitor)])
        attempt = attempt_of(administration.forms, "create", flask.request.form)
        note_definition(administration.forms["create"].operation, [attempt.values["name"]])
        self._operations.require(visitor, administration, administration.forms["create"].operation)
        if not self._operations.accepts(visitor, administration, namespace):
            text = f"This must have the form of {administration.default_namespace}, and belong to your key."
            return self._new_table(visitor, attempt._replace(errors={"namespace": text}))
        refused = self._run(visitor, administration, namespace, None, attempt)
        if refused is not None:
            return self._new_table(visitor, refused)
        return flask.redirect(self._place_of_new(visitor, namespace, attempt.values["name"]), 303)

    def _place_of_new(self, visitor: ConsoleUser, namespace: str, name: str) -> str:
        """Return the URL of the rows of a table. If the visitor may not look them up, it is that of the list of tables."""
        try:
            table = self._reading(visitor).table(namespace, name, LOOKING_UP)
        except GatewayError:
            return flask.url_for("console.tables")
        return address("console.rows", table)

    def _new_table(self, visitor: ConsoleUser, attempt: Attempt | None) -> Any:
        creating = self._operations.creating(visitor)
        administration = self._named([each for each, _ in creating])
        [namespace] = [namespace for each, namespace in creating if each is administration]
        form = shown_form(administration.forms, PlacedForm("create"), "create", attempt)
        return render(
            "new_table.html", 200 if attempt is None else 400, visitor=visitor, shown=form, dialect=administration.dialect,
            choices=[each for each, _ in creating], namespace=flask.request.form.get("namespace", namespace),
            is_shared=self._gateway.settings.namespaces == "shared",
        )  # fmt: skip

    # The settings of a table

    def settings(self, visitor: ConsoleUser) -> Any:
        """Show the settings of a table, in the terms of a dialect."""
        return self._settings(visitor, None)

    def _settings(self, visitor: ConsoleUser, attempt: Attempt | None) -> Any:
        table = self._table(self._reading(visitor), _FINDING)
        choices = self._operations.serving(table.namespace)
        administration = self._dialect_of(table, choices)
        describe = partial(self._operations.describe, visitor, administration, table.namespace)
        sections = administration.sections(table, describe)
        done = administration.forms.get(flask.request.args.get("done", ""))
        return render(
            "settings.html", 200 if attempt is None else 400, visitor=visitor, table=table, dialect=administration.dialect,
            choices=choices, done=None if done is None else done.done, restored=_restored(),
            action=f"{CONSOLE}/settings/change",
            **self._shown(visitor, administration, table.namespace, table, sections, attempt),
        )  # fmt: skip

    def change(self, visitor: ConsoleUser) -> Any:
        """Send a form about a table's settings."""
        table = self._table(self._reading(visitor), _FINDING)
        administration = self._dialect_of(table, self._operations.serving(table.namespace))
        key = flask.request.form.get("form", "")
        attempt = attempt_of(administration.forms, key, flask.request.form)
        form = administration.forms[key]
        note_definition(form.operation, [table.name])
        refused = self._run(visitor, administration, table.namespace, table, attempt)
        if refused is not None:
            return self._settings(visitor, refused)
        if key == "delete":
            return flask.redirect(flask.url_for("console.tables"), 303)
        restored = attempt.values.get("target")
        place = address(
            "console.settings", table, dialect=administration.dialect, done=key, restored=restored
        )
        return flask.redirect(place, 303)

    def _dialect_of(self, table: Table, choices: Sequence[DialectAdministration]) -> DialectAdministration:
        """Return the chosen dialect of a table. The default is the one that created it."""
        own = [each for each in choices if self._displays[each.dialect].is_own(table)]
        return self._named([*own, *choices])

    # Backups

    def backups(self, visitor: ConsoleUser) -> Any:
        """Show the backups of a namespace, also those of deleted tables."""
        return self._backups(visitor, None)

    def change_backup(self, visitor: ConsoleUser) -> Any:
        """Send a form about a backup."""
        administration, namespace = self._backup_place(visitor)
        key = flask.request.form.get("form", "")
        attempt = attempt_of(administration.forms, key, flask.request.form)
        note_definition(administration.forms[key].operation, [flask.request.form.get("table", "")])
        refused = self._run(visitor, administration, namespace, None, attempt)
        if refused is not None:
            return self._backups(visitor, refused)
        restored = attempt.values.get("target")
        place = flask.url_for("console.backups", namespace=namespace, done=key, restored=restored)
        return flask.redirect(place, 303)

    def _backups(self, visitor: ConsoleUser, attempt: Attempt | None) -> Any:
        administration, namespace = self._backup_place(visitor)
        assert administration.backups is not None
        describe = partial(self._operations.describe, visitor, administration, namespace)
        found = administration.backups(describe)
        done = administration.forms.get(flask.request.args.get("done", ""))
        sections = [] if found is None else [found]
        return render(
            "backups.html", 200 if attempt is None else 400, visitor=visitor, namespace=namespace,
            dialect=administration.dialect, done=None if done is None else done.done,
            restored=_restored(), action=f"{CONSOLE}/backups/change",
            **self._shown(visitor, administration, namespace, None, sections, attempt),
        )  # fmt: skip

    def _backup_place(self, visitor: ConsoleUser) -> tuple[DialectAdministration, str]:
        """Return the dialect with backups, and the chosen namespace. Raises BadSearch."""
        for administration, usual in self._operations.places(visitor):
            if administration.backups is not None:
                namespace = flask.request.values.get("namespace", "") or usual
                if self._operations.accepts(visitor, administration, namespace):
                    return administration, namespace
        raise BadSearch("There are no backups in this namespace.")

    # Forms

    def _named(self, choices: Sequence[DialectAdministration]) -> DialectAdministration:
        """Return the dialect that the request names, else the first. Raises BadSearch."""
        wanted = flask.request.values.get("dialect", "")
        for each in choices:
            if wanted in (each.dialect, ""):
                return each
        raise BadSearch("No dialect of this server can do this here, or your key is not allowed to.")

    def _run(
        self,
        visitor: ConsoleUser,
        administration: DialectAdministration,
        namespace: str,
        table: Table | None,
        attempt: Attempt,
    ) -> Attempt | None:
        """Run the operation of a form. Return the attempt with its errors if it was not accepted."""
        form = administration.forms[attempt.key]
        try:
            document = document_of(form, table, attempt.values)
            self._operations.run(visitor, administration, form.operation, namespace, document)
        except BadField as error:
            return attempt._replace(errors={error.name: str(error)})
        except OperationRefused as error:
            return attempt._replace(problem=str(error))
        return None

    def _shown(
        self, visitor: ConsoleUser, administration: DialectAdministration, namespace: str, table: Table | None,
        sections: Sequence[Section], attempt: Attempt | None,
    ) -> dict[str, Any]:  # fmt: skip
        """Return the sections of a page with the forms that the visitor may send, and a problem that has no form."""

        def may_send(placed: PlacedForm) -> bool:
            path = placed.path or ("" if table is None else table.name)
            operation = administration.forms[placed.key].operation
            return self._writes and self._operations.may(
                visitor, administration, operation, (namespace, path)
            )

        shown = shown_sections(administration.forms, sections, attempt, may_send)
        return {"sections": shown, "problem": unplaced_problem(attempt, shown)}
