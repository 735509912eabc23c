"""Neighbouring rows of one partition, their bodies concatenated inside SQL: for readers who would only put them one behind
the other, and need not pay for each row in Python.

Only rows that stand in byte order, and are native if that is asked for, can be had so; where one is not, the reader is told
to go row by row.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from gateway.model.keys import Position
from gateway.model.pages import Concatenation
from gateway.model.ranges import KeyRange
from gateway.store.databases import Session, Statements
from gateway.store.positions import KEPT_BYTES, stored_position


class ConcatenatedBodies(NamedTuple):
    """Rows one after the other: how many, their billed bytes, their bodies in one piece, when each was written if
    that was asked for, and the position of the last."""

    number: int
    size: int
    bodies: bytes
    modified_at: list[int]
    last: Position


def fetch(
    session: Session, table_id: int, bounds: KeyRange, most: int, concatenation: Concatenation, reverse: bool
) -> ConcatenatedBodies | None:
    """The first `most` rows of a range within one partition, or all that there are; None: go row by row."""
    partition = bounds.lower.partition
    stored = stored_position(Position(partition, b""))
    column = stored.partition
    lower, upper = bounds.lower.sort, bounds.upper.sort
    if max(len(column), len(lower), len(upper)) >= KEPT_BYTES:
        return None
    statement = _statement(session.statements, reverse, concatenation)
    [(number, size, foreign, longest, edge, moments, bodies)] = session.query(
        statement, (table_id, column, stored.slot, lower, upper, most)
    )
    if foreign or (longest or 0) >= KEPT_BYTES:
        return None
    if not number:
        return ConcatenatedBodies(0, 0, b"", [], bounds.lower)
    modified_at = [*map(int, moments.split(","))] if concatenation.moments else []
    return ConcatenatedBodies(number, int(size), bodies, modified_at, Position(partition, edge))


@lru_cache(maxsize=16)
def _statement(statements: Statements, reverse: bool, concatenation: Concatenation) -> str:
    edge, moments, bodies = statements.concatenation(concatenation, reverse)
    foreign = "count(s.kinds)" if concatenation.native else "0"
    return f"""
SELECT count(*), sum(s.size_bytes), {foreign}, max(length(s.sort)), {edge},
    {moments if concatenation.moments else "NULL"}, {bodies}
FROM (SELECT r.sort, r.size_bytes, r.kinds, r.body, r.modified_at FROM rows r
    WHERE r.table_id = ? AND r.partition = ? AND r.slot = ? AND r.sort >= ? AND r.sort < ?
    ORDER BY r.sort{" DESC" if reverse else ""} LIMIT ?) s"""
