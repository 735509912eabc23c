"""Faults below the engine: a full disk, cut connections, a stopped lock holder.

The engine applies nothing twice, loses no acknowledged write, and continues without a restart.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.model.commands.row_commands import Get, Read, WriteGroup
from tablegate.gateway.model.commands.writes import Replace, Write
from tablegate.gateway.model.errors import Busy, CommitUnknown, Contended, DatabaseFailed
from tablegate.gateway.model.expressions.ranges import EVERYTHING
from tablegate.gateway.model.expressions.updates import Current, Plus, SetTo
from tablegate.gateway.model.expressions.updates import Literal as Constant
from tablegate.gateway.model.tables.pages import PageLimits
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import decimal, text
from tablegate.gateway.store.opening import open_database
from tablegate.gateway.store.sql.databases import Database
from tablegate.gateway.store.store import Store
from tests.gateway.engine.conftest import Client
from tests.support.databases import end_sessions
from tests.support.waiting import PATIENCE_S

INCREMENT = SetTo(("n",), Plus(Current(("n",)), Constant(decimal(1))))


on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
on_postgresql = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


@on_sqlite
def test_a_full_disk_is_a_passing_failure(database: Database, things: Client) -> None:
    things.write(things.put("before"))
    with database.write() as session:
        [(pages,)] = session.query("PRAGMA page_count")
        session.query(f"PRAGMA max_page_count = {pages + 8}")
    kept = 0
    for number in range(100):
        [answer] = things.engine.run([WriteGroup((things.put("big", number, x=text("x" * 50_000)),))])
        if isinstance(answer, Busy):
            break
        kept += 1
    assert isinstance(answer, Busy)
    assert len(things.rows()) == 1 + kept
    with database.write() as session:
        session.query("PRAGMA max_page_count = 1000000")
    things.write(things.put("after"))
    assert len(things.rows()) == 2 + kept


def test_only_the_group_that_the_database_refuses_fails(things: Client) -> None:
    """No client can send such a write. If one could, the other groups of its list would still succeed."""
    broken = Contents(b"{}", None, 2**70)
    bad = Write(things.table, things.key("bad"), Replace(broken))
    groups = [WriteGroup((write,)) for write in (things.put("a"), things.put("b"), bad, things.put("c"))]
    answers = things.engine.run(groups)
    assert [type(answer) for answer in answers] == [list, list, DatabaseFailed, list]
    assert [row.latest["p"].data for row in things.rows()] == ["a", "b", "c"]


def test_only_the_read_that_breaks_fails(things: Client, caplog: pytest.LogCaptureFixture) -> None:
    """The error is raised by our code or by the database. The other reads of the same snapshot return their rows."""
    things.write(things.put("a"), things.put("b"))

    def breaks(row: Row) -> Row:
        raise ZeroDivisionError

    whole = Read(things.table, EVERYTHING, PageLimits())
    found, broken, all_rows = things.engine.run(
        [Get(things.table, things.key("b").position), whole._replace(cut=breaks), whole]
    )
    assert found.latest["p"] == text("b")
    assert isinstance(broken, DatabaseFailed)
    assert [row.latest["p"].data for row in all_rows.rows] == ["a", "b"]
    assert "ZeroDivisionError" in caplog.text


@on_postgresql
def test_a_stopped_lock_holder_blocks_only_its_own_rows(
    database: Database, engine: Engine, things: Client
) -> None:
    things.write(things.put("held", n=decimal(1)), things.put("free"))
    url = make_url(database.engine.url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url) as holder:
        holder.execute(
            "UPDATE rows SET size_bytes = size_bytes WHERE position('held'::bytea in partition) > 0"
        )
        answers: list[object] = []
        blocked = threading.Thread(
            target=lambda: answers.extend(engine.run([WriteGroup((things.edit("held", 0, INCREMENT),))]))
        )
        blocked.start()
        other = Client(
            new_engine(Store(open_database(str(url).replace("postgresql:", "postgresql+psycopg:")))),
            things.table,
        )
        other.write(other.put("free", x=text("written meanwhile")))
        assert len(other.rows()) == 2
        # Both end while the lock is still held.
        blocked.join(timeout=PATIENCE_S)
        assert isinstance(answers[0], Busy)
        other.engine.close()
    things.write(things.edit("held", 0, INCREMENT))
    assert things.engine.run([Get(things.table, things.key("held").position)])[0].latest["n"] == decimal(2)


@on_postgresql
def test_locks_that_do_not_yield_leave_the_connection_fit_for_use(database: Database, things: Client) -> None:
    """A server process once could not write any more after some: "prepared statement does not exist"."""
    things.write(things.put("held", n=decimal(0)))
    url = make_url(database.engine.url).set(drivername="postgresql").render_as_string(hide_password=False)
    increment = [WriteGroup((things.edit("held", 0, INCREMENT),))]
    other = new_engine(Store(open_database(str(url).replace("postgresql:", "postgresql+psycopg:"))))
    with psycopg.connect(url) as holder:
        holder.execute("UPDATE rows SET size_bytes = size_bytes")
        for _ in range(6):
            [answer] = other.run(increment, nowait=True)
            assert isinstance(answer, Contended)
    for _ in range(6):
        [answer] = other.run(increment, nowait=True)
        assert isinstance(answer, list), answer
    assert things.rows()[0].latest["n"] == decimal(6)
    other.close()


class Proxy:
    """A proxy between a gateway and PostgreSQL on a unix socket.

    It cuts the connection at the next COMMIT: `before` the server receives it, or `after` the commit and before its
    reply.
    """

    def __init__(self, folder: Path, target: str) -> None:
        self.folder = folder
        self._target = target
        self.cut: str | None = None
        self.cuts = 0
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / ".s.PGSQL.5432"))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._target)
            silent = threading.Event()
            threading.Thread(target=self._forward, args=(client, server, silent), daemon=True).start()
            threading.Thread(target=self._back, args=(server, client, silent), daemon=True).start()

    def _forward(self, client: socket.socket, server: socket.socket, silent: threading.Event) -> None:
        try:
            while data := client.recv(65_536):
                if self.cut is not None and b"COMMIT" in data:
                    when, self.cut = self.cut, None
                    self.cuts += 1
                    if when == "after":
                        silent.set()
                        server.sendall(data)
                        # The server's reply to COMMIT proves that the commit is done. The proxy holds the reply back.
                        silent.said.wait(5)  # type: ignore[attr-defined]
                    break
                server.sendall(data)
        except OSError:
            pass
        for end in (client, server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _back(self, server: socket.socket, client: socket.socket, silent: threading.Event) -> None:
        silent.said = threading.Event()  # type: ignore[attr-defined]
        try:
            while data := server.recv(65_536):
                if silent.is_set():
                    silent.said.set()  # type: ignore[attr-defined]
                else:
                    client.sendall(data)
        except OSError:
            pass


@pytest.fixture
def proxied(database: Database, tmp_path: Path) -> Iterator[tuple[Proxy, Engine]]:
    url = make_url(database.engine.url)
    folder = url.query.get("host")
    if not isinstance(folder, str) or not folder.startswith("/"):
        pytest.skip("the proxy stands on the unix socket of a server of our own")
    proxy = Proxy(tmp_path, f"{folder}/.s.PGSQL.{url.port or 5432}")
    behind = url.update_query_dict({"host": str(tmp_path), "port": "5432"})
    engine = new_engine(Store(open_database(behind.render_as_string(hide_password=False))))
    yield proxy, engine
    engine.close()
    proxy.close()


@on_postgresql
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_connection_cut_at_commit_never_applies_a_write_twice(
    proxied: tuple[Proxy, Engine], things: Client, when: str
) -> None:
    proxy, engine = proxied
    things.write(things.put("a", n=decimal(0)))
    client = Client(engine, things.table)
    client.write(client.edit("a", 0, INCREMENT))
    proxy.cut = when
    [outcome] = client.write(client.edit("a", 0, INCREMENT))
    assert proxy.cuts == 1
    assert outcome.new is not None
    assert outcome.new.latest["n"] == decimal(2)
    assert things.rows()[0].latest["n"] == decimal(2)
    client.write(client.edit("a", 0, INCREMENT))
    assert things.rows()[0].latest["n"] == decimal(3)


@on_postgresql
def test_an_unknown_outcome_of_a_commit_is_reported_to_the_client(
    proxied: tuple[Proxy, Engine], things: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, engine = proxied
    client = Client(engine, things.table)
    client.write(client.put("a"))
    monkeypatch.setattr(engine._store.database, "committed", lambda transaction_id: None)
    monkeypatch.setattr("tablegate.gateway.engine.transactions.time.sleep", lambda seconds: None)
    proxy.cut = "after"
    [answer] = engine.run([WriteGroup((client.put("b"),))])
    assert isinstance(answer, CommitUnknown)


@on_postgresql
def test_a_lost_connection_is_made_anew(database: Database, things: Client) -> None:
    things.write(things.put("a"))
    end_sessions(database.engine.url.render_as_string(hide_password=False))
    assert len(things.rows()) == 1
    things.write(things.put("b"))
    assert len(things.rows()) == 2
