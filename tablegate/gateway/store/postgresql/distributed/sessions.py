"""Sessions on the nodes of a distributed database: which statement goes to which node and shard."""

from __future__ import annotations

import functools
import heapq
import itertools
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tablegate.gateway.model.values.keys import slot_of
from tablegate.gateway.store.postgresql.database import PostgresSession
from tablegate.gateway.store.postgresql.distributed.nodes import (
    LOCK,
    Address,
    Check,
    Nodes,
    Place,
    Placements,
    ask_here,
)
from tablegate.gateway.store.postgresql.distributed.statements import (
    SLOT,
    DistributedSession,
    Part,
    by_slot,
)
from tablegate.gateway.store.postgresql.statements import PostgreSQLStatements
from tablegate.gateway.store.sql.databases import LOCK_TIMEOUT_MS, Pending, Row, Session


class DirectSession(DistributedSession):
    """A session that reaches nodes and shards directly. It leaves to Citus what is not about known slots."""

    _placements: Placements

    def place_of(self, slot: int) -> Place:
        """Return the place of a slot."""
        return self._placements.of_slots[slot]

    @abstractmethod
    def ask_at(self, place: Place, statement: str, parameters: Sequence[Any]) -> Pending[list[Row]]:
        """Query the shards of a place."""

    def send_at(self, place: Place, statement: str, parameters: Sequence[Any]) -> Pending[int]:
        """Send a statement to the shards of a place."""
        raise NotImplementedError(statement)

    def split(self, sets: Sequence[Sequence[Any]]) -> Iterator[Part]:
        """Split by shard, in the lock order of all writers: by node, shard and slot."""

        def lock_order(at: int) -> tuple[Any, ...]:
            place = self.place_of(sets[at][SLOT])
            return place.address, place.numbers, by_slot(sets[at])

        in_order = sorted(range(len(sets)), key=lock_order)
        for place, indexes in itertools.groupby(in_order, lambda at: self.place_of(sets[at][SLOT])):
            yield ShardSession(self, place), [*indexes]


class ShardSession(Session):
    """A view of a session. All its statements go to the shards of a place, with the SQL of plain PostgreSQL."""

    statements = PostgreSQLStatements()

    def __init__(self, session: DirectSession, place: Place) -> None:
        self._session = session
        self._place = place

    def ask(self, statement: str, parameters: Sequence[Any] = ()) -> Pending[list[Row]]:
        return self._session.ask_at(self._place, statement, parameters)

    def send(self, statement: str, parameters: Sequence[Any] = ()) -> Pending[int]:
        return self._session.send_at(self._place, statement, parameters)


class WritingSession(DirectSession):
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
        placements: Placements,
        address: Address,
        join: Callable[[Address], PostgresSession],
        nowait: bool,
    ) -> None:
        super().__init__(inner._pipeline)
        self._inner = inner
        self._placements = placements
        self._join = join
        self._address = address
        self._sessions: dict[Address, PostgresSession] = {}
        self.checks: list[Check] = []
        """To be verified before COMMIT."""
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

    def ask(self, statement: str, parameters: Sequence[Any] = ()) -> Pending[list[Row]]:
        slot_index = slot_parameter(statement)
        if slot_index is None:
            return self._citus().ask(statement, parameters)
        return self.ask_at(self.place_of(parameters[slot_index]), statement, parameters)

    def send(self, statement: str, parameters: Sequence[Any] = ()) -> Pending[int]:
        slot_index = slot_parameter(statement)
        if slot_index is None:
            return self._citus().send(statement, parameters)
        return self.send_at(self.place_of(parameters[slot_index]), statement, parameters)

    def ask_at(self, place: Place, statement: str, parameters: Sequence[Any]) -> Pending[list[Row]]:
        return self._session_at(place.address).ask(place.at_shards(statement), parameters)

    def send_at(self, place: Place, statement: str, parameters: Sequence[Any]) -> Pending[int]:
        return self._session_at(place.address).send(place.at_shards(statement), parameters)

    def execute_many(self, statement: str, parameters: Iterable[Sequence[Any]]) -> int:
        for values in parameters:
            self.send(statement, values)
        return -1

    def query_copy(self, statement: str, parameters: Sequence[Any], near: bytes) -> Pending[list[Row]] | None:
        return self.ask_at(self._placements.by_address[self._address], statement, parameters)

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
        numbers = self._placements.by_address[address].numbers
        session.send(LOCK, (numbers,))
        self.checks.append(ask_here(session, numbers))

    def _use(self, session: PostgresSession) -> None:
        """Wait for the statements at another node before one is sent to this node."""
        if session is not self._last:
            self._last.settle()
            self._last = session


