"""A small index that finds the tables with resource policies among many."""

from __future__ import annotations

import sqlalchemy
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    condition = sqlalchemy.text("replace(properties, '\"resource_policies\":', '') <> properties")
    op.create_index(
        "tables_with_policies", "tables", ["id"], sqlite_where=condition, postgresql_where=condition
    )
