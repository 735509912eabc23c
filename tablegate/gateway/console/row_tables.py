"""Rows as a table of a page: a column for each attribute, and cells with type and text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from tablegate.gateway.console.searches import place_of
from tablegate.gateway.console.value_texts import Cell, cell_of, plain
from tablegate.gateway.dialects.adapter import RowDisplay
from tablegate.gateway.model.errors import BadKey
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import Value

PLAIN = "plain"
"""The name of the form of rows as JSON without types."""
_COLUMNS = 30


class Line(NamedTuple):
    """One row: its place in the table ("" if unknown), and its cells in the order of the columns. A missing value is None."""

    place: str
    cells: list[Cell | None]


class RowTable(NamedTuple):
    """Rows with their columns. `others`: names of attributes that have no column."""

    columns: list[str]
    others: list[str]
    lines: list[Line]


def row_table(
    table: Table, display: RowDisplay, rows: Sequence[Mapping[str, Value]], chosen: Sequence[str]
) -> RowTable:
    """Return rows as a table: the key columns, then the chosen ones. None chosen: the most common ones first."""
    keys = table.key_schema.names
    counts = Counter(name for row in rows for name in row if name not in keys)
    names = [name for name, _ in counts.most_common()]
    shown = list(dict.fromkeys(name for name in chosen if name not in keys)) if chosen else names[:_COLUMNS]
    columns = [*keys, *shown]
    lines = [Line(_place(table, row), [_cell(display, row.get(name)) for name in columns]) for row in rows]
    return RowTable(columns, [name for name in names if name not in shown], lines)


def attributes_of(table: Table, display: RowDisplay, row: Mapping[str, Value]) -> list[tuple[str, Cell]]:
    """Return the attributes of a row: the key columns first, then the others by name."""
    keys = table.key_schema.names
    names = [*keys, *sorted(name for name in row if name not in keys)]
    cells = [(name, _cell(display, row[name])) for name in names if name in row]
    return [(name, cell) for name, cell in cells if cell is not None]


def document(displays: Mapping[str, RowDisplay], form: str, table: Table, row: Row) -> str:
    """Return a row as indented JSON in the form of a dialect, or without types."""
    if form == PLAIN:
        found: Any = {name: plain(value) for name, value in row.latest.items()}
    else:
        found = displays[form].shown_row(table, row)
    return orjson.dumps(found, option=orjson.OPT_INDENT_2).decode()


class Difference(NamedTuple):
    """An attribute that two rows have with different values. A row without the attribute has None."""

    name: str
    before: Cell | None
    after: Cell | None


def differences(display: RowDisplay, before: Row | None, after: Row | None) -> list[Difference]:
    """Return the attributes that differ between two rows as the dialect shows them, by name."""
    old, new = (
        {} if row is None else {name: display.view(value) for name, value in row.latest.items()}
        for row in (before, after)
    )
    return [
        Difference(name, _cell(display, old.get(name)), _cell(display, new.get(name)))
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]


def _place(table: Table, row: Mapping[str, Value]) -> str:
    try:
        return place_of(table.key_schema.key(row).position)
    except BadKey:
        return ""


def _cell(display: RowDisplay, value: Value | None) -> Cell | None:
    if value is None:
        return None
    seen = display.view(value)
    return cell_of(seen, display.type_names.get(seen.kind, seen.kind.value))
