"""Vector search, available if the optional packages are installed."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Generator
from typing import TYPE_CHECKING

from tablegate.gateway.engine.rows.point_reads import refusal_of_index
from tablegate.gateway.features.vectors import vector_store
from tablegate.gateway.features.vectors.vectors import SearchVectors, VectorMatch, vector_index
from tablegate.gateway.model.errors import GatewayError, NotInstalled
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.tables import index_kinds

if TYPE_CHECKING:
    from tablegate.gateway.features.vectors.index_images import IndexImages

index_kinds.register(vector_store.INDEX_KIND)
# Maximum time for which a search waits for a graph.
_GRAPH_BATCH_S = 0.005

SearchSlices = Generator[None, None, list[VectorMatch] | GatewayError]
"""A running search. It yields after each slice and returns the nearest rows."""


def can_search() -> bool:
    """Return True if numpy is installed."""
    try:
        from tablegate.gateway.features.vectors import vector_search  # noqa: F401
    except ModuleNotFoundError:
        return False
    return True


def can_approximate() -> bool:
    """Return True if usearch is installed, besides numpy."""
    return importlib.util.find_spec("usearch") is not None and can_search()


class VectorSearches:
    """The searches of one engine. They share the images of the indexes in memory."""

    def __init__(self, memory_bytes: int, approximate_from: int) -> None:
        self._memory_bytes = memory_bytes
        self._approximate_from = approximate_from
        self.images: IndexImages | None = None
        """The images. None before the first search, which loads numpy."""

    def search(self, store: Store, session: Session, command: SearchVectors, now_ms: int) -> SearchSlices:
        """Run a search in slices and return its outcome."""
        table, name = command.table, command.index.name
        refusal = refusal_of_index(table, name, vector_index(table, name), now_ms)
        if refusal is not None:
            return refusal
        try:
            from tablegate.gateway.features.vectors import index_images, vector_search
        except ModuleNotFoundError:
            return NotInstalled("vectors")
        if self.images is None:
            self.images = index_images.IndexImages(self._memory_bytes, self._approximate_from)
        return (yield from vector_search.search(self.images, store, session, command, now_ms))

    def grow_graphs(self, now_ms: int, limit: int) -> int | None:
        """Add vectors to the approximate graphs of this process, for some milliseconds."""
        number, deadline = 0, time.monotonic() + _GRAPH_BATCH_S
        images = self.images
        while images is not None and time.monotonic() < deadline and (count := images.grow_graph()):
            number += count
        return number or None
