"""Counts of rows and billed bytes, which writes maintain. Existing tables are counted when their count is first read."""

from __future__ import annotations

import sqlalchemy
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.create_table(
        "row_counts",
        sqlalchemy.Column("owner_id", sqlalchemy.BigInteger, nullable=False),
        sqlalchemy.Column("slot", sqlalchemy.SmallInteger, nullable=False),
        sqlalchemy.Column("stripe", sqlalchemy.SmallInteger, nullable=False),
        sqlalchemy.Column("rows", sqlalchemy.BigInteger, nullable=False),
        sqlalchemy.Column("size_bytes", sqlalchemy.BigInteger, nullable=False),
        sqlalchemy.PrimaryKeyConstraint("owner_id", "slot", "stripe"),
        sqlite_with_rowid=False,
    )
