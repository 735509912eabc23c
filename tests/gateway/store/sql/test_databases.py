"""Connections: session options in a URL take effect, and a role needs only one schema."""

from __future__ import annotations

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
from sqlalchemy import make_url

from tablegate.gateway.store.migrating import migrate
from tablegate.gateway.store.opening import open_database
from tests.support.databases import PostgresServer


def test_a_closed_database_has_no_file_open(tmp_path: Path) -> None:
    """Whatever threads have read it, in whatever slots."""
    database = open_database(f"sqlite:///{tmp_path / 'a.sqlite'}")

    def read(slot: int) -> None:
        with database.read(slot) as session:
            session.query("SELECT 1 FROM sqlite_master")

    with ThreadPoolExecutor(1) as thread:
        for slot in range(3):
            read(slot)
            thread.submit(read, slot).result()
        with database.write() as session:
            session.execute("CREATE TABLE a (b INTEGER)")
        assert opened(tmp_path)
        database.close()
        assert not opened(tmp_path)


def opened(folder: Path) -> list[str]:
    """Return the connections of this process."""
    names = []
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            names.append(os.readlink(link))
    return [name for name in names if name.startswith(str(folder))]


def test_a_role_that_owns_one_schema_is_enough(postgres: PostgresServer) -> None:
    url = make_url(postgres.empty_database())
    with psycopg.connect(
        url.set(drivername="postgresql").render_as_string(hide_password=False)
    ) as connection:
        connection.execute("DROP ROLE IF EXISTS tenant")
        connection.execute("CREATE ROLE tenant LOGIN NOSUPERUSER")
        connection.execute("CREATE SCHEMA tenant AUTHORIZATION tenant")
        connection.execute("REVOKE ALL ON SCHEMA public FROM PUBLIC")
    own = url.set(username="tenant").update_query_dict({"options": "-c search_path=tenant"})
    database = open_database(own.render_as_string(hide_password=False))
    assert migrate(database)
    with database.read() as session:
        assert session.query("SELECT DISTINCT schemaname FROM pg_tables WHERE tablename = 'rows'") == [
            ("tenant",)
        ]
        assert session.query("SHOW lock_timeout") != [("0",)]
    database.close()
