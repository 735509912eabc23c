"""Background jobs of clients."""

from __future__ import annotations

import sqlalchemy
from alembic import op

revision = "0011"
down_revision = "0010"

NAME = sqlalchemy.Text().with_variant(sqlalchemy.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "jobs",
        sqlalchemy.Column("id", sqlalchemy.BigInteger(), primary_key=True, autoincrement=False),
        sqlalchemy.Column("kind", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("namespace", NAME, nullable=False),
        sqlalchemy.Column("table_name", NAME, nullable=False),
        sqlalchemy.Column("definition", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("progress", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("state", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("created_at_ms", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("ended_at_ms", sqlalchemy.BigInteger()),
        sqlalchemy.Column("cancelled", sqlalchemy.SmallInteger(), nullable=False),
        sqlalchemy.Column("claim", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("claimed_until_ms", sqlalchemy.BigInteger(), nullable=False),
    )
    op.create_index("jobs_by_age", "jobs", ["namespace", "kind", "created_at_ms", "id"])
    op.create_index(
        "jobs_to_do",
        "jobs",
        ["id"],
        sqlite_where=sqlalchemy.text("ended_at_ms IS NULL"),
        postgresql_where=sqlalchemy.text("ended_at_ms IS NULL"),
    )
