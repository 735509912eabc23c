"""The base of the console's pages: templates and headers, texts of errors, and the tables of a visitor.

A page is rendered from a template by `render`. Each error has a status and a text.
`Pages` has the objects that all pages use: the gateway, the forms of rows, and facts for the audit log.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import flask

from tablegate.gateway.console.reading import TableReader
from tablegate.gateway.console.searches import BadSearch
from tablegate.gateway.console.sign_in import ConsoleUser
from tablegate.gateway.console.value_texts import text_of
from tablegate.gateway.control.access import ADMINISTRATOR
from tablegate.gateway.dialects.adapter import RowDisplay, console_parts
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.http.flask_bridge import current_request
from tablegate.gateway.model import errors
from tablegate.gateway.model.authorization.permissions import Permission, Purpose
from tablegate.gateway.model.commands.row_search import Endpoint
from tablegate.gateway.model.errors import NotPermitted
from tablegate.gateway.model.request_info import RequestKind
from tablegate.gateway.model.tables.changes import Change
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import Key

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    # Not no-referrer: that makes browsers send `Origin: null` with forms.
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
NAVIGATION = (
    ("console.tables", "Tables"),
    ("console.jobs", "Jobs"),
    ("console.grants", "Grants"),
    ("console.metrics", "Metrics"),
)
"""The links in the head of each page: (route, text)."""
_OF_ADMINISTRATOR = (
    ("console.credentials", "Credentials"),
    ("console.quotas", "Quotas"),
    ("console.audit", "Audit"),
    ("console.health", "Health"),
)
"""The further links of the administrator."""
_TITLES = {
    404: "Not found",
    413: "This is too long",
    429: "Too many requests",
    500: "Something went wrong",
    503: "Not available",
}


_PARTS = re.compile(r"(?<=[._\-/:|])(?=[^._\-/:|])|(?<=[a-z0-9])(?=[A-Z])")


def with_headers(response: flask.Response) -> flask.Response:
    """Add the security headers of the console."""
    response.headers.update(_HEADERS)
    return response


def parts(name: str) -> list[str]:
    """Split a name where a line can end: after punctuation and before capital letters."""
    return _PARTS.split(name)


def render(template: str, status: int = 200, **facts: Any) -> flask.Response:
    """Return a page made from a template."""
    visitor = facts.setdefault("visitor", flask.g.get("visitor"))
    facts.setdefault("table", None)
    is_administrator = visitor is not None and visitor.name == ADMINISTRATOR
    facts["navigation"] = (*NAVIGATION, *_OF_ADMINISTRATOR) if is_administrator else NAVIGATION
    facts["has_statements"] = "console.statement" in flask.current_app.view_functions
    return flask.Response(
        flask.render_template(f"console/{template}", address=address, **facts),
        status,
        mimetype="text/html",
    )


def problem(status: int, text: str, **facts: Any) -> flask.Response:
    """Return a page that explains an error."""
    title = _TITLES.get(status, "This is not possible")
    return render("problem.html", status, title=title, text=text, **facts)


def refusal(error: NotPermitted) -> str:
    """Return the text for a missing permission."""
    return f"Your key lacks the permission: {error.permission.value} {error.path}."


def tables_beside(gateway: Gateway) -> list[Table]:
    """Return the first tables that the visitor can describe, for the list beside the pages of a table."""
    try:
        return TableReader(gateway.engine, flask.g.visitor).tables()[0]
    except errors.GatewayError:
        return []  # the page itself is shown without the list


def address(page: str, table: Table, **more: Any) -> str:
    """Return the URL of a page about a table."""
    return flask.url_for(page, namespace=table.namespace, name=table.name, **more)


AWAY = "The database does not answer. Try again."


def explained(error: errors.GatewayError | BadSearch) -> tuple[int, str]:
    """Return (HTTP status, what failed and what to do)."""
    match error:
        case BadSearch():
            return 400, str(error)
        case errors.NotAllowed():
            return 403, error.facts.get("text", "")
        case errors.NotPermitted():
            return 403, refusal(error)
        case errors.QuotaExceeded():
            return 429, f"Your quota is used up: {error.limit:,.0f} {error.kind.replace('_', ' ')}."
        case errors.Throttled():
            return 429, f"The throughput of {error.resource} is used up. Try again."
        case errors.GroupRefused():
            return next((explained(each) for each in error.reasons if each is not None), (409, _CONFLICT))
        case errors.InvalidInput() | errors.LimitExceeded():
            return 400, _explained_input(error)
    return _explained_state(error)


_CONFLICT = "The row was changed in the meantime. Reload the page and try again."


def _explained_state(error: errors.GatewayError) -> tuple[int, str]:
    """Return the status and text of an error that is due to the state of the tables or of the database."""
    match error:
        case errors.TableMissing():
            return 404, f"There is no table {error.name}."
        case errors.IndexMissing() | errors.StreamMissing() | errors.BackupMissing():
            return 404, "This index, stream or backup does not exist. It may have been deleted."
        case errors.TableExists():
            return 409, "A table of this name exists."
        case errors.TableBusy():
            return 409, f"The table {error.name} is {error.state}. Try again when it is active."
        case errors.BackupBusy():
            return 409, "The backup is in use. Try again later."
        case errors.ConditionFailed():
            return 409, _CONFLICT
        case errors.PartitionLocked():
            return 409, "A transaction has locked this row. Try again later."
        case errors.PositionExpired():
            return 410, "These changes have been deleted from the stream. Reload the page."
        case errors.DatabaseFailed():
            return 500, "The database refused this. The log of the server has the reason."
    return 503, AWAY


def _explained_input(error: errors.InvalidInput | errors.LimitExceeded) -> str:
    match error:
        case errors.LimitExceeded():
            return f"The {error.what} is too large: {error.actual:,}. The limit is {error.limit:,}."
        case errors.KeyTooLong():
            return "A value of the key is too long."
        case errors.BadKey():
            return "A column of the key is missing or has the wrong type."
        case errors.NumberOutOfRange():
            return "A number is too large, too small or has too many digits."
    return f"The table does not accept this value: {error.rule.replace('-', ' ')}."


def note_definition(operation: str, tables: Sequence[str]) -> None:
    """Note that the request changes a definition."""
    request = current_request()
    if request.info is not None:
        named = [name[:255] for name in tables]
        request.info = request.info._replace(operation=operation, kind=RequestKind.DEFINITION, tables=named)


def note_table(name: str) -> None:
    """Note a further table of the request, such as that of a statement."""
    request = current_request()
    if request.info is not None:
        request.info = request.info._replace(tables=list(dict.fromkeys([*request.info.tables, name])))


def note_keys(table: Table, keys: Sequence[Key]) -> None:
    """Note the keys of rows that the request writes."""
    request = current_request()
    if request.info is not None:
        names = table.key_schema.names
        noted = [
            (table.name, {name: text_of(value) for name, value in zip(names, key.values, strict=True)})
            for key in keys
        ]
        request.info = request.info._replace(keys=[*request.info.keys, *noted])


FORM_FIELDS = 16
"""Maximum number of fields of a form, unless its route says otherwise."""


class Route(NamedTuple):
    """A path below the console and the function that returns its page. The function's name is the name of the route.

    `fields`: maximum number of fields of the form.
    """

    path: str
    page: Callable[[ConsoleUser], Any]
    fields: int = FORM_FIELDS


class Tab(NamedTuple):
    """The link to a page in the head of the pages about one table. `page`: the name of the page's route."""

    page: str
    text: str
    is_shown: Callable[[Table], bool]


