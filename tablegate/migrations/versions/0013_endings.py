"""Ends of followers, up to which they still get changes after their removal."""

from __future__ import annotations

import sqlalchemy
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.add_column("followers", sqlalchemy.Column("ending", sqlalchemy.Text()))
