"""The SQL tables of the core. migrations/schema.py has the whole schema, which tests compare with the migrations.

The schema is static: users' tables are rows of `tables`, and no request runs DDL. Every data table has `slot` in its
primary key. The slot is a hash of the partition, and a distributed PostgreSQL shards by it. Positions are bytes in the
order of keys (gateway/model/values/keys.py), so collations do not affect them. Names are compared by code point.
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
"""The SQL tables of the imported modules. migrations/schema.py imports all of them."""
# PostgreSQL would sort by the locale of the database. SQLite sorts by bytes already.
Name = Text().with_variant(Text(collation="C"), "postgresql")

# Properties of an account (Azure's service properties), as JSON of the dialect.
Table(
    "namespace_properties",
    metadata,
    Column("namespace", Name, nullable=False),
    Column("name", Name, nullable=False),
    Column("document", Text, nullable=False),
    PrimaryKeyConstraint("namespace", "name"),
    info={"on_every_node": "changed by operators"},
)

# Access keys. The secrets are encrypted (gateway/security/secret_cipher.py).
Table(
    "credentials",
    metadata,
    Column("scheme", Name, nullable=False),
    Column("access_id", Name, nullable=False),
    Column("place", Text, nullable=False),
    Column("encrypted_secrets", LargeBinary, nullable=False),
    Column("changed_at_ms", BigInteger, nullable=False),
    PrimaryKeyConstraint("scheme", "access_id"),
    info={"on_every_node": "changed by operators"},
)

# One row: the schema of the oldest release that may serve this database (gateway/store/migrating.py).
Table(
    "schema_compatibility",
    metadata,
    Column("oldest", Text, primary_key=True),
    info={"on_every_node": "changed by migrations"},
)

# Grants of permissions (gateway/security/grant_store.py).
Table(
    "grants",
    metadata,
    Column("id", Name, nullable=False),
    Column("grantee", Name, nullable=False),
    Column("form", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    PrimaryKeyConstraint("id"),
    info={"on_every_node": "changed by operators"},
)

# Audit lines, if the audit is kept in the database (gateway/observability/audit.py).
Table(
    "audit_events",
    metadata,
    Column("at_ms", BigInteger, nullable=False),
    Column("id", Text, nullable=False),
    Column("line", Text, nullable=False),
    PrimaryKeyConstraint("at_ms", "id"),
    info={"on_every_node": "many lines at a time, from the thread of the audit"},
)

# The quota document of a credential or a namespace (gateway/security/quotas.py).
Table(
    "quotas",
    metadata,
    Column("owner", Name, primary_key=True),
    Column("document", Text, nullable=False),
    Column("changed_at_ms", BigInteger, nullable=False),
    info={"on_every_node": "changed by operators"},
)

# Recent demand on each quota at every server process. The processes share a quota in proportion.
Table(
    "quota_demands",
    metadata,
    Column("owner", Name, nullable=False),
    Column("process", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    PrimaryKeyConstraint("owner", "process"),
    info={"on_every_node": "a row for each server process, every few seconds"},
)


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
    info={"on_every_node": "read by every request, changed by definitions"},
)

# Background work searches these several times a second, however many tables there are.
Index(
    "tables_deleting",
    tables.c.busy_until_ms,
    sqlite_where=text("state = 'deleting'"),
    postgresql_where=text("state = 'deleting'"),
)

# Every server reads the policies every few seconds. store/tables/catalog.py has the same condition.
_HAS_POLICIES = text("replace(properties, '\"resource_policies\":', '') <> properties")
Index("tables_with_policies", tables.c.id, sqlite_where=_HAS_POLICIES, postgresql_where=_HAS_POLICIES)

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
    info={"on_every_node": "read by every request, changed by definitions"},
)

Index(
    "indexes_to_fill",
    indexes.c.table_id,
    sqlite_where=text("filled = 0"),
    postgresql_where=text("filled = 0"),
)

# SQLite stores rows in insertion order, with a separate index of the key. Rows are large: in key order, each would have
# its own page to be written (docs/contribute/measured-storage.md).
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
    # NULL only inside a transaction, for a claimed key without a row.
    Column("body", LargeBinary),
    # Set if partition or sort was clipped (gateway/store/sql/positions.py).
    Column("full_key", LargeBinary),
    # NULL as the body (gateway/store/sql/checksums.py).
    Column("checksum", BigInteger),
    PrimaryKeyConstraint("table_id", "partition", "sort", "slot"),
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

# Numbers of rows and billed bytes of tables and indexes (gateway/store/rows/row_counts.py).
row_counts = Table(
    "row_counts",
    metadata,
    Column("owner_id", BigInteger, nullable=False),
    Column("slot", SmallInteger, nullable=False),
    Column("stripe", SmallInteger, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    PrimaryKeyConstraint("owner_id", "slot", "stripe"),
    sqlite_with_rowid=False,
)

# Numbers that are never used twice: ids, auto-increment columns, stream sequences.
counters = Table(
    "counters",
    metadata,
    Column("name", Name, nullable=False),
    Column("slot", SmallInteger, nullable=False),
    Column("value", BigInteger, nullable=False),
    PrimaryKeyConstraint("name", "slot"),
)

# Idempotency tokens with the answer for a repeated request.
tokens = Table(
    "tokens",
    metadata,
    Column("scope", Name, nullable=False),
    Column("name", Name, nullable=False),
    Column("slot", SmallInteger, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("answer", Text, nullable=False),
    Column("expires_at_ms", BigInteger, nullable=False, index=True),
    PrimaryKeyConstraint("scope", "name", "slot"),
)

# Change streams, including disabled ones and those of dropped tables, until their retention ends.
streams = Table(
    "streams",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("table_id", BigInteger, nullable=False),
    Column("namespace", Name, nullable=False),
    Column("table_name", Name, nullable=False),
    Column("label", Name, nullable=False),
    Column("key_schema", Text, nullable=False),
    Column("rule", Text, nullable=False),
    Column("opened_at_ms", BigInteger, nullable=False),
    Column("ended_at_ms", BigInteger),
    info={"on_every_node": "read by every request, changed by definitions"},
)
Index("streams_by_table", streams.c.namespace, streams.c.table_name, streams.c.label)

# A shard is a range of shard hashes (model/tables/changes.py) for a time. Changes up to `trimmed` are deleted.
shards = Table(
    "shards",
    metadata,
    Column("stream_id", BigInteger, nullable=False),
    Column("number", Integer, nullable=False),
    Column("first_hash", SmallInteger, nullable=False),
    Column("last_hash", SmallInteger, nullable=False),
    Column("parents", Text, nullable=False),
    Column("opened_at_ms", BigInteger, nullable=False),
    Column("closed_at_ms", BigInteger),
    Column("last_sequence", BigInteger),
    Column("trimmed", BigInteger, nullable=False),
    PrimaryKeyConstraint("stream_id", "number"),
    info={"on_every_node": "changed when they roll or are resharded"},
)

# One row for each recorded write, numbered by its shard's counter in the write's own transaction.
changes = Table(
    "changes",
    metadata,
    Column("stream_id", BigInteger, nullable=False),
    Column("shard", Integer, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("slot", SmallInteger, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("noop", SmallInteger, nullable=False),
    Column("actor", Text, nullable=False),
    Column("key", LargeBinary, nullable=False),
    Column("old_modified_at", BigInteger),
    Column("old_kinds", LargeBinary),
    Column("old_body", LargeBinary),
    Column("new_modified_at", BigInteger),
    Column("new_kinds", LargeBinary),
    Column("new_body", LargeBinary),
    Column("actions", LargeBinary),
    PrimaryKeyConstraint("stream_id", "shard", "sequence", "slot"),
    sqlite_with_rowid=False,
)
Index("changes_by_time", changes.c.stream_id, changes.c.shard, changes.c.at_ms)

# The followers of tables. `stream_id` and `positions` are the progress: a stream of the table, and the next sequence of
# each of its shards. While `copying`, the follower first gets the rows of the table, from `mark` on.
followers = Table(
    "followers",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("table_id", BigInteger, nullable=False, index=True),
    Column("kind", Text, nullable=False),
    Column("target", Name, nullable=False),
    Column("stream_id", BigInteger, nullable=False),
    Column("positions", Text, nullable=False),
    Column("copying", SmallInteger, nullable=False),
    Column("mark", LargeBinary),
    # The server that delivers to it, and the end of that server's lease.
    Column("owner", Text, nullable=False),
    Column("owned_until_ms", BigInteger, nullable=False),
    # The end of a removed follower, with the definition of the table at that time. NULL: it is active.
    Column("ending", Text),
    info={"on_every_node": "positions, saved after many changes were delivered"},
)

# Dropped tables and indexes. Their rows and entries are still to be deleted, in batches.
purges = Table(
    "purges",
    metadata,
    Column("kind", Text, nullable=False),
    Column("id", BigInteger, nullable=False),
    PrimaryKeyConstraint("kind", "id"),
    info={"on_every_node": "a row for each table that is gone"},
)

# Tables with a changed expiry rule, and the progress of updating their rows.
expiry_backfills = Table(
    "expiry_backfills",
    metadata,
    Column("table_id", BigInteger, primary_key=True, autoincrement=False),
    Column("mark", LargeBinary),
    info={"on_every_node": "progress of background work"},
)

# Number of rows done of such work, and of filling an index (gateway/store/sql/progress.py).
progress = Table(
    "progress",
    metadata,
    Column("work", Text, nullable=False),
    Column("id", BigInteger, nullable=False),
    Column("rows_done", BigInteger, nullable=False),
    PrimaryKeyConstraint("work", "id"),
    info={"on_every_node": "progress of background work"},
)
