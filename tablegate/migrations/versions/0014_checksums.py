"""Checksums of rows, and the `modified_at` of the write that computed each.

Existing rows get theirs with their next write. An earlier release writes neither, but always a later `modified_at`.
"""

from __future__ import annotations

import sqlalchemy
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.add_column("rows", sqlalchemy.Column("checksum", sqlalchemy.BigInteger()))
    op.add_column("rows", sqlalchemy.Column("checksum_at", sqlalchemy.BigInteger()))
