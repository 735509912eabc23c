"""Connections that break while no thread uses them, or before one can use them."""

from __future__ import annotations

import threading
import time
from contextlib import closing

import psycopg
import pytest
from sqlalchemy import make_url

from tablegate.gateway.store.opening.opening import open_database
from tablegate.gateway.store.postgresql import database as database_module
from tablegate.gateway.store.sql.databases import Database, Unreachable

on_postgresql = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


def end_sessions(database_url: str) -> None:
    """End all other sessions of a database, as a restart of the server does."""
    url = make_url(database_url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )


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
    timeouts_of = database_module._timeouts_of

    def break_connection(purpose: str, server_version: int) -> dict[str, str]:
        end_sessions(database_url)
        return timeouts_of(purpose, server_version)

    with closing(open_database(database_url)) as database:
        with monkeypatch.context() as patched:
            patched.setattr(database_module, "_timeouts_of", break_connection)
            with pytest.raises(Unreachable):
                read_once(database)
        time.sleep(database_module._RECONNECT_PAUSE_S)
        read_once(database)
