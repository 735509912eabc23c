"""PostgreSQL with Citus: sessions whose settings hold on every node, and what can be known of a commit. See databases.py.

A gateway enters at any node, the coordinator or a worker: each knows where every shard is. What is written at one slot is on one
node and is committed there; what is written at several nodes is committed in two phases.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import ClassVar

from gateway.model.errors import GatewayError
from gateway.store.databases import LOCK_TIMEOUT_MS, Retry
from gateway.store.postgresql.database import SERVER, PostgreSQL, PostgresSession
from gateway.store.postgresql.distributed import placement
from gateway.store.postgresql.distributed.statements import DistributedStatements
from gateway.store.postgresql.pipeline import Pipeline

log = logging.getLogger(__name__)


class DistributedSession(PostgresSession):
    """A pipeline to one node, which asks the others."""

    statements = DistributedStatements()


class DistributedPostgreSQL(PostgreSQL):
    """Several servers that are one database. There is no snapshot over several nodes, nor a log of all."""

    has_snapshots = False
    is_distributed = True
    session_class = DistributedSession
    own_settings: ClassVar[Mapping[str, str]] = {
        # Other nodes are told of SET LOCAL too, together with their BEGIN.
        "citus.propagate_set_commands": "local",
        # Shard after shard, so that all writers lock in one order.
        "citus.multi_shard_modify_mode": "sequential",
    }

    def _set_for_writing(self, pipeline: Pipeline, nowait: bool) -> None:
        """The settings of a transaction that writes: a session's own time-out for locks does not hold at other nodes."""
        super()._set_for_writing(pipeline, nowait)
        if not nowait:
            pipeline.send(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}")

    def begin_migrating(self) -> None:
        with placement.connected(self._url) as connection:
            placement.check_is_coordinator(connection)

    def end_migrating(self) -> None:
        """Tables that a step has added go where those of the same kind are."""
        with placement.connected(self._url) as connection:
            if placement.placement(connection).alone:
                for step in placement.distribute(connection, shards=0):
                    log.info(step)

    def committed(self, transaction_id: str | None) -> bool | None:
        """True, or None. The node at which the gateway entered notes a transaction as committed after the others have committed
        or are bound to; but where one other node is enough that one commits first, so that nothing follows from an abort."""
        if transaction_id is None:
            return None
        number, _, server = transaction_id.split("/", 2)
        try:
            with self.look() as session:
                if session.query(SERVER) != [(server,)]:
                    return None
                [(status,)] = session.query("SELECT pg_xact_status(?::text::xid8)", (number,))
        except (Retry, GatewayError):
            return None
        return True if status == "committed" else None
