"""Followers of tables, and times of deletion of replicated rows."""

from __future__ import annotations

import sqlalchemy
from alembic import op

revision = "0010"
down_revision = "0009"

NAME = sqlalchemy.Text().with_variant(sqlalchemy.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "followers",
        sqlalchemy.Column("id", sqlalchemy.BigInteger(), primary_key=True, autoincrement=False),
        sqlalchemy.Column("table_id", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("kind", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("target", NAME, nullable=False),
        sqlalchemy.Column("stream_id", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("positions", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("copying", sqlalchemy.SmallInteger(), nullable=False),
        sqlalchemy.Column("mark", sqlalchemy.LargeBinary()),
        sqlalchemy.Column("owner", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("owned_until_ms", sqlalchemy.BigInteger(), nullable=False),
    )
    op.create_index("ix_followers_table_id", "followers", ["table_id"])
    op.create_table(
        "tombstones",
        sqlalchemy.Column("table_id", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("partition", sqlalchemy.LargeBinary(), nullable=False),
        sqlalchemy.Column("sort", sqlalchemy.LargeBinary(), nullable=False),
        sqlalchemy.Column("slot", sqlalchemy.SmallInteger(), nullable=False),
        sqlalchemy.Column("full_key", sqlalchemy.LargeBinary()),
        sqlalchemy.Column("deleted_at", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.PrimaryKeyConstraint("table_id", "partition", "sort", "slot"),
        sqlite_with_rowid=False,
    )
    op.create_index("tombstones_by_time", "tombstones", ["table_id", "deleted_at"])
