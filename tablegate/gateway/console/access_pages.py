"""Pages about access: grants, rights of credentials on a table, credentials and quotas.

The operations of the forms are those of control/administration.py, by method and path.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import flask
import orjson

from tablegate.gateway.console.forms import Attempt, attempt_of, document_of, shown_sections, unplaced_problem
from tablegate.gateway.console.pages import Pages, Route, note_definition, render
from tablegate.gateway.console.searches import BadSearch
from tablegate.gateway.console.sign_in import ConsoleUser, scope_of
from tablegate.gateway.control import access
from tablegate.gateway.control.access import CONSOLE
from tablegate.gateway.control.documents import BadRequest, OperationRejected
from tablegate.gateway.dialects.administration_forms import (
    BadField,
    Field,
    Form,
    PlacedForm,
    Section,
    SectionRow,
    Values,
    number,
    words,
)
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.model.authorization.accesses import Access
from tablegate.gateway.model.authorization.authorizations import NamedResource, RequestSource
from tablegate.gateway.model.authorization.grants import Verdict
from tablegate.gateway.model.authorization.permissions import Permission, Purpose
from tablegate.gateway.model.authorization.quotas import PRINCIPALS_OF_TOKENS, covers
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.security.credentials import Credential, Scheme
from tablegate.gateway.security.grant_store import written_of
from tablegate.gateway.security.short_policies import READ_ONLY, READ_WRITE

if TYPE_CHECKING:
    from tablegate.gateway.control.administration import Administration


_P = Permission
PERMISSION_GROUPS: Mapping[str, Sequence[Permission]] = {
    "Rows": (_P.READ, _P.QUERY, _P.SCAN, _P.PUT, _P.UPDATE, _P.DELETE),
    "Table": (_P.DESCRIBE, _P.CREATE, _P.ALTER, _P.DROP, _P.ALTER_EXPIRY, _P.TAG, _P.UNTAG),
    "Stream": (_P.DESCRIBE_STREAM, _P.READ_STREAM),
    "Backups and recovery": (_P.CREATE_BACKUP, _P.ALTER_RECOVERY, _P.RESTORE_MOMENT),
    "Transfer": (_P.EXPORT, _P.IMPORT, _P.LOAD),
}
"""The permissions that are shown."""
PERMISSION_LABELS: Mapping[Permission, str] = {
    _P.ALTER_EXPIRY: "alter time to live",
    _P.RESTORE_MOMENT: "restore to a point in time",
    _P.LOAD: "bulk put",
}
"""The texts of permissions whose names are not those of an API."""
READ_PERMISSIONS = (_P.READ, _P.QUERY, _P.SCAN)
YES, PARTLY, NO = "yes", "partly", "no"
_STREAMS = frozenset({_P.DESCRIBE_STREAM, _P.READ_STREAM})


def label_of(permission: Permission) -> str:
    """Return the text of a permission."""
    return PERMISSION_LABELS.get(permission, permission.value.replace("-", " "))


def right_on_table(
    gateway: Gateway, credential: Credential, permission: Permission, namespace: str, table: str
) -> str:
    """Return YES, NO, or PARTLY: under conditions, or by the policy of the table."""
    scope = scope_of(credential, gateway.settings.namespaces)
    if not scope or not covers(scope, namespace):
        return NO
    source = RequestSource("127.0.0.1", True)
    authorization = gateway.credentials.authorization(
        credential.identity, credential.policy, source, gateway.real_now_ms()
    )
    if authorization is None:
        return YES
    authorization.purpose = purpose = Purpose((permission,))
    path = f"{table}/stream/" if permission in _STREAMS else table
    if authorization.refusal_of_named([NamedResource((permission,), namespace, path)]) is not None:
        return NO
    # A verdict without a request is unconditional.
    decision = authorization.policy.decide(Access(permission, purpose.channel, namespace, path, None))
    return YES if decision.verdict is Verdict.ALLOWED else PARTLY


SCHEMES = (("aws", "AWS"), ("azure", "Azure"), ("tablestore", "Table Store"))
_KINDS = (
    ("read-only", "read rows"), ("read-write", "read and write rows"), ("all", "everything"), ("role", "a role"),
    ("document", "a document (short form, IAM or RAM)"),
)  # fmt: skip


def _new_credential(table: Table | None, values: Values) -> dict[str, Any]:
    document: dict[str, Any] = {"scheme": values["scheme"], "access_id": values["access_id"].strip()}
    if values["place"].strip():
        document["place"] = values["place"].strip()
    if values["all"]:
        document["all"] = True
    return document


def _credential(table: Table | None, values: Values) -> dict[str, Any]:
    return {"scheme": values["scheme"], "access_id": values["access_id"]}


def _new_grant(table: Table | None, values: Values) -> dict[str, Any]:
    document: dict[str, Any] = {"key": values["key"].strip()}
    if values["scheme"]:
        document["scheme"] = values["scheme"]
    return {**document, **_written(values)}


def _written(values: Values) -> dict[str, str]:
    """Return the form and the document of a grant. Raises BadField."""
    match values["kind"]:
        case "all":
            return {"form": "all"}
        case "role":
            if not values["role"].strip():
                raise BadField("role", "Name the role.")
            return {"form": "role", "document": values["role"].strip()}
        case "document":
            try:
                form = written_of(orjson.loads(values["document"])).form
            except ValueError as error:
                raise BadField("document", f"This is not a grant: {error}.") from None
            return {"form": form, "document": values["document"]}
    tables = words(values, "tables")
    if not tables:
        raise BadField("tables", "Name at least one table or pattern.")
    actions = READ_ONLY if values["kind"] == "read-only" else READ_WRITE
    return {"form": "short", "document": json.dumps(dict.fromkeys(actions, tables))}


def _grant(table: Table | None, values: Values) -> dict[str, Any]:
    return {"id": values["id"]}


_OWNERS = "SCHEME/ACCESS_ID, such as aws/KEY, entra/ID, group/ID, or namespace/NAME"


def _owner(values: Values) -> dict[str, str]:
    kind, _, name = values["owner"].partition("/")
    if not name:
        raise BadField("owner", f"Write {_OWNERS}.")
    if values["owner"].startswith(PRINCIPALS_OF_TOKENS):
        return {"access_id": values["owner"]}
    return {"namespace": name} if kind == "namespace" else {"scheme": kind, "access_id": name}


def _new_quota(table: Table | None, values: Values) -> dict[str, Any]:
    limits = {name: number(values, name) for name in _LIMITS}
    return {**_owner(values), **{name: limit for name, limit in limits.items() if limit is not None}}


def _quota(table: Table | None, values: Values) -> dict[str, Any]:
    return _owner(values)


_LIMITS = {
    "requests": "Requests per second", "read_units": "Read units per second",
    "write_units": "Write units per second", "bytes": "Bytes in all", "tables": "Tables",
}  # fmt: skip
_SCHEME, _ACCESS_ID = Field("scheme", kind="hidden"), Field("access_id", kind="hidden")
ACCOUNT_FORMS: Mapping[str, Form] = {
    "credential_new": Form(
        "POST /credentials", "Create credential", _new_credential, "The credential was created.",
        (
            Field("scheme", "Scheme", "select", "aws", SCHEMES),
            Field("access_id", "Access id", hint="The access key id, or the name of the Azure account.", is_required=True),
            Field("place", "Place", hint="The account (AWS) or instance (Table Store). * is each instance."),
            Field("all", "Allow everything", "select", "", (("", "no, I add grants"), ("yes", "yes"))),
        ),
        title="Create a credential",
    ),
    "credential_delete": Form("DELETE /credentials", "Delete", _credential, "The credential was deleted.",
                              (_SCHEME, _ACCESS_ID), question="Delete the credential {access_id}?", is_dangerous=True),
    "grant_new": Form(
        "POST /grants", "Add grant", _new_grant, "The grant was added.",
        (
            Field("key", "Credential", hint="An access id, role/NAME, or * for all credentials.", is_required=True),
            Field("scheme", "Scheme", "select", "", (("", "of the credential"), *SCHEMES)),
            Field("kind", "Grant", "select", "read-only", _KINDS),
            Field("tables", "Tables", hint="Names or patterns such as orders*, with commas."),
            Field("role", "Role", hint="For a role only."),
            Field("document", "Document", "textarea", hint="For a document only, as JSON."),
        ),
        title="Add a grant",
    ),
    "grant_delete": Form("DELETE /grants", "Remove", _grant, "The grant was removed.",
                         (Field("id", kind="hidden"),), question="Remove the grant {id}?", is_dangerous=True),
    "quota_set": Form(
        "PUT /quotas", "Set quota", _new_quota, "The quota was set.",
        (Field("owner", "Owner", hint=f"{_OWNERS}.", is_required=True),
         *(Field(name, label, "number") for name, label in _LIMITS.items())),
        title="Set a quota",
    ),
    "quota_delete": Form("DELETE /quotas", "Remove", _quota, "The quota was removed.",
                         (Field("owner", kind="hidden"),), question="Remove the quota of {owner}?", is_dangerous=True),
}  # fmt: skip


_CREDENTIALS = 200
"""Maximum number of credentials whose rights are shown."""


class AccessPages(Pages):
    """The grants of a visitor. For the administrator also credentials, grants, quotas and rights, as in the control API."""

    def __init__(self, gateway: Gateway, administration: Callable[[], Administration] | None) -> None:
        super().__init__(gateway)
        self._administration = administration
        self._writes = gateway.settings.console_writes

    def reads(self) -> Sequence[Route]:
        return (
            Route("/grants", self.grants),
            Route("/rights", self.rights),
            Route("/credentials", self.credentials),
            Route("/quotas", self.quotas),
        )

    def writes(self) -> Sequence[Route]:
        return (
            Route("/grants/change", self.change_grants),
            Route("/credentials/change", self.change_credentials),
            Route("/quotas/change", self.change_quotas),
        )

    # Grants

    def grants(self, visitor: ConsoleUser) -> Any:
        """Show all grants to an unrestricted visitor, otherwise those of the visitor's own key."""
        return self._grants(visitor, None)

    def change_grants(self, visitor: ConsoleUser) -> Any:
        """Add or remove a grant."""
        return self._submit(visitor, "grants", self._grants)

    def _grants(self, visitor: ConsoleUser, attempt: Attempt | None, answer: Any = None) -> Any:
        kept = self._gateway.grants
        held = [] if kept is None else kept.held_by(visitor.grantee)
        rows = [
            SectionRow(
                (each.grantee, each.form, each.document, each.id),
                (PlacedForm("grant_delete", {"id": each.id}),),
            )
            for each in held
        ]
        forms = (PlacedForm("grant_new", {"key": flask.request.args.get("key", "")}),)
        section = Section(
            "Grants", columns=("Grantee", "Syntax", "Permissions", "Id"), rows=rows, forms=forms
        )
        return self._page("grants.html", visitor, "grants", section, attempt)

    def rights(self, visitor: ConsoleUser) -> Any:
        """Show what a key may do with a table, and which keys may read it."""
        access.check_administrator(visitor.name)
        given = flask.request.args
        key, table = given.get("key", "")[:255], given.get("name", "")[:255]
        namespace = given.get("namespace", "shared")[:255]
        known = [
            (each, found)
            for each in self._run("GET /credentials", {})["credentials"]
            if (found := self._gateway.credentials.find(Scheme(each["scheme"]), each["access_id"]))
            is not None
        ]
        chosen = [found for _, found in known if key == found.grantee]
        groups = (
            {
                title: [
                    (label_of(each), right_on_table(self._gateway, chosen[0], each, namespace, table))
                    for each in permissions
                ]
                for title, permissions in PERMISSION_GROUPS.items()
            }
            if chosen and table
            else {}
        )
        readers = [
            (
                found.grantee,
                [right_on_table(self._gateway, found, each, namespace, table) for each in READ_PERMISSIONS],
            )
            for _, found in (known[:_CREDENTIALS] if table else [])
        ]
        return render(
            "rights.html", visitor=visitor, keys=[found.grantee for _, found in known], key=key, name=table,
            namespace=namespace, groups=groups, readers=readers, reading=[label_of(each) for each in READ_PERMISSIONS],
            is_cut=len(known) > _CREDENTIALS, is_dev=self._gateway.credentials.is_dev,
        )  # fmt: skip

    # Credentials

    def credentials(self, visitor: ConsoleUser) -> Any:
        """Show the stored credentials, without their secrets."""
        access.check_administrator(visitor.name)
        return self._credentials(visitor, None)

    def change_credentials(self, visitor: ConsoleUser) -> Any:
        """Create or delete a credential. The secrets of a new one are shown in this reply only."""
        return self._submit(visitor, "credentials", self._credentials)

    def _credentials(self, visitor: ConsoleUser, attempt: Attempt | None, answer: Any = None) -> Any:
        found = self._run("GET /credentials", {})["credentials"]
        rows = [
            SectionRow(
                (
                    each["access_id"],
                    each["scheme"],
                    each["place"],
                    "yes" if each["has_session_token"] else "no",
                ),
                (
                    PlacedForm(
                        "credential_delete", {"scheme": each["scheme"], "access_id": each["access_id"]}
                    ),
                ),
            )
            for each in found
        ]
        section = Section(
            "Stored credentials", columns=("Access id", "Scheme", "Place", "Session token"), rows=rows,
            forms=(PlacedForm("credential_new"),), note="" if rows else "No credential is stored.",
        )  # fmt: skip
        created = answer if answer and answer.get("secrets") else None
        return self._page("credentials.html", visitor, "credentials", section, attempt, created=created)

    # Quotas

    def quotas(self, visitor: ConsoleUser) -> Any:
        """Show the quotas."""
        access.check_administrator(visitor.name)
        return self._quotas(visitor, None)

    def change_quotas(self, visitor: ConsoleUser) -> Any:
        """Set or remove a quota."""
        return self._submit(visitor, "quotas", self._quotas)

    def _quotas(self, visitor: ConsoleUser, attempt: Attempt | None, answer: Any = None) -> Any:
        rows = []
        for each in self._run("GET /quotas", {})["quotas"]:
            limits = json.loads(each["document"])
            shown = ", ".join(f"{name.replace('_', ' ')}: {limit:,}" for name, limit in limits.items())
            rows.append(
                SectionRow((each["owner"], shown), (PlacedForm("quota_delete", {"owner": each["owner"]}),))
            )
        section = Section(
            "Quotas", columns=("Owner", "Limits"), rows=rows, forms=(PlacedForm("quota_set"),),
            note="" if rows else "No credential and no namespace has a quota.",
        )  # fmt: skip
        return self._page("quotas.html", visitor, "quotas", section, attempt)

    # Forms

    def _run(self, operation: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer of an operation of the control API. Raises BadRequest, OperationRejected, BadSearch."""
        if self._administration is None:
            raise BadSearch("This server has no stored credentials.")
        found = {f"{method} {path}": run for method, path, run in self._administration().operations()}
        return found[operation](dict(document))

    def _submit(self, visitor: ConsoleUser, page: str, shown: Callable[..., Any]) -> Any:
        """Run the operation of the form that was sent, and show a page."""
        access.check_administrator(visitor.name)
        key = flask.request.form.get("form", "")
        attempt = attempt_of(ACCOUNT_FORMS, key, flask.request.form)
        form = ACCOUNT_FORMS[key]
        note_definition(form.operation, [])
        try:
            answer = self._run(form.operation, document_of(form, None, attempt.values))
        except BadField as error:
            return shown(visitor, attempt._replace(errors={error.name: str(error)}))
        except (BadRequest, OperationRejected) as error:
            return shown(visitor, attempt._replace(problem=str(error)))
        if answer.get("secrets"):
            return shown(visitor, None, answer)
        return flask.redirect(flask.url_for(f"console.{page}", done=key), 303)

    def _page(
        self,
        template: str,
        visitor: ConsoleUser,
        page: str,
        section: Section,
        attempt: Attempt | None,
        **facts: Any,
    ) -> Any:
        may_send = self._writes and visitor.name == access.ADMINISTRATOR
        sections = shown_sections(ACCOUNT_FORMS, [section], attempt, lambda placed: may_send)
        done = ACCOUNT_FORMS.get(flask.request.args.get("done", ""))
        return render(
            template, 200 if attempt is None else 400, visitor=visitor, sections=sections, may_send=may_send,
            problem=unplaced_problem(attempt, sections), done=None if done is None else done.done,
            action=f"{CONSOLE}/{page}/change", is_administrator=visitor.name == access.ADMINISTRATOR, **facts,
        )  # fmt: skip
