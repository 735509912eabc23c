"""The whole SQL schema: the tables of the core and of each capability."""

from __future__ import annotations

from sqlalchemy import MetaData

from tablegate.gateway.store.sql import administration_schema, schema, search_schema

PARTS = (
    schema,
    administration_schema,
    search_schema,
)
"""The modules with SQL tables. Each adds its own to the metadata that they share."""
metadata: MetaData = PARTS[0].metadata
"""All tables."""
