"""The list of capabilities. The core imports none of them."""

from __future__ import annotations

import time
from collections.abc import Callable

from tablegate.gateway.engine.engine import Engine, EngineOptions
from tablegate.gateway.features.global_tables import replication
from tablegate.gateway.features.history import install as history
from tablegate.gateway.features.jobs import job_runner
from tablegate.gateway.features.local_transactions import local_transactions
from tablegate.gateway.features.search import install as search
from tablegate.gateway.features.tunnels import tunnel_engine
from tablegate.gateway.features.vectors import vector_support
from tablegate.gateway.store.opening.replicas import Standbys
from tablegate.gateway.store.store import Store

CAPABILITIES = (
    local_transactions,
    replication,
    history,
    tunnel_engine,
    search,
    vector_support,
    job_runner,
)
"""The order is that of their hooks. In writes it is the order of locks (docs/architecture.md section 4): local transactions
lock partitions, and replicas add tables to a batch, so hooks for features of these tables come later. When a table is
dropped, replicas lock other tables first."""

CONSOLE_PAGES = ("tablegate.gateway.console.search_pages",)
"""The modules with the pages of capabilities. The console imports them. Their PAGES are classes of pages."""


def new_engine(
    store: Store,
    options: EngineOptions = EngineOptions(),
    now: Callable[[], int] = time.time_ns,
    replicas: Standbys | None = None,
) -> Engine:
    """Return an engine with all capabilities. Raises NotInstalled if an option needs a package that is missing."""
    engine = Engine(store, options, now, replicas)
    for capability in CAPABILITIES:
        capability.install(engine, options)
    return engine
