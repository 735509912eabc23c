"""Alembic's environment: the connection and transaction of gateway/store/migrating.py."""

from __future__ import annotations

from alembic import context

from tablegate.migrations.schema import metadata

attributes = context.config.attributes
context.configure(
    connection=attributes["connection"],
    target_metadata=metadata,
    on_version_apply=attributes.get("step_done"),
)
context.run_migrations()
