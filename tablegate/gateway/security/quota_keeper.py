"""Synchronisation of quotas in a server process: loading, sharing rates with other processes, counting stored bytes."""

from __future__ import annotations

import math
import secrets
import time
from collections import Counter
from collections.abc import Mapping

import orjson

from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.model.authorization.quotas import Quota
from tablegate.gateway.model.commands import table_commands
from tablegate.gateway.model.errors import GatewayError
from tablegate.gateway.model.tables.tables import Table, is_reserved_namespace
from tablegate.gateway.security.quotas import Quotas
from tablegate.gateway.store import accounts as rows
from tablegate.gateway.store.store import Store

_SHARING_S = 0.5
_LIVE_MS = 3_000
_DEMAND_LIFETIME_MS = 60_000
_COUNTING_S = 10.0


class QuotaSync:
    """The synchronisation of `Quotas` with the database, called by the background thread."""

    def __init__(self, store: Store, engine: Engine, quotas: Quotas) -> None:
        self._store = store
        self._engine = engine
        self._quotas = quotas
        self._seen: list[rows.StoredQuota] = []
        self._process = secrets.token_hex(8)
        self._shared_at = self._counted_at = -math.inf

    def reload(self) -> None:
        """Load the stored quotas if they have changed."""
        with self._store.read() as session:
            stored_quotas = rows.all_quotas(session)
        if stored_quotas != self._seen:
            self._seen = stored_quotas
            self._quotas.replace({owner: Quota.of(document) for owner, document, _ in stored_quotas})

    def run(self) -> None:
        """Save the demand of this process, take its share of each rate, and count stored bytes every ten seconds."""
        if not self._quotas.is_on:
            return
        now = time.monotonic()
        if now - self._counted_at >= _COUNTING_S:
            self.count()
        if self._store.database.shared and now - self._shared_at >= _SHARING_S:
            period_s, self._shared_at = min(now - self._shared_at, 10.0), now
            self._share(period_s)

    def _share(self, period_s: float) -> None:
        demands = self._quotas.demand(period_s)
        now_ms = time.time_ns() // 1_000_000
        with self._store.write() as session:
            for owner, demand in demands.items():
                rows.save_demand(session, owner, self._process, orjson.dumps(demand).decode(), now_ms)
            rows.forget_demands(session, now_ms - _DEMAND_LIFETIME_MS)
        other_demands: dict[str, list[Mapping[str, float]]] = {}
        with self._store.read() as session:
            for owner, process, document in rows.demands(session, now_ms - _LIVE_MS):
                if process != self._process:
                    other_demands.setdefault(owner, []).append(orjson.loads(document))
        self._quotas.share(demands, other_demands)

    def count(self) -> None:
        """Count the bytes of namespaces with a quota.

        Counts of large tables are cached (engine/tables/table_definitions.py).
        """
        self._counted_at = time.monotonic()
        if not self._quotas.limits_bytes:
            return
        with self._store.read() as session:
            tables = self._store.catalog.all(session)
            sizes: Counter[str] = Counter()
            filled_from: dict[int, int] = {}
            for hook in self._store.catalog.hooks:
                sizes.update(hook.bytes_by_namespace(session))
                filled_from.update(hook.copy_sources(session))
        by_namespace = {
            namespace: size for namespace, size in sizes.items() if self._quotas.limits_bytes_of(namespace)
        }
        sizes_by_id: dict[int, int] = {}
        for table in tables:
            if self._quotas.limits_bytes_of(table.namespace) and not is_reserved_namespace(table.namespace):
                size = self._size_of(table, sizes_by_id)
                if table.id in filled_from:  # the copy will be about as large as its source
                    sources = [source for source in tables if source.id == filled_from[table.id]]
                    size = max(size, *(self._size_of(source, sizes_by_id) for source in sources), 0)
                by_namespace[table.namespace] = by_namespace.get(table.namespace, 0) + size
        self._quotas.keep_sizes(by_namespace)

    def _size_of(self, table: Table, sizes_by_id: dict[int, int]) -> int:
        if table.id not in sizes_by_id:
            [statistics] = self._engine.run([table_commands.CountRows(table)])
            sizes_by_id[table.id] = 0 if isinstance(statistics, GatewayError) else statistics.size_bytes
        return sizes_by_id[table.id]
