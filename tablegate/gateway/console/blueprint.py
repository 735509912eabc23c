"""The routes of the console, and the steps before each page: limits of forms, the origin check, sign-in, and pages for errors.

Every value of a table is shown as text (Jinja escapes it). The content security policy permits only the console's own script.
Without `--console-writes` there is no route that changes something. Forms are accepted from this origin only.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

import flask
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge

from tablegate.gateway.capabilities import CONSOLE_PAGES
from tablegate.gateway.console.access_pages import AccessPages
from tablegate.gateway.console.bulk_pages import BulkPages
from tablegate.gateway.console.edit_pages import EditPages
from tablegate.gateway.console.metric_pages import MetricPages
from tablegate.gateway.console.pages import (
    FORM_FIELDS,
    Pages,
    explained,
    parts,
    problem,
    render,
    tables_beside,
    with_headers,
)
from tablegate.gateway.console.row_pages import RowPages, StatementPages
from tablegate.gateway.console.searches import BadSearch
from tablegate.gateway.console.server_pages import AuditPages, HealthPages, JobPages
from tablegate.gateway.console.sign_in import (
    COOKIE,
    HOURS,
    STATE_COOKIE,
    STATE_SECONDS,
    BadSignIn,
    ConsoleUser,
    OidcSignIn,
    SignIn,
)
from tablegate.gateway.console.table_pages import AdministrationPages, StreamPages, TablePages
from tablegate.gateway.console.transfer_pages import TransferPages
from tablegate.gateway.control import access
from tablegate.gateway.control.access import CONSOLE
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.http.flask_bridge import current_request, request_without_body
from tablegate.gateway.model import errors
from tablegate.gateway.model.request_info import RequestInfo, RequestKind
from tablegate.gateway.observability import audit, logs

if TYPE_CHECKING:
    from tablegate.gateway.control.administration import Administration


class Entry:
    """The steps before a page: limits of forms, the origin check, the session, sign-in and sign-out."""

    def __init__(self, gateway: Gateway, fields: Mapping[str, int]) -> None:
        self._fields = fields
        """Maximum number of fields of a form, by path."""
        self._settings = gateway.settings
        self._sign_in = SignIn(gateway)
        self._oidc = OidcSignIn(gateway)

    def refuse_long_form(self) -> Any:
        """Return the refusal of a form that is too long, before it is parsed. None if it is not."""
        path = flask.request.path
        most, fields = access.form_limit(path), self._fields.get(path, FORM_FIELDS)
        flask.request.max_content_length = flask.request.max_form_memory_size = most
        flask.request.max_form_parts = fields
        try:
            request = current_request()
            body = flask.request.get_data()
            if flask.request.mimetype == "multipart/form-data" or body.count(b"&") < fields:
                return None
        except RequestEntityTooLarge:
            request = request_without_body()
        request.is_unauthenticated = True  # delays the reply, since no form of the console is so long
        return problem(413, "The form is too long.")

    def shown(self, page: Callable[[ConsoleUser], Any], kind: RequestKind = RequestKind.READ) -> Any:
        """Return a page for a visitor, or redirect to the sign-in form. `kind` is for the audit log."""
        return self.answered(functools.partial(self._for_visitor, page, kind))

    def _for_visitor(self, page: Callable[[ConsoleUser], Any], kind: RequestKind) -> Any:
        given, request = flask.request.values, current_request()
        tables = [given["name"][:255]] if "namespace" in given and "name" in given else []
        request.info = RequestInfo(tables=tables)
        visitor = self._sign_in.visitor(
            request, flask.request.cookies.get(COOKIE, ""), given.get("namespace", "")
        )
        if visitor is None:
            # A page without a session leads to the sign-in form. A form that would change something is refused.
            is_form = flask.request.method == "POST"
            request.is_unauthenticated = is_form
            request.info = request.info._replace(is_refusal=is_form)
            return flask.redirect(flask.url_for("console.sign_in_form"), 303)
        request.info = RequestInfo(kind=kind, caller=visitor.name, tables=tables)
        flask.g.visitor = visitor
        with audit.request_of(visitor.name, request.client):
            return page(visitor)

    def answered(self, page: Callable[[], Any]) -> Any:
        """Return a page, or a page that explains the error. Requests from pages of other origins are refused."""
        current_request().info = RequestInfo()
        try:
            access.check_origin(current_request(), self._settings)
            return page()
        except (errors.GatewayError, BadSearch) as error:
            status, text = explained(error)
            if status >= 500:
                logs.error("cannot show a page of the console", None, reason=repr(error))
            return problem(status, text)
        except HTTPException as error:
            return problem(error.code or 500, error.description or "")
        except Exception as error:
            logs.error("a page of the console failed", error)
            return problem(500, "The server has logged the reason.")

    def unknown(self, methods: Mapping[str, Collection[str]], rest: str) -> Any:
        """Explain that there is no such page, or no such method of a page. `methods`: those of each path below the console."""
        known = methods.get(f"/{rest}")
        if known is None:
            return self.answered(
                lambda: self._problem(404, "There is no such page. It may need --console-writes.")
            )
        response = self.answered(lambda: self._problem(405, "This page does not accept this method."))
        response.headers["Allow"] = ", ".join(sorted(known))
        return response

    def _problem(self, status: int, text: str) -> Any:
        """Return a page that explains an error, with the navigation if the visitor has signed in."""
        request, cookie = current_request(), flask.request.cookies.get(COOKIE, "")
        return problem(status, text, visitor=self._sign_in.visitor(request, cookie, ""))

    def sign_in_form(self) -> Any:
        """Show the sign-in form."""
        return self._form("")

    def _form(self, problem: str, status: int = 200) -> Any:
        return render("sign_in.html", status, problem=problem, has_issuer=self._oidc.is_on)

    def begin_at_issuer(self) -> Any:
        """Lead the browser to the issuer."""
        if not self._oidc.is_on:
            return self._form("This server has no issuer for the console.", 404)
        try:
            redirect_uri = self._redirect_uri()
        except BadSignIn as error:
            return self._form(str(error), 403)
        try:
            attempt = self._oidc.begin(redirect_uri)
        except BadSignIn as error:
            return self._form(str(error), 502)
        response = flask.redirect(attempt.address, 303)
        # Lax, because the browser comes back from another site.
        response.set_cookie(
            STATE_COOKIE, attempt.cookie, max_age=STATE_SECONDS, path=CONSOLE, httponly=True, samesite="Lax",
            secure=current_request().secure,
        )  # fmt: skip
        return response

    def _redirect_uri(self) -> str:
        return self._oidc.redirect_uri(current_request(), flask.url_for("console.end_at_issuer"))

    def end_at_issuer(self) -> Any:
        """Sign in with the code that the browser brings from the issuer."""
        given, request = flask.request.args, current_request()
        request.info = RequestInfo(kind=RequestKind.SIGN_IN)
        try:
            if not self._oidc.is_on:
                raise BadSignIn("This server has no issuer for the console.")
            identity = self._oidc.identity(
                flask.request.cookies.get(STATE_COOKIE, ""), given.get("state", ""), given.get("code", ""),
                self._redirect_uri(),
            )  # fmt: skip
            request.info = request.info._replace(caller=identity.grantee)
            cookie = self._sign_in.cookie_of_identity(identity)
            if cookie is None:
                raise BadSignIn("The identity has too many groups for the console.")
        except BadSignIn as error:
            request.is_unauthenticated = True
            request.info = request.info._replace(is_refusal=True)
            response = self._form(str(error), 403)
            response.delete_cookie(STATE_COOKIE, path=CONSOLE)
            return response
        # A page, because a browser that comes from another site does not send the new cookie with a redirect.
        response = render("signed_in.html")
        self._set_session(response, cookie)
        response.delete_cookie(STATE_COOKIE, path=CONSOLE)
        return response

    def _set_session(self, response: Any, cookie: str) -> None:
        response.set_cookie(
            COOKIE, cookie, max_age=HOURS * 3600, path=CONSOLE, httponly=True, samesite="Strict",
            secure=current_request().secure,
        )  # fmt: skip

    def sign_in(self) -> Any:
        """Sign in with the values of the form."""
        given, request = flask.request.form, current_request()
        access_id, secret = given.get("access_id", "")[:256], given.get("secret", "")[:1024]
        request.info = RequestInfo(kind=RequestKind.SIGN_IN, caller=access_id)
        try:
            cookie = self._sign_in.cookie_of(access_id, secret, request.client)
        except errors.TooManyAttempts as error:
            request.is_unauthenticated = True
            request.info = request.info._replace(is_refusal=True)
            refusal = self._form(error.text, 429)
            refusal.headers["Retry-After"] = str(error.retry_after_s)
            return refusal
        if cookie is None:
            request.is_unauthenticated = True
            return self._form("The access id or the secret is wrong. Check both and try again.", 403)
        response = flask.redirect(flask.url_for("console.tables"), 303)
        self._set_session(response, cookie)
        return response

    def sign_out(self) -> Any:
        """Delete the session cookie."""
        response = flask.redirect(flask.url_for("console.sign_in_form"), 303)
        response.delete_cookie(COOKIE, path=CONSOLE)
        return response


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
    modules = [importlib.import_module(name) for name in CONSOLE_PAGES]
    for module in modules:  # A blueprint without routes makes their templates known to Flask.
        name = module.__name__.rpartition(".")[2]
        made.register_blueprint(flask.Blueprint(name, module.__name__, template_folder="templates"))
    pages: list[Pages] = [
        *(each(gateway) for each in (*PAGES, *(each for module in modules for each in module.PAGES))),
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
    made.add_app_template_global(functools.partial(tables_beside, gateway), "tables_beside")
    return made
