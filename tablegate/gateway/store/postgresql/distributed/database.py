"""PostgreSQL with Citus: sessions on several nodes, and the outcome of an interrupted commit.

databases.py describes the interface. A gateway can enter at any node, the coordinator or a worker, since each knows the
place of every shard. Where possible, it enters at the node that holds the data (nodes.py), which then needs no other.

A write to several nodes is committed in two phases. The node at which it entered decides: the other nodes prepare, then
the deciding node commits, then the others commit what they have prepared. The name of a prepared transaction names the
deciding transaction, and its node by Citus' number, because an address can change. If a gateway or a node is lost in
between, any gateway finishes the transaction accordingly (`finish_interrupted`).

A backup of the cluster is consistent if it ends at a restore point that was created while no node could decide
(placement.create_restore_point).
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from math import inf
from typing import Any, ClassVar

import psycopg

from tablegate.gateway.model.errors import GatewayError
from tablegate.gateway.model.values.keys import SLOTS, slot_of
from tablegate.gateway.store.postgresql.database import SERVER, PostgreSQL, PostgresSession
from tablegate.gateway.store.postgresql.distributed import placement
from tablegate.gateway.store.postgresql.distributed.nodes import (
    NODES,
    PLACES,
    SHARDS,
    Address,
    Nodes,
    Placements,
    placements,
)
from tablegate.gateway.store.postgresql.distributed.sessions import (
    LOCK_TIMEOUT,
    RoutingSession,
    WritingSession,
)
from tablegate.gateway.store.postgresql.distributed.statements import DistributedSession
from tablegate.gateway.store.postgresql.pipeline import ServerSilent
from tablegate.gateway.store.postgresql.statements import TRANSACTION_ID
from tablegate.gateway.store.sql.databases import NodeState, RetryableFailure, Session, Unreachable

log = logging.getLogger(__name__)

# Reader number of the connection that fetches the placement. Other readers may be in use.
_READER_OF_NODES = -1
# The error of a function of Citus. It has no code of its own.
_NO_SHARD = "could not find valid entry for shard"
# Names of prepared transactions: this, then the number of the deciding node, then the id of its transaction.
_PREFIX = "tablegate"
# Restore points of Citus exclude this lock, as they exclude its own commits over several nodes.
_DECIDING = "LOCK TABLE pg_catalog.pg_dist_transaction IN ROW EXCLUSIVE MODE"
# Not those that a gateway is about to finish. The second column is true if nothing else has finished it either.
_PREPARED = """
SELECT gid, prepared < now() - interval '30 seconds' FROM pg_prepared_xacts
WHERE database = current_database() AND prepared < now() - interval '1 second'"""


class DistributedNode(PostgreSQL):
    """One of several servers that form a database. They share neither a snapshot nor a log."""

    has_snapshots = False
    is_distributed = True
    session_class = DistributedSession
    own_settings: ClassVar[Mapping[str, str]] = {
        # SET LOCAL also goes to other nodes, together with their BEGIN.
        "citus.propagate_set_commands": "local",
        # One shard after the other, so that all writers lock in one order.
        "citus.multi_shard_modify_mode": "sequential",
        # All reads of a transaction at a node share one snapshot there.
        "citus.max_adaptive_executor_pool_size": "1",
    }

    def begin_migrating(self) -> None:
        with placement.connect(self._url) as connection:
            placement.check_is_coordinator(connection)

    def end_migrating(self) -> None:
        """Distribute tables that a revision has added, as their keys require."""
        with placement.connect(self._url) as connection:
            if placement.placement(connection).alone:
                for step in placement.distribute(connection, shards=0):
                    log.info(step)

    @contextmanager
    def prepare(
        self, nowait: bool, name: Callable[[], str], prepared: list[DistributedNode]
    ) -> Iterator[PostgresSession]:
        """Begin a transaction. At the end of the block it is prepared, under a name, and this node added to
        `prepared`."""
        with self._use_pipeline("writer") as pipeline:
            pipeline.send("BEGIN")
            self._set_for_writing(pipeline, nowait)
            yield self.session_class(pipeline)
            pipeline.send_once(f"PREPARE TRANSACTION '{name()}'")
            pipeline.settle()
        prepared.append(self)

    def finish(self, name: str, is_committed: bool) -> None:
        """Commit or roll back a prepared transaction. If that fails, `finish_interrupted` does it later."""
        try:
            with self._use_pipeline("writer") as pipeline:
                pipeline.send_once(f"{'COMMIT' if is_committed else 'ROLLBACK'} PREPARED '{name}'")
                pipeline.settle()
        except (RetryableFailure, GatewayError) as error:
            log.warning("a prepared transaction is finished later (%s): %s", name, error)

    def committed(self, transaction_id: str | None) -> bool | None:
        """Return True if the transaction committed, else None.

        The entered node records a commit after the other nodes have committed or prepared. But if a single other node
        is enough, that node commits first, so an abort here proves nothing.
        """
        if transaction_id is None:
            return None
        number, _, server = transaction_id.split("/", 2)
        try:
            with PostgreSQL.read_one(self) as session:
                if session.query(SERVER) != [(server,)]:
                    return None
                [(status,)] = session.query("SELECT pg_xact_status(?::text::xid8)", (number,))
        except (RetryableFailure, GatewayError):
            return None
        return True if status == "committed" else None


class DistributedPostgreSQL(DistributedNode):
    """All nodes, reached through the entry of the URL or directly at the node that holds the data.

    With a pooler, only the entry is used: the pooler stands before the entry, and the nodes' own addresses bypass it.
    """

    reaches_nodes = True

    def __init__(
        self,
        url: str,
        pooled: bool = False,
        schema: str | None = None,
        silence_ms: int | None = None,
    ) -> None:
        super().__init__(url, pooled, schema, silence_ms=silence_ms)
        self._is_direct = self.reaches_nodes and not pooled
        self._stuck: dict[Address, int] = {}
        self._nodes = Nodes(
            self._fetch_placements,
            lambda address: DistributedNode(
                placement.at_address(url, address), schema=schema, silence_ms=silence_ms
            ),
        )

    @contextmanager
    def read(self, reader: int = 0) -> Iterator[Session]:
        begin = functools.partial(PostgreSQL.read, reader=reader)
        with self._open_routing_session(begin, is_transaction=True) as session:
            yield session

    @contextmanager
    def read_one(self, reader: int = 0) -> Iterator[Session]:
        begin = functools.partial(PostgreSQL.read_one, reader=reader)
        with self._open_routing_session(begin, is_transaction=False) as session:
            yield session

    @contextmanager
    def write(self, nowait: bool = False, near: bytes = b"") -> Iterator[Session]:
        if not near or not self._is_direct:
            with PostgreSQL.write(self, nowait) as entered:
                if not nowait:
                    entered.send(LOCK_TIMEOUT)
                yield entered
            return
        placements = self._nodes.placements_for(slot_of(near))
        place = placements.of_slots[slot_of(near)]
        prepared: list[DistributedNode] = []
        name = ""
        try:
            with self._find_changes_of_nodes(), ExitStack() as stack:
                begin = functools.partial(
                    DistributedNode.prepare, nowait=nowait, name=lambda: name, prepared=prepared
                )
                decider = self._session_at(
                    stack, place.address, functools.partial(PostgreSQL.write, nowait=nowait)
                )
                session = WritingSession(
                    decider,
                    placements,
                    place.address,
                    lambda other: self._session_at(stack, other, begin),
                    nowait,
                )
                yield session
                self._nodes.verify(session.checks)
                if session.has_joined:
                    decider.send(_DECIDING)
                    name = self._transaction_name(place.address, decider)
        except (RetryableFailure, GatewayError):
            for node in prepared:
                node.finish(name, is_committed=False)
            raise
        # After any other error the outcome is unknown here.
        for node in prepared:
            node.finish(name, is_committed=True)

    def _transaction_name(self, address: Address, decider: PostgresSession) -> str:
        if decider.transaction_id is None:
            [(decider.transaction_id,)] = decider.query(f"SELECT {TRANSACTION_ID}")
        decider.settle()  # the lock of _DECIDING must be held before a node prepares
        server = self._nodes.database_at(address).server_of_writer()
        group = self._nodes.placements.groups[address]
        return f"{_PREFIX} {group} {decider.transaction_id}/{server}"

    def finish_interrupted(self) -> None:
        if not self._is_direct:
            return
        addresses = self._nodes.placements_for(0).addresses
        for address in addresses.values():
            node, began = self._nodes.database_at(address), time.monotonic()
            try:
                with PostgreSQL.read_one(node) as session:
                    self._nodes.note_reached(address)
                    found = session.query(_PREPARED)
                self._stuck[address] = sum(is_old for _, is_old in found)
                for name in [name for name, _ in found if name.startswith(f"{_PREFIX} ")]:
                    _, group, transaction_id = name.split(" ", 2)
                    decider = addresses.get(int(group)) if group.isdigit() else None
                    if decider is None:
                        continue  # the node was removed
                    outcome = PostgreSQL.committed(self._nodes.database_at(decider), transaction_id)
                    if outcome is not None:
                        node.finish(name, outcome)
            except (RetryableFailure, GatewayError) as error:
                if isinstance(error, Unreachable) or isinstance(error.__cause__, ServerSilent):
                    self._nodes.set_aside(address, error, time.monotonic() - began)
                log.info("cannot finish interrupted transactions of node %s:%d: %s", *address, error)

    def node_states(self) -> list[NodeState]:
        away = self._nodes.away
        return [
            NodeState(f"{address[0]}:{address[1]}", address not in away, self._stuck.get(address, 0))
            for address in self._nodes.placements.addresses.values()
        ]

    def node_of(self, partition: bytes) -> Address | None:
        # Called in the event loop, so nothing is fetched.
        place = self._nodes.placements.of_slots.get(slot_of(partition)) if self._is_direct else None
        return None if place is None else place.address

    @contextmanager
    def _open_routing_session(self, begin: Begin, is_transaction: bool) -> Iterator[Session]:
        if not self._is_direct:
            with begin(self) as session:
                yield session
            return
        with self._find_changes_of_nodes(), ExitStack() as stack:
            at = functools.cache(lambda address: self._session_at(stack, address, begin))
            entry = functools.cache(lambda: stack.enter_context(begin(self)))
            yield RoutingSession(entry, at, self._nodes, is_transaction)

    @contextmanager
    def _find_changes_of_nodes(self) -> Iterator[None]:
        """Set a node aside that does not answer. Fetch the placement again if a shard does not exist. Raises
        RetryableFailure."""
        try:
            yield
        except RetryableFailure as error:
            if isinstance(error.__cause__, ServerSilent):
                self._nodes.set_aside(error.__cause__.address, error, inf)
            raise
        except GatewayError as error:
            reason = error.__cause__
            if isinstance(reason, psycopg.errors.UndefinedTable) or _NO_SHARD in str(reason):
                self._nodes.forget()
                raise RetryableFailure("a shard was split") from error
            raise

    def _session_at(self, stack: ExitStack, address: Address, begin: Begin) -> PostgresSession:
        """Return a session at a node. Raises NodeAway, Unreachable."""
        self._nodes.check(address)
        began = time.monotonic()
        try:
            session: PostgresSession = stack.enter_context(begin(self._nodes.database_at(address)))
        except Unreachable as error:
            self._nodes.set_aside(address, error, time.monotonic() - began)
            raise
        self._nodes.note_reached(address)
        return session

    def _fetch_placements(self, node: DistributedNode | None) -> Placements | None:
        try:
            with PostgreSQL.read_one(node or self, _READER_OF_NODES) as session:
                nodes, slots, shards = (
                    session.ask(NODES),
                    session.ask(PLACES, (list(SLOTS),)),
                    session.ask(SHARDS),
                )
                return placements(nodes(), slots(), shards())
        except (RetryableFailure, GatewayError) as error:
            log.info("cannot fetch the placement of shards: %s", error)
            return None

    def committed(self, transaction_id: str | None) -> bool | None:
        outcomes = [
            super().committed(transaction_id),
            *(node.committed(transaction_id) for node in self._nodes.databases),
        ]
        return True if any(outcomes) else None

    def close(self) -> None:
        for node in self._nodes.databases:
            node.close()
        super().close()


Begin = Callable[[DistributedNode], AbstractContextManager[Any]]
