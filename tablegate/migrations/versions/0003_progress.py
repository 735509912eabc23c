"""Progress of background work, and small indexes that find pending work among thousands of tables."""

from __future__ import annotations

import sqlalchemy
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "progress",
        sqlalchemy.Column("work", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("id", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("rows_done", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.PrimaryKeyConstraint("work", "id"),
    )
    for name, table, column, where in (
        ("tables_deleting", "tables", "busy_until_ms", "state = 'deleting'"),
        ("indexes_to_fill", "indexes", "table_id", "filled = 0"),
    ):
        condition = sqlalchemy.text(where)
        op.create_index(
            name, table, [column], unique=False, sqlite_where=condition, postgresql_where=condition
        )
