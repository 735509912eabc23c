"""The routes of the console.

Every value of a table is shown as text (Jinja escapes it). The content security policy permits only the console's own script.
Without `--console-writes` there is no route that changes something. Forms are accepted from this origin only.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import flask

from tablegate.gateway.capabilities import CONSOLE_PAGES
from tablegate.gateway.console.access_pages import AccessPages
from tablegate.gateway.console.administration_pages import AdministrationPages
from tablegate.gateway.console.audit_pages import AuditPages
from tablegate.gateway.console.bulk_pages import BulkPages
from tablegate.gateway.console.edit_pages import EditPages
from tablegate.gateway.console.entry import Entry
from tablegate.gateway.console.health_pages import HealthPages
from tablegate.gateway.console.job_pages import JobPages
from tablegate.gateway.console.metric_pages import MetricPages
from tablegate.gateway.console.pages import Pages
from tablegate.gateway.console.rendering import parts, with_headers
from tablegate.gateway.console.row_pages import RowPages
from tablegate.gateway.console.statement_pages import StatementPages
from tablegate.gateway.console.stream_pages import StreamPages
from tablegate.gateway.console.table_pages import TablePages
from tablegate.gateway.console.transfer_pages import TransferPages
from tablegate.gateway.control.access import CONSOLE
from tablegate.gateway.dialect import Gateway
from tablegate.gateway.model.request_facts import RequestKind

if TYPE_CHECKING:
    from tablegate.gateway.control.administration import Administration

PAGES: tuple[type[Pages], ...] = (
    TablePages, RowPages, StatementPages, EditPages, BulkPages, StreamPages, MetricPages, AdministrationPages,
    TransferPages,
)  # fmt: skip
"""The pages that need the gateway only, by subject."""


def create(gateway: Gateway, administration: Callable[[], Administration] | None = None) -> flask.Blueprint:
    """Return the routes of the console. `administration`: returns the administration of its database, None without one."""
    made = flask.Blueprint(
        "console", __name__, url_prefix=CONSOLE, static_folder="static", template_folder="templates"
    )
    of_capabilities = [each for name in CONSOLE_PAGES for each in importlib.import_module(name).PAGES]
    pages: list[Pages] = [
        *(each(gateway) for each in (*PAGES, *of_capabilities)),
        JobPages(gateway, administration),
        AccessPages(gateway, administration),
        AuditPages(gateway, administration),
        HealthPages(gateway, administration),
    ]
    reads = [route for each in pages for route in each.reads()]
    writes = [route for each in pages for route in each.writes()] if gateway.settings.console_writes else []
    entry = Entry(gateway, {CONSOLE + route.path: route.fields for route in writes})
    routes: list[tuple[str, str, str, Callable[[], Any]]] = [
        (path, method, answer.__name__, functools.partial(entry.answered, answer))
        for path, method, answer in (
            ("/sign-in", "GET", entry.sign_in_form),
            ("/sign-in", "POST", entry.sign_in),
            ("/sign-in/issuer", "GET", entry.begin_at_issuer),
            ("/sign-in/issuer/return", "GET", entry.end_at_issuer),
            ("/sign-out", "POST", entry.sign_out),
        )
    ]
    for path, page, _ in reads:
        routes.append((path, "GET", page.__name__, functools.partial(entry.shown, page)))
    for path, page, _ in writes:
        change = functools.partial(entry.shown, page, RequestKind.WRITE)
        routes.append((path, "POST", page.__name__, change))
    methods: dict[str, set[str]] = {}
    for path, method, name, view in routes:
        made.add_url_rule(path, name, view, methods=[method])
        methods.setdefault(path, set()).add(method)
    unknown = functools.partial(entry.unknown, methods)
    made.add_url_rule("/<path:rest>", "unknown", unknown, methods=["GET", "POST", "PUT", "PATCH", "DELETE"])
    made.before_request(entry.refuse_long_form)
    made.after_request(with_headers)
    made.add_app_template_filter(parts, "parts")
    tabs = [each.tab for each in pages if each.tab is not None]
    made.add_app_template_global(lambda: tabs, "tabs_of_capabilities")
    return made
