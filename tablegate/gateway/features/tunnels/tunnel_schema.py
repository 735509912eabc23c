"""The SQL table of tunnels."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Table, Text, UniqueConstraint

from tablegate.gateway.store.sql.core_schema import Name, metadata

# Tunnels: followers that clients drive (tunnel_engine.py). One that delivers changes has a row of
# followers with the same id.
tunnels = Table(
    "tunnels",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("public_id", Name, nullable=False, unique=True),
    Column("table_id", BigInteger, nullable=False),
    Column("name", Name, nullable=False),
    Column("definition", Text, nullable=False),
    # Clients and channels, with the saved positions.
    Column("state", Text, nullable=False),
    UniqueConstraint("table_id", "name"),
    info={"on_every_node": "states, saved with each heartbeat and checkpoint of a client"},
)
