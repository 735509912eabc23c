"""The installation of vector indexes."""

from __future__ import annotations

from tablegate.gateway.engine.engine import Engine, EngineOptions
from tablegate.gateway.engine.scheduler import Work
from tablegate.gateway.features.vectors import vector_support
from tablegate.gateway.features.vectors.vector_support import VectorSearches
from tablegate.gateway.features.vectors.vectors import SearchVectors
from tablegate.gateway.model.errors import NotInstalled


def install(engine: Engine, options: EngineOptions) -> VectorSearches:
    """Add vector indexes and their search to an engine. Raises NotInstalled if searches cannot be approximate."""
    if options.vector_approximate_from and not vector_support.can_approximate():
        raise NotInstalled("vectors")
    searches = vector_support.VectorSearches(options.vector_memory_bytes, options.vector_approximate_from)
    engine.register({SearchVectors: searches.search})
    if options.vector_approximate_from:
        engine.background.add(Work("vector_graphs", searches.grow_graphs, own_thread=True, each_process=True))
    return searches
