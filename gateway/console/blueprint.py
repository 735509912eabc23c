"""The console's pages: HTML made here, a style sheet and a script of a few lines; nothing comes from elsewhere.

Every value of a table is shown as text (Jinja escapes it), and the content security policy lets no script run but the console's
own file. Nothing is changed without `--console-writes`, and then by forms of this origin only.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any
from urllib.parse import urlencode

import flask
import orjson

from gateway import logs
from gateway.console.charts import CHARTS, Recorder, drawing
from gateway.console.reading import CHANGES, Reading
from gateway.console.searches import KEY_OPERATORS, OPERATORS, BadSearch, Search, place_of, position_of
from gateway.console.sign_in import COOKIE, HOURS, SignIn, Visitor
from gateway.control.access import CONSOLE
from gateway.dialect import Gateway
from gateway.model.changes import Change
from gateway.model.commands import WriteGroup
from gateway.model.errors import GatewayError, NotAllowed, NotPermitted, TableMissing
from gateway.model.keys import Key
from gateway.model.rows import Row
from gateway.model.tables import Table
from gateway.model.writes import Remove, Write
from gateway.server.flask_bridge import current_request
from gateway.wiring import Display, displays, listings

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'"
)
# Counting is a scan: what a list has not counted by then, the page of the table itself does.
_COUNTING_S = 1.0
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def create(gateway: Gateway) -> flask.Blueprint:
    """The routes of the console."""
    made = flask.Blueprint(
        "console", __name__, url_prefix=CONSOLE, static_folder="static", template_folder="templates"
    )
    console = Console(gateway)
    pages: tuple[tuple[str, Callable[[Visitor], Any]], ...] = (
        ("/", console.tables),
        ("/table", console.table),
        ("/rows", console.rows),
        ("/row", console.row),
        ("/changes", console.changes),
        ("/changes.json", console.latest_changes),
        ("/grants", console.grants),
        ("/figures", console.figures),
        ("/chart.svg", console.chart),
    )
    for path, page in pages:
        made.add_url_rule(path, page.__name__, functools.partial(console.shown, page))
    made.add_url_rule("/sign-in", "sign_in", console.sign_in, methods=["GET", "POST"])
    made.add_url_rule("/sign-out", "sign_out", console.sign_out, methods=["POST"])
    if gateway.settings.console_writes:
        changes = [("/row/delete", console.delete)]
        if console.writable is not None:
            changes.append(("/row/put", console.put))
        for path, change in changes:
            made.add_url_rule(
                path, change.__name__, functools.partial(console.shown, change), methods=["POST"]
            )
    made.after_request(_with_headers)
    made.add_app_template_filter(_json, "pretty")
    return made


def _with_headers(response: flask.Response) -> flask.Response:
    response.headers.update(_HEADERS)
    return response


def _json(document: Any) -> str:
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()


class Console:
    """The pages on a gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._sign_in = SignIn(gateway)
        self._recorder = Recorder()
        self._listings = listings(gateway.settings)
        self._displays: Mapping[str, Display] = displays(gateway.settings)
        self.writable = next((each for each in self._displays.values() if each.put_of is not None), None)
        """The dialect in whose form rows can be put; None: none of the settings' dialects has one."""

    # Coming in

    def shown(self, page: Callable[[Visitor], Any]) -> Any:
        """A page for whoever may see it; else the way to sign in, or what is wrong with what was asked for."""
        try:
            visitor = self._sign_in.visitor(current_request(), flask.request.cookies.get(COOKIE, ""))
            if visitor is None:
                return flask.redirect(flask.url_for("console.sign_in"), 303)
            return page(visitor)
        except NotAllowed as error:
            return self._problem(403, error.facts.get("text", ""))
        except BadSearch as error:
            return self._problem(400, str(error))
        except NotPermitted as error:
            return self._problem(403, f"Your key may not do that: {error.permission.value} {error.path}.")
        except TableMissing as error:
            return self._problem(404, f"There is no table {error.name}.")
        except GatewayError as error:
            logs.error("the console failed", None, reason=repr(error))
            return self._problem(503, "The database does not answer.")

    def sign_in(self) -> Any:
        """The form, and what it sends."""
        problem = ""
        if flask.request.method == "POST":
            given = flask.request.form
            cookie = self._sign_in.cookie_of(given.get("access_id", "")[:256], given.get("secret", "")[:1024])
            if cookie is not None:
                response = flask.redirect(flask.url_for("console.tables"), 303)
                response.set_cookie(
                    COOKIE, cookie, max_age=HOURS * 3600, path=CONSOLE, httponly=True, samesite="Strict",
                    secure=current_request().secure,
                )  # fmt: skip
                return response
            problem = "Nobody has this id and secret."
        return self._render("sign_in.html", 403 if problem else 200, problem=problem)

    def sign_out(self) -> Any:
        """Forget who it is."""
        response = flask.redirect(flask.url_for("console.sign_in"), 303)
        response.delete_cookie(COOKIE, path=CONSOLE)
        return response

    # Tables

    def tables(self, visitor: Visitor) -> Any:
        """All tables, a list at a time."""
        reading = self._reading(visitor)
        given = flask.request.args
        found, more = reading.tables((given.get("namespace", ""), given.get("after", "")))
        now_ms = self._gateway.now_ms()
        until = monotonic() + _COUNTING_S
        lines = [
            (
                table,
                table.state_at(now_ms).value,
                reading.statistics_if_allowed(table) if monotonic() < until else None,
                _stream(table),
            )
            for table in found
        ]
        last = found[-1] if more else None
        return self._render("tables.html", visitor=visitor, lines=lines, last=last)

    def table(self, visitor: Visitor) -> Any:
        """What a table is, as each dialect names it, and how each SDK reads it."""
        reading = self._reading(visitor)
        table = self._table(reading)
        request = current_request()
        url = f"{'https' if request.secure else 'http'}://{request.header('host')}"
        snippets = [(each.form, each.snippet(table, url)) for each in self._displays.values()]
        names = [(dialect, *listed(table)) for dialect, listed in self._listings.items()]
        return self._render(
            "table.html", visitor=visitor, table=table, state=table.state_at(self._gateway.now_ms()).value,
            statistics=reading.statistics(table), names=names, snippets=snippets, stream=_stream(table),
        )  # fmt: skip

    def grants(self, visitor: Visitor) -> Any:
        """Who may do what: everybody, for whoever sees everything; else what the visitor's own key was granted."""
        kept = self._gateway.grants
        held = [] if kept is None else kept.held_by(visitor.grantee)
        return self._render("grants.html", visitor=visitor, grants=held)

    # Rows

    def rows(self, visitor: Visitor) -> Any:
        """A page of rows, by key, by index, by filter."""
        reading = self._reading(visitor)
        table = self._table(reading)
        search = Search.of_form(flask.request.args)
        problem, found = "", None
        try:
            found = reading.rows(table, search)
        except BadSearch as error:
            problem = str(error)
        index = table.index(search.index) if search.index else None
        schema = table.key_schema if index is None else index.key_schema
        shown = [(place_of(row.position), self._summary(table, row)) for row in found.rows] if found else []
        onward = ""
        if found is not None and found.after:
            onward = urlencode({**flask.request.args.to_dict(), "after": found.after})
        return self._render(
            "rows.html", 400 if problem else 200, visitor=visitor, table=table, search=search, schema=schema,
            rows=shown, found=found, onward=onward, problem=problem, key_operators=KEY_OPERATORS,
            operators=OPERATORS,
        )  # fmt: skip

    def row(self, visitor: Visitor) -> Any:
        """One row, side by side as each dialect shows it, and what its stream kept of it."""
        reading = self._reading(visitor)
        table = self._table(reading)
        position = position_of(flask.request.args.get("at", ""))
        row = reading.row(table, position)
        forms = [(each.form, each.shown_row(table, row)) for each in self._displays.values()] if row else []
        history = [self._change(table, change) for change in reading.history(table, position)]
        return self._render(
            "row.html", 200 if row or history else 404, visitor=visitor, table=table, row=row, forms=forms,
            history=history, stream=_stream(table), place=place_of(position), writes=self._gateway.settings.console_writes,
            writable=self.writable, changes=CHANGES,
        )  # fmt: skip

    def delete(self, visitor: Visitor) -> Any:
        """Delete a row."""
        reading = self._reading(visitor)
        table = self._table(reading)
        row = reading.row(table, position_of(flask.request.form.get("at", "")))
        if row is not None:
            key = table.key_schema.key(row.latest)
            reading.run(WriteGroup((Write(table, Key(key.values, row.position), Remove()),)))
        return flask.redirect(_address("console.rows", table), 303)

    def put(self, visitor: Visitor) -> Any:
        """Put a row that was written in the form of `writable`."""
        reading = self._reading(visitor)
        table = self._table(reading)
        assert self.writable is not None
        put_of = self.writable.put_of
        assert put_of is not None
        try:
            document = orjson.loads(flask.request.form.get("row", ""))
            write = put_of(table, document)
        except (ValueError, TypeError) as error:
            raise BadSearch(f"This is no item of {table.name}: {error}") from None
        reading.run(WriteGroup((write,)))
        return flask.redirect(_address("console.row", table, at=place_of(write.key.position)), 303)

    # Changes

    def changes(self, visitor: Visitor) -> Any:
        """The page that shows changes as they come."""
        reading = self._reading(visitor)
        table = self._table(reading)
        return self._render("changes.html", visitor=visitor, table=table, stream=_stream(table))

    def latest_changes(self, visitor: Visitor) -> Any:
        """Changes since a place, as JSON; `place`: where to go on."""
        reading = self._reading(visitor)
        table = self._table(reading)
        found, place = reading.latest_changes(table, flask.request.args.get("since", "")[:50_000])
        return {"changes": [self._change(table, change) for change in found], "place": place}

    # Figures

    def figures(self, visitor: Visitor) -> Any:
        """Drawings of the last minutes."""
        self._recorder.look()
        return self._render("figures.html", visitor=visitor, charts=list(CHARTS))

    def chart(self, visitor: Visitor) -> Any:
        """One drawing."""
        name = flask.request.args.get("name", "")
        if name not in CHARTS:
            raise BadSearch("there is no such drawing")
        return flask.Response(drawing(name, self._recorder.look()), mimetype="image/svg+xml")

    # What they have in common

    def _reading(self, visitor: Visitor) -> Reading:
        return Reading(self._gateway.engine, visitor)

    def _table(self, reading: Reading) -> Table:
        given = flask.request.values
        return reading.table(given.get("namespace", ""), given.get("name", ""))

    def _summary(self, table: Table, row: Row) -> tuple[list[str], str]:
        """(key values, the rest in one line) of a row."""
        keys = [str(row.latest[name].data) for name in table.key_schema.names]
        document = next(iter(self._displays.values())).shown_row(table, row)
        return keys, orjson.dumps(document).decode()[:400]

    def _change(self, table: Table, change: Change) -> dict[str, Any]:
        display = next(iter(self._displays.values()))
        images = [None if row is None else display.shown_row(table, row) for row in (change.old, change.new)]
        key = ", ".join(str(value.data) for value in change.key_values.values())
        return {
            "kind": change.kind.value, "at_ms": change.at_ms, "key": key, "actor": change.actor,
            "old": images[0], "new": images[1],
        }  # fmt: skip

    def _render(self, template: str, status: int = 200, **facts: Any) -> flask.Response:
        facts.setdefault("visitor", None)
        return flask.Response(
            flask.render_template(f"console/{template}", address=_address, **facts),
            status,
            mimetype="text/html",
        )

    def _problem(self, status: int, text: str) -> flask.Response:
        return self._render("problem.html", status, text=text)


def _address(page: str, table: Table, **more: Any) -> str:
    """The address of a page about a table."""
    return flask.url_for(page, namespace=table.namespace, name=table.name, **more)


def _stream(table: Table) -> str:
    """What a table's stream shows; "": it has none."""
    rule = table.rules.stream
    return rule.view if rule is not None and rule.enabled else ""
