"""The capabilities of the engine. Each is one line here, and the engine itself imports none of them."""

from __future__ import annotations

import time
from collections.abc import Callable

from tablegate.gateway.engine.background import job_runner
from tablegate.gateway.engine.backups import restoring
from tablegate.gateway.engine.engine import Engine, EngineOptions
from tablegate.gateway.engine.replication import replication
from tablegate.gateway.engine.rows import local_transactions
from tablegate.gateway.engine.search import search_definitions
from tablegate.gateway.engine.streams import tunnels
from tablegate.gateway.engine.tables import table_copies
from tablegate.gateway.engine.vectors import vector_support
from tablegate.gateway.store.opening.replicas import Standbys
from tablegate.gateway.store.store import Store

CAPABILITIES = (
    job_runner,
    local_transactions,
    replication,
    restoring,
    search_definitions,
    table_copies,
    tunnels,
    vector_support,
)
"""The engine's part of each capability. Its COMMANDS are the functions that run the commands of the capability."""


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
    return engine
