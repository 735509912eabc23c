"""The SQL tables of histories, copies and backups."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
)

from tablegate.gateway.store.sql.core_schema import Name, metadata

# Previous versions of rows, one for each row that a transaction changed, with the transaction's time (ticks). New ones
# are appended in key order, on few pages. A NULL body means that there was no row.
history = Table(
    "history",
    metadata,
    Column("history_id", BigInteger, nullable=False),
    Column("changed_at", BigInteger, nullable=False),
    Column("slot", SmallInteger, nullable=False),
    Column("partition", LargeBinary, nullable=False),
    Column("sort", LargeBinary, nullable=False),
    Column("full_key", LargeBinary),
    Column("modified_at", BigInteger),
    Column("size_bytes", Integer, nullable=False),
    Column("kinds", LargeBinary),
    Column("body", LargeBinary),
    PrimaryKeyConstraint("history_id", "changed_at", "slot", "partition", "sort"),
    sqlite_with_rowid=False,
)

# The active histories and their retention in days (NULL: unlimited).
histories = Table(
    "histories",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("table_id", BigInteger, nullable=False),
    Column("days", Integer),
    info={"on_every_node": "changed by definitions"},
)

# Tables that are filled with the state of another one at a time (NULL: the current state), and their progress.
copies = Table(
    "copies",
    metadata,
    Column("target_id", BigInteger, primary_key=True, autoincrement=False),
    Column("source_id", BigInteger, nullable=False, index=True),
    Column("history_id", BigInteger),
    Column("at", BigInteger),
    # The current phase. backup_store.py has the numbers.
    Column("phase", SmallInteger, nullable=False),
    Column("mark", LargeBinary),
    info={"on_every_node": "a row for each copy that is under way"},
)

# Backups. Their rows belong to a hidden table. A backup is not available until its copy is complete.
backups = Table(
    "backups",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("namespace", Name, nullable=False),
    Column("table_name", Name, nullable=False),
    Column("name", Name, nullable=False),
    Column("kind", Text, nullable=False),
    Column("copy_id", BigInteger, nullable=False, index=True),
    Column("definition", Text, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("ready", SmallInteger, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("expires_at_ms", BigInteger, index=True),
    info={"on_every_node": "a row for each backup"},
)
Index("backups_by_table", backups.c.namespace, backups.c.table_name, backups.c.created_at_ms)
