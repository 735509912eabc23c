"""The page that runs statements which read rows."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any

import flask

from tablegate.gateway.console.pages import Pages, Route, note_table
from tablegate.gateway.console.reading import LOOKING_UP
from tablegate.gateway.console.rendering import address, refusal, render
from tablegate.gateway.console.row_tables import row_table
from tablegate.gateway.console.sign_in import ConsoleUser
from tablegate.gateway.dialects.coroutines import drive
from tablegate.gateway.model.commands.row_search import RowSearch, StatementPage
from tablegate.gateway.model.errors import GatewayError, NotPermitted, TableMissing
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.security.gate import run

if TYPE_CHECKING:
    from tablegate.gateway.dialects.adapter import RowDisplay, RunStatement

_ROWS = 50
_SECONDS = 2.0
_LONGEST = 16_384


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
        statement = flask.request.args.get("statement", "")[:_LONGEST].replace("\r\n", "\n")
        given, token = bool(statement.strip()), flask.request.args.get("token", "")[:_LONGEST]
        rows, source, status, problem = [], table, 200, ""
        until = monotonic() + _SECONDS
        try:
            while given:
                page = self._run(visitor, display.run_statement, (table.namespace, statement, token))
                note_table(page.table_name)
                rows += page.rows
                token = page.token
                if not token or len(rows) >= _ROWS or monotonic() >= until:
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
