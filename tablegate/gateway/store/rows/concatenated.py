"""Neighbouring rows of one partition with their bodies concatenated.

This serves readers that would only join the bodies, and saves an object for each row. SQL joins the bodies if checksums
are not verified. Otherwise each body must leave the database separately. The caller reads row by row if the rows are
not in byte order, or if one is not native where native rows are required.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from tablegate.gateway.model.expressions.ranges import KeyRange
from tablegate.gateway.model.tables.pages import Concatenation
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.store.sql import checksums
from tablegate.gateway.store.sql.databases import Session, Statements
from tablegate.gateway.store.sql.positions import KEPT_BYTES, stored_position


class ConcatenatedBodies(NamedTuple):
    """Consecutive rows: their number, billed bytes, joined bodies, times of the last writes if requested, and last
    position."""

    number: int
    size: int
    bodies: bytes
    modified_at: list[int]
    last: Position


def fetch(
    session: Session, table_id: int, bounds: KeyRange, limit: int, concatenation: Concatenation, reverse: bool
) -> ConcatenatedBodies | None:
    """Return up to `limit` rows of a range within one partition. None if they must be read row by row.

    Raises DataCorrupted.
    """
    partition = bounds.lower.partition
    stored_key = stored_position(Position(partition, b""))
    column = stored_key.partition
    lower, upper = bounds.lower.sort, bounds.upper.sort
    if max(len(column), len(lower), len(upper)) >= KEPT_BYTES:
        return None
    parameters = (table_id, column, stored_key.slot, lower, upper, limit)
    if checksums.are_verified:
        return _fetch_verified(session, parameters, concatenation, reverse)
    statement = _statement(session.statements, reverse, concatenation)
    [(number, size, foreign, longest, edge, moments, bodies)] = session.query(statement, parameters)
    if foreign or (longest or 0) >= KEPT_BYTES:
        return None
    if not number:
        return ConcatenatedBodies(0, 0, b"", [], bounds.lower)
    modified_at = [*map(int, moments.split(","))] if concatenation.moments else []
    return ConcatenatedBodies(number, int(size), bodies, modified_at, Position(partition, edge))


def _fetch_verified(
    session: Session, parameters: tuple[Any, ...], concatenation: Concatenation, reverse: bool
) -> ConcatenatedBodies | None:
    """Verify the checksums of the rows, and return the result of `fetch`."""
    partition = parameters[1]
    rows = session.query(_statement_for_verifying(reverse), parameters)
    if not rows:
        return ConcatenatedBodies(0, 0, b"", [], Position(partition, b""))
    sorts, sizes, kinds, _, bodies, moments = zip(*rows, strict=True)
    if max(map(len, sorts)) >= KEPT_BYTES or (concatenation.native and kinds.count(None) < len(kinds)):
        return None
    checksums.verify(partition, rows)
    return ConcatenatedBodies(
        len(rows),
        sum(sizes),
        concatenation.separator.encode().join(bodies),
        [*moments] if concatenation.moments else [],
        Position(partition, sorts[-1]),
    )


_FROM_RANGE = """
FROM rows r WHERE r.table_id = ? AND r.partition = ? AND r.slot = ? AND r.sort >= ? AND r.sort < ?
ORDER BY r.sort{} LIMIT ?"""


@lru_cache(maxsize=2)
def _statement_for_verifying(reverse: bool) -> str:
    columns = "r.sort, r.size_bytes, r.kinds, r.checksum, r.body, r.modified_at"
    return f"SELECT {columns}{_FROM_RANGE.format(' DESC' if reverse else '')}"


@lru_cache(maxsize=16)
def _statement(statements: Statements, reverse: bool, concatenation: Concatenation) -> str:
    edge, moments, bodies = statements.concatenation(concatenation, reverse)
    foreign = "count(s.kinds)" if concatenation.native else "0"
    return f"""
SELECT count(*), sum(s.size_bytes), {foreign}, max(length(s.sort)), {edge},
    {moments if concatenation.moments else "NULL"}, {bodies}
FROM (SELECT r.sort, r.size_bytes, r.kinds, r.body, r.modified_at{_FROM_RANGE.format(" DESC" if reverse else "")}) s"""
