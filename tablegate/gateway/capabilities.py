"""The list of capabilities. The core imports none of them."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from types import ModuleType

from tablegate.gateway.engine.engine import Engine, EngineOptions
from tablegate.gateway.store.replicas import Standbys
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.tables import index_kinds

CAPABILITIES = ("local_transactions", "global_tables", "history", "tunnels", "search", "vectors", "jobs")
"""The folders in gateway/features. The module `install` of each has the function `install`.

The order is that of their hooks. In writes it is the order of locks (docs/architecture.md section 4): local transactions
lock partitions, and global tables add tables to a batch, so hooks for features of these tables come later. When a table
is dropped, global tables lock other tables first."""

CONSOLE_PAGES = ("tablegate.gateway.features.search.search_pages",)
"""The modules with the pages of capabilities. The console imports them. Their PAGES are classes of pages, and their
templates are in the folder `templates` beside them."""


def new_engine(
    store: Store,
    options: EngineOptions = EngineOptions(),
    now: Callable[[], int] = time.time_ns,
    replicas: Standbys | None = None,
) -> Engine:
    """Return an engine that has all capabilities. They are imported when the first of them is used.

    Raises NotInstalled if an option needs a package that is missing.
    """

    def install(engine: Engine) -> None:
        for module in _modules():
            module.install(engine, options)

    engine = Engine(store, options, now, replicas, install)
    if options.vector_approximate_from:  # needs packages, and a thread from the start
        engine.install_capabilities()
    return engine


def _modules() -> list[ModuleType]:
    return [
        importlib.import_module(f"tablegate.gateway.features.{capability}.install")
        for capability in CAPABILITIES
    ]


index_kinds.when_unknown(_modules)
