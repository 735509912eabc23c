"""Pages of rows in the order of a search, forwards and backwards."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import NamedTuple

from tablegate.gateway.console.reading import LOOKING_UP, TableReader
from tablegate.gateway.model.commands.row_commands import Read
from tablegate.gateway.model.commands.row_search import RowSearch
from tablegate.gateway.model.expressions.predicates import View
from tablegate.gateway.model.expressions.ranges import KeyRange
from tablegate.gateway.model.tables.pages import PageLimits
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import Row

# A page of a rare filter ends after this time. The next request continues there.
_SECONDS = 2.0
# The limits of one command of such a page, and of the rows on a page together.
_SCANNED, _SLICE_S, _BYTES = 5_000, 0.25, 1 << 20


class Cursor(NamedTuple):
    """The place in an order of rows where a page begins. `is_backwards`: it is the page before this position."""

    position: Position | None = None
    is_backwards: bool = False


@dataclass(frozen=True, slots=True)
class RowPage:
    """A page of rows in the order of the search.

    - `before`, `after`: the positions where the previous and the next page begin. None: there is no such page.
    - `scanned`: number of rows that were read.
    - `is_whole`: False if the time ended before the page was full. Then it goes on in the direction of reading.
    """

    rows: list[Row]
    before: Position | None
    after: Position | None
    scanned: int
    is_whole: bool


def read_page(reading: TableReader, search: RowSearch, view: View, cursor: Cursor, size: int) -> RowPage:
    """Return a page of at most `size` results of a search. It ends early after some time or with large rows.

    Through an index, rows have the attributes that the index shows, as for an SDK: a grant on the index covers no others.
    """
    reverse = search.reverse is not cursor.is_backwards
    bounds = search.key_range()
    if cursor.position is not None:
        bounds = _beyond(bounds, cursor.position, reverse)
    until = monotonic() + _SECONDS
    rows: list[Row] = []
    scanned = held = 0
    while True:
        limits = PageLimits(
            _SCANNED, size - len(rows), seconds=_SLICE_S, peek=True, returned_bytes=_BYTES - held
        )
        page = reading.run(
            Read(search.table, bounds, limits, search.search_index, reverse, search.filter(), view),
            LOOKING_UP,
        )
        rows += page.rows
        scanned += page.scanned
        held += sum(row.size_bytes for row in page.rows)
        end = None if page.last is None or page.next is None else position_in(search, page.last)
        is_whole = end is None or len(rows) >= size or held >= _BYTES
        if end is None or is_whole or monotonic() >= until:
            break
        bounds = _beyond(bounds, end, reverse)
    start = cursor.position
    if rows and start is not None:
        start = position_in(search, rows[0])
    if cursor.is_backwards:
        return RowPage(rows[::-1], end, start, scanned, is_whole)
    return RowPage(rows, start, end, scanned, is_whole)


def _beyond(bounds: KeyRange, position: Position, reverse: bool) -> KeyRange:
    """Return the part of a range behind a position in the direction of reading."""
    return bounds.before(position) if reverse else bounds.after(position)


def position_in(search: RowSearch, row: Row) -> Position:
    """Return the position of a row in the table or index of a search."""
    entry = None if search.search_index is None else search.search_index.entry(row)
    return row.position if entry is None else entry.position
