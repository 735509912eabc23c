"""Which node has which slot, and in which of its tables: so that a statement goes straight to its rows.

A shard is a table of PostgreSQL's at its node. To ask that one costs what it costs on a plain server, a tenth of asking Citus,
which would ask the same one. What is known here is looked up once in a while, and shards can be moved: so who asks a shard also
asks its node whether it still has it (HERE). A node that cannot be reached under the name that the nodes have for each other is
left alone, and the entry is asked, which asks it.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

log = logging.getLogger(__name__)

# Shards are moved once in a long while.
PERIOD_S = 30.0
# One that was reached once is tried again; one that never was is known to the nodes by a name that means nothing here.
_LEFT_ALONE_S = 5.0

SLOTS = """
SELECT n.nodename, n.nodeport, d.shardid, d.shardminvalue FROM (
    SELECT slot, get_shard_id_for_distribution_column('rows', slot::smallint) AS shardid FROM generate_series(0, 255) slot
) s JOIN pg_dist_shard d ON d.shardid = s.shardid JOIN pg_dist_placement p ON p.shardid = s.shardid
JOIN pg_dist_node n ON n.groupid = p.groupid AND n.noderole = 'primary' ORDER BY s.slot"""
"""Of each slot, in order: its node, the shard of `rows`, and what the shards beside that one have in common with it."""

SHARDS = """
SELECT c.relname::text, d.shardid, d.shardminvalue FROM pg_dist_shard d JOIN pg_class c ON c.oid = d.logicalrelid
JOIN pg_dist_partition p ON p.logicalrelid = d.logicalrelid
WHERE c.relnamespace = current_schema()::regnamespace AND (c.relname = 'tables' OR
    p.colocationid = (SELECT colocationid FROM pg_dist_partition WHERE logicalrelid = to_regclass('rows')))"""
"""The shards that stand beside those of `rows`; and that of `tables`, which every node has."""

HERE = """
SELECT count(*) FROM pg_dist_placement p JOIN pg_dist_local_group g ON g.groupid = p.groupid
WHERE p.shardid = ANY(?::bigint[])"""
"""How many of some shards are at the node that is asked."""

LOCK = "SELECT lock_shard_metadata(5, ?::bigint[])::text"
"""Lock shards as Citus does before it writes to one (5: ShareLock), so that none of them is moved before COMMIT."""

Address = tuple[str, int]
D = TypeVar("D")
# An alias, which shards need where a statement has none, is in small letters; what follows a table otherwise is not.
_NAMED = re.compile(r"\b(FROM|JOIN|INTO|UPDATE|USING)\s+(\w+)(?=(\s+[a-z]|))")


class SlotPlacement:
    """Where slots are: a node, and the shards there. `number`: of the shard of `rows`."""

    def __init__(self, address: Address, number: int, shards: dict[str, str]) -> None:
        self.address = address
        self.number = number
        self.shards = shards
        self._statements: dict[str, str] = {}

    def at_shards(self, statement: str) -> str:
        """A statement as one that is about the shards, in place of the tables that they are parts of."""
        known = self._statements.get(statement)
        if known is None:
            known = self._statements[statement] = _NAMED.sub(self._named, statement)
        return known

    def of_all(self, statement: str, others: Sequence[SlotPlacement]) -> str:
        """A statement about `rows` as one that is about this shard and others at the same node together."""
        shards = " UNION ALL ".join(f"SELECT * FROM {place.shards['rows']}" for place in (self, *others))
        return statement.replace(" FROM rows r ", f" FROM ({shards}) r ", 1)

    def _named(self, found: re.Match[str]) -> str:
        clause, name, alias = found.groups()
        shard = self.shards.get(name)
        if shard is None:
            return found[0]
        return f"{clause} {shard}" if alias else f"{clause} {shard} AS {name}"


def places(slots: Sequence[Sequence[Any]], shards: Sequence[Sequence[Any]]) -> list[SlotPlacement]:
    """The place of each slot, from what SLOTS and SHARDS gave."""
    beside: dict[str | None, dict[str, str]] = {}
    for table, number, group in shards:
        beside.setdefault(group, {})[table] = f"{table}_{number}"
    made: dict[int, SlotPlacement] = {}
    for host, port, number, group in slots:
        if number not in made:
            made[number] = SlotPlacement((host, int(port)), number, {**beside.get(None, {}), **beside[group]})
    return [made[number] for _, _, number, _ in slots]


class Nodes(Generic[D]):
    """The nodes of a distributed database. `ask`: the place of each slot, or none where that is unknown; `open_at`: a
    database at an address."""

    def __init__(self, ask: Callable[[], list[SlotPlacement]], open_at: Callable[[Address], D]) -> None:
        self._ask = ask
        self._open_at = open_at
        self._lock = threading.Lock()
        self.places: list[SlotPlacement] = []
        """The place of each slot as it was last found; never changed, but replaced."""
        self._databases: dict[Address, D] = {}
        self._asked_at = -PERIOD_S
        self._reached: set[Address] = set()
        self._left_alone: dict[Address, float] = {}

    def place_of(self, slot: int) -> SlotPlacement | None:
        """Where a slot is; None: the entry is to be asked."""
        now = time.monotonic()
        if now - self._asked_at >= PERIOD_S:
            self._asked_at = now
            self.places = self._ask()
        if not self.places:
            return None
        place = self.places[slot]
        if self._left_alone and now < self._left_alone.get(place.address, 0.0):
            return None
        return place

    def places_by_address(self) -> dict[Address, list[SlotPlacement]]:
        """All that is known of each node, if all of them can be entered."""
        if self.place_of(0) is None:
            return {}
        by_address: dict[Address, dict[int, SlotPlacement]] = {}
        for place in self.places:
            by_address.setdefault(place.address, {})[place.number] = place
        now = time.monotonic()
        if any(now < self._left_alone.get(address, 0.0) for address in by_address):
            return {}
        return {address: [*some.values()] for address, some in by_address.items()}

    def forget(self) -> None:
        """A shard was not where it had been: all are to be looked for."""
        self._asked_at = -PERIOD_S

    def database_at(self, address: Address) -> D:
        """The database opened at a node."""
        with self._lock:
            opened = self._databases.get(address)
            if opened is None:
                opened = self._databases[address] = self._open_at(address)
            return opened

    def note_reached(self, address: Address) -> None:
        """A connection to a node was had."""
        self._reached.add(address)
        self._left_alone.pop(address, None)

    def leave_alone(self, address: Address, reason: Exception) -> None:
        """Enter at a node no more for a while: it could not be reached."""
        for_s = _LEFT_ALONE_S if address in self._reached else float("inf")
        if address not in self._left_alone:
            log.warning("node %s:%d is asked through others: %s", *address, " ".join(str(reason).split()))
        self._left_alone[address] = time.monotonic() + for_s

    @property
    def opened(self) -> list[D]:
        """The databases that are open at nodes."""
        with self._lock:
            return [*self._databases.values()]
