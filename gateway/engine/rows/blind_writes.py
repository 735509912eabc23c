"""Puts that are stored without a look at the old rows, with the outcome that `Batch` comes to by looking.

They have no condition, their old rows are not wanted, and nothing but the row of their table changes with them. A fast path of
`Batch._decide` (writing.py) for groups, writes and tables that have nothing but what is listed here. Pure: knows no SQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tablegate.gateway.model import fast_paths
from tablegate.gateway.model.commands.row_commands import WriteGroup
from tablegate.gateway.model.commands.writes import Replace, Write
from tablegate.gateway.model.expressions.predicates import ALWAYS
from tablegate.gateway.model.tables.tables import State, Table
from tablegate.gateway.model.values.rows import Row

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
    if not all(_changes_rows_only(table, now // 10_000) for table in tables):
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


def _changes_rows_only(table: Table, now_ms: int) -> bool:
    """Return whether a put changes nothing but its row, which does not depend on the old row."""
    return table.features <= _PUT_FEATURES and table.state_at(now_ms) in _WRITABLE


def _looks(groups: Sequence[WriteGroup], tables: Iterable[Table], now: int) -> list[list[Row]] | None:
    return None


puts = fast_paths.choose(fast_puts, _looks, _IS_SAFE)
