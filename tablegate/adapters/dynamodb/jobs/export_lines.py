"""The lines of an export: what is selected of a row, or of a key that changed, and the bytes that are billed for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import orjson

from tablegate.adapters.dynamodb.export_files.lines import change_line, item_line
from tablegate.adapters.dynamodb.jobs.export_api import NEW_AND_OLD, ExportSelection, view_of
from tablegate.adapters.dynamodb.values.composites import render, shown_key
from tablegate.adapters.dynamodb.values.values import render_values, view
from tablegate.gateway.features.jobs.job_commands import Job
from tablegate.gateway.model.expressions.evaluation import matches
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.rows import TICKS_PER_MS, Row

# Lines


_TICKS_PER_US = TICKS_PER_MS // 1_000


class ExportLine(NamedTuple):
    """The line of a row (empty if none), its billed bytes, and the bytes read to make it."""

    row: Row
    line: bytes
    billed: int
    read_bytes: int


def lines_of_rows(
    table: Table, rows: list[Row], selection: ExportSelection, as_ion: bool
) -> Iterator[ExportLine]:
    """Yield the lines of rows of a table."""
    for row in rows:
        size = row.size_bytes
        yield ExportLine(row, item_line(_image(table, row, selection), as_ion), size, size)


def _image(table: Table, row: Row, selection: ExportSelection) -> bytes:
    clauses = selection.clauses
    return render(table.key_schema, row) if clauses is None else clauses.cut(table, row)


def line_of_change(
    job: Job, row: Row, images: tuple[Table, Row | None, Row | None], selection: ExportSelection, as_ion: bool
) -> tuple[bytes, int]:
    """Return the line of a changed key and its billed bytes.

    `images`: the table of the new image, the old image, the new image.
    """
    table, old, new = images
    image = new or old
    # Without an image, the item was created and deleted within the window.
    if image is None or not matches(selection.predicate, image, view):
        return b"", 0
    image_members = {"Keys": orjson.dumps(render_values(shown_key(table.key_schema, image.latest)))}
    if old is not None and view_of(job) == NEW_AND_OLD:
        image_members["OldImage"] = _image(table, old, selection)
    if new is not None:
        image_members["NewImage"] = _image(table, new, selection)
    written_at = (row if new is None else new).modified_at // _TICKS_PER_US
    return change_line(written_at, image_members, as_ion), sum(map(len, image_members.values()))
