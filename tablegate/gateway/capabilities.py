"""The capabilities of the engine, which itself imports none of them."""

from __future__ import annotations

import time
from collections.abc import Callable

from tablegate.gateway.engine.background import housekeeping, job_runner
from tablegate.gateway.engine.backups import history_retention, restoring
from tablegate.gateway.engine.engine import Engine, EngineOptions
from tablegate.gateway.engine.replication import replica_writes, replication
from tablegate.gateway.engine.rows import idempotency, local_transactions, numbering
from tablegate.gateway.engine.search import search_definitions, search_maintenance
from tablegate.gateway.engine.streams import streaming, tunnels
from tablegate.gateway.engine.tables import expiring, indexing, table_copies, table_definitions
from tablegate.gateway.engine.vectors import vector_support
from tablegate.gateway.store.opening.replicas import Standbys
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.tables.table_hooks import TableHook

CAPABILITIES = (
    job_runner,
    local_transactions,
    replication,
    restoring,
    search_definitions,
    table_copies,
    tunnels,
)
"""The engine's part of the capabilities whose commands need no state. Their COMMANDS are the functions that run them."""

WRITE_HOOKS = (
    idempotency.Tokens,
    numbering.Numbering,
    local_transactions.PartitionLocks,
    replica_writes.Mirrors,
    replica_writes.DeletionTimes,
    history_retention.HistoryRecorder,
    streaming.StreamRecorder,
)
"""What writes do besides rows and index entries, in the order of locks (docs/architecture.md section 4).

Mirrors add tables to a batch, so the hooks of features that these tables may have come later.
"""


def new_engine(
    store: Store,
    options: EngineOptions = EngineOptions(),
    now: Callable[[], int] = time.time_ns,
    replicas: Standbys | None = None,
) -> Engine:
    """Return an engine with all capabilities."""
    engine = Engine(store, options, now, replicas)
    for capability in CAPABILITIES:
        engine.register(capability.COMMANDS)
    engine.register_write_hooks(WRITE_HOOKS)
    store.catalog.hooks = _table_hooks(store)
    _add_works(engine, options)
    vector_support.install(engine, options)
    return engine


def _table_hooks(store: Store) -> list[TableHook]:
    """Return the hooks of tables in the order of their calls. The first one locks other tables."""
    return [
        replication.ReplicaHook(store),
        tunnels.TunnelHook(),
        search_definitions.SearchIndexHook(),
        history_retention.HistoryHook(store),
    ]


def _add_works(engine: Engine, options: EngineOptions) -> None:
    """Register the background works in the order of `Scheduler.catch_up`.

    Expired rows are deleted first, because the changes that this makes are then replicated and indexed.
    """
    background = engine.background
    expiring.add_works(background, options.sweep_period_s)
    streaming.add_works(background, options.stream_roll_ms)
    tunnels.add_works(background)
    local_transactions.add_works(background)
    housekeeping.add_works(background)
    history_retention.add_works(background)
    replication.add_works(background, options.replication_lag_ms)
    search_maintenance.add_works(background)
    table_definitions.add_works(background)
    indexing.add_works(background)
    restoring.add_works(background)
