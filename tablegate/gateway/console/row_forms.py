"""The form of a row: a name, a type and a text for each attribute, and the values that they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tablegate.gateway.adapter import RowDisplay
from tablegate.gateway.console.searches import BadSearch, kind_of
from tablegate.gateway.console.value_texts import BadValue, text_of, value_of
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import Kind, Value

ATTRIBUTES = 1000
"""Maximum number of attributes in a form. Larger rows are changed as JSON."""
_LAYOUT = "\t\n\r"


@dataclass(frozen=True, slots=True)
class RowField:
    """One attribute in a form. `type` is the name of a type of the dialect. `error`: what is wrong with it, or ""."""

    name: str
    type: str
    text: str
    is_key: bool = False
    error: str = ""


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
    """Return the fields of a submitted form, in order."""
    keys = table.key_schema.names
    fields = []
    for number in range(ATTRIBUTES + len(keys)):
        name = given.get(f"name{number}")
        if name is None:
            break
        text, type_name = given.get(f"value{number}", ""), given.get(f"type{number}", "")
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
