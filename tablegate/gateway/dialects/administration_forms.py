"""Forms and sections of the console that administer the tables of a dialect.

adapters/*/administration.py describes both as data, and begins the dialect's own operations. The console shows the forms, and
runs the operations as the visitor (console/forms.py). So the dialect validates all input, with the service's own texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from tablegate.gateway.model.authorization.authorizations import Authorization
from tablegate.gateway.model.tables.tables import Table

Values = Mapping[str, str]
"""The values of a form, by the names of its fields."""
MOST_CHARACTERS = 8_000
"""Maximum length of a value of a form."""


class BadField(ValueError):
    """A value that a form does not accept. `name`: its field. The text says what is wrong."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name = name


class Field(NamedTuple):
    """A field of a form.

    - `kind`: the type of an HTML input, or `select`, `textarea`, `hidden`, `second` (a time in UTC within given bounds).
    - `options`: (value, text) of a select.
    - `group`: the heading of the fields with which it is shown, or "".
    """

    name: str
    label: str = ""
    kind: str = "text"
    value: str = ""
    options: tuple[tuple[str, str], ...] = ()
    hint: str = ""
    group: str = ""
    is_required: bool = False


class Form(NamedTuple):
    """A form that runs one operation.

    - `document_of`: returns the operation's arguments for a table (or None) and the values. Raises BadField.
    - `done`: the message after success.
    - `question`: asked before the form is sent, with the values in braces.
    """

    operation: str
    button: str
    document_of: Callable[[Table | None, Values], dict[str, Any]]
    done: str
    fields: tuple[Field, ...] = ()
    title: str = ""
    question: str = ""
    is_dangerous: bool = False


class PlacedForm(NamedTuple):
    """A form on a page, by its key in the dialect's forms.

    - `values`: the initial values. Those of hidden fields are here only.
    - `bounds`: field -> (earliest, latest), in seconds since 1970.
    - `path`: the resource that grants are judged on. "": the table.
    """

    key: str
    values: Values = MappingProxyType({})
    bounds: Mapping[str, tuple[int, int]] = MappingProxyType({})
    path: str = ""


class Moment(NamedTuple):
    """A time in a section, in milliseconds since 1970."""

    ms: int


class Progress(NamedTuple):
    """The progress of background work in a section."""

    done: int
    total: int
    text: str


Cell = str | Moment | Progress


class SectionRow(NamedTuple):
    """A row of a section's list, with the forms about it."""

    cells: Sequence[Cell]
    forms: Sequence[PlacedForm] = ()


class Section(NamedTuple):
    """A part of the page about a table's settings: facts, a list, and forms."""

    title: str
    facts: Sequence[tuple[str, Cell]] = ()
    columns: Sequence[str] = ()
    rows: Sequence[SectionRow] = ()
    forms: Sequence[PlacedForm] = ()
    note: str = ""


class OperationRequest(NamedTuple):
    """An operation to run for a caller, with its arguments as the JSON of the service's documentation.

    `authorization`: the caller's permissions, or None if the caller is unrestricted.
    """

    operation: str
    document: dict[str, Any]
    namespace: str
    access_id: str
    authorization: Authorization | None


Describe = Callable[[str, dict[str, Any]], Any]
"""Returns the answer of an operation that only reads. None if the caller lacks the permission or the service refuses it."""


def is_checked(values: Values, name: str) -> bool:
    """True if a checkbox is ticked."""
    return values.get(name, "") == "yes"


def number(values: Values, name: str) -> int | None:
    """Return the integer of a field, None if it is empty. Raises BadField."""
    text = values.get(name, "").strip()
    if not text:
        return None
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 19):
        raise BadField(name, "This must be a whole number.")
    return int(text)


def words(values: Values, name: str) -> list[str]:
    """Return the parts of a field that are separated by commas or line breaks."""
    return [part.strip() for part in values.get(name, "").replace("\n", ",").split(",") if part.strip()]


def typed_name(table: Table | None, values: Values, expected: str) -> None:
    """Check that the name of a table was typed as a confirmation. Raises BadField."""
    if table is None or values.get("typed", "") != expected:
        raise BadField("typed", f"Type the name of the table: {expected}.")
