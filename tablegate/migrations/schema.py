"""The whole SQL schema: the tables of the core and of each capability."""

from __future__ import annotations

from sqlalchemy import MetaData

from tablegate.gateway.store import jobs_schema
from tablegate.gateway.store.rows import tombstones_schema, vectors_schema
from tablegate.gateway.store.sql import administration_schema, schema, search_schema
from tablegate.gateway.store.streams import tunnels_schema
from tablegate.gateway.store.tables import history_schema
from tablegate.gateway.store.transactions import local_transactions_schema

PARTS = (
    schema,
    administration_schema,
    history_schema,
    jobs_schema,
    local_transactions_schema,
    search_schema,
    tombstones_schema,
    tunnels_schema,
    vectors_schema,
)
"""The modules with SQL tables. Each adds its own to the metadata that they share."""
metadata: MetaData = PARTS[0].metadata
"""All tables."""
