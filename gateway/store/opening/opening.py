"""Which database a URL means. The driver of the other one is not even loaded: a start on SQLite is a fifth quicker for it."""

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
) -> Database:
    """The database at a SQLAlchemy URL (`sqlite:///...` or `postgresql+psycopg://...`). `reads_only`: of a SQLite file, whether
    another process writes it. `silence_ms`: of a server, after which silence it is asked whether it still answers anybody."""
    if url.startswith("sqlite"):
        from tablegate.gateway.store.sqlite.database import SQLite

        return SQLite(url, synchronous, reads_only)
    from tablegate.gateway.store.postgresql import database

    if database.finds_distributed(url, schema):
        from tablegate.gateway.store.postgresql.distributed.database import DistributedPostgreSQL

        return DistributedPostgreSQL(url, pooled, schema, silence_ms=silence_ms)
    return database.PostgreSQL(url, pooled, schema, silence_ms=silence_ms)


# A replica that says nothing for so long is left alone, and the primary asked.
_REPLICA_PATIENCE_MS = 500


def open_replica(url: str, pooled: bool = False, schema: str | None = None) -> Database:
    """The database at the URL of a PostgreSQL standby: read only, and not waited for long."""
    from tablegate.gateway.store.postgresql.database import PostgreSQL

    return PostgreSQL(url, pooled, schema, patience_ms=_REPLICA_PATIENCE_MS)


def prepare_file(path: Path) -> None:
    """Make the file in which a database is to be kept, for its owner alone. Raises Unusable where none could be."""
    from tablegate.gateway.store.sqlite import database

    database.prepare_file(path)


def compact_file(path: Path) -> None:
    """Rewrite the file of a database, which nobody has open, without the room that deleted rows have left."""
    from tablegate.gateway.store.sqlite import database

    database.compact_file(path)


def distribute(url: str, shards: int) -> Iterator[str]:
    """Spread the tables of a PostgreSQL database over the nodes of Citus; what was done, step by step. Raises Unusable."""
    from tablegate.gateway.store.postgresql.distributed import placement

    with placement.connected(url) as connection:
        placement.check_is_alone(connection)
        yield from placement.distribute(connection, shards)


def undistribute(url: str) -> Iterator[str]:
    """Bring them back to the coordinator; what was done, step by step. Raises Unusable."""
    from tablegate.gateway.store.postgresql.distributed import placement

    with placement.connected(url) as connection:
        placement.check_is_alone(connection)
        yield from placement.undistribute(connection)


def placement_of(url: str) -> TablePlacement | None:
    """Where the tables of a database are, for whoever looks after it; None: all are in one place."""
    if not url.startswith("postgresql"):
        return None
    from tablegate.gateway.store.postgresql.distributed import placement

    try:
        with placement.connected(url) as connection:
            found = placement.placement(connection)
    except DatabaseUnusable:
        return None
    return found if found.distributed else None
