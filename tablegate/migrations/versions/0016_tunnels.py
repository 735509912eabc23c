"""Tunnels: deliveries of rows and changes that clients read."""

from __future__ import annotations

import sqlalchemy
from alembic import op

revision = "0016"
down_revision = "0015"

NAME = sqlalchemy.Text().with_variant(sqlalchemy.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "tunnels",
        sqlalchemy.Column("id", sqlalchemy.BigInteger(), primary_key=True, autoincrement=False),
        sqlalchemy.Column("public_id", NAME, nullable=False, unique=True),
        sqlalchemy.Column("table_id", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("name", NAME, nullable=False),
        sqlalchemy.Column("definition", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("state", sqlalchemy.Text(), nullable=False),
        sqlalchemy.UniqueConstraint("table_id", "name"),
    )
