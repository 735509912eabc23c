"""Pages about access: grants, rights, credentials and quotas."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import flask

from tablegate.gateway.administration_forms import BadField, PlacedForm, Section, SectionRow
from tablegate.gateway.console import rights
from tablegate.gateway.console.account_forms import FORMS
from tablegate.gateway.console.audit_notes import note_definition
from tablegate.gateway.console.forms import Attempt, attempt_of, document_of, shown_sections, unplaced_problem
from tablegate.gateway.console.pages import Pages, Route
from tablegate.gateway.console.rendering import render
from tablegate.gateway.console.searches import BadSearch
from tablegate.gateway.console.sign_in import ConsoleUser
from tablegate.gateway.control import access
from tablegate.gateway.control.access import CONSOLE
from tablegate.gateway.control.answers import BadRequest, OperationRejected
from tablegate.gateway.dialect import Gateway
from tablegate.gateway.security.credentials import Scheme

if TYPE_CHECKING:
    from tablegate.gateway.control.administration import Administration

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
                    (rights.label(each), rights.right(self._gateway, chosen[0], each, namespace, table))
                    for each in permissions
                ]
                for title, permissions in rights.GROUPS.items()
            }
            if chosen and table
            else {}
        )
        readers = [
            (
                found.grantee,
                [rights.right(self._gateway, found, each, namespace, table) for each in rights.READING],
            )
            for _, found in (known[:_CREDENTIALS] if table else [])
        ]
        return render(
            "rights.html", visitor=visitor, keys=[found.grantee for _, found in known], key=key, name=table,
            namespace=namespace, groups=groups, readers=readers, reading=[rights.label(each) for each in rights.READING],
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
        attempt = attempt_of(FORMS, key, flask.request.form)
        form = FORMS[key]
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
        sections = shown_sections(FORMS, [section], attempt, lambda placed: may_send)
        done = FORMS.get(flask.request.args.get("done", ""))
        return render(
            template, 200 if attempt is None else 400, visitor=visitor, sections=sections, may_send=may_send,
            problem=unplaced_problem(attempt, sections), done=None if done is None else done.done,
            action=f"{CONSOLE}/{page}/change", is_administrator=visitor.name == access.ADMINISTRATOR, **facts,
        )  # fmt: skip
