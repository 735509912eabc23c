"""Placement of slots on nodes and shards, so that a statement goes straight to its rows.

A shard is a PostgreSQL table at its node. A statement on it costs as much as on a plain server, a tenth of the way
through Citus. The placement is fetched periodically, and shards can move. A session that uses a shard therefore also
checks that the shard is still at its node (HERE). If a node's own address is unreachable from here, statements go
through the entry.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

log = logging.getLogger(__name__)

# Seconds between two fetches of the placement. Shards move rarely.
PERIOD_S = 30.0
# Seconds until a node is tried again after it became unreachable. A node that was never reached is not tried again: its
# name is known only among the nodes.
_RETRY_S = 5.0

PLACES = """
SELECT s.slot, n.nodename, n.nodeport, d.shardid, d.shardminvalue FROM (
    SELECT slot, get_shard_id_for_distribution_column('rows', slot) AS shardid FROM unnest(?::smallint[]) slot
) s JOIN pg_dist_shard d ON d.shardid = s.shardid JOIN pg_dist_placement p ON p.shardid = s.shardid
JOIN pg_dist_node n ON n.groupid = p.groupid AND n.noderole = 'primary'"""
"""Select of each slot its node, its shard of `rows`, and the value that co-located shards share with that shard."""

SHARDS = """
SELECT c.relname::text, d.shardid, d.shardminvalue FROM pg_dist_shard d JOIN pg_class c ON c.oid = d.logicalrelid
JOIN pg_dist_partition p ON p.logicalrelid = d.logicalrelid
WHERE c.relnamespace = current_schema()::regnamespace AND (c.relname = 'tables' OR
    p.colocationid = (SELECT colocationid FROM pg_dist_partition WHERE logicalrelid = to_regclass('rows')))"""
"""The shards co-located with those of `rows`, and the shard of `tables`, which every node has."""

HERE = """
SELECT count(*) FROM pg_dist_placement p JOIN pg_dist_local_group g ON g.groupid = p.groupid
WHERE p.shardid = ANY(?::bigint[])"""
"""The number of the given shards that are at the queried node."""

LOCK = "SELECT lock_shard_metadata(5, ?::bigint[])::text"
"""Locks shards against moves until COMMIT, as Citus does before a write (5: ShareLock)."""

Address = tuple[str, int]
D = TypeVar("D")
# Shards need an alias where the statement has none. Aliases are in lower case, any other word after a table is not.
_TABLE_NAME = re.compile(r"\b(FROM|JOIN|INTO|UPDATE|USING)\s+(\w+)(?=(\s+[a-z]|))")


class SlotPlacement:
    """A node and its shards for some slots. `number`: the id of the shard of `rows`."""

    def __init__(self, address: Address, number: int, shards: dict[str, str]) -> None:
        self.address = address
        self.number = number
        self.shards = shards
        self._statements: dict[str, str] = {}

    def at_shards(self, statement: str) -> str:
        """Return the statement with shards in place of tables."""
        text = self._statements.get(statement)
        if text is None:
            text = self._statements[statement] = _TABLE_NAME.sub(self._replace_name, statement)
        return text

    def of_all(self, statement: str, others: Sequence[SlotPlacement]) -> str:
        """Return a statement about `rows` as one about this shard and others of the same node."""
        shards = " UNION ALL ".join(f"SELECT * FROM {place.shards['rows']}" for place in (self, *others))
        return statement.replace(" FROM rows r ", f" FROM ({shards}) r ", 1)

    def _replace_name(self, match: re.Match[str]) -> str:
        clause, name, alias = match.groups()
        shard = self.shards.get(name)
        if shard is None:
            return match[0]
        return f"{clause} {shard}" if alias else f"{clause} {shard} AS {name}"


def places(slots: Sequence[Sequence[Any]], shards: Sequence[Sequence[Any]]) -> dict[int, SlotPlacement]:
    """Return the placement of each slot, from the results of PLACES and SHARDS."""
    shards_by_group: dict[str | None, dict[str, str]] = {}
    for table, number, group in shards:
        shards_by_group.setdefault(group, {})[table] = f"{table}_{number}"
    places_by_number: dict[int, SlotPlacement] = {}
    for _, host, port, number, group in slots:
        if number not in places_by_number:
            places_by_number[number] = SlotPlacement(
                (host, int(port)), number, {**shards_by_group.get(None, {}), **shards_by_group[group]}
            )
    return {slot: places_by_number[number] for slot, _, _, number, _ in slots}


class Placements:
    """The placement of each slot, and those of each node. Empty if they are unknown."""

    def __init__(self, of_slots: dict[int, SlotPlacement]) -> None:
        self.of_slots = of_slots
        self.by_address: dict[Address, list[SlotPlacement]] = {}
        for place in dict.fromkeys(of_slots.values()):
            self.by_address.setdefault(place.address, []).append(place)


class Nodes(Generic[D]):
    """The nodes of a distributed database.

    `ask` fetches the placement of all slots, or an empty dict if it is unknown. `open_at` opens the database at an
    address.
    """

    def __init__(self, ask: Callable[[], dict[int, SlotPlacement]], open_at: Callable[[Address], D]) -> None:
        self._ask = ask
        self._open_at = open_at
        self._lock = threading.Lock()
        self.placements = Placements({})
        """The placements at the last fetch. The object is replaced and never changed."""
        self._databases: dict[Address, D] = {}
        self._fetched_at = -PERIOD_S
        self._reached: set[Address] = set()
        self._unused_until: dict[Address, float] = {}

    def place_of(self, slot: int) -> SlotPlacement | None:
        """Return the placement of a slot, or None if the entry must be used."""
        now = time.monotonic()
        if now - self._fetched_at >= PERIOD_S:
            self._fetched_at = now
            self.placements = Placements(self._ask())
        if not self.placements.of_slots:
            return None
        place = self.placements.of_slots[slot]
        if self._unused_until and now < self._unused_until.get(place.address, 0.0):
            return None
        return place

    def places_by_address(self) -> dict[Address, list[SlotPlacement]]:
        """Return the placements by node, or an empty dict if a node cannot be used."""
        if self.place_of(0) is None:
            return {}
        now = time.monotonic()
        by_address = self.placements.by_address
        return {} if any(now < self._unused_until.get(address, 0.0) for address in by_address) else by_address

    def usable_addresses(self) -> list[Address]:
        """Return the nodes that have shards and can be used now."""
        self.place_of(0)
        return [address for address in self.placements.by_address if self.is_usable(address)]

    def is_usable(self, address: Address) -> bool:
        """Return False for a while after a node was unreachable."""
        return time.monotonic() >= self._unused_until.get(address, 0.0)

    @property
    def are_known(self) -> bool:
        """False if the name of a node may be known only among the nodes."""
        return float("inf") not in self._unused_until.values()

    def forget(self) -> None:
        """Fetch the placement again at the next use, because a shard has moved."""
        self._fetched_at = -PERIOD_S

    def database_at(self, address: Address) -> D:
        """Return the database at a node, opened at first use."""
        with self._lock:
            database = self._databases.get(address)
            if database is None:
                database = self._databases[address] = self._open_at(address)
            return database

    def note_reached(self, address: Address) -> None:
        """Record that a connection to a node succeeded."""
        self._reached.add(address)
        self._unused_until.pop(address, None)

    def set_aside(self, address: Address, reason: Exception) -> None:
        """Stop using a node for a while, because it was unreachable."""
        for_s = _RETRY_S if address in self._reached else float("inf")
        if address not in self._unused_until:
            log.warning(
                "cannot reach node %s:%d directly, using other nodes instead: %s",
                *address,
                " ".join(str(reason).split()),
            )
        self._unused_until[address] = time.monotonic() + for_s

    @property
    def databases(self) -> list[D]:
        """The open databases of the nodes."""
        with self._lock:
            return [*self._databases.values()]