class RowRights(NamedTuple):
    """The operations that a visitor can do with one row."""

    get: bool
    put: bool
    delete: bool


class Pages:
    """The pages about one subject, each a function of its visitor and the current request.

    `tab`: the link to the pages of a capability.
    """

    tab: Tab | None = None

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._displays = {name: part.display for name, part in console_parts(gateway.settings).items()}

    def reads(self) -> Sequence[Route]:
        """Return the pages that show something."""
        return ()

    def writes(self) -> Sequence[Route]:
        """Return the forms that change something. They exist with `--console-writes` only."""
        return ()

    def _display(self, table: Table) -> RowDisplay:
        """Return the display of the dialect that created a table, or the first one of the server."""
        return self._ordered(table)[0]

    def _ordered(self, table: Table) -> list[RowDisplay]:
        """Return all displays. Those of the dialect that created a table come first."""
        return sorted(self._displays.values(), key=lambda each: not each.is_own(table))

    def _row_rights(self, reading: TableReader, table: Table) -> RowRights:
        """Return what the visitor can do with rows. There are no changes without `--console-writes`."""
        writes = self._gateway.settings.console_writes
        return RowRights(
            self._may_see(reading, table, Permission.READ),
            writes and self._may_see(reading, table, Permission.PUT),
            writes and self._may_see(reading, table, Permission.DELETE),
        )

    def _endpoint(self) -> Endpoint:
        """Return this server as the visitor reaches it."""
        request = current_request()
        url = f"{'https' if request.secure else 'http'}://{request.header('host')}"
        return Endpoint(url, self._gateway.settings.auth == "dev")

    def _reading(self, visitor: ConsoleUser) -> TableReader:
        return TableReader(self._gateway.engine, visitor)

    def _table(self, reading: TableReader, purpose: Purpose) -> Table:
        given = flask.request.values
        return reading.table(given.get("namespace", ""), given.get("name", ""), purpose)

    def _may_see(self, reading: TableReader, table: Table, permission: Permission) -> bool:
        return reading.may(permission, table.namespace, table.name)

    def _change(self, table: Table, change: Change) -> dict[str, Any]:
        images = [
            None if row is None else self._display(table).shown_row(table, row)
            for row in (change.old, change.new)
        ]
        key = ", ".join(map(text_of, change.key_values.values()))
        return {
            "kind": change.kind.value, "at_ms": change.at_ms, "key": key, "actor": change.actor,
            "old": images[0], "new": images[1],
        }  # fmt: skip


def number_of(text: str) -> int:
    """Return the number in a field of a form or a link, 0 for another text."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else 0


def stream_of(table: Table) -> str:
    """Return the view of a table's stream. "" if it has none."""
    rule = table.rules.stream
    return rule.view if rule is not None and rule.enabled else ""
