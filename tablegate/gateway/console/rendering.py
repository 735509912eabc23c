"""Rendering of the console's pages: templates, headers and error pages."""

from __future__ import annotations

import re
from typing import Any

import flask

from tablegate.gateway.control.access import ADMINISTRATOR
from tablegate.gateway.model.errors import NotPermitted
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.server.flask_bridge import current_request

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
