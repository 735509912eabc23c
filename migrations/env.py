"""How Alembic runs the steps: on the connection, and in the transaction, that gateway/store/opening/migrating.py holds."""

from __future__ import annotations

from alembic import context

from tablegate.gateway.store.sql.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
