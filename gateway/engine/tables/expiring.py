"""Expiry: expired rows become ordinary deletes by the actor "expiry". A new rule gives rows new times.

`Table.expires_at_ms` (model) decides when a row expires. The column `expires_at_ms` only finds due rows quickly. It may
be out of date for a while after a rule changed, so the sweep evaluates the rule again before it deletes.
"""

from __future__ import annotations

from tablegate.gateway.engine.background import batch_walk
from tablegate.gateway.model.commands.row_commands import WriteGroup
from tablegate.gateway.model.commands.writes import Remove, Write
from tablegate.gateway.model.expressions.predicates import RevisionIs
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import Key
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.store.rows import rows
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.tables import expiry_backfills

EXPIRY_ACTOR = "expiry"


def sweep(store: Store, now_ms: int, limit: int) -> list[WriteGroup]:
    """Return deletes of at most `limit` expired rows. Each applies only if its row was not written since."""
    with store.read() as session:
        found, damaged = rows.expired(session, now_ms, limit)
        tables = {
            table_id: store.catalog.by_id(session, table_id)
            for table_id in {table_id for table_id, _ in found}
        }
    for error in damaged:
        store.note_damage(error)
    groups = []
    outdated: list[tuple[int, Row]] = []
    for table_id, row in found:
        table = tables[table_id]
        if table is None:
            outdated.append((table_id, row))  # the table is dropped, and the rows await the purge
            row.expires_at_ms = None
        elif (expires_at_ms := table.expires_at_ms(row)) is None or expires_at_ms > now_ms:
            outdated.append((table_id, row))
            row.expires_at_ms = expires_at_ms
        else:
            groups.append(WriteGroup((_removal(table, row),)))
    if outdated:
        with store.write() as session:
            rows.set_expiry(session, outdated)
    return groups


def _removal(table: Table, row: Row) -> Write:
    key = Key(table.key_schema.decode(row.position).values, row.position)
    return Write(table, key, Remove(), RevisionIs(row.modified_at), actor=EXPIRY_ACTOR)


def backfill(store: Store, limit: int) -> int | None:
    """Recompute the expiry times of at most `limit` rows of a table that has a new rule.

    Return the number of processed rows, or None if no table waits. `modified_at` and streams do not change.
    """
    with store.read() as session:
        waiting = expiry_backfills.first(session)
    if waiting is None:
        return None
    with store.write() as session:
        table_id, mark = waiting
        table = store.catalog.lock(session, table_id)
        batch = None if table is None else batch_walk.next_batch(session, table, mark, limit)
        if table is None or batch is None:
            expiry_backfills.finish(session, table_id)
            return 0
        changed = []
        for row in batch.rows:
            expires_at_ms = table.expires_at_ms(row)
            if expires_at_ms != row.expires_at_ms:
                row.expires_at_ms = expires_at_ms
                changed.append((table_id, row))
        rows.set_expiry(session, changed)
        expiry_backfills.save_progress(session, table_id, batch.mark, batch.length)
    return batch.length
