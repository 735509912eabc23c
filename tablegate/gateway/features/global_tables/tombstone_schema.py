"""The SQL table of deletions in replicated tables."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, LargeBinary, PrimaryKeyConstraint, SmallInteger, Table

from tablegate.gateway.store.sql.core_schema import metadata

# Times of deletion (ticks) of rows of replicated tables, until no replica can send an older write to them.
tombstones = Table(
    "tombstones",
    metadata,
    Column("table_id", BigInteger, nullable=False),
    Column("partition", LargeBinary, nullable=False),
    Column("sort", LargeBinary, nullable=False),
    Column("slot", SmallInteger, nullable=False),
    Column("full_key", LargeBinary),
    Column("deleted_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("table_id", "partition", "sort", "slot"),
    sqlite_with_rowid=False,
)
Index("tombstones_by_time", tombstones.c.table_id, tombstones.c.deleted_at)
