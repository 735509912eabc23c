"""Forms that add, copy, change and delete one row: a name, a type and a text for each attribute."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import flask
import orjson

from tablegate.gateway.console import searches
from tablegate.gateway.console.pages import Pages, Route, address, explained, note_keys, render
from tablegate.gateway.console.reading import DELETING, PUTTING, TableReader
from tablegate.gateway.console.row_tables import differences
from tablegate.gateway.console.searches import BadSearch, kind_of
from tablegate.gateway.console.sign_in import ConsoleUser
from tablegate.gateway.console.value_texts import EXPECTED, BadValue, text_of, value_of
from tablegate.gateway.dialects.adapter import RowDisplay
from tablegate.gateway.model.commands.row_commands import WriteGroup
from tablegate.gateway.model.commands.writes import Remove, Replace, Write
from tablegate.gateway.model.errors import ConditionFailed, InvalidInput
from tablegate.gateway.model.expressions.predicates import Not, Predicate, RevisionIs, RowExists
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import Key
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import Kind, Value

ATTRIBUTES = 1000
"""Maximum number of attributes in a form. Larger rows are changed as JSON."""
_LAYOUT = "\t\n\r"
# Fields of this kind have milliseconds, and years from 1 on.
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?)Z?", re.ASCII)


@dataclass(frozen=True, slots=True)
class RowField:
    """One attribute in a form.

    - `type`: the name of a type of the dialect.
    - `error`: what is wrong with it, or "".
    - `is_changed`: its value is not that of the row that is changed.
    """

    name: str
    type: str
    text: str
    is_key: bool = False
    error: str = ""
    is_changed: bool = False

    @property
    def local_time(self) -> str:
        """The text as the value of a `datetime-local` field. "" if such a field cannot have it."""
        found = _TIME.fullmatch(self.text)
        return "" if found is None else found[1]


class BadRow(ValueError):
    """A form with errors. `fields`: all its fields, those that are wrong with their errors."""

    def __init__(self, fields: Sequence[RowField]) -> None:
        super().__init__("Some values are not valid. They are marked below.")
        self.fields = fields


def new_fields(table: Table, display: RowDisplay) -> list[RowField]:
    """Return the fields of a row that does not exist: its key columns and one attribute."""
    types = display.type_names
    keys = [
        RowField(column.name, types.get(column.kind, types[Kind.TEXT]), "", True)
        for column in table.key_schema.columns
    ]
    return [*keys, RowField("", types[Kind.TEXT], "")]


def fields_of(table: Table, display: RowDisplay, row: Row) -> list[RowField]:
    """Return the fields of a row: the key columns first."""
    keys = table.key_schema.names
    names = [*keys, *(name for name in row.latest if name not in keys)]
    seen = [(name, _shown(table, display, name, row)) for name in names]
    return [
        RowField(name, display.type_names[value.kind], text_of(value), name in keys)
        for name, value in seen
        if value.kind in display.type_names
    ]


def is_editable(table: Table, display: RowDisplay, row: Row) -> bool:
    """True if a form can show the row. Browsers change control characters in texts, and forms are limited."""
    texts = [text for field in fields_of(table, display, row) for text in (field.name, field.text)]
    return len(texts) <= 2 * ATTRIBUTES and not any(
        ord(letter) < 32 and letter not in _LAYOUT for text in texts for letter in text
    )


def read_fields(given: Mapping[str, str], table: Table) -> list[RowField]:
    """Return the fields of a submitted form, in order. Browsers send no value of a switch that is off."""
    keys = table.key_schema.names
    fields = []
    for number in range(2 * ATTRIBUTES):  # the script of the page leaves gaps
        name = given.get(f"name{number}")
        if name is None:
            continue
        type_name = given.get(f"type{number}", "")
        text = given.get(f"value{number}", "false" if type_name else "")
        fields.append(RowField(name, type_name, text, name in keys))
    return fields


def values_of(
    fields: Sequence[RowField], table: Table, display: RowDisplay, old: Row | None
) -> dict[str, Value]:
    """Return the attributes of a form. Raises BadRow.

    Fields that were not changed keep the values of the old row, and so do attributes that the form does not show.
    """
    values: dict[str, Value] = {}
    checked = []
    for field in fields:
        error = ""
        if not field.name:
            if field.text:
                error = "The attribute needs a name."
        elif field.name in values:
            error = "There is another attribute of this name."
        else:
            try:
                values[field.name] = _value(field, table, display, old)
            except (BadValue, BadSearch) as wrong:
                error = str(wrong)
        checked.append(replace(field, error=error))
    if any(field.error for field in checked):
        raise BadRow(checked)
    hidden = (
        {}
        if old is None
        else {name: value for name, value in old.latest.items() if not _is_shown(display, value)}
    )
    return {**hidden, **values}


def _marked(fields: Sequence[RowField], table: Table, display: RowDisplay, old: Row | None) -> list[RowField]:
    """Return the fields of a form, with a mark on those whose value is not that of the old row."""
    if old is None:
        return list(fields)
    before = {(each.name, each.type, _lines(each.text)) for each in fields_of(table, display, old)}
    return [
        replace(each, is_changed=(each.name, each.type, _lines(each.text)) not in before) for each in fields
    ]


def _value(field: RowField, table: Table, display: RowDisplay, old: Row | None) -> Value:
    """Return the value of a field. Browsers send all line breaks as CR LF, so an unchanged text keeps its own."""
    column = next((each for each in table.key_schema.columns if each.name == field.name), None)
    kind = kind_of(field.type, display) if column is None else column.kind
    if old is not None and field.name in old.latest:
        before = old.latest[field.name]
        before = display.view(before) if column is None else before
        if before.kind is kind and _lines(text_of(before)) == _lines(field.text):
            return before
    return value_of(kind, _lines(field.text))


def _shown(table: Table, display: RowDisplay, name: str, row: Row) -> Value:
    """Return a value as the form shows it. Key columns of kinds that the dialect lacks are texts."""
    value = display.view(row.latest[name])
    if value.kind not in display.type_names and name in table.key_schema.names:
        return Value(Kind.TEXT, text_of(value))
    return value


def _is_shown(display: RowDisplay, value: Value) -> bool:
    return display.view(value).kind in display.type_names


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


_FORM_FIELDS = 3 * ATTRIBUTES + 32
_CHANGED = (
    "The row was changed after this form was opened, and nothing was saved. The differences are below. "
    "Save again to replace the row."
)
_DELETED = "The row was deleted after this form was opened, and nothing was saved. Save again to create it."


class EditForm(NamedTuple):
    """A form of a row.

    - `place`, `revision`: the row that is changed, and its revision when the form was opened. "" for a new row.
    - `fields`: the attributes. `document`: the row as JSON. `is_json`: the document counts.
    """

    place: str
    revision: str
    fields: Sequence[RowField]
    document: str
    is_json: bool

    @classmethod
    def of_form(cls, given: Mapping[str, str], table: Table) -> EditForm:
        is_json = "row" in given
        fields = [] if is_json else read_fields(given, table)
        return cls(given.get("at", ""), given.get("revision", ""), fields, given.get("row", ""), is_json)


class EditPages(Pages):
    """The forms that put and delete a row."""

    def reads(self) -> Sequence[Route]:
        if not self._gateway.settings.console_writes:
            return ()
        return Route("/row/new", self.new), Route("/row/edit", self.edit)

    def writes(self) -> Sequence[Route]:
        return Route("/row/delete", self.delete), Route("/row/put", self.put, _FORM_FIELDS)

    def new(self, visitor: ConsoleUser) -> Any:
        """Show the form of a new row, with the values of another one if the request names it (`copy`)."""
        reading = self._reading(visitor)
        table = self._table(reading, PUTTING)
        display = self._display(table)
        copied = flask.request.args.get("copy", "")
        row = self._row(reading, table, copied) if copied else None
        form = EditForm("", "", new_fields(table, display), "", "json" in flask.request.args)
        if row is not None:
            form = self._form_of(table, row)._replace(place="", revision="")
        elif form.is_json:
            form = form._replace(document=_indented(display.document_of(table, {})))
        return self._show(visitor, table, form)

    def edit(self, visitor: ConsoleUser) -> Any:
        """Show the form of a row."""
        reading = self._reading(visitor)
        table = self._table(reading, PUTTING)
        row = self._row(reading, table, flask.request.args.get("at", ""))
        if row is None:
            raise searches.BadSearch("There is no such row now.")
        return self._show(visitor, table, self._form_of(table, row))

    def put(self, visitor: ConsoleUser) -> Any:
        """Save a row, if it is still as the form showed it. Otherwise show the form again."""
        reading = self._reading(visitor)
        table = self._table(reading, PUTTING)
        form = EditForm.of_form(flask.request.form, table)
        step = flask.request.form.get("step", "")
        if step:
            return self._show(visitor, table, form._replace(fields=self._after_step(form, table, step)))
        old = self._row(reading, table, form.place) if form.place else None
        try:
            write = self._write_of(table, form, old)
        except BadRow as error:
            fields = _marked(error.fields, table, self._display(table), old)
            return self._show(visitor, table, form._replace(fields=fields), 400, str(error))
        except (ValueError, TypeError) as error:
            return self._show(visitor, table, form, 400, f"This is not a valid row of {table.name}: {error}.")
        if form.place and str("" if old is None else old.modified_at) != form.revision:
            return self._conflict(visitor, write, form, old)
        note_keys(table, [write.key])
        try:
            reading.run(WriteGroup((write,)), PUTTING)
        except ConditionFailed as error:
            if not form.place:
                text = "There is a row with this key already, and nothing was saved. Choose another key."
                return self._show(visitor, table, form, 409, text)
            return self._conflict(visitor, write, form, error.row)
        except InvalidInput as error:
            return self._show(visitor, table, form, 400, explained(error)[1])
        return flask.redirect(address("console.row", table, at=searches.place_of(write.key.position)), 303)

    def delete(self, visitor: ConsoleUser) -> Any:
        """Delete a row. If the form has a revision, the row must still have it."""
        reading = self._reading(visitor)
        table = self._table(reading, DELETING)
        row = self._row(reading, table, flask.request.form.get("at", ""))
        if row is None:
            return flask.redirect(address("console.rows", table), 303)
        changed = "The row was changed after this page was opened, and it was not deleted. Look at it again."
        if flask.request.form.get("revision", str(row.modified_at)) != str(row.modified_at):
            raise searches.BadSearch(changed)
        key = table.key_schema.key(row.latest)
        note_keys(table, [key])
        write = Write(table, Key(key.values, row.position), Remove(), RevisionIs(row.modified_at))
        try:
            reading.run(WriteGroup((write,)), DELETING)
        except ConditionFailed:
            raise searches.BadSearch(changed) from None
        return flask.redirect(address("console.rows", table), 303)

    def _row(self, reading: TableReader, table: Table, place: str) -> Row | None:
        return reading.row(table, searches.position_of(place))

    def _form_of(self, table: Table, row: Row) -> EditForm:
        display = self._display(table)
        is_json = "json" in flask.request.args or not is_editable(table, display, row)
        place, revision = searches.place_of(row.position), str(row.modified_at)
        fields = [] if is_json else fields_of(table, display, row)
        return EditForm(place, revision, fields, _indented(display.document_of(table, row.latest)), is_json)

    def _write_of(self, table: Table, form: EditForm, old: Row | None) -> Write:
        """Return the write of a form. Raises BadRow, ValueError, TypeError."""
        display = self._display(table)
        if form.is_json:
            values = display.values_of(table, orjson.loads(form.document))
        else:
            values = values_of(form.fields, table, display, old)
        write = display.write_of(table, values, old, self._gateway.now_ms())
        if form.place and searches.place_of(write.key.position) != form.place:
            raise ValueError("its key is another one. Use Copy to make another row")
        condition: Predicate = Not(RowExists()) if old is None else RevisionIs(old.modified_at)
        return write._replace(condition=condition)

    def _after_step(self, form: EditForm, table: Table, step: str) -> list[RowField]:
        """Return the fields after one was added or removed."""
        fields = list(form.fields)
        word, _, place = step.partition("-")
        if (
            word == "remove"
            and place.isdecimal()
            and int(place) < len(fields)
            and not fields[int(place)].is_key
        ):
            del fields[int(place)]
        elif word == "add" and len(fields) < ATTRIBUTES:
            fields.append(RowField("", next(iter(self._display(table).type_names.values())), ""))
        return fields

    def _conflict(self, visitor: ConsoleUser, write: Write, form: EditForm, now: Row | None) -> Any:
        """Show a form again whose row has changed. The form then has the revision of the row as it is now."""
        text = _DELETED if now is None else _CHANGED
        table = write.table
        assert isinstance(write.change, Replace)
        found = differences(self._display(table), now, Row(write.key.position, write.change.contents, 0))
        if now is None:
            form = form._replace(place="")
        form = form._replace(revision="" if now is None else str(now.modified_at))
        return self._show(visitor, table, form, 409, text, found)

    def _show(
        self, visitor: ConsoleUser, table: Table, form: EditForm, status: int = 200, problem: str = "",
        changed: Sequence[Any] = (),
    ) -> Any:  # fmt: skip
        display: RowDisplay = self._display(table)
        types = display.type_names
        json_error = ""
        if form.is_json and status == 400:
            json_error, problem = problem, "Nothing was saved. The error is below the row."
        return render(
            "edit.html", status, visitor=visitor, table=table, form=form, problem=problem, changed=changed,
            json_error=json_error, kinds={name: kind.value for kind, name in types.items()}, expected=EXPECTED,
            new_field=RowField("", next(iter(types.values())), ""), json_form=display.form,
        )  # fmt: skip


def _indented(document: Any) -> str:
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()
