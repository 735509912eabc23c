"""The installation of global tables."""

from __future__ import annotations

from functools import partial

from tablegate.gateway.engine.engine import Engine, EngineOptions
from tablegate.gateway.engine.scheduler import MAINTENANCE_PERIOD_S, Work
from tablegate.gateway.engine.streams import follower_reads
from tablegate.gateway.features.global_tables import replication
from tablegate.gateway.store.streams.followers import Follower


def install(engine: Engine, options: EngineOptions) -> None:
    """Add replicas to an engine. EngineOptions.replication_lag_ms: minimum age of the changes that are sent to others."""
    background, lag_ms = engine.background, options.replication_lag_ms
    store = background.store

    def advance(follower: Follower, now_ms: int, limit: int) -> int | None:
        with store.read() as session:
            batch = replication.replication_batch(store, session, follower, now_ms - lag_ms, limit)
        if batch is None or not replication.apply(store, background.write, batch):
            return None
        return max(1, batch.length)

    engine.register(replication.COMMANDS)
    engine.add_write_hook(replication.Mirrors)
    engine.add_write_hook(replication.DeletionTimes)
    engine.add_table_hook(replication.ReplicaHook(store))
    background.add(
        Work("tombstones", partial(replication.trim_tombstones, store), period_s=MAINTENANCE_PERIOD_S)
    )
    background.add(Work("replication", follower_reads.in_turns(store, replication.REPLICA, advance)))
