"""A dialect in this process, in front of a real engine and without a server: requests in, replies out.

The tests of each adapter have a subclass with the calls of its API.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, cached_property
from typing import Any, ClassVar, Self

import flask

from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.dialects.dialect import Dialect, Gateway
from tablegate.gateway.engine.engine import EngineOptions
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.security.credentials import Credential, Credentials
from tablegate.gateway.store.migrating import migrate
from tablegate.gateway.store.sql.databases import Database
from tablegate.gateway.store.sqlite.database import SQLite
from tablegate.gateway.store.store import Store
from tablegate.gateway.wiring import connect
from tests.support.clock import Clock
from tests.support.databases import with_database
from tests.support.running import ENTRY, call_plainly, plain_app


@cache
def _template() -> sqlite3.Connection:
    """Return a connection to a migrated, empty database. To copy it takes less than half of the time to migrate one."""
    database = connect(Settings(memory=True))
    migrate(database)
    template = _raw_connection(database)
    database.close()
    return template


def _raw_connection(database: Database) -> sqlite3.Connection:
    assert isinstance(database, SQLite)
    return sqlite3.connect(database._place, uri=True, check_same_thread=False)


def _copy_schema(database: Database) -> None:
    with contextlib.closing(_raw_connection(database)) as connection:
        _template().backup(connection)


class Service:
    """A dialect on one gateway. `last` is the reply to the last request."""

    kind: ClassVar[type[Dialect]]

    def __init__(self, gateway: Gateway, clock: Clock) -> None:
        self.gateway = gateway
        self.clock = clock
        self.dialect: Dialect = self.kind(gateway)
        self.last = Reply(0, ())

    @classmethod
    @contextlib.contextmanager
    def opened(cls, clock: Clock, *stored: Credential, **settings: Any) -> Iterator[Self]:
        """A service on a new database, in memory unless the settings name one. `stored`: its credentials."""
        asked = Settings(**{"memory": "database" not in settings, **settings})
        with with_database(asked) as made:
            database = connect(made)
            if made.memory:
                _copy_schema(database)
            else:
                migrate(database)
            store = Store(database)
            options = EngineOptions(table_creation_delay_ms=round(made.table_creation_delay * 1000))
            engine = new_engine(store, options, clock)
            with contextlib.closing(engine):
                yield cls(Gateway(engine, Credentials(made, stored), made, clock.now_ms, clock.now_ms), clock)

    def handle(self, request: Request) -> Reply:
        """The reply to any request."""
        self.last = call_plainly(self._app, request) if ENTRY == "wsgi" else self.dialect.serve(request)
        return self.last

    @cached_property
    def _app(self) -> flask.Flask:
        return plain_app(self.gateway, lambda gateway: self.dialect)

    def on(self, gateway: Gateway) -> Self:
        """Return this service on another gateway."""
        return type(self)(gateway, self.clock)

    def with_settings(self, **changed: Any) -> Self:
        """Return this service with other settings."""
        return self.on(replace(self.gateway, settings=replace(self.gateway.settings, **changed)))
