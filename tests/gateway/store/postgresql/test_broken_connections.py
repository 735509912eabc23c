"""Connections that break while no thread uses them, or before one can use them."""

from __future__ import annotations

import threading
from contextlib import closing

import pytest

from tablegate.gateway.store.opening import open_database
from tablegate.gateway.store.postgresql import database as database_module
from tablegate.gateway.store.sql.databases import Database, Unreachable
from tests.support.databases import end_sessions

on_postgresql = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


def read_once(database: Database) -> None:
    with database.read_one() as session:
        assert session.query("SELECT 1::bigint") == [(1,)]


@on_postgresql
def test_connections_of_ended_threads_that_broke_are_replaced(database_url: str) -> None:
    with closing(open_database(database_url)) as database:
        at_once = threading.Barrier(3)

        def use() -> None:
            read_once(database)
            at_once.wait()

        threads = [threading.Thread(target=use) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        end_sessions(database_url)
        read_once(database)


@on_postgresql
def test_a_connection_that_broke_at_its_start_is_not_used_again(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "_RECONNECT_PAUSE_S", 0.0)
    timeouts_of = database_module._timeouts_of

    def break_connection(purpose: str, server_version: int) -> dict[str, str]:
        end_sessions(database_url)
        return timeouts_of(purpose, server_version)

    with closing(open_database(database_url)) as database:
        with monkeypatch.context() as patched:
            patched.setattr(database_module, "_timeouts_of", break_connection)
            with pytest.raises(Unreachable):
                read_once(database)
        read_once(database)
