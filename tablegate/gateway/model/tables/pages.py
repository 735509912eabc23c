"""Pages of rows: their limits, their contents, and the segments of a table.

engine/rows/page_builder.py decides where a page ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tablegate.gateway.model.values.keys import PARTITION_HASHES, Position, partition_hash
from tablegate.gateway.model.values.rows import Row


class PageLimits(NamedTuple):
    """The limits of a page. None means unlimited. A page evaluates at least one row, if there is one.

    - `scanned`, `returned`: maximum number of evaluated and of returned rows.
    - `size_bytes`: the page ends before the row with which the billed bytes of the evaluated rows exceed this size.
    - `filled_bytes`: the page ends after the row with which the billed bytes of the evaluated rows reach this size.
    - `returned_bytes`: the page ends after the row with which the billed bytes of the returned rows reach this size.
    - `peek`: the page looks one row ahead to find out if and where there is more.
    """

    scanned: int | None = None
    returned: int | None = None
    size_bytes: int | None = None
    seconds: float | None = None
    peek: bool = False
    filled_bytes: int | None = None
    returned_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Segment:
    """One of `total` parts of a table, by hash of the partition: lowest <= partition_hash < highest
    (model/values/keys.py)."""

    number: int
    total: int

    @property
    def lowest(self) -> int:
        return self.number * PARTITION_HASHES // self.total

    @property
    def highest(self) -> int:
        """The lowest partition_hash above the segment."""
        return (self.number + 1) * PARTITION_HASHES // self.total

    def contains(self, position: Position) -> bool:
        return self.lowest <= partition_hash(position.partition) < self.highest


class Concatenation(NamedTuple):
    """A request to concatenate the bodies of rows.

    - `separator`: the characters between bodies.
    - `native`: only native rows (Row.is_native) can be concatenated. If there is another one, rows are read one by one.
    - `moments`: also return the times of modification.
    """

    separator: str
    native: bool = True
    moments: bool = False


class ConcatenatedRows(NamedTuple):
    """Concatenated rows of a page: number, bodies, and times of modification (empty unless requested)."""

    number: int
    bodies: bytes
    modified_at: list[int]


class Page(NamedTuple):
    """A page of rows.

    - `rows`: the rows that passed the filter.
    - `scanned`, `scanned_bytes`: the evaluated rows and their billed bytes. Without a limit on bytes these may be too
      few.
    - `last`: the last evaluated row, if a limit ended the page.
    - `next`: the first row that was not evaluated, if `peek` was set and there is one.
    - `concatenated`: concatenated rows that precede `rows`, if the command has a Concatenation.
    """

    rows: list[Row]
    scanned: int
    scanned_bytes: int
    last: Row | None
    next: Row | None
    concatenated: Sequence[ConcatenatedRows] = ()
