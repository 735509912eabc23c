"""Which node has which slot, and databases opened at those nodes: so that a statement enters where its rows are.

Every node finds every row, so nothing depends on what is known here: who enters at a node that has given a slot away since is
answered a little later, and no worse. A node that cannot be reached under the name that the nodes have for each other is left
alone, and the entry is asked, which asks it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

log = logging.getLogger(__name__)

# Shards are moved once in a long while.
PERIOD_S = 30.0
# One that was reached once is tried again; one that never was is known to the nodes by a name that means nothing here.
_LEFT_ALONE_S = 5.0

NODES = """
SELECT n.nodename, n.nodeport FROM (
    SELECT slot, get_shard_id_for_distribution_column('rows', slot::smallint) AS shardid FROM generate_series(0, 255) slot
) s JOIN pg_dist_placement p ON p.shardid = s.shardid
JOIN pg_dist_node n ON n.groupid = p.groupid AND n.noderole = 'primary' ORDER BY s.slot"""
"""The node of each slot, in order."""

Address = tuple[str, int]
D = TypeVar("D")


class Nodes(Generic[D]):
    """The nodes of a distributed database. `ask`: the address of each slot's node, or none where that is unknown; `open_at`: a
    database at an address."""

    def __init__(self, ask: Callable[[], list[Address]], open_at: Callable[[Address], D]) -> None:
        self._ask = ask
        self._open_at = open_at
        self._lock = threading.Lock()
        self._addresses: list[Address] = []
        self._databases: dict[Address, D] = {}
        self._asked_at = -PERIOD_S
        self._reached: set[Address] = set()
        self._left_alone: dict[Address, float] = {}

    def address_of(self, slot: int) -> Address | None:
        """The node that has a slot; None: the entry is to be asked."""
        now = time.monotonic()
        if now - self._asked_at >= PERIOD_S:
            self._asked_at = now
            self._addresses = self._ask()
        if not self._addresses:
            return None
        address = self._addresses[slot]
        if self._left_alone and now < self._left_alone.get(address, 0.0):
            return None
        return address

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
