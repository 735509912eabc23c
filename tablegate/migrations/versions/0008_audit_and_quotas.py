"""Audit lines, quotas, recent demand on quotas, and the oldest release that may serve a database."""

from __future__ import annotations

import sqlalchemy
from alembic import op

revision = "0008"
down_revision = "0007"

NAME = sqlalchemy.Text().with_variant(sqlalchemy.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "schema_compatibility",
        sqlalchemy.Column("oldest", sqlalchemy.Text(), nullable=False),
        sqlalchemy.PrimaryKeyConstraint("oldest"),
    )
    op.create_table(
        "audit_events",
        sqlalchemy.Column("at_ms", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("id", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("line", sqlalchemy.Text(), nullable=False),
        sqlalchemy.PrimaryKeyConstraint("at_ms", "id"),
    )
    op.create_table(
        "quotas",
        sqlalchemy.Column("owner", NAME, nullable=False),
        sqlalchemy.Column("document", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("changed_at_ms", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.PrimaryKeyConstraint("owner"),
    )
    op.create_table(
        "quota_demands",
        sqlalchemy.Column("owner", NAME, nullable=False),
        sqlalchemy.Column("process", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("document", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("at_ms", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.PrimaryKeyConstraint("owner", "process"),
    )
