"""A SQLite database: its cache, and the space of its file."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from threading import Thread

import pytest

from tablegate.gateway.configuration.loading import load
from tablegate.gateway.store.sql.databases import LockTimeout
from tablegate.gateway.wiring import connect


@pytest.mark.parametrize(("cache_bytes", "pages_kib"), [(32 << 20, -32_768), (1 << 20, -1_024), (0, -1)])
def test_the_page_cache_of_a_connection_is_a_setting(
    tmp_path: Path, cache_bytes: int, pages_kib: int
) -> None:
    settings = load({"database": f"sqlite:///{tmp_path}/x.sqlite", "sqlite_cache_bytes": cache_bytes}, {})
    database = connect(settings)
    with database.write() as session:
        assert session.query("PRAGMA cache_size") == [(pages_kib,)]
    database.close()


def test_the_log_of_a_killed_server_is_cut_by_the_writes_that_follow(tmp_path: Path) -> None:
    """It grows while a reader holds its snapshot, and a kill leaves it beside the file."""
    path = tmp_path / "x.sqlite"
    database = connect(load({"database": f"sqlite:///{path}"}, {}))
    with database.write() as session:
        session.execute("CREATE TABLE t (a)")
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM t").fetchall()
    for _ in range(70):
        with database.write() as session:
            session.execute("INSERT INTO t VALUES (zeroblob(1000000))")
    log = path.with_name("x.sqlite-wal")
    assert log.stat().st_size > 64 << 20
    reader.close()
    for _ in range(2):  # the first one moves the log into the file, the second one begins the log again
        with database.write() as session:
            session.execute("INSERT INTO t VALUES (1)")
    assert log.stat().st_size <= 64 << 20
    database.close()


def test_a_file_in_use_is_not_compacted(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    database = connect(load({"database": f"sqlite:///{path}"}, {}))
    with database.write() as session:
        session.execute("CREATE TABLE t (a)")
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    with pytest.raises(LockTimeout):
        database.compact()
    writer.close()
    database.compact()
    database.close()


def test_first_connections_at_once(tmp_path: Path) -> None:
    """SQLite refuses one of several first switches to a write-ahead log at once. 6 of 100 failed."""
    failures: list[Exception] = []

    def read(path: Path) -> None:
        try:
            database = connect(load({"database": f"sqlite:///{path}"}, {}))
            with database.read() as session:
                session.query("SELECT 1")
            database.close()
        except Exception as error:
            failures.append(error)

    for number in range(60):
        threads = [Thread(target=read, args=(tmp_path / f"{number}.sqlite",)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []
