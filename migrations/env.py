"""Alembic's environment: the connection and transaction of gateway/store/opening/migrating.py."""

from __future__ import annotations

from alembic import context

from tablegate.gateway.store.sql.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
