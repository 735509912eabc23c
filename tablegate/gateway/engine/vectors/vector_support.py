"""Vector search, available if the optional packages are installed."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Generator

from tablegate.gateway.engine.background.scheduler import Scheduler, Work
from tablegate.gateway.engine.rows.point_reads import refusal_of_index
from tablegate.gateway.model.commands.vector_commands import SearchVectors, VectorMatch
from tablegate.gateway.model.errors import GatewayError, NotInstalled
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.store import Store

# Maximum time for which a search waits for a graph.
_GRAPH_BATCH_S = 0.005

SearchSlices = Generator[None, None, list[VectorMatch] | GatewayError]
"""A running search. It yields after each slice and returns the nearest rows."""


def can_search() -> bool:
    """Return True if numpy is installed."""
    try:
        from tablegate.gateway.engine.vectors import searching  # noqa: F401
    except ModuleNotFoundError:
        return False
    return True


def can_approximate() -> bool:
    """Return True if usearch is installed, besides numpy."""
    return importlib.util.find_spec("usearch") is not None and can_search()


def add_works(background: Scheduler) -> None:
    """Register the works of this module."""

    def grow_graphs(now_ms: int, limit: int) -> int | None:
        """Add vectors to the approximate graphs of this process, for some milliseconds."""
        number, deadline = 0, time.monotonic() + _GRAPH_BATCH_S
        images = background.store.vector_images
        while images is not None and time.monotonic() < deadline and (count := images.grow_graph()):
            number += count
        return number or None

    if background.store.vector_approximate_from:
        background.add(Work("vector_graphs", grow_graphs, own_thread=True, each_process=True))


def search(store: Store, session: Session, command: SearchVectors, now_ms: int) -> SearchSlices:
    """Run a search in slices and return its outcome. The first search loads numpy."""
    name = command.index.name
    refusal = refusal_of_index(command.table, name, command.table.vector_index(name), now_ms)
    if refusal is not None:
        return refusal
    try:
        from tablegate.gateway.engine.vectors import searching
    except ModuleNotFoundError:
        return NotInstalled("vectors")
    return (yield from searching.search(store, session, command, now_ms))


COMMANDS = {SearchVectors: search}
