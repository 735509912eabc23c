"""The time to live of search indexes."""

from __future__ import annotations

import sqlalchemy
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    op.add_column("search_indexes", sqlalchemy.Column("lifetime_ms", sqlalchemy.BigInteger()))
