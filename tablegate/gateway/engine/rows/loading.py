"""Bulk load: a fast path of the write path (writing.py) for puts of new rows.

The puts are for one table and do not need the old rows. Rows and index entries are inserted without reading. If a row
already exists, nothing is stored, and the list goes through the normal write path.
"""

from __future__ import annotations

from operator import attrgetter

from tablegate.gateway.engine.attempts import Attempt, Runners
from tablegate.gateway.model import fast_paths
from tablegate.gateway.model.commands.row_commands import BulkLoad, WriteGroup
from tablegate.gateway.model.commands.writes import Replace, Write
from tablegate.gateway.model.errors import GatewayError, StaleTable
from tablegate.gateway.model.tables.tables import BUSY_STATES
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.store.rows import rows
from tablegate.gateway.store.rows.row_counts import CountChanges
from tablegate.gateway.store.sql.databases import KeyOccupied
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.tables import index_kinds

_FEATURES = frozenset({"expiry.attribute", "indexes", "max_versions", "stamped"})
"""Features (Table.features) that allow it: their data follows from the new rows alone."""


def fast_load(store: Store, command: BulkLoad, now: int) -> bool:
    """Insert new rows in a transaction of their own. `now`: ticks of 100 ns since 1970.

    Return False, without any change, if the table has other features or a row already exists. Raises StaleTable,
    RetryableFailure, CommitInterrupted, Busy.
    """
    table = command.table
    if not table.features <= _FEATURES or table.state_at(now // 10_000) in BUSY_STATES:
        return False
    rows_to_add = [Row(position, contents, now) for position, contents in command.rows]
    if table.rules.expiry is not None:
        for row in rows_to_add:
            row.expires_at_ms = table.expires_at_ms(row)
    rows_to_add.sort(key=attrgetter("position"))
    counts = CountChanges()
    for row in rows_to_add:
        counts.add(table.id, None, row)
    _, new_entries = index_kinds.differences(table.indexes, ((None, row) for row in rows_to_add), counts)
    near = rows_to_add[0].position.partition if rows_to_add else b""
    try:
        with store.write() as session:
            if store.catalog.check(session, [table], lock=True, near=near)():
                store.catalog.cache.forget(table.id)
                raise StaleTable()
            rows.load(session, ((table.id, row) for row in rows_to_add))
            index_kinds.add_entries(session, new_entries)
            counts.save(session, near)
    except KeyOccupied:
        return False
    return True


def _never(store: Store, command: BulkLoad, now: int) -> bool:
    return False


load = fast_paths.choose(fast_load, _never, fast_paths.covers(BulkLoad, "table rows"))


def puts_of(command: BulkLoad) -> WriteGroup:
    """Return the load as a group of puts."""
    table = command.table
    decode = table.key_schema.decode
    return WriteGroup(
        tuple(Write(table, decode(position), Replace(contents)) for position, contents in command.rows)
    )


def _run(attempt: Attempt, command: BulkLoad) -> GatewayError | None:
    is_loaded = True

    def run() -> None:
        nonlocal is_loaded
        is_loaded = load(attempt.store, command, attempt.now)

    attempt.transactions.run_transaction(run)
    if is_loaded:
        return None
    [answer] = attempt.transactions.write([puts_of(command)])
    return answer if isinstance(answer, GatewayError) else None


COMMANDS: Runners = {BulkLoad: _run}
