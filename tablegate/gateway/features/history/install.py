"""The installation of histories, backups, restores and copies of tables."""

from __future__ import annotations

from functools import partial

from tablegate.gateway.engine.engine import Engine, EngineOptions
from tablegate.gateway.engine.scheduler import MAINTENANCE_PERIOD_S, FairQueue, Work
from tablegate.gateway.features.history import backup_store, history_retention, restoring, table_copies


def install(engine: Engine, options: EngineOptions) -> None:
    """Add histories, backups, restores and copies of tables to an engine."""
    background, turns = engine.background, FairQueue()
    store = background.store
    engine.register(restoring.COMMANDS)
    engine.register(table_copies.COMMANDS)
    engine.add_write_hook(history_retention.HistoryRecorder)
    engine.add_table_hook(history_retention.HistoryHook(store))
    delete_expired = partial(history_retention.delete_expired, store)
    background.add(Work("history_trim", delete_expired, period_s=MAINTENANCE_PERIOD_S))
    background.add(Work(backup_store.COPY, lambda now_ms, limit: restoring.advance(store, turns, limit)))
