"""Pages that export the rows of a small table to a file, and import rows from a file or a pasted text.

Both are bounded. `tablegate copy` moves tables of any size.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from time import monotonic
from typing import Any, NamedTuple

import flask

from tablegate.gateway.console.pages import Pages, Route, address, explained, number_of, render
from tablegate.gateway.console.reading import LOOKING_UP, PUTTING, Cursor, TableReader, read_page
from tablegate.gateway.console.row_files import FORMATS, IMPORT_ROWS, ReadRows
from tablegate.gateway.console.searches import BadSearch
from tablegate.gateway.console.sign_in import ConsoleUser
from tablegate.gateway.dialects.adapter import RowDisplay
from tablegate.gateway.model.authorization.permissions import Permission
from tablegate.gateway.model.commands.row_commands import WriteGroup
from tablegate.gateway.model.commands.row_search import RowSearch
from tablegate.gateway.model.commands.writes import Write
from tablegate.gateway.model.errors import GatewayError
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import Row

EXPORT_ROWS, EXPORT_BYTES, EXPORT_SECONDS = 20_000, 8 << 20, 20.0
"""The bounds of an export."""
_BATCH = 25
_PROBLEMS = 10


class ImportForm(NamedTuple):
    """Rows to import and the name of their format. The rows of a file take the place of pasted ones."""

    format: str = "typed"
    data: bytes = b""

    @classmethod
    def of_request(cls) -> ImportForm:
        """Return the submitted form. Raises BadSearch."""
        given, file = flask.request.form, flask.request.files.get("file")
        name = given.get("format", "typed")
        if name not in FORMATS or FORMATS[name].read is None:
            raise BadSearch(f"The format must be one of {', '.join(_READABLE)}.")
        if file is not None and file.filename:
            return cls(name, file.read())
        # Browsers send all line breaks of a text field as CR LF.
        return cls(name, given.get("lines", "").replace("\r\n", "\n").encode(errors="replace"))

    @property
    def text(self) -> str:
        """The rows as a text. "" if the format is not a text."""
        return self.data.decode(errors="replace") if FORMATS[self.format].is_text else ""

    def rows(self, table: Table, display: RowDisplay) -> ReadRows:
        read = FORMATS[self.format].read
        assert read is not None
        return read(table, display, self.data)


_READABLE = {name: each.label for name, each in FORMATS.items() if each.read is not None}


class TransferPages(Pages):
    """Export and import of the rows of a table."""

    def reads(self) -> Sequence[Route]:
        return Route("/transfer", self.transfer), Route("/export", self.export)

    def writes(self) -> Sequence[Route]:
        return (Route("/import", self.import_rows),)

    def transfer(self, visitor: ConsoleUser) -> Any:
        """Show the links of exports and the form of imports."""
        return self._show(visitor, self._table(self._reading(visitor), LOOKING_UP), ImportForm())

    def _show(
        self,
        visitor: ConsoleUser,
        table: Table,
        form: ImportForm,
        problems: Sequence[str] = (),
        status: int = 200,
        export_problem: str = "",
    ) -> Any:
        reading = self._reading(visitor)
        may_describe = self._may_see(reading, table, Permission.DESCRIBE)
        return render(
            "transfer.html", status, visitor=visitor, table=table, problems=problems, formats=FORMATS,
            lines=form.text, chosen=form.format, readable=list(_READABLE.items()),
            export_problem=export_problem, form=self._display(table).form, commands=copy_commands(table),
            may_scan=self._may_see(reading, table, Permission.SCAN),
            may_put=self._row_rights(reading, table).put, most_rows=EXPORT_ROWS, most_bytes=EXPORT_BYTES, most_lines=IMPORT_ROWS,
            rows=reading.statistics(table).rows if may_describe else None,
            done=number_of(flask.request.args.get("done", "")),
        )  # fmt: skip

    # Export

    def export(self, visitor: ConsoleUser) -> Any:
        """Return all rows of a table as a file, or explain why there is none, such as too many rows."""
        reading = self._reading(visitor)
        table = self._table(reading, LOOKING_UP)
        found, display = FORMATS.get(flask.request.args.get("format", "typed")), self._display(table)
        if found is None:
            raise BadSearch(f"The format must be one of {', '.join(FORMATS)}.")
        try:
            body = found.write(table, display, list(_all_rows(reading, table, display)))
        except BadSearch as error:
            return self._show(visitor, table, ImportForm(), status=400, export_problem=str(error))
        name = "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in table.name)
        response = flask.Response(body, mimetype=found.media_type)
        response.headers["Content-Disposition"] = f'attachment; filename="{name}.{found.ending}"'
        return response

    # Import

    def import_rows(self, visitor: ConsoleUser) -> Any:
        """Put the rows of a file or a pasted text. Nothing is written if a line is not valid or repeats a key."""
        reading = self._reading(visitor)
        table = self._table(reading, PUTTING)
        form = ImportForm.of_request()
        writes, problems = self._writes(table, form)
        if problems or not writes:
            return self._show(visitor, table, form, problems or ["Give at least one row."], 400)
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
                problems.append(f"Rows written before this: {written}. Importing them again replaces them.")
                return self._show(visitor, table, form, problems[-_PROBLEMS:], 400)
        return flask.redirect(address("console.transfer", table, done=written), 303)

    def _writes(self, table: Table, form: ImportForm) -> tuple[list[tuple[int, Write]], list[str]]:
        """Return (number of the line, write) of each row, and problems of lines."""
        display, now_ms = self._display(table), self._gateway.now_ms()
        writes: list[tuple[int, Write]] = []
        lines: dict[Position, int] = {}
        problems: list[str] = []
        for number, values in form.rows(table, display):
            if len(writes) >= IMPORT_ROWS:
                return [], [f"At most {IMPORT_ROWS:,} rows can be imported at once."]
            try:
                if isinstance(values, ValueError):
                    raise values
                write = display.write_of(table, values, None, now_ms)
                first = lines.setdefault(write.key.position, number)
                if first != number:
                    raise ValueError(f"it has the same key as line {first}")
                writes.append((number, write))
            except (ValueError, TypeError) as error:
                problems.append(f"Line {number}: {error}.")
                if len(problems) >= _PROBLEMS:
                    break
        return writes, problems


def copy_commands(table: Table) -> tuple[str, str]:
    """Return the commands that copy a table to a file and back, on the machine of the server."""
    place = f'"tablegate:$TABLEGATE_DATABASE"{shlex.quote(f"#{table.namespace}/{table.name}")}'
    file = shlex.quote(f"file:{table.name}.jsonl")
    return f"tablegate copy {place} {file}", f"tablegate copy {file} {place} --if-exists append"


def _all_rows(reading: TableReader, table: Table, display: RowDisplay) -> Iterator[Row]:
    """Yield all rows of a table. Raises BadSearch at a bound of exports."""
    search, cursor = RowSearch(table), Cursor()
    until, count, size = monotonic() + EXPORT_SECONDS, 0, 0
    while True:
        page = read_page(reading, search, display.view, cursor, 5_000)
        count += len(page.rows)
        size += sum(row.size_bytes for row in page.rows)
        if count > EXPORT_ROWS or size > EXPORT_BYTES or monotonic() > until:
            raise BadSearch(
                f"The table is too large for an export here, and nothing was exported. A file has at most {EXPORT_ROWS:,} rows "
                f"and {EXPORT_BYTES >> 20} MB, read in {EXPORT_SECONDS:g} seconds. The command below exports all rows."
            )
        yield from page.rows
        if page.after is None:
            return
        cursor = Cursor(page.after)
