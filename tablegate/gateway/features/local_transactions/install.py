"""The installation of local transactions."""

from __future__ import annotations

from functools import partial

from tablegate.gateway.engine.engine import Engine, EngineOptions
from tablegate.gateway.engine.scheduler import MAINTENANCE_PERIOD_S, Work
from tablegate.gateway.features.local_transactions import local_transactions


def install(engine: Engine, options: EngineOptions) -> None:
    """Add local transactions to an engine."""
    engine.register(local_transactions.COMMANDS)
    engine.add_write_hook(local_transactions.PartitionLocks)
    batch = partial(local_transactions.sweep, engine.background.store)
    engine.background.add(Work("local_transactions", batch, period_s=MAINTENANCE_PERIOD_S))
