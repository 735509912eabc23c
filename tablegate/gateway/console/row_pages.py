"""Pages that read rows: search results, one row with its history, and the results of statements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

import flask
from werkzeug.datastructures import MultiDict

from tablegate.gateway.console import searches
from tablegate.gateway.console.pages import (
    Pages,
    Route,
    address,
    note_table,
    number_of,
    refusal,
    render,
    stream_of,
)
from tablegate.gateway.console.reading import (
    LOOKING_UP,
    READING_A_ROW,
    Cursor,
    RowHistory,
    RowPage,
    TableReader,
    read_page,
)
from tablegate.gateway.console.row_tables import (
    PLAIN,
    attributes_of,
    condition_text,
    condition_texts,
    differences,
    document,
    row_table,
)
from tablegate.gateway.console.sign_in import ConsoleUser
from tablegate.gateway.console.value_texts import text_of
from tablegate.gateway.dialects.adapter import RowDisplay
from tablegate.gateway.dialects.coroutines import drive
from tablegate.gateway.model.authorization.permissions import Permission
from tablegate.gateway.model.commands.row_search import (
    KEY_OPERATORS,
    NotExpressible,
    Operator,
    RowSearch,
    StatementPage,
)
from tablegate.gateway.model.errors import GatewayError, NotPermitted, TableMissing
from tablegate.gateway.model.tables.changes import Change
from tablegate.gateway.model.tables.indexes import Index
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.security.gate import run

if TYPE_CHECKING:
    from tablegate.gateway.dialects.adapter import RowDisplay, RunStatement


SIZES = (25, 50, 100, 200)
_SIZE, _SIZE_OF_PHONE = 50, 25
_CHOSEN = 100


class PageFields(NamedTuple):
    """The fields of a request that are about the page of results, not about the search.

    - `size`: number of rows. `is_usual_size`: it was not chosen.
    - `columns`: the chosen columns, or None for the most common ones.
    - `form`: the form of rows as JSON, "" for a table.
    - `found`, `scanned`: rows of earlier requests of the same page, which ended early.
    """

    size: int
    is_usual_size: bool
    cursor: Cursor
    columns: tuple[str, ...]
    form: str
    found: int
    scanned: int

    @classmethod
    def of_form(cls, given: MultiDict[str, str]) -> PageFields:
        """Return the fields of a request. Raises BadSearch for a position that is not of `place_of`."""
        size = number_of(given.get("size", ""))
        back = given.get("before", "")
        place = back or given.get("after", "")
        cursor = Cursor(searches.position_of(place), bool(back)) if place else Cursor()
        columns = tuple(name[:1024] for name in given.getlist("columns")[:_CHOSEN] if name)
        usual = usual_size()
        size = size if size in SIZES else usual
        found = min(number_of(given.get("found", "")), size - 1)
        return cls(
            size,
            size == usual,
            cursor,
            columns,
            given.get("as", ""),
            found,
            number_of(given.get("scanned", "")),
        )

    def fields(self) -> dict[str, Any]:
        """Return the fields that all links keep."""
        return {**self.hidden(), "columns": list(self.columns)}

    def hidden(self) -> dict[str, Any]:
        """Return the fields that all forms keep, without the columns."""
        given = {"size": "" if self.is_usual_size else self.size, "as": self.form}
        return {name: value for name, value in given.items() if value}


def usual_size() -> int:
    """Return the number of rows on a page. Browsers of phones have the word Mobi in their User-Agent (MDN)."""
    return _SIZE_OF_PHONE if "Mobi" in flask.request.user_agent.string else _SIZE


class RowPages(Pages):
    """The rows of a table, and the page of a row."""

    def reads(self) -> Sequence[Route]:
        return (
            Route("/rows", self.rows),
            Route("/row", self.row),
            Route("/difference", self.difference),
        )

    def rows(self, visitor: ConsoleUser) -> Any:
        """Show a page of rows by key, index and filter, or only the form if the visitor lacks the permission."""
        reading = self._reading(visitor)
        table = self._table(reading, LOOKING_UP)
        display = self._display(table)
        fields = searches.Search.of_form(flask.request.args)
        status, reason, hint, field = 200, "", "", ""
        search, page, shown = RowSearch(table), None, PageFields.of_form(MultiDict())
        try:
            search = fields.on(table, display)
            shown = PageFields.of_form(flask.request.args)
            if shown.form not in ("", PLAIN, *self._displays):
                raise searches.BadSearch("There is no such form of rows.")
            page = read_page(reading, search, display.view, shown.cursor, shown.size - shown.found)
        except searches.BadSearch as error:
            status, reason, field = 400, str(error), error.field
            if table.index(fields.index) is not None:
                search = search._replace(search_index=table.index(fields.index))
        except NotPermitted as error:
            hint = f"Rows can be looked up by a value of {search.schema.names[0]}, or by the key of an index."
            if error.permission is not Permission.SCAN or not fields.is_empty:
                status, reason = 403, refusal(error)
        counts = page is not None and fields.is_empty and self._may_see(reading, table, Permission.DESCRIBE)
        return render(
            "rows.html", status, visitor=visitor, table=table, search=search, fields=fields, shown=shown, page=page,
            problem=reason, wrong_field=field, hint=hint, display=display, displays=self._displays,
            indexes=[each for each in table.indexes if self._may_read(reading, table, each)],
            key_operators=[each.value for each in KEY_OPERATORS], operators=[each.value for each in Operator],
            may=self._row_rights(reading, table), kept_fields=shown.hidden(),
            total=reading.statistics(table).rows if counts else None,
            codes=[] if reason else self._codes(search), described=_described(search, display),
            conditions=[] if reason else _removable(search, fields, shown, display),
            results=None if page is None else self._results(page, search, fields, shown),
        )  # fmt: skip

    def _results(
        self, page: RowPage, search: RowSearch, fields: searches.Search, shown: PageFields
    ) -> dict[str, Any]:
        """Return what the template shows of a page of rows: lines or documents, and links to other pages."""
        table = search.table
        kept: dict[str, Any] = {**fields.fields(), **shown.fields()}
        made = row_table(table, self._display(table), [row.latest for row in page.rows], shown.columns)
        documents = []
        if shown.form:
            documents = [
                (searches.place_of(row.position), document(self._displays, shown.form, table, row))
                for row in page.rows
            ]

        def link(**more: Any) -> str:
            return flask.url_for(
                "console.rows", namespace=table.namespace, name=table.name, **{**kept, **more}
            )

        def towards(name: str, position: Position | None) -> str:
            return "" if position is None else link(**{name: searches.place_of(position)})

        onward = ""
        if not page.is_whole:
            name = "before" if shown.cursor.is_backwards else "after"
            end = page.before if shown.cursor.is_backwards else page.after
            assert end is not None
            onward = link(
                **{name: searches.place_of(end)}, found=shown.found + len(page.rows),
                scanned=shown.scanned + page.scanned,
                columns=made.columns[len(table.key_schema.names) :] if page.rows else list(shown.columns),
            )  # fmt: skip
        return {
            "table": made, "documents": documents, "onward": onward,
            "before": towards("before", page.before), "after": towards("after", page.after),
            "found": shown.found + len(page.rows), "scanned": shown.scanned + page.scanned,
            "forms": [
                (name, text, link(**{"as": name or None}))
                for name, text in [("", "Table"), *self._forms(table)]
            ],
            "sizes": [(size, link(size=size)) for size in SIZES],
        }  # fmt: skip

    def _codes(self, search: RowSearch) -> list[tuple[str, str, str]]:
        """Return (tool, code, reason) of a search for each tool. Either the code or the reason is empty."""
        found, endpoint = [], self._endpoint()
        for display in self._ordered(search.table):
            try:
                if display.statement_of is not None:
                    found.append(("PartiQL", display.statement_of(search), ""))
            except NotExpressible as error:
                found.append(("PartiQL", "", str(error)))
            try:
                found += [(name, code, "") for name, code in display.request_code(search, endpoint).items()]
            except NotExpressible as error:
                found.append((display.form, "", str(error)))
        return found

    def _forms(self, table: Table) -> list[tuple[str, str]]:
        """Return (name, text) of the forms of rows as JSON. The one of the table's own dialect comes first."""
        own = self._display(table)
        forms = [(name, each.form) for name, each in self._displays.items()]
        return [*sorted(forms, key=lambda each: self._displays[each[0]] is not own), (PLAIN, "Plain JSON")]

    def row(self, visitor: ConsoleUser) -> Any:
        """Show a row in the form of each dialect, and its changes in the stream."""
        reading = self._reading(visitor)
        table = self._table(reading, READING_A_ROW)
        display = self._display(table)
        position = searches.position_of(flask.request.args.get("at", ""))
        row = reading.row(table, position)
        forms = []
        if row is not None:
            forms = [(text, document(self._displays, name, table, row)) for name, text in self._forms(table)]
        try:
            found, shows_history = reading.history(table, position), True
        except NotPermitted:
            found, shows_history = RowHistory([], 0, False), False
        return render(
            "row.html", 200 if row or found.changes else 404, visitor=visitor, table=table, row=row, forms=forms,
            attributes=attributes_of(table, display, row.latest) if row else [],
            key="" if row is None else _key_text(table, row),
            history=_versions(display, found.changes, row), stream=stream_of(table),
            place=searches.place_of(position), may=self._row_rights(reading, table), searched=found.searched,
            shows_history=shows_history, has_older=found.has_older,
        )  # fmt: skip

    def difference(self, visitor: ConsoleUser) -> Any:
        """Show the attributes that differ between two rows of a table."""
        reading = self._reading(visitor)
        table = self._table(reading, READING_A_ROW)
        places = flask.request.args.getlist("at")
        if len(places) != 2:
            raise searches.BadSearch("Choose two rows to compare them.")
        rows = [reading.row(table, searches.position_of(place)) for place in places]
        keys = ["" if row is None else _key_text(table, row) for row in rows]
        return render(
            "difference.html", 200 if all(rows) else 404, visitor=visitor, table=table, keys=keys, places=places,
            differences=differences(self._display(table), *rows),
        )  # fmt: skip

    def _may_read(self, reading: TableReader, table: Table, index: Index) -> bool:
        path = f"{table.name}/index/{index.name}"
        return any(reading.may(each, table.namespace, path) for each in (Permission.QUERY, Permission.SCAN))


