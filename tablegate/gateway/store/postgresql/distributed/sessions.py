"""Sessions on the nodes of a distributed database: which statement goes to which node and shard."""

from __future__ import annotations

import functools
import heapq
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tablegate.gateway.store.postgresql.database import PostgresSession
from tablegate.gateway.store.postgresql.distributed.nodes import HERE, LOCK, Address, Nodes, SlotPlacement
from tablegate.gateway.store.postgresql.distributed.statements import (
    SLOT,
    DistributedSession,
    Part,
    by_slot,
)
from tablegate.gateway.store.postgresql.statements import PostgreSQLStatements
from tablegate.gateway.store.sql.databases import LOCK_TIMEOUT_MS, Pending, RetryableFailure, Row, Session


class ShardSession(Session):
    """A view of a session. All its statements go to one shard of each table, with the SQL of plain PostgreSQL."""

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

    A statement about one slot goes to the shard itself, at its node. Citus routes all others from the entered node.
    Statements run in the order in which they were sent, also those at different nodes. The shards are locked as Citus
    locks them for its own writers, so that none is moved meanwhile.

    `address`: the node at which it entered. `join` begins the transaction at another node. `nowait`: a short time-out of
    locks is set already.
    """

    def __init__(
        self,
        inner: PostgresSession,
        nodes: Nodes[Any],
        address: Address,
        join: Callable[[Address], PostgresSession],
        nowait: bool,
    ) -> None:
        super().__init__(inner._pipeline)
        self._inner = inner
        self._nodes = nodes
        self._join = join
        # All placements are of one fetch, so that an update of the placement cannot affect a statement in progress.
        placements = nodes.placements
        self._places, self._places_by_address = placements.of_slots, placements.by_address
        self._address = address
        self._sessions: dict[Address, PostgresSession] = {}
        self._checks: list[tuple[int, Pending[list[Row]]]] = []
        self._last = inner
        self._has_lock_timeout = nowait
        self._enter(address, inner)

    @property
    def transaction_id(self) -> str | None:
        return self._inner.transaction_id

    @transaction_id.setter
    def transaction_id(self, value: str | None) -> None:
        self._inner.transaction_id = value

    @property
    def has_joined(self) -> bool:
        """True if the transaction has begun at other nodes."""
        return len(self._sessions) > 1

    def check(self) -> None:
        """Verify before COMMIT that the shards have not moved. Raises RetryableFailure if one has."""
        if any(answer() != [(number,)] for number, answer in self._checks):
            self._nodes.forget()
            raise RetryableFailure("a shard has moved")

    def ask(self, statement: str, parameters: Sequence[Any] = ()) -> Pending[list[Row]]:
        place = self._place_of(statement, parameters)
        if place is None:
            return self._citus().ask(statement, parameters)
        return self._session_at(place.address).ask(place.at_shards(statement), parameters)

    def send(self, statement: str, parameters: Sequence[Any] = ()) -> Pending[int]:
        place = self._place_of(statement, parameters)
        if place is None:
            return self._citus().send(statement, parameters)
        return self._session_at(place.address).send(place.at_shards(statement), parameters)

    def execute_many(self, statement: str, parameters: Iterable[Sequence[Any]]) -> int:
        for values in parameters:
            self.send(statement, values)
        return -1

    def query_local(self, statement: str, parameters: Sequence[Any]) -> Pending[list[Row]] | None:
        any_place = self._places_by_address[self._address][0]
        return self._session_at(self._address).ask(any_place.at_shards(statement), parameters)

    def split(self, sets: Sequence[Sequence[Any]]) -> Iterator[Part]:
        """Split by shard, in the lock order of all writers: by node, shard and slot."""

        def lock_order(at: int) -> tuple[Any, ...]:
            place = self._places[sets[at][SLOT]]
            return place.address, place.number, by_slot(sets[at])

        in_order = sorted(range(len(sets)), key=lock_order)
        for place, indexes in itertools.groupby(in_order, lambda at: self._places[sets[at][SLOT]]):
            session = self._session_at(place.address)
            yield ShardSession(place, session.ask, session.send), [*indexes]

    def _place_of(self, statement: str, parameters: Sequence[Any]) -> SlotPlacement | None:
        slot_index = slot_parameter(statement)
        return None if slot_index is None else self._places[parameters[slot_index]]

    def _citus(self) -> PostgresSession:
        """Return the session of the entered node, for a statement that Citus sends to other nodes."""
        self._use(self._inner)
        if not self._has_lock_timeout:
            self._has_lock_timeout = True
            self._inner.send(LOCK_TIMEOUT)
        return self._inner

    def _session_at(self, address: Address) -> PostgresSession:
        session = self._sessions.get(address)
        if session is None:
            session = self._join(address)
            self._enter(address, session)
        self._use(session)
        return session

    def _enter(self, address: Address, session: PostgresSession) -> None:
        """Lock the shards of a node, and ask whether they are all there."""
        self._sessions[address] = session
        numbers = [place.number for place in self._places_by_address[address]]
        session.send(LOCK, (numbers,))
        self._checks.append((len(numbers), session.ask(HERE, (numbers,))))

    def _use(self, session: PostgresSession) -> None:
        """Wait for the statements at another node before one is sent to this node."""
        if session is not self._last:
            self._last.settle()
            self._last = session


LOCK_TIMEOUT = f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}"
"""Also goes to the nodes to which Citus sends statements. At the entered node it is a setting of the session."""


class RoutingSession(DistributedSession):
    """Reads on several nodes.

    A statement that names a slot goes to its shard, any other to the entry. Statements to several nodes run in parallel
    until the first result is needed. Raises RetryableFailure if a shard has moved. A transaction checks this once for
    each shard, in its own snapshot. A single statement checks it afterwards.

    `at` opens a session at a node. `nodes` is None if everything goes to the entry.
    """

    def __init__(
        self,
        entry: Callable[[], PostgresSession],
        at: Callable[[Address], PostgresSession],
        nodes: Nodes[Any] | None,
        is_transaction: bool,
    ) -> None:
        self._entry = entry
        self._at = at
        self._nodes = nodes
        self._is_transaction = is_transaction
        self._known_to_be_here: set[int] = set()
        self._visited: set[PostgresSession] = set()
        self._unchecked: dict[PostgresSession, set[int]] = {}

    def ask(self, statement: str, parameters: Sequence[Any] = ()) -> Pending[list[Row]]:
        slot_index = slot_parameter(statement)
        if slot_index is None:
            scan = _SCAN.search(statement)
            answers = [] if scan is None else self._scan_each_node(statement, parameters)
            if scan is not None and answers:
                return self._merged(answers, parameters[-1], is_reverse=scan[1] is not None)
        elif (place := self._place_of(parameters[slot_index])) is not None:
            return self._ask_at(place, place.at_shards(statement), parameters)
        session = self._entry()
        self._visited.add(session)
        return self._checked(session.ask(statement, parameters))

    def split(self, sets: Sequence[Sequence[Any]]) -> Iterator[Part]:
        """Split by shard."""
        parts: dict[SlotPlacement | None, list[int]] = {}
        for at, columns in enumerate(sets):
            parts.setdefault(self._place_of(columns[SLOT]), []).append(at)
        for place, indexes in parts.items():
            if place is None:
                yield from ((self, [at]) for at in indexes)
            else:
                yield ShardSession(place, functools.partial(self._ask_at, place), self.send), indexes

    def _place_of(self, slot: int) -> SlotPlacement | None:
        return None if self._nodes is None else self._nodes.place_of(slot)

    def _ask_at(self, place: SlotPlacement, statement: str, parameters: Sequence[Any]) -> Pending[list[Row]]:
        """Query shards of a place."""
        session = self._at(place.address)
        self._note_visit(session, place.number)
        return self._checked(session.ask(statement, parameters))

    def _note_visit(self, session: PostgresSession, *shards: int) -> None:
        self._visited.add(session)
        unchecked = {*shards} - self._known_to_be_here
        if unchecked:
            self._unchecked.setdefault(session, set()).update(unchecked)

    def _checked(self, answer: Pending[list[Row]]) -> Pending[list[Row]]:
        def rows() -> list[Row]:
            if self._unchecked:
                self._check()
            return answer()

        return rows

    def _scan_each_node(self, statement: str, parameters: Sequence[Any]) -> list[Pending[list[Row]]]:
        """Query all shards of each node together. Empty if the placement is unknown."""
        if self._place_of(0) is None:
            return []
        assert self._nodes is not None
        answers = []
        for address, (first, *others) in self._nodes.placements.by_address.items():
            session = self._at(address)
            self._note_visit(session, *(place.number for place in (first, *others)))
            answers.append(session.ask(first.of_all(statement, others), parameters))
        return answers

    def _merged(self, answers: list[Pending[list[Row]]], limit: int, is_reverse: bool) -> Pending[list[Row]]:
        """Merge the rows of several nodes by key."""

        def rows() -> list[Row]:
            rows_in_order = heapq.merge(
                *(answer() for answer in answers), key=_key_of_row, reverse=is_reverse
            )
            return [*itertools.islice(rows_in_order, limit)]

        return self._checked(rows)

    def _check(self) -> None:
        answers = [
            (len(numbers), session.ask(HERE, ([*numbers],))) for session, numbers in self._unchecked.items()
        ]
        if self._is_transaction:
            self._known_to_be_here.update(*self._unchecked.values())
        self._unchecked.clear()
        for session in self._visited:
            session.flush()
        if any(answer() != [(number,)] for number, answer in answers):
            assert self._nodes is not None
            self._nodes.forget()
            raise RetryableFailure("a shard has moved")


_SCAN = re.compile(
    r"^SELECT r\.partition, r\.sort, .* FROM rows r WHERE .* ORDER BY r\.partition( DESC)?, r\.sort(?: DESC)? LIMIT \?$"
)


def _key_of_row(row: Row) -> Row:
    return row[:2]


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
