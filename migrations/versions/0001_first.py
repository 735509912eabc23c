"""The first schema: all tables as they stand in gateway/store/schema.py until the first release freezes them."""

from __future__ import annotations

from alembic import op

from gateway.store.schema import metadata

revision = "0001"
down_revision = None


def upgrade() -> None:
    metadata.create_all(op.get_bind())
