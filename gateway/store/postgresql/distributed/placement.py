"""Which tables of SQL are on which nodes: spread over them by `slot`, or the same on each; distributing them, and taking it back.

What has a slot in its primary key is spread; all else is small, and a copy of it is on every node. So a table that a later
release adds goes where its key says. Each step is committed by itself and is passed over where it has been taken: who was
interrupted begins again.
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
from tablegate.gateway.store.sql.schema import metadata

SLOT = "slot"
_VERSIONS = "alembic_version"
_LEAVING_S = 3.0
# Of the sessions in which nodes ask each other. The same as those of the gateway's own sessions (postgresql/database.py): every
# statement is a look-up by key.
_SESSION_SETTINGS = ("enable_hashjoin", "enable_mergejoin", "enable_seqscan", "jit")


def is_spread(table: sqlalchemy.Table) -> bool:
    """Whether a table of the schema is spread by slot."""
    return SLOT in table.primary_key.columns


def in_order() -> list[tuple[str, bool]]:
    """(table, whether it is spread), in the order in which tables are distributed: what every node has first, since what is
    spread is joined with it; the rows before all that stand beside them; the version of the schema last."""
    every = [(table.name, is_spread(table)) for table in metadata.sorted_tables]
    every.sort(key=lambda item: (item[1], item[0] != "rows", item[0]))
    return [*every, (_VERSIONS, False)]


@contextlib.contextmanager
def connected(url: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection that commits each statement. Raises Unusable where there is no Citus."""
    plain = sqlalchemy.make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as connection:
        if not _holds(connection, "SELECT FROM pg_extension WHERE extname = 'citus'"):
            raise DatabaseUnusable(
                "the database has no Citus: CREATE EXTENSION citus in it on every node, and name the nodes"
                " with citus_set_coordinator_host and citus_add_node"
            )
        try:
            yield connection
        except psycopg.Error as error:
            raise DatabaseUnusable(str(error)) from error


def placement(connection: psycopg.Connection[Any]) -> TablePlacement:
    """Where things are now."""
    methods = dict(
        connection.execute(
            "SELECT c.relname, p.partmethod::text FROM pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid"
        ).fetchall()
    )
    names = [name for name, _ in in_order()]
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
    """Spread the tables over the nodes, in so many shards. What was done, step by step. Raises Unusable."""
    check_is_coordinator(connection)
    with _alone(connection):
        _set_for_nodes(connection)
        for name, spread in in_order():
            if not _holds(
                connection, "SELECT to_regclass(%s) IS NOT NULL WHERE to_regclass(%s) IS NOT NULL", name, name
            ):
                continue
            if _holds(connection, "SELECT FROM pg_dist_partition WHERE logicalrelid = %s::regclass", name):
                continue
            if not spread:
                connection.execute("SELECT create_reference_table(%s)", (name,))
            elif name == "rows":
                connection.execute(
                    "SELECT create_distributed_table(%s, %s, shard_count => %s)", (name, SLOT, shards)
                )
            else:
                connection.execute(
                    "SELECT create_distributed_table(%s, %s, colocate_with => 'rows')", (name, SLOT)
                )
            yield f"{name}: {'by slot' if spread else 'on every node'}"


def check_is_alone(connection: psycopg.Connection[Any]) -> None:
    """Raises Unusable if others are in the database, at this node. Who has left a moment ago is waited for."""
    until = time.monotonic() + _LEAVING_S
    while True:
        found = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND backend_type = 'client backend' AND application_name NOT LIKE 'citus%'"
        ).fetchone()
        if found == (0,):
            return
        if time.monotonic() > until:
            raise DatabaseUnusable(
                "others are in the database: stop all gateways, which cannot go on when the tables have moved"
            )
        time.sleep(0.1)


def undistribute(connection: psycopg.Connection[Any]) -> Iterator[str]:
    """Bring all tables back to the coordinator. What was done, step by step. Raises Unusable."""
    check_is_coordinator(connection)
    with _alone(connection):
        for name, _ in reversed(in_order()):
            if _holds(connection, "SELECT FROM pg_dist_partition WHERE logicalrelid = to_regclass(%s)", name):
                connection.execute("SELECT undistribute_table(%s)", (name,))
                yield f"{name}: on the coordinator"


def _set_for_nodes(connection: psycopg.Connection[Any]) -> None:
    database = psycopg.sql.Identifier(connection.info.dbname)
    for setting in _SESSION_SETTINGS:
        statement = psycopg.sql.SQL("ALTER DATABASE {} SET {} = off").format(
            database, psycopg.sql.Identifier(setting)
        )
        connection.execute("SELECT run_command_on_all_nodes(%s)", (statement.as_string(connection),))


@contextlib.contextmanager
def _alone(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """While nobody else distributes or migrates."""
    connection.execute("SELECT pg_advisory_lock(%s)", (DEFINITION_LOCK,))
    try:
        yield
    finally:
        if not connection.broken:
            connection.execute("SELECT pg_advisory_unlock(%s)", (DEFINITION_LOCK,))


def check_is_coordinator(connection: psycopg.Connection[Any]) -> None:
    """Raises Unusable at a worker, and where no node is there to take what is spread."""
    if not _holds(connection, "SELECT FROM pg_dist_local_group WHERE groupid = 0"):
        raise DatabaseUnusable(
            "this node is a worker of Citus: tables are distributed, and migrated, at the coordinator"
        )
    if not _holds(connection, "SELECT FROM pg_dist_node WHERE groupid = 0"):
        raise DatabaseUnusable(
            "the coordinator does not know its own address: SELECT citus_set_coordinator_host(...)"
        )
    if not _holds(connection, "SELECT FROM pg_dist_node WHERE shouldhaveshards AND isactive"):
        raise DatabaseUnusable("no node takes shards: SELECT citus_add_node(...) for each worker")


def _holds(connection: psycopg.Connection[Any], question: LiteralString, *parameters: Any) -> bool:
    return connection.execute(question, parameters).fetchone() is not None
