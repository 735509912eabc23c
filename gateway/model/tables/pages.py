"""Pages of rows: where one stops, what it holds, and which part of a table it is of.

Where exactly a page ends is decided by engine/rows/page_budget.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tablegate.gateway.model.values.keys import PARTITION_HASHES, Position, partition_hash
from tablegate.gateway.model.values.rows import Row


class PageLimits(NamedTuple):
    """Where a page stops: rows looked at, rows returned, billed bytes looked at, time. A page holds at least one row.

    `size_bytes`: the page stops before the row that would make it larger; `filled_bytes`: after the row that makes it so
    large; `returned_bytes`: after the returned row that makes what is returned so large. `peek`: whether the page looks at one
    row more, so that it can say whether and where there is more to read.
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
    """One of `total` parts of a table, by hash of the partition: lowest <= partition_hash < highest (model/values/keys.py)."""

    number: int
    total: int

    @property
    def lowest(self) -> int:
        """The lowest partition_hash of the segment."""
        return self.number * PARTITION_HASHES // self.total

    @property
    def highest(self) -> int:
        """The lowest partition_hash above the segment."""
        return (self.number + 1) * PARTITION_HASHES // self.total

    def contains(self, position: Position) -> bool:
        """Whether a row at this position belongs to the segment."""
        return self.lowest <= partition_hash(position.partition) < self.highest


class Concatenation(NamedTuple):
    """What a reader wants of rows in one piece: the bodies with these characters between them; native ones only, or whichever
    there are; and when each was written."""

    separator: str
    native: bool = True
    moments: bool = False


class ConcatenatedRows(NamedTuple):
    """Rows of a page in one piece: how many, their bodies with what the reader wants between them, and when they were
    written (empty if the reader does not ask)."""

    number: int
    bodies: bytes
    modified_at: list[int]


class Page(NamedTuple):
    """A page: the rows that passed the filter; how many rows and billed bytes were looked at (of bytes too few may be told
    where no limit is on them); `last`: the last row looked at, if a limit stopped the page; `next`: the first row not looked
    at, if the limits said to peek and there is one; `concatenated`: rows before `rows`, piece by piece, where the command said
    what to concatenate."""

    rows: list[Row]
    scanned: int
    scanned_bytes: int
    last: Row | None
    next: Row | None
    concatenated: Sequence[ConcatenatedRows] = ()
