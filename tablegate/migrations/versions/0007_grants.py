"""Grants. Existing credentials could do everything and get a grant for it."""

from __future__ import annotations

import sqlalchemy
from alembic import op

revision = "0007"
down_revision = "0006"

NAME = sqlalchemy.Text().with_variant(sqlalchemy.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "grants",
        sqlalchemy.Column("id", NAME, nullable=False),
        sqlalchemy.Column("grantee", NAME, nullable=False),
        sqlalchemy.Column("form", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("document", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("created_at_ms", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.PrimaryKeyConstraint("id"),
    )
    # The id contains the grantee, so that it is unique.
    op.execute(
        "INSERT INTO grants (id, grantee, form, document, created_at_ms) "
        "SELECT 'all-' || scheme || '-' || access_id, scheme || '/' || access_id, 'all', '', changed_at_ms FROM credentials"
    )
