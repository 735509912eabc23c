"""Forms and sections of dialects/administration_forms.py on pages: submitted values, shown values, and the errors beside them.

Their operations are those of the dialects, run as the visitor of the page.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from tablegate.gateway.console.searches import BadSearch
from tablegate.gateway.console.sign_in import ConsoleUser
from tablegate.gateway.dialects.adapter import DialectAdministration, console_parts
from tablegate.gateway.dialects.administration_forms import (
    MOST_CHARACTERS,
    BadField,
    Field,
    Form,
    OperationRequest,
    PlacedForm,
    Section,
    SectionRow,
    Values,
)
from tablegate.gateway.dialects.coroutines import drive
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.model.authorization.authorizations import NamedResource
from tablegate.gateway.model.authorization.grants import Verdict
from tablegate.gateway.model.errors import NotPermitted, QuotaExceeded, TableMissing
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.security import gate
from tablegate.gateway.security.credentials import SHARED_NAMESPACE


class FieldGroup(NamedTuple):
    """Fields of a form under one heading. `is_open`: a folded group whose fields have values or errors."""

    heading: str
    fields: Sequence[Field]
    is_folded: bool
    is_open: bool


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
    def groups(self) -> list[FieldGroup]:
        """The fields by the headings with which they are shown. Those after the first heading are folded."""
        found = [
            (group, list(fields))
            for group, fields in itertools.groupby(self.form.fields, key=lambda each: each.group)
        ]
        headed = next((at for at, (group, _) in enumerate(found) if group), len(found))
        return [
            FieldGroup(group, fields, at > headed, any(map(self._is_touched, fields)))
            for at, (group, fields) in enumerate(found)
        ]

    def _is_touched(self, field: Field) -> bool:
        return field.name in self.errors or self.values[field.name] != field.value


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


class OperationRefused(Exception):
    """The service's refusal of an operation. The text is the service's own."""


class Operations:
    """The operations of the dialects that a gateway serves."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._all = {name: part.administration for name, part in console_parts(gateway.settings).items()}

    def title(self, dialect: str) -> str:
        """Return the name of the service of a dialect. A dialect without administration has only its own name."""
        return self._all[dialect].title if dialect in self._all else dialect

    def serving(self, namespace: str) -> Sequence[DialectAdministration]:
        """Return the administrations of the dialects whose clients see the tables of a namespace."""
        scheme = namespace.partition("/")[0]
        return [
            each
            for each in self._all.values()
            if namespace == SHARED_NAMESPACE or scheme == each.default_namespace.partition("/")[0]
        ]

    def creating(self, visitor: ConsoleUser) -> Sequence[tuple[DialectAdministration, str]]:
        """Return the administrations in which a visitor may create tables, each with the namespace to propose."""
        return [
            (each, namespace)
            for each, namespace in self.places(visitor)
            if self.may(visitor, each, each.forms["create"].operation)
        ]

    def places(self, visitor: ConsoleUser) -> Sequence[tuple[DialectAdministration, str]]:
        """Return the administrations of a visitor's own dialects, each with its usual namespace."""
        found = [(each, self._usual_namespace(each, visitor.scope)) for each in self._all.values()]
        return [(each, namespace) for each, namespace in found if namespace and visitor.sees(namespace)]

    def _usual_namespace(self, administration: DialectAdministration, scope: str | None) -> str:
        """Return the namespace of a dialect with the parts that the scope determines. "" if the scope is of another dialect."""
        if self._gateway.settings.namespaces == "shared":
            return SHARED_NAMESPACE
        parts, own = administration.default_namespace.split("/"), scope.split("/") if scope else []
        if own and own[0] != parts[0]:
            return ""
        return "/".join([*own, *parts[len(own) :]])

    def accepts(self, visitor: ConsoleUser, administration: DialectAdministration, namespace: str) -> bool:
        """True if a visitor's clients of a dialect can have tables in a namespace."""
        if not visitor.sees(namespace):
            return False
        if self._gateway.settings.namespaces == "shared":
            return namespace == SHARED_NAMESPACE
        parts, usual = namespace.split("/"), administration.default_namespace.split("/")
        return all(parts) and len(namespace) <= 255 and (parts[0], len(parts)) == (usual[0], len(usual))

    def may(
        self,
        visitor: ConsoleUser,
        administration: DialectAdministration,
        operation: str,
        resource: tuple[str, str] | None = None,
    ) -> bool:
        """True if a visitor could be allowed an operation on a resource (namespace, path), or on some resource if it is None."""
        authorization = visitor.authorization
        if authorization is None:
            return True
        purpose = authorization.purpose = administration.purposes[operation]
        if resource is None:
            return authorization.policy.possible_verdict(purpose, authorization) is Verdict.ALLOWED
        return authorization.refusal_of_named([NamedResource(purpose.permissions, *resource)]) is None

    def require(self, visitor: ConsoleUser, administration: DialectAdministration, operation: str) -> None:
        """Refuse an operation that the visitor is allowed on no resource. Raises NotPermitted."""
        if visitor.authorization is not None:
            visitor.authorization.purpose = administration.purposes[operation]
            visitor.authorization.is_checked = False
            refusal = visitor.authorization.refusal_before_access(True)
            if refusal is not None:
                raise refusal

    def run(
        self,
        visitor: ConsoleUser,
        administration: DialectAdministration,
        operation: str,
        namespace: str,
        document: dict[str, Any],
    ) -> Any:
        """Return the answer of an operation. Raises OperationRefused, GatewayError."""
        if not visitor.sees(namespace):
            raise TableMissing("")
        gateway, authorization = self._gateway, visitor.authorization
        if authorization is not None:
            authorization.is_checked = False
        request = OperationRequest(operation, document, namespace, visitor.name, authorization)
        try:
            answer = drive(
                partial(administration.execute, gateway, request),
                partial(gate.run, gateway.engine, authorization=authorization),
            )
        except (NotPermitted, QuotaExceeded):
            raise
        except Exception as error:
            # A caller without permission gets the permission error even if the request is also invalid.
            refusal = None if authorization is None else authorization.refusal_before_access(True)
            if refusal is not None:
                raise refusal from None
            text = administration.text_of(error, operation)
            if text is None:
                raise
            raise OperationRefused(text) from None
        return administration.answer_of(answer)

    def describe(
        self,
        visitor: ConsoleUser,
        administration: DialectAdministration,
        namespace: str,
        operation: str,
        document: dict[str, Any],
    ) -> Any:
        """Return the answer of an operation that only reads, None if it is refused."""
        try:
            return self.run(visitor, administration, operation, namespace, document)
        except (NotPermitted, OperationRefused):
            return None
