"""The installation of search indexes."""

from __future__ import annotations

from tablegate.gateway.engine.engine import Engine, EngineOptions
from tablegate.gateway.engine.scheduler import Work
from tablegate.gateway.engine.streams import follower_reads
from tablegate.gateway.features.search import search_engine
from tablegate.gateway.features.search.search_engine import SEARCH


def install(engine: Engine, options: EngineOptions) -> None:
    """Add search indexes to an engine."""
    store = engine.background.store
    engine.register(search_engine.COMMANDS)
    engine.add_table_hook(search_engine.SearchIndexHook())
    advance = search_engine.SearchMaintenance(store).advance
    batch = follower_reads.in_turns(store, SEARCH, advance)
    engine.background.add(Work(SEARCH, batch, oldest_ms=search_engine.oldest_unindexed_ms))
