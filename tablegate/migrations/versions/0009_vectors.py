"""Entries of vector indexes."""

from __future__ import annotations

import sqlalchemy
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "vectors",
        sqlalchemy.Column("index_id", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("partition", sqlalchemy.LargeBinary(), nullable=False),
        sqlalchemy.Column("sort", sqlalchemy.LargeBinary(), nullable=False),
        sqlalchemy.Column("slot", sqlalchemy.SmallInteger(), nullable=False),
        sqlalchemy.Column("version", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("size_bytes", sqlalchemy.Integer(), nullable=False),
        sqlalchemy.Column("partition_digest", sqlalchemy.LargeBinary()),
        sqlalchemy.Column("filter_digests", sqlalchemy.LargeBinary(), nullable=False),
        sqlalchemy.Column("full_key", sqlalchemy.LargeBinary()),
        sqlalchemy.Column("vector", sqlalchemy.LargeBinary(), nullable=False),
        sqlalchemy.PrimaryKeyConstraint("index_id", "partition", "sort", "slot"),
    )
    op.create_index("vectors_by_version", "vectors", ["index_id", "version", "size_bytes"])
    has_partitions = sqlalchemy.text("partition_digest IS NOT NULL")
    op.create_index(
        "vectors_by_partition",
        "vectors",
        ["index_id", "partition_digest", "version"],
        sqlite_where=has_partitions,
        postgresql_where=has_partitions,
    )
