"""Forms and sections of gateway/administration_forms.py on pages: what was sent, what is shown, and the errors beside it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from tablegate.gateway.administration_forms import (
    MOST_CHARACTERS,
    BadField,
    Field,
    Form,
    PlacedForm,
    Section,
    SectionRow,
    Values,
)
from tablegate.gateway.console.searches import BadSearch
from tablegate.gateway.model.tables.tables import Table


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


def attempt_of(forms: Mapping[str, Form], key: str, given: Values) -> Attempt:
    """Return the form that was sent. Raises BadSearch."""
    form = forms.get(key)
    if form is None:
        raise BadSearch("There is no such form.")
    return Attempt(key, {field.name: given.get(field.name, "") for field in form.fields})


def document_of(form: Form, table: Table | None, values: Values) -> dict[str, Any]:
    """Return the arguments of a form's operation. Raises BadField."""
    for field in form.fields:
        value = values[field.name]
        if len(value) > MOST_CHARACTERS:
            raise BadField(field.name, f"At most {MOST_CHARACTERS:,} characters.")
        if field.is_required and not value.strip():
            raise BadField(field.name, "This is required.")
    return form.document_of(table, values)


def shown_form(
    forms: Mapping[str, Form], placed: PlacedForm, form_id: str, attempt: Attempt | None
) -> ShownForm:
    """Return a form with its initial values, or with those of the attempt if it is about the same thing."""
    form = forms[placed.key]
    values = {field.name: placed.values.get(field.name, field.value) for field in form.fields}
    own = ShownForm(form_id, placed.key, form, values, placed.bounds)
    hidden = [field.name for field in form.fields if field.kind == "hidden"]
    if attempt is None or attempt.key != placed.key:
        return own
    if any(attempt.values[name] != values[name] for name in hidden):
        return own
    return own._replace(values=attempt.values, problem=attempt.problem, errors=attempt.errors)


def shown_sections(
    forms: Mapping[str, Form],
    sections: Sequence[Section],
    attempt: Attempt | None,
    may_send: Callable[[PlacedForm], bool],
) -> list[ShownSection]:
    """Return (section, rows with their forms, further forms), with the forms that the visitor may send."""

    def shown(placed: Sequence[PlacedForm], part: str) -> list[ShownForm]:
        return [shown_form(forms, each, f"{part}-{each.key}", attempt) for each in placed if may_send(each)]

    return [
        (
            section,
            [(row, shown(row.forms, f"{at}-{number}")) for number, row in enumerate(section.rows)],
            shown(section.forms, str(at)),
        )
        for at, section in enumerate(sections)
    ]


def unplaced_problem(attempt: Attempt | None, sections: Sequence[ShownSection]) -> str:
    """Return the problem of an attempt whose form is no longer on the page, "" if there is none."""
    if attempt is None:
        return ""
    forms = [
        each for _, rows, forms in sections for each in [*forms, *(form for _, own in rows for form in own)]
    ]
    if any(each.problem or each.errors for each in forms):
        return ""
    return attempt.problem or next(iter(attempt.errors.values()), "")
