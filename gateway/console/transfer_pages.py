"""Pages that export the rows of a small table to a file, and import rows from JSON lines.

Both are bounded. `tablegate copy` moves tables of any size.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from time import monotonic
from typing import Any

import flask
import orjson

from tablegate.gateway.adapter_modules import RowDisplay
from tablegate.gateway.console.pages import Pages, Route
from tablegate.gateway.console.problems import explained
from tablegate.gateway.console.reading import LOOKING_UP, PUTTING, TableReader
from tablegate.gateway.console.rendering import address, render
from tablegate.gateway.console.row_reading import Cursor, read_page
from tablegate.gateway.console.searches import BadSearch
from tablegate.gateway.console.sign_in import ConsoleUser
from tablegate.gateway.console.value_texts import plain
from tablegate.gateway.model.authorization.permissions import Permission
from tablegate.gateway.model.commands.row_commands import WriteGroup
from tablegate.gateway.model.commands.row_search import RowSearch
from tablegate.gateway.model.commands.writes import Write
from tablegate.gateway.model.errors import GatewayError
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.rows import Row

ROWS, BYTES, SECONDS = 20_000, 8 << 20, 20.0
"""The bounds of an export."""
LINES = 1_000
"""Maximum number of rows of an import."""
_BATCH = 25
_PROBLEMS = 10
FORMATS = {"typed": "JSON Lines with types", "plain": "JSON Lines without types", "csv": "CSV"}


class TransferPages(Pages):
    """Export and import of the rows of a table."""

    def reads(self) -> Sequence[Route]:
        return Route("/transfer", self.transfer), Route("/export", self.export)

    def writes(self) -> Sequence[Route]:
        return (Route("/import", self.import_rows),)

    def transfer(self, visitor: ConsoleUser) -> Any:
        """Show the links of exports and the form of imports."""
        return self._show(visitor, self._table(self._reading(visitor), LOOKING_UP))

    def _show(
        self,
        visitor: ConsoleUser,
        table: Table,
        lines: str = "",
        problems: Sequence[str] = (),
        status: int = 200,
    ) -> Any:
        reading, done = self._reading(visitor), flask.request.args.get("done", "")
        return render(
            "transfer.html", status, visitor=visitor, table=table, lines=lines, problems=problems, formats=FORMATS,
            form=self._display(table).form, may_scan=self._may_see(reading, table, Permission.SCAN),
            may_put=self._row_rights(reading, table).put, most_rows=ROWS, most_bytes=BYTES, most_lines=LINES,
            done=done if done.isascii() and done.isdecimal() and len(done) < 6 else "",
        )  # fmt: skip

    # Export

    def export(self, visitor: ConsoleUser) -> Any:
        """Return all rows of a table as a file. Raises BadSearch if there are too many."""
        reading = self._reading(visitor)
        table = self._table(reading, LOOKING_UP)
        form, display = flask.request.args.get("format", "typed"), self._display(table)
        if form not in FORMATS:
            raise BadSearch(f"The format must be one of {', '.join(FORMATS)}.")
        rows = list(_all_rows(reading, table, display))
        body = _csv(table, rows) if form == "csv" else b"".join(_lines(table, display, rows, form))
        name = "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in table.name)
        ending, kind = ("csv", "text/csv") if form == "csv" else ("jsonl", "application/jsonl")
        response = flask.Response(body, mimetype=kind)
        response.headers["Content-Disposition"] = f'attachment; filename="{name}.{ending}"'
        return response

    # Import

    def import_rows(self, visitor: ConsoleUser) -> Any:
        """Put the rows of JSON lines. Nothing is written if a line is not valid."""
        reading = self._reading(visitor)
        table = self._table(reading, PUTTING)
        text = flask.request.form.get("lines", "")
        writes, problems = self._writes(table, text)
        if problems or not writes:
            return self._show(visitor, table, text, problems or ["Give at least one row."], 400)
        written = 0
        for first in range(0, len(writes), _BATCH):
            batch = writes[first : first + _BATCH]
            outcomes = reading.run_all([WriteGroup((write,)) for _, write in batch], PUTTING)
            for (number, _), outcome in zip(batch, outcomes, strict=True):
                if isinstance(outcome, GatewayError):
                    problems.append(f"Line {number}: {explained(outcome)[1]}")
                else:
                    written += 1
            if problems:
                problems.append(f"{written} rows were written before. Importing them again replaces them.")
                return self._show(visitor, table, text, problems[-_PROBLEMS:], 400)
        return flask.redirect(address("console.transfer", table, done=written), 303)

    def _writes(self, table: Table, text: str) -> tuple[list[tuple[int, Write]], list[str]]:
        """Return (number of the line, write) of each row, and problems of lines."""
        display, now_ms = self._display(table), self._gateway.now_ms()
        writes: list[tuple[int, Write]] = []
        problems: list[str] = []
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip():
                continue
            if len(writes) >= LINES:
                return [], [f"At most {LINES:,} rows can be imported at once."]
            try:
                values = display.values_of(table, orjson.loads(line))
                writes.append((number, display.write_of(table, values, None, now_ms)))
            except (ValueError, TypeError) as error:
                problems.append(f"Line {number}: {error}.")
                if len(problems) >= _PROBLEMS:
                    break
        return writes, problems


def _all_rows(reading: TableReader, table: Table, display: RowDisplay) -> Iterator[Row]:
    """Yield all rows of a table. Raises BadSearch at a bound of exports."""
    search, cursor = RowSearch(table), Cursor()
    until, count, size = monotonic() + SECONDS, 0, 0
    while True:
        page = read_page(reading, search, display.view, cursor, 5_000)
        count += len(page.rows)
        size += sum(row.size_bytes for row in page.rows)
        if count > ROWS or size > BYTES or monotonic() > until:
            raise BadSearch(
                f"The table is too large for an export here: the bound is {ROWS:,} rows or {BYTES >> 20} MB. "
                f"Use the command: tablegate copy {table.name} FILE."
            )
        yield from page.rows
        if page.after is None:
            return
        cursor = Cursor(page.after)


def _lines(table: Table, display: RowDisplay, rows: Sequence[Row], form: str) -> Iterator[bytes]:
    for row in rows:
        document = (
            {name: plain(value) for name, value in row.latest.items()}
            if form == "plain"
            else display.shown_row(table, row)
        )
        yield orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)


def _csv(table: Table, rows: Sequence[Row]) -> bytes:
    """Return rows as CSV (RFC 4180): the key columns first. Lists and maps are JSON. No value is an empty field."""
    keys = table.key_schema.names
    names = [*keys, *sorted({name for row in rows for name in row.latest if name not in keys})]
    found = io.StringIO()
    writer = csv.writer(found)
    writer.writerow(names)
    for row in rows:
        values = row.latest
        cells = [orjson.loads(orjson.dumps(plain(values[name]))) if name in values else "" for name in names]
        writer.writerow([_cell(each) for each in cells])
    return found.getvalue().encode()


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()
