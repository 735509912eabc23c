"""What precedes each page of the console: limits of forms, the origin check, sign-in, and pages for errors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import flask
from werkzeug.exceptions import RequestEntityTooLarge

from tablegate.gateway.console.pages import FORM_FIELDS
from tablegate.gateway.console.rendering import problem, refusal, render
from tablegate.gateway.console.searches import BadSearch
from tablegate.gateway.console.sign_in import COOKIE, HOURS, ConsoleUser, SignIn
from tablegate.gateway.control import access
from tablegate.gateway.control.access import CONSOLE
from tablegate.gateway.dialect import Gateway
from tablegate.gateway.model import errors
from tablegate.gateway.model.request_facts import RequestFacts, RequestKind
from tablegate.gateway.observability import logs
from tablegate.gateway.server.flask_bridge import current_request


class Entry:
    """What precedes a page: limits of forms, the origin check, the session, sign-in and sign-out."""

    def __init__(self, gateway: Gateway, fields: Mapping[str, int]) -> None:
        self._fields = fields
        """Maximum number of fields of a form, by path."""
        self._settings = gateway.settings
        self._sign_in = SignIn(gateway)

    def refuse_long_form(self) -> Any:
        """Return the refusal of a form that is too long, before it is parsed. None if it is not."""
        path = flask.request.path
        flask.request.max_content_length = access.form_limit(path)
        try:
            if flask.request.get_data().count(b"&") < self._fields.get(path, FORM_FIELDS):
                return None
        except RequestEntityTooLarge:
            pass
        current_request().is_unauthenticated = (
            True  # delays the reply, since no form of the console is so long
        )
        return problem(413, "The form is too long.")

    def shown(self, page: Callable[[ConsoleUser], Any], kind: RequestKind = RequestKind.READ) -> Any:
        """Return a page for a visitor, or redirect to the sign-in form. `kind` is for the audit log."""
        return self.answered(functools.partial(self._for_visitor, page, kind))

    def _for_visitor(self, page: Callable[[ConsoleUser], Any], kind: RequestKind) -> Any:
        given, request = flask.request.values, current_request()
        tables = [given["name"][:255]] if "namespace" in given and "name" in given else []
        request.facts = RequestFacts(tables=tables)
        visitor = self._sign_in.visitor(
            request, flask.request.cookies.get(COOKIE, ""), given.get("namespace", "")
        )
        if visitor is None:
            # A page without a session leads to the sign-in form. A form that would change something is refused.
            is_form = flask.request.method == "POST"
            request.is_unauthenticated = is_form
            request.facts = request.facts._replace(is_refusal=is_form)
            return flask.redirect(flask.url_for("console.sign_in"), 303)
        request.facts = RequestFacts(kind=kind, caller=visitor.name, tables=tables)
        return page(visitor)

    def answered(self, page: Callable[[], Any]) -> Any:
        """Return a page, or a page that explains the error. Requests from pages of other origins are refused."""
        current_request().facts = RequestFacts()
        try:
            access.check_origin(current_request(), self._settings)
            return page()
        except errors.NotAllowed as error:
            return problem(403, error.facts.get("text", ""))
        except BadSearch as error:
            return problem(400, str(error))
        except errors.NotPermitted as error:
            return problem(403, refusal(error))
        except errors.QuotaExceeded as error:
            return problem(429, f"Your quota is used up: {error.limit:,.0f} {error.kind.replace('_', ' ')}.")
        except errors.TableMissing as error:
            return problem(404, f"There is no table {error.name}.")
        except errors.GatewayError as error:
            logs.error("cannot show a page of the console", None, reason=repr(error))
            return problem(503, "The database does not answer.")

    def sign_in(self) -> Any:
        """Show the sign-in form, or sign in with its values."""
        if flask.request.method != "POST":
            return render("sign_in.html", problem="")
        given, request = flask.request.form, current_request()
        access_id, secret = given.get("access_id", "")[:256], given.get("secret", "")[:1024]
        request.facts = RequestFacts(kind=RequestKind.SIGN_IN, caller=access_id)
        try:
            cookie = self._sign_in.cookie_of(access_id, secret, request.client)
        except errors.TooManyAttempts as error:
            request.is_unauthenticated = True
            request.facts = request.facts._replace(is_refusal=True)
            refusal = render("sign_in.html", 429, problem=error.text)
            refusal.headers["Retry-After"] = str(error.retry_after_s)
            return refusal
        if cookie is None:
            request.is_unauthenticated = True
            return render(
                "sign_in.html", 403, problem="The id or the secret is wrong. Check both and try again."
            )
        response = flask.redirect(flask.url_for("console.tables"), 303)
        response.set_cookie(
            COOKIE, cookie, max_age=HOURS * 3600, path=CONSOLE, httponly=True, samesite="Strict",
            secure=request.secure,
        )  # fmt: skip
        return response

    def sign_out(self) -> Any:
        """Delete the session cookie."""
        response = flask.redirect(flask.url_for("console.sign_in"), 303)
        response.delete_cookie(COOKIE, path=CONSOLE)
        return response
