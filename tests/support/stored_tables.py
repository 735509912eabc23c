"""Tables as stored in the database, whatever their state: rows and index entries, for comparison byte by byte."""

from __future__ import annotations

from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.model.tables.tables import Table

StoredRows = dict[object, tuple[object, ...]]
"""Partition and sort key -> all that is stored beside them."""


def stored_rows(engine: Engine, table_id: int) -> StoredRows:
    with engine._store.read() as session:
        return {
            tuple(row[:2]): tuple(row[2:])
            for row in session.query(
                "SELECT partition, sort, modified_at, size_bytes, kinds, body, full_key FROM rows WHERE table_id = ?",
                (table_id,),
            )
        }


def stored_entries(engine: Engine, table: Table) -> list[list[tuple[object, ...]]]:
    """The entries of each index, in order."""
    with engine._store.read() as session:
        return [
            session.query(
                "SELECT partition, sort, slot, size_bytes, row_partition, row_sort, row_slot FROM entries"
                " WHERE index_id = ? ORDER BY partition, sort",
                (index.id,),
            )
            for index in table.indexes
        ]
