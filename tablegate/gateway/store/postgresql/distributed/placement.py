"""Distribution of the SQL tables over nodes, and its reversal.

Tables with `slot` in their primary key are distributed by it. All others are small and become reference tables, copied
to every node. A table that a later release adds follows the same rule. Each step is committed by itself and skipped if
it was done before, so an interrupted run can be repeated.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any, LiteralString

import psycopg
import psycopg.sql
import sqlalchemy

from tablegate.gateway.store.sql.databases import (
    DEFINITION_LOCK,
    DatabaseUnusable,
    NodeShards,
    TablePlacement,
)
from tablegate.migrations.schema import metadata

SLOT = "slot"
_VERSIONS = "alembic_version"
_DISCONNECT_WAIT_S = 3.0
# Settings of the sessions between nodes, as in the gateway's own sessions (postgresql/database.py), because every
# statement looks up keys.
_SESSION_SETTINGS = ("enable_hashjoin", "enable_mergejoin", "enable_seqscan", "jit")


def is_sharded(table: sqlalchemy.Table) -> bool:
    """Return True if a table of the schema is distributed by slot."""
    return SLOT in table.primary_key.columns


def distribution_order() -> list[tuple[str, bool]]:
    """Return (table, is distributed) in the order in which tables are distributed.

    Reference tables come first, because distributed tables are joined with them. `rows` comes before the tables
    co-located with it. The version of the schema is last.
    """
    names = [(table.name, is_sharded(table)) for table in metadata.sorted_tables]
    names.sort(key=lambda item: (item[1], item[0] != "rows", item[0]))
    return [*names, (_VERSIONS, False)]


def at_address(url: str, address: tuple[str, int]) -> str:
    """Return a URL with another host and port."""
    host, port = address
    address_url = sqlalchemy.make_url(url).set(host=host, port=port)
    return address_url.difference_update_query(["host", "port", "hostaddr"]).render_as_string(
        hide_password=False
    )


@contextlib.contextmanager
def connect(url: str) -> Iterator[psycopg.Connection[Any]]:
    """Return a connection in autocommit mode. Raises DatabaseUnusable if Citus is not installed."""
    plain = sqlalchemy.make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as connection:
        if not _has_rows(connection, "SELECT FROM pg_extension WHERE extname = 'citus'"):
            raise DatabaseUnusable(
                "the database has no Citus: run CREATE EXTENSION citus on every node, and register the nodes"
                " with citus_set_coordinator_host and citus_add_node"
            )
        try:
            yield connection
        except psycopg.Error as error:
            raise DatabaseUnusable(str(error)) from error


def placement(connection: psycopg.Connection[Any]) -> TablePlacement:
    """Return the current placement of all tables."""
    methods = dict(
        connection.execute(
            "SELECT c.relname, p.partmethod::text FROM pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid"
        ).fetchall()
    )
    names = [name for name, _ in distribution_order()]
    nodes = connection.execute(
        "SELECT n.nodename || ':' || n.nodeport, (SELECT count(*) FROM pg_dist_shard s"
        " JOIN pg_dist_placement p ON p.shardid = s.shardid"
        " WHERE p.groupid = n.groupid AND s.logicalrelid = to_regclass('rows')"
        " AND EXISTS (SELECT FROM pg_dist_partition d WHERE d.logicalrelid = s.logicalrelid AND d.partmethod = 'h'))"
        " FROM pg_dist_node n WHERE n.noderole = 'primary' ORDER BY n.groupid"
    ).fetchall()
    return TablePlacement(
        [name for name in names if methods.get(name) == "h"],
        [name for name in names if methods.get(name) == "n"],
        [name for name in names if name not in methods],
        [NodeShards(name, shards) for name, shards in nodes],
    )


def distribute(connection: psycopg.Connection[Any], shards: int) -> Iterator[str]:
    """Distribute the tables over the nodes, in this number of shards. Raises DatabaseUnusable.

    Yields a line before each table, because large ones take long.
    """
    check_is_coordinator(connection)
    with _migration_lock(connection):
        _set_node_settings(connection)
        waiting = [
            (name, is_spread)
            for name, is_spread in distribution_order()
            if _has_rows(connection, "SELECT WHERE to_regclass(%s) IS NOT NULL", name)
            and not _is_distributed(connection, name)
        ]
        for number, (name, is_spread) in enumerate(waiting, 1):
            place = "by slot" if is_spread else "on every node"
            yield f"{number} of {len(waiting)}: {name} ({_size_of(connection, name)}), {place}"
            if not is_spread:
                connection.execute("SELECT create_reference_table(%s)", (name,))
            elif name == "rows":
                connection.execute(
                    "SELECT create_distributed_table(%s, %s, shard_count => %s)", (name, SLOT, shards)
                )
            else:
                connection.execute(
                    "SELECT create_distributed_table(%s, %s, colocate_with => 'rows')", (name, SLOT)
                )


def check_no_other_clients(connection: psycopg.Connection[Any]) -> None:
    """Raise DatabaseUnusable if other clients use the database at this node. Waits a few seconds for clients that are
    leaving."""
    deadline = time.monotonic() + _DISCONNECT_WAIT_S
    while True:
        count = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND backend_type = 'client backend' AND application_name NOT LIKE 'citus%'"
        ).fetchone()
        if count == (0,):
            return
        if time.monotonic() > deadline:
            raise DatabaseUnusable(
                "other clients are connected to the database: stop all gateways, which cannot use moved tables"
            )
        time.sleep(0.1)


def undistribute(connection: psycopg.Connection[Any]) -> Iterator[str]:
    """Move all tables back to the coordinator. Yields a line before each table. Raises DatabaseUnusable."""
    check_is_coordinator(connection)
    with _migration_lock(connection):
        waiting = [name for name, _ in reversed(distribution_order()) if _is_distributed(connection, name)]
        for number, name in enumerate(waiting, 1):
            yield f"{number} of {len(waiting)}: {name} to the coordinator"
            connection.execute("SELECT undistribute_table(%s)", (name,))


def create_restore_point(url: str, name: str) -> list[str]:
    """Create a restore point on every node, while no node can commit a transaction of several nodes.

    Return a line with the node and the position of its log for each node. Raises DatabaseUnusable.
    """
    with connect(url) as coordinator, contextlib.ExitStack() as stack:
        check_is_coordinator(coordinator)
        nodes = coordinator.execute(
            "SELECT nodename, nodeport FROM pg_dist_node WHERE noderole = 'primary' ORDER BY groupid"
        ).fetchall()
        connections = [stack.enter_context(connect(at_address(url, address))) for address in nodes]
        for connection in connections:
            stack.enter_context(connection.transaction())
        for connection in connections:
            connection.execute("SET LOCAL lock_timeout = '10s'")
            connection.execute("LOCK TABLE pg_catalog.pg_dist_transaction IN EXCLUSIVE MODE")
        lines = []
        for (host, port), connection in zip(nodes, connections, strict=True):
            [position] = connection.execute(
                "SELECT pg_create_restore_point(%s)::text", (name,)
            ).fetchone() or [""]
            lines.append(f"node {host}:{port}\t{name} at {position}")
    return lines


def _is_distributed(connection: psycopg.Connection[Any], name: str) -> bool:
    return _has_rows(connection, "SELECT FROM pg_dist_partition WHERE logicalrelid = to_regclass(%s)", name)


def _size_of(connection: psycopg.Connection[Any], name: str) -> str:
    row = connection.execute(
        "SELECT pg_size_pretty(pg_total_relation_size(%s::regclass))", (name,)
    ).fetchone()
    return "" if row is None else str(row[0])


def _set_node_settings(connection: psycopg.Connection[Any]) -> None:
    database = psycopg.sql.Identifier(connection.info.dbname)
    for setting in _SESSION_SETTINGS:
        statement = psycopg.sql.SQL("ALTER DATABASE {} SET {} = off").format(
            database, psycopg.sql.Identifier(setting)
        )
        connection.execute("SELECT run_command_on_all_nodes(%s)", (statement.as_string(connection),))


@contextlib.contextmanager
def _migration_lock(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Hold the lock that excludes other distributions and migrations."""
    connection.execute("SELECT pg_advisory_lock(%s)", (DEFINITION_LOCK,))
    try:
        yield
    finally:
        if not connection.broken:
            connection.execute("SELECT pg_advisory_unlock(%s)", (DEFINITION_LOCK,))


def check_is_coordinator(connection: psycopg.Connection[Any]) -> None:
    """Raise DatabaseUnusable at a worker, or if no node can take shards."""
    if not _has_rows(connection, "SELECT FROM pg_dist_local_group WHERE groupid = 0"):
        raise DatabaseUnusable(
            "this node is a worker of Citus: distribute and migrate tables at the coordinator"
        )
    if not _has_rows(connection, "SELECT FROM pg_dist_node WHERE groupid = 0"):
        raise DatabaseUnusable(
            "the coordinator does not know its own address: run SELECT citus_set_coordinator_host(...)"
        )
    if not _has_rows(connection, "SELECT FROM pg_dist_node WHERE shouldhaveshards AND isactive"):
        raise DatabaseUnusable("no node takes shards: run SELECT citus_add_node(...) for each worker")


def _has_rows(connection: psycopg.Connection[Any], query: LiteralString, *parameters: Any) -> bool:
    return connection.execute(query, parameters).fetchone() is not None
