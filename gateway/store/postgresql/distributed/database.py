"""PostgreSQL with Citus: sessions on several nodes, and the outcome of an interrupted commit.

databases.py describes the interface. A gateway can enter at any node, the coordinator or a worker, since each knows the
place of every shard. Writes to one slot are committed on one node, writes to several nodes in two phases. Where
possible, a gateway enters at the node that holds the data (nodes.py), which then needs no other node.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, ClassVar, cast

import sqlalchemy

from tablegate.gateway.model.errors import GatewayError
from tablegate.gateway.model.values.keys import slot_of
from tablegate.gateway.store.postgresql.database import SERVER, PostgreSQL, PostgresSession
from tablegate.gateway.store.postgresql.distributed import placement
from tablegate.gateway.store.postgresql.distributed.nodes import (
    HERE,
    LOCK,
    SHARDS,
    SLOTS,
    Address,
    Nodes,
    SlotPlacement,
    places,
)
from tablegate.gateway.store.postgresql.distributed.statements import (
    SLOT,
    DistributedStatements,
    Part,
    SessionOfNodes,
    by_slot,
)
from tablegate.gateway.store.postgresql.pipeline import Pipeline
from tablegate.gateway.store.postgresql.statements import PostgreSQLStatements
from tablegate.gateway.store.sql.databases import (
    LOCK_TIMEOUT_MS,
    Pending,
    RetryableFailure,
    Row,
    Session,
    Unreachable,
)

log = logging.getLogger(__name__)

# Reader number of the connection that fetches the placement. Other readers may be in use.
_READER_OF_NODES = -1


class DistributedSession(SessionOfNodes):
    """A pipeline to one node, which queries the others."""

    statements = DistributedStatements()


class ShardSession(Session):
    """A view of a session whose statements all go to one shard of each table, with the SQL of plain PostgreSQL.

    `send` and `ask` are those of the session for this shard.
    """

    statements = PostgreSQLStatements()

    def __init__(
        self,
        place: SlotPlacement,
        ask: Callable[[str, Sequence[Any]], Pending[list[Row]]],
        send: Callable[[str, Sequence[Any]], Pending[int]],
    ) -> None:
        self._place = place
        self._ask = ask
        self._send = send

    def ask(self, statement: str, parameters: Sequence[Any] = ()) -> Pending[list[Row]]:
        return self._ask(self._place.at_shards(statement), parameters)

    def send(self, statement: str, parameters: Sequence[Any] = ()) -> Pending[int]:
        return self._send(self._place.at_shards(statement), parameters)


class WritingSession(DistributedSession):
    """A write transaction that entered at a node.

    A statement about one slot of the node's shards goes to the shard itself. Citus routes all others. The shards are
    locked as Citus locks them for its own writers, so that none is moved meanwhile. `address`: the node at which it
    entered, or None for the entry of the URL.
    """

    def __init__(
        self, inner: PostgresSession, nodes: Nodes[DistributedNode], address: Address | None
    ) -> None:
        super().__init__(inner._pipeline)
        self._inner = inner
        self._nodes = nodes
        self._address = address
        # A copy, so that an update of the placement cannot affect a statement in progress.
        self._places = nodes.places
        own_places = {place.number: place for place in self._places if place.address == address}
        self._shards = sorted(own_places)
        self._any_place = own_places[self._shards[0]] if own_places else None
        if self._shards:
            inner.send(LOCK, (self._shards,))
            self._ask_own_shards = inner.ask(HERE, (self._shards,))

    @property
    def transaction_id(self) -> str | None:
        return self._inner.transaction_id

    @transaction_id.setter
    def transaction_id(self, value: str | None) -> None:
        self._inner.transaction_id = value

    def check(self) -> None:
        """Verify before COMMIT that the shards have not moved. Raises RetryableFailure if one has."""
        if self._shards and self._ask_own_shards() != [(len(self._shards),)]:
            self._nodes.forget()
            raise RetryableFailure("a shard has moved")

    def ask(self, statement: str, parameters: Sequence[Any] = ()) -> Pending[list[Row]]:
        return self._inner.ask(self._at_shards(statement, parameters), parameters)

    def send(self, statement: str, parameters: Sequence[Any] = ()) -> Pending[int]:
        return self._inner.send(self._at_shards(statement, parameters), parameters)

    def execute_many(self, statement: str, parameters: Iterable[Sequence[Any]]) -> int:
        for values in parameters:
            self.send(statement, values)
        return -1

    def query_local(self, statement: str, parameters: Sequence[Any]) -> Pending[list[Row]] | None:
        if self._any_place is None:
            return None
        return self._inner.ask(self._any_place.at_shards(statement), parameters)

    def split(self, sets: Sequence[Sequence[Any]]) -> list[Part]:
        """Split by node as Citus splits a statement, and at the entered node by shard."""
        if not self._places:
            return super().split(sets)

        def lock_order(at: int) -> tuple[Any, ...]:
            place = self._places[sets[at][SLOT]]
            return place.address, place.number, by_slot(sets[at])

        parts: dict[tuple[Address, SlotPlacement | None], list[int]] = {}
        for at in sorted(range(len(sets)), key=lock_order):
            place = self._places[sets[at][SLOT]]
            is_here = place.address == self._address
            parts.setdefault((place.address, place if is_here else None), []).append(at)
        return [
            (None if place is None else ShardSession(place, self._inner.ask, self._inner.send), indexes)
            for (_, place), indexes in parts.items()
        ]

    def _at_shards(self, statement: str, parameters: Sequence[Any]) -> str:
        if not self._shards:
            return statement
        slot_index = slot_parameter(statement)
        if slot_index is None:
            return statement
        place = self._places[parameters[slot_index]]
        return place.at_shards(statement) if place.address == self._address else statement


class RoutingSession(DistributedSession):
    """Reads on several nodes.

    A statement that names a slot goes to its shard, any other to the entry. Statements to several nodes run in parallel
    until the first result is needed. Raises RetryableFailure if a shard has moved. A transaction checks this in its own
    snapshot, a single statement checks it afterwards.
    """

    def __init__(
        self,
        entry: Callable[[], PostgresSession],
        at: Callable[[SlotPlacement], PostgresSession | None],
        nodes: Nodes[DistributedNode] | None,
    ) -> None:
        self._entry = entry
        self._at_place = at
        self._nodes = nodes
        self._visited: set[PostgresSession] = set()
        self._unchecked: dict[PostgresSession, set[int]] = {}

    def ask(self, statement: str, parameters: Sequence[Any] = ()) -> Pending[list[Row]]:
        slot_index = slot_parameter(statement)
        place = None if slot_index is None else self._reachable_place(parameters[slot_index])
        if place is not None:
            return self._ask_at(place, place.at_shards(statement), parameters)
        if slot_index is None and (scan := _SCAN.search(statement)) is not None:
            merged_rows = self._scan_each_node(statement, parameters, is_reverse=scan[1] is not None)
            if merged_rows is not None:
                return merged_rows
        session = self._entry()
        self._visited.add(session)
        return self._checked(session.ask(statement, parameters))

    def split(self, sets: Sequence[Sequence[Any]]) -> list[Part]:
        """Split by shard. Members whose node is unreachable go through the entry."""
        parts: dict[SlotPlacement | None, list[int]] = {}
        for at, columns in enumerate(sets):
            parts.setdefault(self._reachable_place(columns[SLOT]), []).append(at)
        return [
            (
                None
                if place is None
                else ShardSession(place, functools.partial(self._ask_at, place), self.send),
                part,
            )
            for place, part in parts.items()
        ]

    def _ask_at(self, place: SlotPlacement, statement: str, parameters: Sequence[Any]) -> Pending[list[Row]]:
        """Query shards of a place. Their node must be reachable."""
        session = self._at_place(place)
        assert session is not None
        self._unchecked.setdefault(session, set()).add(place.number)
        self._visited.add(session)
        return self._checked(session.ask(statement, parameters))

    def _checked(self, answer: Pending[list[Row]]) -> Pending[list[Row]]:
        def rows() -> list[Row]:
            if self._unchecked:
                self._check()
            return answer()

        return rows

    def _scan_each_node(
        self, statement: str, parameters: Sequence[Any], is_reverse: bool
    ) -> Pending[list[Row]] | None:
        """Query all shards of each node together and merge the rows by key. None if a node is unavailable."""
        answers = []
        for node_places in self._places_by_node():
            first, *others = node_places
            at = self._at_place(first)
            if at is None:
                return None
            self._unchecked.setdefault(at, set()).update(place.number for place in node_places)
            self._visited.add(at)
            answers.append(at.ask(first.of_all(statement, others), parameters))
        if not answers:
            return None

        def rows() -> list[Row]:
            rows_in_order = heapq.merge(
                *(answer() for answer in answers), key=_key_of_row, reverse=is_reverse
            )
            return [*itertools.islice(rows_in_order, parameters[-1])]

        return self._checked(rows)

    def _check(self) -> None:
        answers = [
            (len(numbers), session.ask(HERE, ([*numbers],))) for session, numbers in self._unchecked.items()
        ]
        self._unchecked.clear()
        for session in self._visited:
            session.flush()
        if any(answer() != [(number,)] for number, answer in answers):
            assert self._nodes is not None
            self._nodes.forget()
            raise RetryableFailure("a shard has moved")

    def _reachable_place(self, slot: int) -> SlotPlacement | None:
        place = None if self._nodes is None else self._nodes.place_of(slot)
        return None if place is None or self._at_place(place) is None else place

    def _places_by_node(self) -> list[list[SlotPlacement]]:
        return [] if self._nodes is None else [*self._nodes.places_by_address().values()]


_SCAN = re.compile(
    r"^SELECT r\.partition, r\.sort, .* FROM rows r WHERE .* ORDER BY r\.partition( DESC)?, r\.sort(?: DESC)? LIMIT \?$"
)


def _key_of_row(row: Row) -> Row:
    return row[:2]


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

    def _set_for_writing(self, pipeline: Pipeline, nowait: bool) -> None:
        super()._set_for_writing(pipeline, nowait)
        if not nowait:
            pipeline.send(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}")

    def begin_migrating(self) -> None:
        with placement.connect(self._url) as connection:
            placement.check_is_coordinator(connection)

    def end_migrating(self) -> None:
        """Distribute tables that a revision has added, as their keys require."""
        with placement.connect(self._url) as connection:
            if placement.placement(connection).alone:
                for step in placement.distribute(connection, shards=0):
                    log.info(step)

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

    def __init__(
        self,
        url: str,
        pooled: bool = False,
        schema: str | None = None,
        silence_ms: int | None = None,
    ) -> None:
        super().__init__(url, pooled, schema, silence_ms=silence_ms)
        self._nodes = Nodes(
            self._fetch_places,
            lambda address: DistributedNode(_at(url, address), schema=schema, silence_ms=silence_ms),
        )

    @contextmanager
    def read(self, reader: int = 0) -> Iterator[Session]:
        with self._open_routing_session(lambda database: PostgreSQL.read(database, reader)) as session:
            yield session

    @contextmanager
    def read_one(self, reader: int = 0) -> Iterator[Session]:
        with self._open_routing_session(lambda database: PostgreSQL.read_one(database, reader)) as session:
            yield session

    @contextmanager
    def write(self, nowait: bool = False, near: bytes = b"") -> Iterator[Session]:
        with ExitStack() as stack:
            begin = functools.partial(PostgreSQL.write, nowait=nowait)
            address = self.node_of(near)
            inner = self._session_at(stack, address, begin)
            if inner is None:
                inner, address = cast(PostgresSession, stack.enter_context(begin(self))), None
            if self._pooled:
                yield inner
                return
            session = WritingSession(inner, self._nodes, address)
            yield session
            session.check()

    def node_of(self, partition: bytes) -> Address | None:
        if self._pooled or not partition:
            return None
        place = self._nodes.place_of(slot_of(partition))
        return None if place is None else place.address

    @contextmanager
    def _open_routing_session(self, begin: Begin) -> Iterator[Session]:
        with ExitStack() as stack:
            sessions: dict[Address | None, Any] = {}

            def at(place: SlotPlacement) -> PostgresSession | None:
                address = place.address
                if address not in sessions:
                    sessions[address] = self._session_at(stack, address, begin)
                session: PostgresSession | None = sessions[address]
                return session

            def entry() -> PostgresSession:
                if None not in sessions:
                    sessions[None] = stack.enter_context(begin(self))
                session: PostgresSession = sessions[None]
                return session

            yield RoutingSession(entry, at, None if self._pooled else self._nodes)

    def _session_at(self, stack: ExitStack, address: Address | None, begin: Begin) -> PostgresSession | None:
        """Return a session at a node, or None if the entry must be used."""
        if address is None:
            return None
        try:
            session: PostgresSession = stack.enter_context(begin(self._nodes.database_at(address)))
        except Unreachable as error:
            self._nodes.set_aside(address, error)
            return None
        self._nodes.note_reached(address)
        return session

    def _fetch_places(self) -> list[SlotPlacement]:
        try:
            with PostgreSQL.read_one(self, _READER_OF_NODES) as session:
                slots, shards = session.ask(SLOTS), session.ask(SHARDS)
                return places(slots(), shards())
        except (RetryableFailure, GatewayError):
            return []

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


Begin = Callable[[PostgreSQL], AbstractContextManager[Any]]


def _at(url: str, address: Address) -> str:
    """Return a URL with another host and port."""
    host, port = address
    address_url = sqlalchemy.make_url(url).set(host=host, port=port)
    address_url = address_url.difference_update_query(["host", "port", "hostaddr"])
    return address_url.render_as_string(hide_password=False)


_AT_SLOT = re.compile(r"\?|(?<!\w)slot = (?=\?)")
_INSERT = re.compile(r"\s*INSERT INTO \w+ \(([^)]*)\) VALUES \(([^)]*)\)")


@functools.lru_cache(1024)
def slot_parameter(statement: str) -> int | None:
    """Return the index of the parameter that holds the statement's slot. None if it names no slot or several."""
    insert = _INSERT.match(statement)
    if insert is not None:
        columns, values = (part.replace(" ", "").split(",") for part in insert.groups())
        if "slot" not in columns:
            return None
        at = columns.index("slot")
        return at if values[: at + 1] == ["?"] * (at + 1) else None
    # All matches before it are parameters.
    indexes = [place for place, match in enumerate(_AT_SLOT.finditer(statement)) if match[0] != "?"]
    return indexes[0] if len(indexes) == 1 else None
