"""Placement of slots on nodes and shards, so that a statement goes straight to its rows.

A shard is a PostgreSQL table at its node. A statement on it costs a fraction of one that Citus plans. The placement is
fetched periodically, and shards can move. A session that uses a shard therefore also checks that the shard is still at
its node (ask_here).
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from tablegate.gateway.model.errors import NodeAway
from tablegate.gateway.store.sql.databases import Pending, RetryableFailure, Row, Session, Unreachable

log = logging.getLogger(__name__)

# Seconds between two fetches of the placement, and after one that failed. Shards move rarely.
PERIOD_S = 30.0
# Seconds until a request tries a node again that did not answer, or that refused the connection, which takes no time.
_RETRY_S, _RETRY_REFUSED_S = 5.0, 0.5
# A refusal comes sooner. Without an answer, an attempt to connect takes two seconds.
_SILENT_S = 1.0

NODES = "SELECT groupid, nodename, nodeport FROM pg_dist_node WHERE noderole = 'primary'"
"""The number of each node, which stays the same if its address changes, and its address."""

PLACES = """
SELECT s.slot, p.groupid, d.shardid, d.shardminvalue FROM (
    SELECT slot, get_shard_id_for_distribution_column('rows', slot) AS shardid FROM unnest(?::smallint[]) slot
) s JOIN pg_dist_shard d ON d.shardid = s.shardid JOIN pg_dist_placement p ON p.shardid = s.shardid"""
"""Select of each slot its node, its shard of `rows`, and the value that co-located shards share with that shard."""

SHARDS = """
SELECT c.relname::text, d.shardid, d.shardminvalue FROM pg_dist_shard d JOIN pg_class c ON c.oid = d.logicalrelid
JOIN pg_dist_partition p ON p.logicalrelid = d.logicalrelid
WHERE c.relnamespace = current_schema()::regnamespace AND (c.relname = 'tables' OR
    p.colocationid = (SELECT colocationid FROM pg_dist_partition WHERE logicalrelid = to_regclass('rows')))"""
"""The shards co-located with those of `rows`, and the shard of `tables`, which every node has."""

_HERE = """
SELECT p.shardid FROM pg_dist_placement p JOIN pg_dist_local_group g ON g.groupid = p.groupid WHERE p.shardid = {}"""
# One number is looked up faster than an array of one.
_ONE_HERE, _ALL_HERE = _HERE.format("?"), _HERE.format("ANY(?::bigint[])")

LOCK = "SELECT lock_shard_metadata(5, ?::bigint[])::text"
"""Locks shards against moves until COMMIT, as Citus does before a write (5: ShareLock)."""

Address = tuple[str, int]
D = TypeVar("D")
# Shards need an alias where the statement has none. Aliases are in lower case, any other word after a table is not.
_TABLE_NAME = re.compile(r"\b(FROM|JOIN|INTO|UPDATE|USING)\s+(\w+)(?=(\s+[a-z]|))")


class Place:
    """Shards at one node, and statements about them.

    `numbers`: the ids of the shards of `rows`. `sources`: for each table its shard, or the rows of all its shards.
    """

    def __init__(self, address: Address, numbers: Sequence[int], sources: Mapping[str, str]) -> None:
        self.address = address
        self.numbers = numbers
        self.sources = sources
        self._statements: dict[str, str] = {}

    def at_shards(self, statement: str) -> str:
        """Return the statement with shards in place of tables."""
        text = self._statements.get(statement)
        if text is None:
            text = self._statements[statement] = _TABLE_NAME.sub(self._replace_name, statement)
        return text

    def _replace_name(self, match: re.Match[str]) -> str:
        clause, name, alias = match.groups()
        source = self.sources.get(name)
        if source is None:
            return match[0]
        return f"{clause} {source}" if alias else f"{clause} {source} AS {name}"


Check = tuple[int, Pending[list[Row]]]
"""A number of shards, and those of them that are at their node."""


def ask_here(session: Session, numbers: Sequence[int]) -> Check:
    """Ask which of these shards of `rows` are at the node of a session."""
    if len(numbers) == 1:
        return 1, session.ask(_ONE_HERE, numbers)
    return len(numbers), session.ask(_ALL_HERE, (numbers,))


class Placements:
    """The placement of each slot, all shards of each node together, and the number of each node."""

    def __init__(self, of_slots: dict[int, Place], addresses: dict[int, Address]) -> None:
        self.of_slots = of_slots
        self.addresses = addresses
        self.groups = {address: group for group, address in addresses.items()}
        places: dict[Address, list[Place]] = {}
        for place in dict.fromkeys(of_slots.values()):
            places.setdefault(place.address, []).append(place)
        self.by_address = {address: _together(places_of_node) for address, places_of_node in places.items()}


def _together(places: Sequence[Place]) -> Place:
    """Return a place for statements about `rows` or `tables`."""
    rows = " UNION ALL ".join(f"SELECT * FROM {place.sources['rows']}" for place in places)
    numbers = [number for place in places for number in place.numbers]
    sources = {"rows": f"({rows})", "tables": places[0].sources.get("tables", "tables")}
    return Place(places[0].address, numbers, sources)


def placements(
    nodes: Sequence[Sequence[Any]], slots: Sequence[Sequence[Any]], shards: Sequence[Sequence[Any]]
) -> Placements:
    """Return the placements, from the results of NODES, PLACES and SHARDS."""
    addresses = {group: (host, int(port)) for group, host, port in nodes}
    shards_by_range: dict[str | None, dict[str, str]] = {}
    for table, number, least in shards:
        shards_by_range.setdefault(least, {})[table] = f"{table}_{number}"
    by_number = {
        number: Place(addresses[group], [number], {**shards_by_range.get(None, {}), **shards_by_range[least]})
        for group, number, least in {(group, number, least) for _, group, number, least in slots}
    }
    return Placements({slot: by_number[number] for slot, _, number, _ in slots}, addresses)


class Nodes(Generic[D]):
    """The nodes of a distributed database, and which of them do not answer.

    `fetch` returns the placements as one node has them, None if it does not answer. It is called with the node, or None for the
    entry. `open_at` opens the database at an address.
    """

    def __init__(
        self, fetch: Callable[[D | None], Placements | None], open_at: Callable[[Address], D]
    ) -> None:
        self._fetch = fetch
        self._open_at = open_at
        self._lock = threading.Lock()
        self.placements = Placements({}, {})
        """The placements at the last fetch, empty before. The object is replaced and never changed."""
        self._databases: dict[Address, D] = {}
        self._fetch_at = 0.0
        self._away_until: dict[Address, float] = {}

    def placements_for(self, slot: int) -> Placements:
        """Return the placements, fetched again if it is time, if possible from the node of a slot. Raises Unreachable."""
        if time.monotonic() >= self._fetch_at or not self.placements.of_slots:
            self.refresh(self.placements.of_slots.get(slot))
        if not self.placements.of_slots:
            raise Unreachable("the placement of shards is unknown")
        return self.placements

    def refresh(self, near: Place | None = None) -> None:
        """Fetch the placements from the node of a placement, or else from the entry."""
        self._fetch_at = time.monotonic() + PERIOD_S  # other threads go on with the old ones, if any
        fetched = None
        if near is not None and near.address not in self._away_until:
            fetched = self._fetch(self.database_at(near.address))
        fetched = fetched or self._fetch(None)
        if fetched is not None:
            self.placements = fetched

    def check(self, address: Address) -> None:
        """Raise NodeAway if a node was set aside. One caller may try it again after some time."""
        until = self._away_until.get(address)
        if until is None:
            return
        now = time.monotonic()
        if now < until:
            raise NodeAway(f"node {address[0]}:{address[1]} does not answer")
        self._away_until[address] = now + _RETRY_S

    def forget(self) -> None:
        """Fetch the placement again at the next use, because a shard or node has moved."""
        self._fetch_at = 0.0

    def verify(self, checks: Iterable[Check]) -> None:
        """Raise RetryableFailure if a shard has moved."""
        if any(len(rows()) < number for number, rows in checks):
            self.forget()
            raise RetryableFailure("a shard has moved")

    def database_at(self, address: Address) -> D:
        """Return the database at a node, opened at first use."""
        with self._lock:
            database = self._databases.get(address)
            if database is None:
                database = self._databases[address] = self._open_at(address)
            return database

    def note_reached(self, address: Address) -> None:
        """Record that a connection to a node succeeded."""
        if self._away_until and self._away_until.pop(address, None) is not None:
            log.info("node %s:%d answers again", *address)

    def set_aside(self, address: Address, reason: Exception, waited_s: float) -> None:
        """Refuse requests for a node until it answers again. It may have got another address.

        `waited_s`: the time that it took to find out.
        """
        if address not in self._away_until:
            log.warning("node %s:%d does not answer: %s", *address, " ".join(str(reason).split()))
        retry_s = _RETRY_S if waited_s >= _SILENT_S else _RETRY_REFUSED_S
        self._away_until[address] = time.monotonic() + retry_s
        self.forget()

    @property
    def away(self) -> list[Address]:
        """The nodes that were set aside."""
        known = self.placements.groups
        return [address for address in [*self._away_until] if address in known]

    @property
    def databases(self) -> list[D]:
        """The open databases of the nodes."""
        with self._lock:
            return [*self._databases.values()]
