"""Connections that break while no thread uses them, or before one can use them."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from types import SimpleNamespace
from typing import cast

import psycopg
import pytest
from sqlalchemy import make_url

from tablegate.gateway.store.opening import open_database
from tablegate.gateway.store.postgresql import database as database_module
from tablegate.gateway.store.postgresql.pipeline import accepts_connections
from tablegate.gateway.store.sql.databases import Database, Unreachable
from tests.support.databases import end_sessions

on_postgresql = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


@pytest.mark.parametrize(("reply", "is_alive"), [(b"N", True), (b"S", True), (b"", False)])
def test_a_probe_of_a_server_lets_other_threads_run(reply: bytes, is_alive: bool) -> None:
    """The server that answers is a thread of this process. libpq's probe kept it from running."""
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as threads:
        info = SimpleNamespace(host="127.0.0.1", hostaddr="", port=server.getsockname()[1])
        probe = threads.submit(accepts_connections, cast(psycopg.ConnectionInfo, info))
        connection, _ = server.accept()
        with connection:
            assert len(connection.recv(8)) == 8
            connection.sendall(reply)
        assert probe.result() is is_alive
    assert not accepts_connections(cast(psycopg.ConnectionInfo, info))  # nothing listens


@on_postgresql
def test_a_probe_finds_a_running_server(database_url: str) -> None:
    plain = make_url(database_url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain) as connection:
        assert accepts_connections(connection.info)


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
