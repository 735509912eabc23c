"""Numbers of rows and billed bytes of tables and indexes. Writes maintain them (store/rows/row_counts.py).

A table or index has no stored count if it was filled by a copy or a backfill. The first read of its count scans it and
stores the result. On a distributed database a scan has no single snapshot. Writes during it can make the count inexact.
"""

from __future__ import annotations

from collections.abc import Iterator

from tablegate.gateway.model.commands.table_commands import TableStatistics
from tablegate.gateway.model.tables.indexes import BaseIndex
from tablegate.gateway.model.tables.tables import State, Table
from tablegate.gateway.store.rows import row_counts, rows
from tablegate.gateway.store.rows.row_counts import EMPTY, Count
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.tables import index_kinds


def statistics(store: Store, table: Table, now_ms: int, recounts: bool = False) -> TableStatistics:
    """Return the counts of a table and its indexes. What is still being filled counts as empty.

    `recounts`: count everything by scans, and store the results.
    """
    owners = _filled_owners(table, now_ms)
    with store.read() as session:
        counts = {} if recounts else row_counts.complete_counts(session, [owner.id for owner in owners])
    owners_to_count = [owner for owner in owners if owner.id not in counts]
    if owners_to_count:
        counts |= _recount(store, owners_to_count)
    of_table = counts.get(table.id, EMPTY)
    of_indexes = {index.name: counts.get(index.id, EMPTY) for index in table.all_indexes}
    return TableStatistics(*of_table, of_indexes)


def of_table(session: Session, table: Table) -> Count:
    """Return the count of a table's rows."""
    count = row_counts.complete_counts(session, [table.id]).get(table.id)
    return _scan(session, table) if count is None else count


def _recount(store: Store, owners: list[Table | BaseIndex]) -> dict[int, Count]:
    """Count by scans, store the results and return them by id. The owners must be filled."""
    counts = {}
    for owner in owners:
        with store.read() as session:
            differences = row_counts.differences(session, [owner.id])
            counts[owner.id] = _scan(session, owner)
        with store.write() as session:
            row_counts.keep(session, owner.id, counts[owner.id], differences.get(owner.id, EMPTY))
    return counts


def mismatches(store: Store) -> Iterator[str]:
    """Yield a line for each stored count that differs from its rows. Writes must not run on a distributed database."""
    with store.read() as session:
        tables = store.catalog.all(session, "1 = 1 ORDER BY id")
    for table in tables:
        owners: list[Table | BaseIndex] = [table, *table.all_indexes]
        for owner in owners:
            with store.read() as session:
                stored_count = row_counts.complete_counts(session, [owner.id]).get(owner.id)
                actual_count = None if stored_count is None else _scan(session, owner)
            if stored_count != actual_count:
                yield f"{table.name}/{owner.name}: stored {stored_count}, found {actual_count}"


def _filled_owners(table: Table, now_ms: int) -> list[Table | BaseIndex]:
    if table.state_at(now_ms) is State.CREATING:
        return []
    return [table, *(index for index in table.all_indexes if index.filled)]


def _scan(session: Session, owner: Table | BaseIndex) -> Count:
    if isinstance(owner, Table):
        return Count(*rows.count(session, owner.id))
    return index_kinds.kind_of(owner).count(session, owner.id)
