"""The expiry sweep: rows whose time is over become ordinary deletes, by the actor "expiry"."""

from __future__ import annotations

from gateway.model.commands import WriteGroup
from gateway.model.keys import Key
from gateway.model.predicates import RevisionIs
from gateway.model.writes import Remove, Write
from gateway.store import rows
from gateway.store.store import Store

EXPIRY_ACTOR = "expiry"
SWEEP_ROWS = 256


def expired_writes(store: Store, now_ms: int) -> list[WriteGroup]:
    """Deletes of some rows that have expired. Each holds only if its row was not written since it was found."""
    with store.read() as session:
        found = rows.expired(session, now_ms, SWEEP_ROWS)
        tables = {
            table.id: table
            for table_id in {table_id for table_id, _ in found}
            if (table := store.catalog.by_id(session, table_id)) is not None
        }
    groups = []
    for table_id, row in found:
        table = tables.get(table_id)
        if table is not None:
            key = Key(table.key_schema.decode(row.position).values, row.position)
            condition = RevisionIs(row.modified_at)
            groups.append(WriteGroup((Write(table, key, Remove(), condition, actor=EXPIRY_ACTOR),)))
    return groups
