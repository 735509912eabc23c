"""Many rows at once into a table where most of them are new.

A fast path of the write path (writing.py) for one kind of list: puts of one table of which nobody asks what they replace.
They are stored as if no row was there, index entries with them; where one is there after all, nothing is done, and they are
to be written as any others.
"""

from __future__ import annotations

from operator import attrgetter

from tablegate.gateway.engine.rows.writing import WITHOUT_ROWS
from tablegate.gateway.engine.tables import indexing
from tablegate.gateway.model import fast_paths
from tablegate.gateway.model.commands.row_commands import BulkLoad, WriteGroup
from tablegate.gateway.model.commands.writes import Replace, Write
from tablegate.gateway.model.errors import StaleTable
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.store.rows import entries, rows
from tablegate.gateway.store.sql.databases import KeyOccupied
from tablegate.gateway.store.store import Store

_FEATURES = frozenset({"expiry.attribute", "indexes", "max_versions", "stamped"})
"""What a table may have (Table.features) whose rows are stored so: all of it follows from the new rows alone."""


def fast_load(store: Store, command: BulkLoad, now: int) -> bool:
    """Store rows where there are none, in a transaction of its own. `now`: ticks of 100 ns since 1970. False: nothing was done,
    because the table has more than rows and entries, or some row was there. Raises StaleTable, Retry, CommitInterrupted, Busy."""
    table = command.table
    if not table.features <= _FEATURES or table.state_at(now // 10_000) in WITHOUT_ROWS:
        return False
    made = [Row(position, contents, now) for position, contents in command.rows]
    if table.rules.expiry is not None:
        for row in made:
            row.expires_at_ms = table.expires_at_ms(row)
    made.sort(key=attrgetter("position"))
    _, added = indexing.differences(table, ((None, row) for row in made)) if table.indexes else ([], [])
    near = made[0].position.partition if made else b""
    try:
        with store.write() as session:
            if store.catalog.check(session, [table], lock=True, near=near)():
                store.catalog.cache.forget(table.id)
                raise StaleTable()
            rows.load(session, ((table.id, row) for row in made))
            entries.add_many(session, added)
    except KeyOccupied:
        return False
    return True


def _never(store: Store, command: BulkLoad, now: int) -> bool:
    return False


load = fast_paths.choose(fast_load, _never, fast_paths.covers(BulkLoad, "table rows"))


def puts_of(command: BulkLoad) -> WriteGroup:
    """The group of puts that a load is."""
    table = command.table
    decode = table.key_schema.decode
    return WriteGroup(
        tuple(Write(table, decode(position), Replace(contents)) for position, contents in command.rows)
    )
