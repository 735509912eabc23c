"""Rendering of the console's pages: templates, headers, and the status and the text of each error."""

from __future__ import annotations

import re
from typing import Any

import flask

from tablegate.gateway.console.searches import BadSearch
from tablegate.gateway.control.access import ADMINISTRATOR
from tablegate.gateway.http.flask_bridge import current_request
from tablegate.gateway.model import errors
from tablegate.gateway.model.errors import NotPermitted
from tablegate.gateway.model.tables.tables import Table

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


def server_url() -> str:
    """Return the URL of this server as the visitor reaches it."""
    request = current_request()
    return f"{'https' if request.secure else 'http'}://{request.header('host')}"


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
