"""PostgreSQL with Citus: sessions whose settings hold on every node, and what can be known of a commit. See databases.py.

A gateway enters at any node, the coordinator or a worker: each knows where every shard is. What is written at one slot is on one
node and is committed there; what is written at several nodes is committed in two phases. Where it can, a gateway enters at the
node that has what it is about (nodes.py), which then asks no other.
"""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, ClassVar

import sqlalchemy

from gateway.model.errors import GatewayError
from gateway.model.keys import slot_of
from gateway.store.databases import LOCK_TIMEOUT_MS, Retry, Row, Session, Unreachable
from gateway.store.postgresql.database import SERVER, PostgreSQL, PostgresSession
from gateway.store.postgresql.distributed import placement
from gateway.store.postgresql.distributed.nodes import NODES, Address, Nodes
from gateway.store.postgresql.distributed.statements import DistributedStatements
from gateway.store.postgresql.pipeline import Pipeline

log = logging.getLogger(__name__)

# Of the connection on which the nodes are asked for; other readers may be at work.
_READER_OF_NODES = -1


class DistributedSession(PostgresSession):
    """A pipeline to one node, which asks the others."""

    statements = DistributedStatements()


class RoutingSession(DistributedSession):
    """Reads on several nodes: a statement that names a slot goes to the node that has it, any other to the entry. Statements
    to several nodes are carried out at the same time, up to the first answer that is wanted."""

    def __init__(
        self, entry: Callable[[], PostgresSession], at: Callable[[int], PostgresSession | None]
    ) -> None:
        self._entry = entry
        self._at = at
        self._asked: dict[int, PostgresSession] = {}

    def ask(self, statement: str, parameters: Sequence[Any] = ()) -> Callable[[], list[Row]]:
        place = slot_parameter(statement)
        session = None if place is None else self._at(parameters[place])
        if session is None:
            session = self._entry()
        self._asked[id(session)] = session
        answer = session.ask(statement, parameters)

        def rows() -> list[Row]:
            self._flush()
            return answer()

        return rows

    def ask_where_asked(
        self, statement: str, parameters: Sequence[Any] = ()
    ) -> list[Callable[[], list[Row]]]:
        sessions = [*self._asked.values()] or [self._entry()]
        return [session.ask(statement, parameters) for session in sessions]

    def _flush(self) -> None:
        if len(self._asked) > 1:
            for session in self._asked.values():
                session.flush()


class DistributedNode(PostgreSQL):
    """One server of several that are one database. There is no snapshot over several nodes, nor a log of all."""

    has_snapshots = False
    is_distributed = True
    session_class = DistributedSession
    own_settings: ClassVar[Mapping[str, str]] = {
        # Other nodes are told of SET LOCAL too, together with their BEGIN.
        "citus.propagate_set_commands": "local",
        # Shard after shard, so that all writers lock in one order.
        "citus.multi_shard_modify_mode": "sequential",
        # What a transaction reads at a node is of one snapshot there.
        "citus.max_adaptive_executor_pool_size": "1",
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
            with PostgreSQL.look(self) as session:
                if session.query(SERVER) != [(server,)]:
                    return None
                [(status,)] = session.query("SELECT pg_xact_status(?::text::xid8)", (number,))
        except (Retry, GatewayError):
            return None
        return True if status == "committed" else None


class DistributedPostgreSQL(DistributedNode):
    """All of them, by way of one, the entry; or straight at the node that has what a statement or a transaction is about. Not
    where a pooler is in between: it stands before the entry, and the names by which nodes know each other go past it."""

    has_nodes = True

    def __init__(
        self, url: str, pooled: bool = False, schema: str | None = None, patience_ms: int | None = None
    ) -> None:
        super().__init__(url, pooled, schema, patience_ms)
        self._nodes = Nodes(
            self._ask_nodes, lambda address: DistributedNode(_at(url, address), False, schema)
        )

    @contextmanager
    def read(self, reader: int = 0) -> Iterator[Session]:
        with self._routed(lambda database: PostgreSQL.read(database, reader)) as session:
            yield session

    @contextmanager
    def look(self, reader: int = 0) -> Iterator[Session]:
        with self._routed(lambda database: PostgreSQL.look(database, reader)) as session:
            yield session

    @contextmanager
    def write(self, nowait: bool = False, near: bytes = b"") -> Iterator[Session]:
        with ExitStack() as stack:
            begin = functools.partial(PostgreSQL.write, nowait=nowait)
            node = self._entered(stack, self.node_of(near), begin)
            yield stack.enter_context(begin(self)) if node is None else node

    def node_of(self, partition: bytes) -> Address | None:
        if self._pooled or not partition:
            return None
        return self._nodes.address_of(slot_of(partition))

    @contextmanager
    def _routed(self, begin: Begin) -> Iterator[Session]:
        with ExitStack() as stack:
            found: dict[Address | None, Any] = {}

            def at(slot: int) -> PostgresSession | None:
                address = None if self._pooled else self._nodes.address_of(slot)
                if address is None:
                    return None
                if address not in found:
                    found[address] = self._entered(stack, address, begin)
                session: PostgresSession | None = found[address]
                return session

            def entry() -> PostgresSession:
                if None not in found:
                    found[None] = stack.enter_context(begin(self))
                session: PostgresSession = found[None]
                return session

            yield RoutingSession(entry, at)

    def _entered(self, stack: ExitStack, address: Address | None, begin: Begin) -> PostgresSession | None:
        """A session at a node; None: at the entry."""
        if address is None:
            return None
        try:
            session: PostgresSession = stack.enter_context(begin(self._nodes.database_at(address)))
        except Unreachable as error:
            self._nodes.leave_alone(address, error)
            return None
        self._nodes.note_reached(address)
        return session

    def _ask_nodes(self) -> list[Address]:
        try:
            with PostgreSQL.look(self, _READER_OF_NODES) as session:
                return [(name, int(port)) for name, port in session.query(NODES)]
        except (Retry, GatewayError):
            return []

    def committed(self, transaction_id: str | None) -> bool | None:
        every = [
            super().committed(transaction_id),
            *(node.committed(transaction_id) for node in self._nodes.opened),
        ]
        return True if any(every) else None

    def close(self) -> None:
        for node in self._nodes.opened:
            node.close()
        super().close()


Begin = Callable[[PostgreSQL], AbstractContextManager[Any]]


def _at(url: str, address: Address) -> str:
    """A URL with another server in it."""
    host, port = address
    there = sqlalchemy.make_url(url).set(host=host, port=port)
    there = there.difference_update_query(["host", "port", "hostaddr"])
    return there.render_as_string(hide_password=False)


_AT_SLOT = re.compile(r"\?|(?<!\w)slot = (?=\?)")


@functools.lru_cache(1024)
def slot_parameter(statement: str) -> int | None:
    """Which of a statement's parameters is the slot that it is about; None: it does not say."""
    # All that is found before it are parameters.
    for place, found in enumerate(_AT_SLOT.finditer(statement)):
        if found[0] != "?":
            return place
    return None