LOCK_TIMEOUT = f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}"
"""Also goes to the nodes to which Citus sends statements. At the entered node it is a setting of the session."""


class RoutingSession(DirectSession):
    """Reads on several nodes.

    A statement that names a slot goes to its shard, any other to the entry. Statements to several nodes run in parallel
    until the first result is needed. Raises RetryableFailure if a shard has moved. A transaction checks this once for
    each shard, in its own snapshot. A single statement checks it afterwards.

    `entry` opens a session at the entry, and `at` at a node.
    """

    def __init__(
        self,
        entry: Callable[[], PostgresSession],
        at: Callable[[Address], PostgresSession],
        nodes: Nodes[Any],
        is_transaction: bool,
    ) -> None:
        self._entry = entry
        self._at = at
        self._nodes = nodes
        self._is_transaction = is_transaction
        self._visited: set[PostgresSession] = set()
        self._unchecked: dict[PostgresSession, set[int]] = {}
        self._checked: set[int] = set()

    def place_of(self, slot: int) -> Place:
        if not hasattr(self, "_placements"):
            self._placements = self._nodes.placements_for(slot)
        return super().place_of(slot)

    def ask(self, statement: str, parameters: Sequence[Any] = ()) -> Pending[list[Row]]:
        slot_index = slot_parameter(statement)
        if slot_index is not None:
            return self.ask_at(self.place_of(parameters[slot_index]), statement, parameters)
        scan = _SCAN.search(statement)
        if scan is not None:
            return self._scan(statement, parameters, is_reverse=scan[1] is not None)
        session = self._entry()
        self._visited.add(session)
        return self._verified(session.ask(statement, parameters))

    def ask_at(self, place: Place, statement: str, parameters: Sequence[Any]) -> Pending[list[Row]]:
        session = self._at(place.address)
        self._visited.add(session)
        if not self._checked.issuperset(place.numbers):
            self._unchecked.setdefault(session, set()).update(place.numbers)
        return self._verified(session.ask(place.at_shards(statement), parameters))

    def query_copy(self, statement: str, parameters: Sequence[Any], near: bytes) -> Pending[list[Row]] | None:
        return self.ask_at(self.place_of(slot_of(near)), statement, parameters) if near else None

    def _scan(self, statement: str, parameters: Sequence[Any], is_reverse: bool) -> Pending[list[Row]]:
        """Query all shards of each node together, and merge the rows of the nodes by key."""
        self.place_of(0)
        places = self._placements.by_address.values()
        answers = [self.ask_at(place, statement, parameters) for place in places]

        def rows() -> list[Row]:
            rows_in_order = heapq.merge(
                *(answer() for answer in answers), key=_key_of_row, reverse=is_reverse
            )
            return [*itertools.islice(rows_in_order, parameters[-1])]

        return rows

    def _verified(self, answer: Pending[list[Row]]) -> Pending[list[Row]]:
        def rows() -> list[Row]:
            if self._unchecked:
                self._verify()
            return answer()

        return rows

    def _verify(self) -> None:
        checks = [ask_here(session, [*numbers]) for session, numbers in self._unchecked.items()]
        if self._is_transaction:
            self._checked.update(*self._unchecked.values())
        self._unchecked = {}
        for session in self._visited:
            session.flush()
        self._nodes.verify(checks)


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
