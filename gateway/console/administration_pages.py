"""Pages that administer tables: create one, change its settings, and the backups."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import flask

from tablegate.gateway.adapter_modules import Administration
from tablegate.gateway.administration import (
    MOST_CHARACTERS,
    BadField,
    Field,
    Form,
    PlacedForm,
    Section,
    SectionRow,
    Values,
)
from tablegate.gateway.console.operations import OperationRefused, Operations, note_definition
from tablegate.gateway.console.pages import Pages, Route
from tablegate.gateway.console.rendering import address, render
from tablegate.gateway.console.searches import BadSearch
from tablegate.gateway.console.sign_in import ConsoleUser
from tablegate.gateway.control.access import CONSOLE
from tablegate.gateway.dialect import Gateway
from tablegate.gateway.model.authorization.permissions import Permission, Purpose
from tablegate.gateway.model.tables.tables import Table

_FIELDS = 40
_FINDING = Purpose((Permission.DESCRIBE, Permission.ALTER, Permission.DROP))


class ShownForm(NamedTuple):
    """A form of a page: its values, and the errors of the last attempt. `id` is unique on the page."""

    id: str
    key: str
    form: Form
    values: Values
    bounds: Mapping[str, tuple[int, int]]
    problem: str = ""
    errors: Values = MappingProxyType({})

    @property
    def question(self) -> str:
        return self.form.question.format(**self.values)

    @property
    def look(self) -> str:
        """The class of the button."""
        return "danger" if self.form.is_dangerous else "primary" if self.key == "create" else ""

    @property
    def groups(self) -> list[tuple[str, list[Field]]]:
        """The fields by the headings with which they are shown."""
        return [
            (group, list(fields))
            for group, fields in itertools.groupby(self.form.fields, key=lambda each: each.group)
        ]


class Attempt(NamedTuple):
    """A form that was sent and not accepted. `problem`: the service's text. `errors`: field -> text."""

    key: str
    values: Values
    problem: str = ""
    errors: Values = MappingProxyType({})


