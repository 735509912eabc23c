"""Writes whose outcome can be told without a look at the rows that are there: the same outcome as `Batch` comes to by looking.

Two sorts, by far the commonest writes of all: puts of which nobody asks what they replace, and writes of which the database
itself says whether there is a row: those on the condition that there is none, and other puts, which are tried as if they were
such. Only for tables of which nothing but rows changes.
Fast paths of `Batch._decide` (writing.py), for groups, writes and tables that have nothing but what is listed here. Pure: knows
groups and tables, and no SQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gateway.model import fast_paths
from gateway.model.commands import WriteGroup
from gateway.model.errors import GatewayError
from gateway.model.predicates import ALWAYS, And, Exists, Not, Predicate, RowExists
from gateway.model.rows import Row
from gateway.model.tables import State, Table
from gateway.model.writes import Replace, Write, apply

WITHOUT_ROWS = frozenset({State.CREATING, State.DELETING})
"""The states in which a table takes no writes."""
_WRITABLE = (State.ACTIVE, State.UPDATING)
HARMLESS_FEATURES = frozenset({"expiry.attribute", "max_versions", "stamped"})
"""What a table may have (Table.features) whose rows are written without a look: all of it follows from the new row alone."""
_PUT_FEATURES = HARMLESS_FEATURES | {"history"}
"""The same of puts: the database itself can record what was there (Batch._put_blindly)."""
_IS_SAFE = fast_paths.covers(WriteGroup, "writes token transaction") and fast_paths.covers(
    Write, "table key change condition view rule actor wants_old recorded shown stamp"
)


def fast_puts(groups: Sequence[WriteGroup], tables: Iterable[Table], now: int) -> list[list[Row]] | None:
    """For each group the rows that its writes leave, in order, if all are puts that may go over anything; else None."""
    if not all(_changes_rows_only(table, now // 10_000, _PUT_FEATURES) for table in tables):
        return None
    left: list[list[Row]] = []
    for group in groups:
        if group.token is not None or group.transaction:
            return None
        rows: list[Row] = []
        for write in group.writes:
            change, table = write.change, write.table
            if write.wants_old or type(change) is not Replace or write.condition is not ALWAYS or write.actor:
                return None
            row = Row(write.key.position, change.contents, now)
            if table.rules.expiry is not None:
                row.expires_at_ms = table.expires_at_ms(row)
            rows.append(row)
        left.append(rows)
    return left


def fast_inserts(groups: Sequence[WriteGroup], tables: Iterable[Table], now: int) -> list[list[Row]] | None:
    """For each group the rows that its writes leave, in order, if all are of different rows, each of which is not there or may
    be put over, and none fails where no row is there; else None. `now`: ticks of 100 ns since 1970."""
    if not all(_changes_rows_only(table, now // 10_000) for table in tables):
        return None
    left: list[list[Row]] = []
    seen: set[tuple[int, object]] = set()
    number = 0
    for group in groups:
        if group.token is not None or group.transaction:
            return None
        rows: list[Row] = []
        for write in group.writes:
            row = _inserted(write, now)
            if row is None:
                return None
            rows.append(row)
            seen.add((write.table.id, row.position))
        left.append(rows)
        number += len(rows)
    return None if len(seen) < number else left


def _inserted(write: Write, now: int) -> Row | None:
    """The row that a write leaves where there is none; None if it is not worth a try without a look."""
    condition = write.condition
    if (
        condition is ALWAYS
    ):  # a put whose dialect may have something to say of an old row: mostly there is none
        is_tried = type(write.change) is Replace
    else:
        is_tried = _is_of_absence(condition, write.table.key_schema.names)
    if write.actor or not is_tried:
        return None
    try:
        return apply(write, None, now)
    except GatewayError:
        return None


def _is_of_absence(condition: Predicate, key_names: tuple[str, ...]) -> bool:
    """Whether a condition is false of every row that is there. Every row has its key columns."""
    if type(condition) is And:
        return any(_is_of_absence(part, key_names) for part in condition.parts)
    if type(condition) is not Not:
        return False
    part = condition.part
    return type(part) is RowExists or (
        type(part) is Exists and len(part.path) == 1 and part.path[0] in key_names
    )


def _changes_rows_only(table: Table, now_ms: int, features: frozenset[str] = HARMLESS_FEATURES) -> bool:
    """Whether nothing but its row changes with a write to a table, and its row does not depend on what it was."""
    return table.features <= features and table.state_at(now_ms) in _WRITABLE


def _looks(groups: Sequence[WriteGroup], tables: Iterable[Table], now: int) -> list[list[Row]] | None:
    return None


puts = fast_paths.choose(fast_puts, _looks, _IS_SAFE)
inserts = fast_paths.choose(fast_inserts, _looks, _IS_SAFE)
