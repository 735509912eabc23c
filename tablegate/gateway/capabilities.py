"""The list of capabilities. The core imports none of them."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable

from tablegate.gateway.engine.engine import Engine, EngineOptions
from tablegate.gateway.store.replicas import Standbys
from tablegate.gateway.store.store import Store

CAPABILITIES = ("local_transactions", "global_tables", "history", "tunnels", "search", "vectors", "jobs")
"""The folders in gateway/features. The module `install` of each has the function `install`.

The order is that of their hooks. In writes it is the order of locks (docs/architecture.md section 4): local transactions
lock partitions, and global tables add tables to a batch, so hooks for features of these tables come later. When a table
is dropped, global tables lock other tables first."""

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
        importlib.import_module(f"tablegate.gateway.features.{capability}.install").install(engine, options)
    return engine
