"""Rows of SQLite in insertion order, for databases without rows.

A database with rows keeps the order of keys, since moving all rows might take minutes. Statements are the same for
both.
"""

from __future__ import annotations

import sqlalchemy
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    connection = op.get_bind()
    if (
        connection.dialect.name != "sqlite"
        or connection.execute(sqlalchemy.text("SELECT EXISTS (SELECT 1 FROM rows)")).scalar_one()
    ):
        return
    op.drop_table("rows")
    op.create_table(
        "rows",
        sqlalchemy.Column("table_id", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("partition", sqlalchemy.LargeBinary(), nullable=False),
        sqlalchemy.Column("sort", sqlalchemy.LargeBinary(), nullable=False),
        sqlalchemy.Column("slot", sqlalchemy.SmallInteger(), nullable=False),
        sqlalchemy.Column("modified_at", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("expires_at_ms", sqlalchemy.BigInteger()),
        sqlalchemy.Column("size_bytes", sqlalchemy.Integer(), nullable=False),
        sqlalchemy.Column("kinds", sqlalchemy.LargeBinary()),
        sqlalchemy.Column("body", sqlalchemy.LargeBinary()),
        sqlalchemy.Column("full_key", sqlalchemy.LargeBinary()),
        sqlalchemy.PrimaryKeyConstraint("table_id", "partition", "sort", "slot"),
    )
    op.create_index("rows_by_slot", "rows", ["table_id", "slot", "partition", "sort"])
    op.create_index(
        "rows_by_expiry",
        "rows",
        ["expires_at_ms"],
        sqlite_where=sqlalchemy.text("expires_at_ms IS NOT NULL"),
    )
