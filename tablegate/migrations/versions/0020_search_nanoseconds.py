"""Dates of search indexes in nanoseconds. Indexes with dates get all rows again, and are complete afterwards."""

from __future__ import annotations

from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    op.execute(
        "UPDATE followers SET copying = 1, mark = NULL WHERE kind = 'search' AND target IN"
        """ (SELECT CAST(id AS TEXT) FROM search_indexes WHERE fields LIKE '%"type":"date"%')"""
    )