def _described(search: RowSearch, display: RowDisplay) -> list[str]:
    index = [] if search.search_index is None else [f"index {search.search_index.name}"]
    return [*index, *condition_texts(search, display)]


def _removable(
    search: RowSearch, fields: searches.Search, shown: PageFields, display: RowDisplay
) -> list[tuple[str, str]]:
    """Return (text, URL of the search without it) of each filter, and of the descending order."""

    def link(found: searches.Search) -> str:
        return address("console.rows", search.table, **found.fields(), **shown.fields())

    filters = fields.filters
    texts = [condition_text(each, display) for each in search.filters]
    without = [replace(fields, filters=filters[:at] + filters[at + 1 :]) for at in range(len(filters))]
    found = [(text, link(each)) for text, each in zip(texts, without, strict=True)]
    return [*found, ("descending", link(replace(fields, order="")))] if search.reverse else found


def _key_text(table: Table, row: Row) -> str:
    return ", ".join(text_of(row.latest[name]) for name in table.key_schema.names)


class Version(NamedTuple):
    """A change of a row: what it changed, and what differs between its result and the row as it is now."""

    change: Change
    changed: list[Any]
    since: list[Any]


def _versions(display: RowDisplay, changes: Sequence[Change], row: Row | None) -> list[Version]:
    """Return changes of a row with their differences."""
    return [
        Version(
            change,
            differences(display, change.old, change.new),
            differences(display, change.new, row) if number else [],
        )
        for number, change in enumerate(changes)
    ]


