"""Choice of the database class by URL.

Only the driver in use is imported, which makes a start on SQLite 20% faster.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tablegate.gateway.store.sql.databases import Database, DatabaseUnusable, TablePlacement


def open_database(
    url: str,
    synchronous: str = "full",
    pooled: bool = False,
    schema: str | None = None,
    reads_only: bool = False,
    silence_ms: int | None = None,
    cache_bytes: int = 32 << 20,
) -> Database:
    """Open the database at a SQLAlchemy URL (`sqlite:///...` or `postgresql+psycopg://...`).

    `reads_only`: another process writes this SQLite file. `silence_ms`: PostgreSQL only, the time without an answer
    after which the server is probed. `cache_bytes`: SQLite only, the page cache of each connection.
    """
    if url.startswith("sqlite"):
        from tablegate.gateway.store.sqlite.database import SQLite

        return SQLite(url, synchronous, reads_only, cache_bytes)
    from tablegate.gateway.store.postgresql import database

    if database.is_url_distributed(url, schema):
        from tablegate.gateway.store.postgresql.distributed.database import DistributedPostgreSQL

        return DistributedPostgreSQL(url, pooled, schema, silence_ms=silence_ms)
    return database.PostgreSQL(url, pooled, schema, silence_ms=silence_ms)


# A replica that does not answer for this long is set aside, and the primary answers.
_REPLICA_PATIENCE_MS = 500


def open_replica(url: str, pooled: bool = False) -> Database:
    """Open the read-only PostgreSQL standby at a URL, with a short time-out."""
    from tablegate.gateway.store.postgresql.database import PostgreSQL

    return PostgreSQL(url, pooled, patience_ms=_REPLICA_PATIENCE_MS)


def prepare_file(path: Path) -> None:
    """Create a database file that only its owner can access. Raises DatabaseUnusable if that fails."""
    from tablegate.gateway.store.sqlite import database

    database.prepare_file(path)


def distribute(url: str, shards: int) -> Iterator[str]:
    """Distribute the tables of a PostgreSQL database over the nodes of Citus. Yield each step. Raises DatabaseUnusable."""
    from tablegate.gateway.store.postgresql.distributed import placement

    with placement.connect(url) as connection:
        placement.check_no_other_clients(connection)
        yield from placement.distribute(connection, shards)


def undistribute(url: str) -> Iterator[str]:
    """Move all tables back to the coordinator. Yield each step. Raises DatabaseUnusable."""
    from tablegate.gateway.store.postgresql.distributed import placement

    with placement.connect(url) as connection:
        placement.check_no_other_clients(connection)
        yield from placement.undistribute(connection)


def create_restore_point(url: str, name: str) -> list[str]:
    """Create a restore point on every node of Citus. Return the nodes with the positions of their logs. Raises
    DatabaseUnusable."""
    from tablegate.gateway.store.postgresql.distributed import placement

    return placement.create_restore_point(url, name)


def placement_of(url: str) -> TablePlacement | None:
    """Return the placement of the tables of a database, or None if it is not distributed."""
    if not url.startswith("postgresql"):
        return None
    from tablegate.gateway.store.postgresql.distributed import placement

    try:
        with placement.connect(url) as connection:
            table_placement = placement.placement(connection)
    except DatabaseUnusable:
        return None
    return table_placement if table_placement.distributed else None
