"""The SQL tables of local transactions."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
)

from tablegate.gateway.store.sql.core_schema import metadata

# Open local transactions. Each locks one partition (as gateway/store/sql/positions.py stores it) of one table.
partition_locks = Table(
    "partition_locks",
    metadata,
    Column("id", Text, nullable=False),
    Column("slot", SmallInteger, nullable=False),
    Column("table_id", BigInteger, nullable=False),
    Column("partition", LargeBinary, nullable=False),
    Column("expires_at_ms", BigInteger, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("writes", Integer, nullable=False),
    PrimaryKeyConstraint("id", "slot"),
    UniqueConstraint("table_id", "partition", "slot"),
)

# The writes of open local transactions: the resulting rows, and the changes for change streams.
staged_writes = Table(
    "staged_writes",
    metadata,
    Column("transaction_id", Text, nullable=False),
    Column("slot", SmallInteger, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("partition", LargeBinary, nullable=False),
    Column("sort", LargeBinary, nullable=False),
    Column("full_key", LargeBinary),
    Column("kind", Text, nullable=False),
    Column("modified_at", BigInteger),
    Column("size_bytes", Integer),
    Column("kinds", LargeBinary),
    Column("body", LargeBinary),
    Column("actions", LargeBinary),
    PrimaryKeyConstraint("transaction_id", "slot", "ordinal"),
)
