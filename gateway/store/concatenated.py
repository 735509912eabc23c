"""Neighbouring rows of one partition with their bodies joined inside SQL, for readers who would only put them one behind the
other: what a row costs in Python, it does not cost here.

Only what is in byte order, and native if that is asked for, can be had so; where a row is not, the reader is told to go row
by row.
"""

from __future__ import annotations

import sqlite3
from functools import lru_cache
from typing import NamedTuple

from gateway.model.commands import Concatenation
from gateway.model.keys import Position
from gateway.model.ranges import KeyRange
from gateway.store.databases import Session
from gateway.store.positions import KEPT_BYTES, place_of

# Before this release SQLite's aggregates have no order of their own; they take rows as the ordered query below hands them on.
_HAS_ORDERED_AGGREGATES = sqlite3.sqlite_version_info >= (3, 44)


class Stretch(NamedTuple):
    """Rows one after the other: how many, their billed bytes, their bodies joined, when each was written if that was asked
    for, and the position of the last."""

    number: int
    size: int
    bodies: bytes
    modified_at: list[int]
    last: Position


def stretch(
    session: Session, table_id: int, bounds: KeyRange, most: int, concatenation: Concatenation, reverse: bool
) -> Stretch | None:
    """The first `most` rows of a range within one partition, or all that there are; None: go row by row."""
    partition = bounds.lower.partition
    column = place_of(Position(partition, b"")).partition
    lower, upper = bounds.lower.sort, bounds.upper.sort
    if max(len(column), len(lower), len(upper)) >= KEPT_BYTES:
        return None
    statement = _statement(session.is_postgresql, reverse, concatenation)
    [(number, size, foreign, longest, edge, moments, bodies)] = session.query(
        statement, (table_id, column, lower, upper, most)
    )
    if foreign or (longest or 0) >= KEPT_BYTES:
        return None
    if not number:
        return Stretch(0, 0, b"", [], bounds.lower)
    modified_at = [*map(int, moments.split(","))] if concatenation.moments else []
    return Stretch(number, int(size), bodies, modified_at, Position(partition, edge))


@lru_cache(maxsize=16)
def _statement(is_postgresql: bool, reverse: bool, concatenation: Concatenation) -> str:
    way = " DESC" if reverse else ""
    edge = "min" if reverse else "max"
    if is_postgresql:
        # bytea has no min and max before PostgreSQL 18.
        edge_of = f"(array_agg(s.sort ORDER BY s.sort{'' if reverse else ' DESC'}))[1]"
        bodies = f"string_agg(s.body, '{concatenation.separator}'::bytea ORDER BY s.sort{way})"
        moments = f"string_agg(s.modified_at::text, ',' ORDER BY s.sort{way})"
    else:
        edge_of = f"{edge}(s.sort)"
        order = f" ORDER BY s.sort{way}" if _HAS_ORDERED_AGGREGATES else ""
        bodies = f"CAST(group_concat(s.body, '{concatenation.separator}'{order}) AS BLOB)"
        moments = f"group_concat(s.modified_at, ','{order})"
    foreign = "count(s.kinds)" if concatenation.native else "0"
    return f"""
SELECT count(*), sum(s.size_bytes), {foreign}, max(length(s.sort)), {edge_of},
    {moments if concatenation.moments else "NULL"}, {bodies}
FROM (SELECT r.sort, r.size_bytes, r.kinds, r.body, r.modified_at FROM rows r
    WHERE r.table_id = ? AND r.partition = ? AND r.sort >= ? AND r.sort < ? ORDER BY r.sort{way} LIMIT ?) s"""