_STATEMENT_ROWS = 50
_STATEMENT_SECONDS = 2.0
_LONGEST_STATEMENT = 16_384


class StatementPages(Pages):
    """The form of a statement and its rows. It needs a dialect with statements."""

    def reads(self) -> Sequence[Route]:
        return () if self._statements is None else (Route("/statement", self.statement),)

    @property
    def _statements(self) -> RowDisplay | None:
        return next((each for each in self._displays.values() if each.run_statement is not None), None)

    def statement(self, visitor: ConsoleUser) -> Any:
        """Show the form of a statement, and its rows if the request has one."""
        reading = self._reading(visitor)
        table = self._table(reading, LOOKING_UP)
        display = self._statements
        assert display is not None
        assert display.run_statement is not None
        assert display.statement_of is not None
        statement = flask.request.args.get("statement", "")[:_LONGEST_STATEMENT].replace("\r\n", "\n")
        given, token = bool(statement.strip()), flask.request.args.get("token", "")[:_LONGEST_STATEMENT]
        rows, source, status, problem = [], table, 200, ""
        until = monotonic() + _STATEMENT_SECONDS
        try:
            while given:
                page = self._run(visitor, display.run_statement, (table.namespace, statement, token))
                note_table(page.table_name)
                rows += page.rows
                token = page.token
                if not token or len(rows) >= _STATEMENT_ROWS or monotonic() >= until:
                    source = self._source(reading, table, page.table_name)
                    break
        except NotPermitted as error:
            note_table(error.path.partition("/")[0])
            status, problem = 403, refusal(error)
        except TableMissing as error:
            note_table(error.name)
            status, problem = 404, f"There is no table {error.name}."
        except ValueError as error:
            status, problem = 400, str(error)
        onward = ""
        if token and given and not problem:
            onward = address("console.statement", table, statement=statement, token=token)
        return render(
            "statement.html", status, visitor=visitor, table=table, source=source, problem=problem, onward=onward,
            may=self._row_rights(reading, source), statement=statement or display.statement_of(RowSearch(table)),
            made=row_table(source, self._display(source), rows, ()) if given and not problem else None,
        )  # fmt: skip

    def _run(
        self, visitor: ConsoleUser, run_statement: RunStatement, given: tuple[str, str, str]
    ) -> StatementPage:
        """Return a page of a statement: (namespace, statement, token). Raises ValueError, GatewayError."""
        namespace, statement, token = given
        authorization, gateway = visitor.authorization, self._gateway
        return drive(
            lambda: run_statement(gateway, namespace, authorization, statement, token),
            lambda commands: run(gateway.engine, commands, authorization),
        )

    def _source(self, reading: Any, table: Table, name: str) -> Table:
        """Return the table of a statement for links to its rows, or the table of the page if it cannot be found."""
        try:
            found: Table = reading.table(table.namespace, name, LOOKING_UP)
        except GatewayError:
            return table
        return found
