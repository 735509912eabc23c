"""The first schema, frozen. gateway/store/sql/schema.py describes the tables."""

from __future__ import annotations

import sqlalchemy
from alembic import op

revision = "0001"
down_revision = None

# PostgreSQL would sort by the locale of the database. SQLite sorts by bytes already.
NAME = sqlalchemy.Text().with_variant(sqlalchemy.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "changes",
        sqlalchemy.Column("stream_id", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("shard", sqlalchemy.Integer(), nullable=False),
        sqlalchemy.Column("sequence", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("at_ms", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("kind", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("noop", sqlalchemy.SmallInteger(), nullable=False),
        sqlalchemy.Column("actor", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("key", sqlalchemy.LargeBinary(), nullable=False),
        sqlalchemy.Column("old_modified_at", sqlalchemy.BigInteger(), nullable=True),
        sqlalchemy.Column("old_kinds", sqlalchemy.LargeBinary(), nullable=True),
        sqlalchemy.Column("old_body", sqlalchemy.LargeBinary(), nullable=True),
        sqlalchemy.Column("new_modified_at", sqlalchemy.BigInteger(), nullable=True),
        sqlalchemy.Column("new_kinds", sqlalchemy.LargeBinary(), nullable=True),
        sqlalchemy.Column("new_body", sqlalchemy.LargeBinary(), nullable=True),
        sqlalchemy.Column("actions", sqlalchemy.LargeBinary(), nullable=True),
        sqlalchemy.PrimaryKeyConstraint("stream_id", "shard", "sequence"),
        sqlite_with_rowid=False,
    )
    op.create_index("changes_by_time", "changes", ["stream_id", "shard", "at_ms"], unique=False)
    op.create_table(
        "counters",
        sqlalchemy.Column("name", NAME, nullable=False),
        sqlalchemy.Column("value", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "credentials",
        sqlalchemy.Column("scheme", NAME, nullable=False),
        sqlalchemy.Column("access_id", NAME, nullable=False),
        sqlalchemy.Column("place", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("sealed", sqlalchemy.LargeBinary(), nullable=False),
        sqlalchemy.Column("changed_at_ms", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.PrimaryKeyConstraint("scheme", "access_id"),
    )
    op.create_table(
        "entries",
        sqlalchemy.Column("index_id", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("partition", sqlalchemy.LargeBinary(), nullable=False),
        sqlalchemy.Column("sort", sqlalchemy.LargeBinary(), nullable=False),
        sqlalchemy.Column("slot", sqlalchemy.SmallInteger(), nullable=False),
        sqlalchemy.Column("size_bytes", sqlalchemy.Integer(), nullable=False),
        sqlalchemy.Column("row_partition", sqlalchemy.LargeBinary(), nullable=False),
        sqlalchemy.Column("row_sort", sqlalchemy.LargeBinary(), nullable=False),
        sqlalchemy.Column("row_slot", sqlalchemy.SmallInteger(), nullable=False),
        sqlalchemy.Column("full_key", sqlalchemy.LargeBinary(), nullable=True),
        sqlalchemy.PrimaryKeyConstraint("index_id", "partition", "sort", "slot"),
        sqlite_with_rowid=False,
    )
    op.create_index("entries_by_slot", "entries", ["index_id", "slot", "partition", "sort"], unique=False)
    op.create_table(
        "holds",
        sqlalchemy.Column("id", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("table_id", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("partition", sqlalchemy.LargeBinary(), nullable=False),
        sqlalchemy.Column("expires_at_ms", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("size_bytes", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("writes", sqlalchemy.Integer(), nullable=False),
        sqlalchemy.PrimaryKeyConstraint("id"),
        sqlalchemy.UniqueConstraint("table_id", "partition"),
    )
    op.create_table(
        "indexes",
        sqlalchemy.Column("id", sqlalchemy.BigInteger(), autoincrement=False, nullable=False),
        sqlalchemy.Column("table_id", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("name", NAME, nullable=False),
        sqlalchemy.Column("definition", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("properties", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("filled", sqlalchemy.SmallInteger(), nullable=False),
        sqlalchemy.Column("filled_up_to", sqlalchemy.LargeBinary(), nullable=True),
        sqlalchemy.Column("busy_until_ms", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.PrimaryKeyConstraint("id"),
        sqlalchemy.UniqueConstraint("table_id", "name"),
    )
    op.create_index("ix_indexes_table_id", "indexes", ["table_id"], unique=False)
    op.create_table(
        "namespace_properties",
        sqlalchemy.Column("namespace", NAME, nullable=False),
        sqlalchemy.Column("name", NAME, nullable=False),
        sqlalchemy.Column("document", sqlalchemy.Text(), nullable=False),
        sqlalchemy.PrimaryKeyConstraint("namespace", "name"),
    )
    op.create_table(
        "purges",
        sqlalchemy.Column("kind", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("id", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.PrimaryKeyConstraint("kind", "id"),
    )
    op.create_table(
        "refills",
        sqlalchemy.Column("table_id", sqlalchemy.BigInteger(), autoincrement=False, nullable=False),
        sqlalchemy.Column("mark", sqlalchemy.LargeBinary(), nullable=True),
        sqlalchemy.PrimaryKeyConstraint("table_id"),
    )
    op.create_table(
        "rows",
        sqlalchemy.Column("table_id", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("partition", sqlalchemy.LargeBinary(), nullable=False),
        sqlalchemy.Column("sort", sqlalchemy.LargeBinary(), nullable=False),
        sqlalchemy.Column("slot", sqlalchemy.SmallInteger(), nullable=False),
        sqlalchemy.Column("modified_at", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("expires_at_ms", sqlalchemy.BigInteger(), nullable=True),
        sqlalchemy.Column("size_bytes", sqlalchemy.Integer(), nullable=False),
        sqlalchemy.Column("kinds", sqlalchemy.LargeBinary(), nullable=True),
        sqlalchemy.Column("body", sqlalchemy.LargeBinary(), nullable=True),
        sqlalchemy.Column("full_key", sqlalchemy.LargeBinary(), nullable=True),
        sqlalchemy.PrimaryKeyConstraint("table_id", "partition", "sort", "slot"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "rows_by_expiry",
        "rows",
        ["expires_at_ms"],
        unique=False,
        sqlite_where=sqlalchemy.text("expires_at_ms IS NOT NULL"),
        postgresql_where=sqlalchemy.text("expires_at_ms IS NOT NULL"),
    )
    op.create_index("rows_by_slot", "rows", ["table_id", "slot", "partition", "sort"], unique=False)
    op.create_table(
        "shards",
        sqlalchemy.Column("stream_id", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("number", sqlalchemy.Integer(), nullable=False),
        sqlalchemy.Column("first_slot", sqlalchemy.SmallInteger(), nullable=False),
        sqlalchemy.Column("last_slot", sqlalchemy.SmallInteger(), nullable=False),
        sqlalchemy.Column("parents", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("opened_at_ms", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("closed_at_ms", sqlalchemy.BigInteger(), nullable=True),
        sqlalchemy.Column("last_sequence", sqlalchemy.BigInteger(), nullable=True),
        sqlalchemy.Column("trimmed", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.PrimaryKeyConstraint("stream_id", "number"),
    )
    op.create_table(
        "staged",
        sqlalchemy.Column("transaction_id", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("ordinal", sqlalchemy.Integer(), nullable=False),
        sqlalchemy.Column("partition", sqlalchemy.LargeBinary(), nullable=False),
        sqlalchemy.Column("sort", sqlalchemy.LargeBinary(), nullable=False),
        sqlalchemy.Column("full_key", sqlalchemy.LargeBinary(), nullable=True),
        sqlalchemy.Column("kind", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("modified_at", sqlalchemy.BigInteger(), nullable=True),
        sqlalchemy.Column("size_bytes", sqlalchemy.Integer(), nullable=True),
        sqlalchemy.Column("kinds", sqlalchemy.LargeBinary(), nullable=True),
        sqlalchemy.Column("body", sqlalchemy.LargeBinary(), nullable=True),
        sqlalchemy.Column("actions", sqlalchemy.LargeBinary(), nullable=True),
        sqlalchemy.PrimaryKeyConstraint("transaction_id", "ordinal"),
    )
    op.create_table(
        "streams",
        sqlalchemy.Column("id", sqlalchemy.BigInteger(), autoincrement=False, nullable=False),
        sqlalchemy.Column("table_id", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("namespace", NAME, nullable=False),
        sqlalchemy.Column("table_name", NAME, nullable=False),
        sqlalchemy.Column("label", NAME, nullable=False),
        sqlalchemy.Column("key_schema", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("rule", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("opened_at_ms", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("ended_at_ms", sqlalchemy.BigInteger(), nullable=True),
        sqlalchemy.PrimaryKeyConstraint("id"),
    )
    op.create_index("streams_by_table", "streams", ["namespace", "table_name", "label"], unique=False)
    op.create_table(
        "tables",
        sqlalchemy.Column("id", sqlalchemy.BigInteger(), autoincrement=False, nullable=False),
        sqlalchemy.Column("namespace", NAME, nullable=False),
        sqlalchemy.Column("name", NAME, nullable=False),
        sqlalchemy.Column("azure_name", NAME, nullable=False),
        sqlalchemy.Column("azure_name_lower", NAME, nullable=False),
        sqlalchemy.Column("key_schema", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("rules", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("properties", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("state", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("busy_until_ms", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("version", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("created_at_ms", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.PrimaryKeyConstraint("id"),
        sqlalchemy.UniqueConstraint("namespace", "name"),
        sqlalchemy.UniqueConstraint("namespace", "azure_name_lower"),
    )
    op.create_table(
        "tokens",
        sqlalchemy.Column("scope", NAME, nullable=False),
        sqlalchemy.Column("name", NAME, nullable=False),
        sqlalchemy.Column("digest", sqlalchemy.LargeBinary(), nullable=False),
        sqlalchemy.Column("answer", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("expires_at_ms", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.PrimaryKeyConstraint("scope", "name"),
    )
    op.create_index("ix_tokens_expires_at_ms", "tokens", ["expires_at_ms"], unique=False)
