"""Construction of the application: settings -> database -> store and engine -> credentials -> dialects.

It loads no web framework. application.py routes requests to the dialects. app.py wraps it as a WSGI application.
"""

from __future__ import annotations

import os
import secrets
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tablegate.gateway.application import Application
from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.configuration.database_urls import hosts_of
from tablegate.gateway.configuration.settings import BadSetting, Settings
from tablegate.gateway.control.clocks import Clock
from tablegate.gateway.dialects.adapter import dialects, table_describers
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.engine.engine import Engine, EngineOptions
from tablegate.gateway.model.errors import NotInstalled
from tablegate.gateway.security.credential_store import CredentialStore
from tablegate.gateway.security.credentials import Credentials
from tablegate.gateway.security.quotas import Quotas, QuotaSync
from tablegate.gateway.security.secret_cipher import find_key
from tablegate.gateway.store.opening import open_database, open_replica
from tablegate.gateway.store.sql import checksums
from tablegate.gateway.store.sql.damage import DamageLog
from tablegate.gateway.store.sql.databases import Database
from tablegate.gateway.store.store import Store

if TYPE_CHECKING:
    from tablegate.gateway.control.administration import Administration
    from tablegate.gateway.store.replicas import Standbys

# After this time a statement's server is checked for an answer.
_LEAST_SILENCE_MS = 1000


@dataclass(frozen=True, slots=True)
class OpenDatabase:
    """An open database: its store, its engine and its credentials."""

    store: Store
    engine: Engine
    credential_store: CredentialStore
    clock: Clock

    def quota_keeper(self, quotas: Quotas) -> QuotaSync:
        """Return the synchronisation of `quotas` with the database."""
        return QuotaSync(self.store, self.engine, quotas)

    def close(self) -> None:
        """Close the engine and its connections."""
        self.engine.close()


def connect(settings: Settings, reads_only: bool = False) -> Database:
    """Open the database of the settings without reading from it. `reads_only`: see open_database."""
    checksums.are_verified = settings.verify_checksums
    url = settings.database
    if settings.memory:
        # SQLite's memdb shares one database in memory between the connections of this process that know its name.
        url = f"sqlite:///file:/tablegate-{secrets.token_hex(16)}?vfs=memdb&uri=true"
    return open_database(
        url,
        settings.synchronous,
        not settings.prepared_statements,
        reads_only=reads_only,
        silence_ms=max(_LEAST_SILENCE_MS, round(settings.failover_seconds * 1000)),
        cache_bytes=settings.sqlite_cache_bytes,
    )


def open_store(settings: Settings, database: Database) -> OpenDatabase:
    """Return the store and the engine on a migrated database. Raises BadSetting."""
    store = Store(database, settings.table_cache_bytes)
    store.damage = DamageLog(os.environ.get("PROMETHEUS_MULTIPROC_DIR"))
    options = EngineOptions(
        table_creation_delay_ms=round(settings.table_creation_delay * 1000),
        sweep_period_s=settings.sweep_period,
        stream_shards=settings.stream_shards,
        stream_roll_ms=round(settings.stream_roll_hours * 3_600_000),
        failover_s=settings.failover_seconds,
        vector_memory_bytes=settings.vector_memory_bytes,
        vector_approximate_from=settings.vector_approximate_from,
        replication_lag_ms=settings.global_table_lag_ms,
    )
    clock = Clock()
    try:
        engine = new_engine(store, options, clock.now_ns, _replicas(settings, database))
    except NotInstalled as missing:
        text = f"{{}}: needs numpy and usearch (pip install 'tablegate[{missing.extra}]')"
        raise BadSetting(text, "vector_approximate_from") from None
    return OpenDatabase(store, engine, CredentialStore(store, lambda: find_key(settings)), clock)


def _replicas(settings: Settings, primary: Database) -> Standbys | None:
    """Return the replicas of the settings, or None. Raises BadSetting."""
    if not settings.replica:
        return None
    if primary.is_distributed:
        raise BadSetting(
            "{}: the database is distributed over several nodes, so a standby has only a part of it. Remove it",
            "replica",
        )
    from tablegate.gateway.store.replicas import Standby, Standbys

    is_pooled = not settings.prepared_statements
    standbys = [Standby(open_replica(url, is_pooled), hosts_of(url)) for url in settings.replica]
    primary.tracks_lsn = settings.replica_wait_ms > 0
    return Standbys(primary, standbys, settings.replica_lag_ms, settings.replica_wait_ms)


def wire(settings: Settings, open_database: OpenDatabase) -> Application:
    """Return the application of the settings on an open database."""
    quotas = Quotas(processes=settings.workers)
    keeper = open_database.quota_keeper(quotas)
    keeper.reload()
    keeper.count()
    gateway = Gateway(
        open_database.engine,
        _credentials(settings, open_database.credential_store),
        settings,
        open_database.clock.now_ms,
        real_now_ms=lambda: time.time_ns() // 1_000_000,
        quotas=quotas,
        grants=open_database.credential_store.grants,
    )
    return Application(
        gateway,
        dialects(gateway),
        open_database.clock,
        keeper,
        partial(administration_of, settings, open_database),
    )


def administration_of(settings: Settings, open_database: OpenDatabase) -> Administration:
    """Return the operations of the administrator on an open database."""
    from tablegate.gateway.control.administration import Administration  # not for the start of a server

    return Administration(
        open_database.store,
        open_database.engine,
        open_database.credential_store,
        partial(table_describers, settings),
    )


def _credentials(settings: Settings, store: CredentialStore) -> Credentials:
    credentials = Credentials(settings)
    credentials.replace(store.load(), store.token_policies)
    credentials.keep_resource_policies(store.resource_policies)
    return credentials
