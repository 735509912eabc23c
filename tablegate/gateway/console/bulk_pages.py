"""Changes of all rows that a search finds: a preview, then requests that each change a bounded number of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any, NamedTuple

import flask

from tablegate.gateway.console import searches
from tablegate.gateway.console.pages import Pages, Route, explained, note_keys, number_of, render
from tablegate.gateway.console.reading import (
    DELETING,
    PUTTING,
    READING_A_ROW,
    Cursor,
    TableReader,
    position_in,
    read_page,
)
from tablegate.gateway.console.row_tables import RowTable, condition_texts, row_table
from tablegate.gateway.console.sign_in import ConsoleUser
from tablegate.gateway.dialects.adapter import RowDisplay
from tablegate.gateway.model.authorization.permissions import Purpose
from tablegate.gateway.model.commands.row_commands import Get, WriteGroup
from tablegate.gateway.model.commands.row_search import RowSearch
from tablegate.gateway.model.commands.writes import Remove, Write
from tablegate.gateway.model.errors import ConditionFailed, GatewayError, InvalidInput
from tablegate.gateway.model.expressions.predicates import RevisionIs
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import Key
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import Value

_COUNTED = 1000
_PREVIEWED = 5
# Rows of one request and of one list of commands. A request ends after this time, too.
_ROWS, _AT_ONCE = 500, 50
_SECONDS = 2.0
_FIELDS = 64
_CHANGES = ("delete", "set", "remove")


class BulkForm(NamedTuple):
    """The change of each row: `delete`, or `set` or `remove` of the attribute `target`."""

    change: str
    target: str
    target_type: str
    target_value: str

    @classmethod
    def of_form(cls, given: Mapping[str, str]) -> BulkForm:
        """Return the change of a form. Raises BadSearch."""
        change = given.get("change", "set")
        if change not in _CHANGES:
            raise searches.BadSearch(f"The change must be one of: {', '.join(_CHANGES)}.")
        names = ("target", "target_type", "target_value")
        return cls(change, *(given.get(name, "") for name in names))

    @property
    def purpose(self) -> Purpose:
        return DELETING if self.change == "delete" else PUTTING

    def fields(self) -> dict[str, str]:
        """Return the fields for a form that goes on with the change."""
        return {name: value for name, value in self._asdict().items() if value}


class Preview(NamedTuple):
    """The rows that a search finds: their number and the first ones. `is_whole`: all were counted."""

    found: int
    scanned: int
    is_whole: bool
    made: RowTable


class Progress(NamedTuple):
    """The progress of a change of many rows. `after`: the place where it continues, "" at its end."""

    done: int
    skipped: int
    scanned: int
    after: str


class BulkPages(Pages):
    """The preview and the run of a change of many rows."""

    def reads(self) -> Sequence[Route]:
        return (Route("/rows/bulk", self.bulk),) if self._gateway.settings.console_writes else ()

    def writes(self) -> Sequence[Route]:
        return (Route("/rows/bulk", self.run_bulk, _FIELDS),)

    def bulk(self, visitor: ConsoleUser) -> Any:
        """Show the number of rows that a search finds, the first ones, and the form of the change."""
        given = flask.request.args
        form = BulkForm.of_form(given)
        table = self._table(self._reading(visitor), form.purpose)
        fields, search = self._search(table, given)
        return self._show_preview(visitor, search, fields, form)

    def run_bulk(self, visitor: ConsoleUser) -> Any:
        """Change a bounded number of rows, and show the progress with a form that goes on."""
        given = flask.request.form
        reading = self._reading(visitor)
        form = BulkForm.of_form(given)
        table = self._table(reading, form.purpose)
        fields, search = self._search(table, given)
        display = self._display(table)
        try:
            value = _new_value(form, table, display)
        except searches.BadSearch as error:
            return self._show_preview(visitor, search, fields, form, str(error))
        done, skipped, scanned = (number_of(given.get(name, "")) for name in ("done", "skipped", "scanned"))
        before = Progress(done, skipped, scanned, given.get("after", ""))
        progress, problem = self._change_rows(reading, search, display, (form, value), before)
        return render(
            "bulk.html", 400 if problem else 200, visitor=visitor, table=table, fields=fields, form=form,
            problem=problem, conditions=condition_texts(search, display), **progress._asdict(),
        )  # fmt: skip

    def _change_rows(
        self, reading: TableReader, search: RowSearch, display: RowDisplay,
        change: tuple[BulkForm, Value | None], before: Progress,
    ) -> tuple[Progress, str]:  # fmt: skip
        """Change the next rows of a search. Return the progress, and the text of the first error that ended it."""
        form, value = change
        cursor = Cursor(searches.position_of(before.after)) if before.after else Cursor()
        page = read_page(reading, search, display.view, cursor, _ROWS)
        until, done, skipped, problem = monotonic() + _SECONDS, before.done, before.skipped, ""
        at = 0
        while at < len(page.rows) and not problem and (at == 0 or monotonic() < until):
            found = page.rows[at : at + _AT_ONCE]
            writes = []
            for row in self._as_stored(reading, search, form, found):
                try:
                    writes.append(self._write_of(search.table, display, form, value, row))
                except ValueError as error:
                    problem = f"A row cannot be changed: {error}. The rows before it were changed."
                    break
            note_keys(search.table, [each.key for each in writes])
            outcomes = (
                reading.run_all([WriteGroup((each,)) for each in writes], form.purpose) if writes else []
            )
            for outcome in outcomes:
                if isinstance(outcome, InvalidInput):
                    problem = f"A row cannot be changed. {explained(outcome)[1]} Other rows were changed."
                elif isinstance(outcome, GatewayError) and not isinstance(outcome, ConditionFailed):
                    raise outcome
                done += not isinstance(outcome, GatewayError)
                skipped += isinstance(outcome, ConditionFailed)
            skipped += 0 if problem else len(found) - len(writes)
            at += len(found)
        end = page.after
        if at < len(page.rows):
            end = position_in(search, page.rows[at - 1])
        after = "" if end is None or problem else searches.place_of(end)
        return Progress(done, skipped, before.scanned + page.scanned, after), problem

    def _as_stored(
        self, reading: TableReader, search: RowSearch, form: BulkForm, found: Sequence[Row]
    ) -> Sequence[Row]:
        """Return rows with all attributes, without those that have changed. An index can show less than all of a row."""
        if (
            form.change == "delete"
            or search.search_index is None
            or search.search_index.projected_names is None
        ):
            return found
        rows = reading.run_all([Get(search.table, row.position) for row in found], READING_A_ROW)
        for error in rows:
            if isinstance(error, GatewayError):
                raise error
        return [
            row
            for row, before in zip(rows, found, strict=True)
            if row is not None and row.modified_at == before.modified_at
        ]

    def _write_of(
        self, table: Table, display: RowDisplay, form: BulkForm, value: Value | None, row: Row
    ) -> Write:
        """Return the write that changes a row if it is still as it was read. Raises ValueError."""
        condition = RevisionIs(row.modified_at)
        if form.change == "delete":
            key = table.key_schema.key(row.latest)
            return Write(table, Key(key.values, row.position), Remove(), condition)
        values = {name: each for name, each in row.latest.items() if name != form.target}
        if value is not None:
            values[form.target] = value
        return display.write_of(table, values, row, self._gateway.now_ms())._replace(condition=condition)

    def _search(self, table: Table, given: Mapping[str, str]) -> tuple[searches.Search, RowSearch]:
        """Return the search of a request. Raises BadSearch if it is for all rows."""
        fields = searches.Search.of_form(given)
        if not (fields.keys or fields.filters):
            raise searches.BadSearch("Search by a key or a filter first.")
        return fields, fields.on(table, self._display(table))

    def _show_preview(
        self,
        visitor: ConsoleUser,
        search: RowSearch,
        fields: searches.Search,
        form: BulkForm,
        problem: str = "",
    ) -> Any:
        table, display = search.table, self._display(search.table)
        reading = self._reading(visitor)
        page = read_page(reading, search, display.view, Cursor(), _COUNTED)
        first = [row.latest for row in page.rows[:_PREVIEWED]]
        preview = Preview(
            len(page.rows), page.scanned, page.after is None, row_table(table, display, first, ())
        )
        return render(
            "bulk.html", 400 if problem else 200, visitor=visitor, table=table, fields=fields, form=form,
            problem=problem, preview=preview, done=None, conditions=condition_texts(search, display),
            types=list(display.type_names.values()), may=self._row_rights(reading, table),
        )  # fmt: skip


def _new_value(form: BulkForm, table: Table, display: RowDisplay) -> Value | None:
    """Return the new value of the attribute, or None to remove it. Raises BadSearch."""
    if form.change == "delete":
        return None
    if not form.target:
        raise searches.BadSearch("The attribute needs a name.")
    if form.target in table.key_schema.names:
        raise searches.BadSearch(f"{form.target} is a key column, which cannot change.")
    if form.change == "remove":
        return None
    return searches.operand_of(form.target_value, form.target_type, display)
