"""Rows as a table of a page: a column for each attribute, and cells with type and text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from tablegate.gateway.console.searches import place_of
from tablegate.gateway.console.value_texts import CUT, Cell, cell_of, plain
from tablegate.gateway.dialects.adapter import RowDisplay
from tablegate.gateway.model.commands.row_search import Condition, RowSearch, path_text
from tablegate.gateway.model.errors import BadKey
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import Value

PLAIN = "plain"
"""The name of the form of rows as JSON without types."""
_COLUMNS = 30
_LONGEST = 4_000
"""Length from which a value is cut on the page of its row, in characters."""


class Line(NamedTuple):
    """One row: its place in the table ("" if unknown), and its cells in the order of the columns. A missing value is None."""

    place: str
    cells: list[Cell | None]


class RowTable(NamedTuple):
    """Rows with their columns.

    - `keys`: number of columns at the beginning that are those of the key.
    - `types`: the type of the values of each column. "" if there are several, so each value is shown with its own.
    - `others`: names of attributes that have no column.
    """

    columns: list[str]
    keys: int
    types: list[str]
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
    types = [_common_type(line.cells[at] for line in lines) for at in range(len(columns))]
    return RowTable(columns, len(keys), types, [name for name in names if name not in shown], lines)


def _common_type(cells: Iterable[Cell | None]) -> str:
    found = {cell.type for cell in cells if cell is not None}
    return found.pop() if len(found) == 1 else ""


def condition_text(condition: Condition, display: RowDisplay) -> str:
    """Return a condition of a search as text."""
    values = [cell_of(display.view(value), "").text for value in condition.values]
    if condition.kind is not None:
        values.append(display.type_names[condition.kind])
    return f"{path_text(condition.path)} {condition.operator.value} {', '.join(values)}".strip()


def condition_texts(search: RowSearch, display: RowDisplay) -> list[str]:
    """Return the conditions of a search as texts: those on the key first."""
    conditions = [*(each for _, each in search.key_conditions), *search.filters]
    return [condition_text(each, display) for each in conditions]


def attributes_of(table: Table, display: RowDisplay, row: Mapping[str, Value]) -> list[tuple[str, Cell]]:
    """Return the attributes of a row: the key columns first, then the others by name."""
    keys = table.key_schema.names
    names = [*keys, *sorted(name for name in row if name not in keys)]
    cells = [(name, _cell(display, row[name], _LONGEST)) for name in names if name in row]
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


def _cell(display: RowDisplay, value: Value | None, longest: int = CUT) -> Cell | None:
    if value is None:
        return None
    seen = display.view(value)
    return cell_of(seen, display.type_names.get(seen.kind, seen.kind.value), longest)
