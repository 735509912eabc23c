"""The SQL schema: the only definition, which Alembic compares with.

Static: users' tables are rows of `tables`, never DDL. Every data table has `slot` in its primary key, a fixed hash of the
partition, by which a distributed PostgreSQL shards. Positions are bytes whose order is key order (gateway/model/keys.py),
so no collation matters for them; names are compared by code point.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    text,
)

metadata = MetaData()

# PostgreSQL would sort by the locale of the database; SQLite sorts by bytes already.
Name = Text().with_variant(Text(collation="C"), "postgresql")

tables = Table(
    "tables",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("namespace", Name, nullable=False),
    Column("name", Name, nullable=False),
    Column("azure_name", Name, nullable=False),
    Column("azure_name_lower", Name, nullable=False),
    Column("key_schema", Text, nullable=False),
    Column("rules", Text, nullable=False),
    Column("properties", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("busy_until_ms", BigInteger, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    UniqueConstraint("namespace", "name"),
    UniqueConstraint("namespace", "azure_name_lower"),
)

indexes = Table(
    "indexes",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("table_id", BigInteger, nullable=False, index=True),
    Column("name", Name, nullable=False),
    Column("definition", Text, nullable=False),
    Column("properties", Text, nullable=False),
    Column("filled", SmallInteger, nullable=False),
    Column("filled_up_to", LargeBinary),
    Column("busy_until_ms", BigInteger, nullable=False),
    UniqueConstraint("table_id", "name"),
)

rows = Table(
    "rows",
    metadata,
    Column("table_id", BigInteger, nullable=False),
    Column("partition", LargeBinary, nullable=False),
    Column("sort", LargeBinary, nullable=False),
    Column("slot", SmallInteger, nullable=False),
    Column("modified_at", BigInteger, nullable=False),
    Column("expires_at_ms", BigInteger),
    Column("size_bytes", Integer, nullable=False),
    Column("kinds", LargeBinary),
    # NULL only inside a transaction: a key that was claimed and has no row yet.
    Column("body", LargeBinary),
    # Set where partition or sort had to be clipped (gateway/store/positions.py).
    Column("full_key", LargeBinary),
    PrimaryKeyConstraint("table_id", "partition", "sort", "slot"),
    sqlite_with_rowid=False,
)
Index("rows_by_slot", rows.c.table_id, rows.c.slot, rows.c.partition, rows.c.sort)
Index(
    "rows_by_expiry",
    rows.c.expires_at_ms,
    sqlite_where=text("expires_at_ms IS NOT NULL"),
    postgresql_where=text("expires_at_ms IS NOT NULL"),
)

entries = Table(
    "entries",
    metadata,
    Column("index_id", BigInteger, nullable=False),
    Column("partition", LargeBinary, nullable=False),
    Column("sort", LargeBinary, nullable=False),
    Column("slot", SmallInteger, nullable=False),
    Column("size_bytes", Integer, nullable=False),
    Column("row_partition", LargeBinary, nullable=False),
    Column("row_sort", LargeBinary, nullable=False),
    Column("row_slot", SmallInteger, nullable=False),
    Column("full_key", LargeBinary),
    PrimaryKeyConstraint("index_id", "partition", "sort", "slot"),
    sqlite_with_rowid=False,
)
Index("entries_by_slot", entries.c.index_id, entries.c.slot, entries.c.partition, entries.c.sort)

# Numbers that must never be given twice: ids, auto-increment columns, stream sequences.
counters = Table(
    "counters",
    metadata,
    Column("name", Name, primary_key=True),
    Column("value", BigInteger, nullable=False),
)

# Idempotency tokens, and what a replay must answer.
tokens = Table(
    "tokens",
    metadata,
    Column("scope", Name, nullable=False),
    Column("name", Name, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("answer", Text, nullable=False),
    Column("expires_at_ms", BigInteger, nullable=False, index=True),
    PrimaryKeyConstraint("scope", "name"),
)

# Tables and indexes that are gone and whose rows and entries are still to be deleted, a batch at a time.
purges = Table(
    "purges",
    metadata,
    Column("kind", Text, nullable=False),
    Column("id", BigInteger, nullable=False),
    PrimaryKeyConstraint("kind", "id"),
)

# What a dialect keeps for an account as a whole (Azure's service properties), as its own JSON.
namespace_properties = Table(
    "namespace_properties",
    metadata,
    Column("namespace", Name, nullable=False),
    Column("name", Name, nullable=False),
    Column("document", Text, nullable=False),
    PrimaryKeyConstraint("namespace", "name"),
)

# Access keys. The secrets are sealed (gateway/seal.py).
credentials = Table(
    "credentials",
    metadata,
    Column("scheme", Name, nullable=False),
    Column("access_id", Name, nullable=False),
    Column("place", Text, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("changed_at_ms", BigInteger, nullable=False),
    PrimaryKeyConstraint("scheme", "access_id"),
)