ShownSection = tuple[Section, list[tuple[SectionRow, list[ShownForm]]], list[ShownForm]]
"""A section, its rows with their forms, and its other forms."""


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
        administration = self._named([each for each, _ in self._operations.creating(visitor)])
        attempt = self._attempt(administration, "create")
        note_definition(administration.forms["create"].operation, [attempt.values["name"]])
        if not self._operations.accepts(visitor, administration, namespace):
            text = f"This must have the form of {administration.default_namespace}, and belong to your key."
            return self._new_table(visitor, attempt._replace(errors={"namespace": text}))
        refused = self._run(visitor, administration, namespace, None, attempt)
        if refused is not None:
            return self._new_table(visitor, refused)
        return flask.redirect(flask.url_for("console.tables"), 303)

    def _new_table(self, visitor: ConsoleUser, attempt: Attempt | None) -> Any:
        creating = self._operations.creating(visitor)
        administration = self._named([each for each, _ in creating])
        [namespace] = [namespace for each, namespace in creating if each is administration]
        form = self._shown_form(administration, PlacedForm("create"), "create", attempt)
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
        shown = self._shown_sections(visitor, administration, table.namespace, table, sections, attempt)
        done = administration.forms.get(flask.request.args.get("done", ""))
        return render(
            "settings.html", 200 if attempt is None else 400, visitor=visitor, table=table, dialect=administration.dialect,
            choices=choices, done=None if done is None else done.done, action=f"{CONSOLE}/settings/change",
            sections=shown, problem=self._unplaced(attempt, shown),
        )  # fmt: skip

    def change(self, visitor: ConsoleUser) -> Any:
        """Send a form about a table's settings."""
        table = self._table(self._reading(visitor), _FINDING)
        administration = self._dialect_of(table, self._operations.serving(table.namespace))
        key = flask.request.form.get("form", "")
        attempt = self._attempt(administration, key)
        form = administration.forms[key]
        note_definition(form.operation, [table.name])
        refused = self._run(visitor, administration, table.namespace, table, attempt)
        if refused is not None:
            return self._settings(visitor, refused)
        if key == "delete":
            return flask.redirect(flask.url_for("console.tables"), 303)
        place = address("console.settings", table, dialect=administration.dialect, done=key)
        return flask.redirect(place, 303)

    def _dialect_of(self, table: Table, choices: Sequence[Administration]) -> Administration:
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
        attempt = self._attempt(administration, key)
        note_definition(administration.forms[key].operation, [flask.request.form.get("table", "")])
        refused = self._run(visitor, administration, namespace, None, attempt)
        if refused is not None:
            return self._backups(visitor, refused)
        return flask.redirect(flask.url_for("console.backups", namespace=namespace, done=key), 303)

    def _backups(self, visitor: ConsoleUser, attempt: Attempt | None) -> Any:
        administration, namespace = self._backup_place(visitor)
        assert administration.backups is not None
        describe = partial(self._operations.describe, visitor, administration, namespace)
        found = administration.backups(describe)
        done = administration.forms.get(flask.request.args.get("done", ""))
        sections = [] if found is None else [found]
        shown = self._shown_sections(visitor, administration, namespace, None, sections, attempt)
        return render(
            "backups.html", 200 if attempt is None else 400, visitor=visitor, namespace=namespace,
            dialect=administration.dialect, done=None if done is None else done.done,
            action=f"{CONSOLE}/backups/change",
            sections=shown, problem=self._unplaced(attempt, shown),
        )  # fmt: skip

    def _backup_place(self, visitor: ConsoleUser) -> tuple[Administration, str]:
        """Return the dialect with backups, and the chosen namespace. Raises BadSearch."""
        for administration, usual in self._operations.places(visitor):
            if administration.backups is not None:
                namespace = flask.request.values.get("namespace", "") or usual
                if self._operations.accepts(visitor, administration, namespace):
                    return administration, namespace
        raise BadSearch("There are no backups in this namespace.")

    # Forms

    def _named(self, choices: Sequence[Administration]) -> Administration:
        """Return the dialect that the request names, else the first. Raises BadSearch."""
        wanted = flask.request.values.get("dialect", "")
        for each in choices:
            if wanted in (each.dialect, ""):
                return each
        raise BadSearch("No dialect of this server can do this here, or your key is not allowed to.")

    def _attempt(self, administration: Administration, key: str) -> Attempt:
        """Return the form that was sent. Raises BadSearch."""
        form = administration.forms.get(key)
        if form is None:
            raise BadSearch("There is no such form.")
        given = flask.request.form
        return Attempt(key, {field.name: given.get(field.name, "") for field in form.fields})

    def _run(
        self,
        visitor: ConsoleUser,
        administration: Administration,
        namespace: str,
        table: Table | None,
        attempt: Attempt,
    ) -> Attempt | None:
        """Run the operation of a form. Return the attempt with its errors if it was not accepted."""
        form = administration.forms[attempt.key]
        for field in form.fields:
            value = attempt.values[field.name]
            if len(value) > MOST_CHARACTERS:
                return attempt._replace(errors={field.name: f"At most {MOST_CHARACTERS:,} characters."})
            if field.is_required and not value.strip():
                return attempt._replace(errors={field.name: "This is required."})
        try:
            document = form.document_of(table, attempt.values)
            self._operations.run(visitor, administration, form.operation, namespace, document)
        except BadField as error:
            return attempt._replace(errors={error.name: str(error)})
        except OperationRefused as error:
            return attempt._replace(problem=str(error))
        return None

    def _shown_sections(
        self, visitor: ConsoleUser, administration: Administration, namespace: str, table: Table | None,
        sections: Sequence[Section], attempt: Attempt | None,
    ) -> list[ShownSection]:  # fmt: skip
        """Return (section, rows with their forms, further forms), with the forms that the visitor may send."""

        def shown(placed: Sequence[PlacedForm], part: str) -> list[ShownForm]:
            if not self._writes:
                return []
            return [
                self._shown_form(administration, each, f"{part}-{each.key}", attempt)
                for each in placed
                if self._may_send(visitor, administration, namespace, table, each)
            ]

        return [
            (
                section,
                [(row, shown(row.forms, f"{at}-{number}")) for number, row in enumerate(section.rows)],
                shown(section.forms, str(at)),
            )
            for at, section in enumerate(sections)
        ]

    @staticmethod
    def _unplaced(attempt: Attempt | None, sections: Sequence[ShownSection]) -> str:
        """Return the problem of an attempt whose form is no longer on the page, "" if there is none."""
        if attempt is None:
            return ""
        forms = [
            each
            for _, rows, forms in sections
            for each in [*forms, *(form for _, own in rows for form in own)]
        ]
        if any(each.problem or each.errors for each in forms):
            return ""
        return attempt.problem or next(iter(attempt.errors.values()), "")

    def _may_send(
        self,
        visitor: ConsoleUser,
        administration: Administration,
        namespace: str,
        table: Table | None,
        placed: PlacedForm,
    ) -> bool:
        path = placed.path or ("" if table is None else table.name)
        operation = administration.forms[placed.key].operation
        return self._operations.may(visitor, administration, operation, (namespace, path))

    def _shown_form(
        self, administration: Administration, placed: PlacedForm, form_id: str, attempt: Attempt | None
    ) -> ShownForm:
        """Return a form with its initial values, or with those of the attempt if it is about the same thing."""
        form = administration.forms[placed.key]
        values = {field.name: placed.values.get(field.name, field.value) for field in form.fields}
        own = ShownForm(form_id, placed.key, form, values, placed.bounds)
        hidden = [field.name for field in form.fields if field.kind == "hidden"]
        if attempt is None or attempt.key != placed.key:
            return own
        if any(attempt.values[name] != values[name] for name in hidden):
            return own
        return own._replace(values=attempt.values, problem=attempt.problem, errors=attempt.errors)
