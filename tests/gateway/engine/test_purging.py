"""Dropped tables are deleted by ranges of keys or, where the database can, by ranges of pages."""

from __future__ import annotations

from typing import Any

import pytest

from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.engine import scheduler
from tablegate.gateway.engine.engine import Engine, EngineOptions
from tablegate.gateway.engine.scheduler import MIN_ROWS
from tablegate.gateway.model.commands.table_commands import DropTable
from tablegate.gateway.model.values.values import text
from tablegate.gateway.store.rows import purges
from tablegate.gateway.store.sql.databases import Database
from tablegate.gateway.store.sql.progress import PURGE, unfinished_work
from tablegate.gateway.store.store import Store
from tests.gateway.engine.conftest import Client, by_color, do_background_work, make_table

ROWS = 700


@pytest.fixture
def going(engine: Engine) -> Client:
    return Client(engine, make_table(engine, "going", indexes=(by_color(),)))


@pytest.fixture
def staying(engine: Engine, going: Client, monkeypatch: pytest.MonkeyPatch) -> Client:
    """A table on the same pages as one to be dropped. A few rows are enough for deletion by pages."""
    monkeypatch.setattr(purges, "_MIN_ROWS_BY_PAGE", 1)
    monkeypatch.setattr(purges, "_PAGES", 2)
    monkeypatch.setattr(purges, "_TIMES_FASTER", 1)
    monkeypatch.setattr(scheduler, "MAX_ROWS", MIN_ROWS)
    things = Client(engine, make_table(engine, "staying", indexes=(by_color(),)))
    for first in range(0, ROWS, 50):
        for table in (going, things):
            table.write(*(table.put(f"p{n}", color=text("red")) for n in range(first, first + 50)))
    return things


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> list[purges._PageWalk]:
    """The walks over pages that purges have begun."""
    begun: list[purges._PageWalk] = []
    find = purges._page_walk

    def page_walk(*arguments: Any) -> purges._PageWalk | None:
        walk = find(*arguments)
        begun.extend([] if walk is None else [walk])
        return walk

    monkeypatch.setattr(purges, "_page_walk", page_walk)
    return begun


def purge_a_little(engine: Engine) -> None:
    while (batch := engine.background.next_batch()) is not None:
        if batch.work == PURGE and batch.rows:
            return
    pytest.fail("nothing was purged")


def numbers_left(engine: Engine) -> list[int]:
    tables = ("rows", "entries", "purges", "progress")
    with engine._store.read() as session:
        return [session.query(f"SELECT count(*) FROM {table}")[0][0] for table in tables]


def test_a_drop_leaves_the_rows_of_other_tables(
    engine: Engine, database: Database, going: Client, staying: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database.read() as session:
        statements = type(session.statements)
        has_pages = session.statements.page_count(session, "rows") > 0
    ranges = []
    delete_pages = statements.delete_pages

    def seen(*arguments: object) -> int:
        ranges.append(arguments[-1])
        return delete_pages(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(statements, "delete_pages", seen)
    engine.run([DropTable(going.table)])
    do_background_work(engine)
    assert numbers_left(engine) == [ROWS, ROWS, 0, 0]
    assert len(staying.rows()) == ROWS
    assert bool(ranges) is has_pages


def test_a_drop_continues_after_a_crash(engine: Engine, going: Client, staying: Client) -> None:
    engine.run([DropTable(going.table)])
    purge_a_little(engine)
    other = new_engine(Store(engine._store.database), EngineOptions(sweep_period_s=0))
    assert ROWS < numbers_left(other)[0] < 2 * ROWS
    do_background_work(other)
    assert numbers_left(other) == [ROWS, ROWS, 0, 0]


def test_rows_that_moved_to_a_page_before_are_deleted(
    engine: Engine, going: Client, staying: Client, walks: list[purges._PageWalk]
) -> None:
    engine.run([DropTable(going.table)])
    purge_a_little(engine)
    for walk in walks:
        walk._page = 1_000_000
    do_background_work(engine)
    assert numbers_left(engine) == [ROWS, ROWS, 0, 0]


def test_rows_of_an_unknown_kind_wait(engine: Engine, going: Client) -> None:
    """They belong to a capability that this server lacks (issue 47). Other purges are not held up."""
    going.write(*(going.put(f"p{n}") for n in range(3)))
    with engine._store.write() as session:
        session.execute("INSERT INTO purges (kind, id) VALUES ('unknown', 1)")
    engine.run([DropTable(going.table)])
    do_background_work(engine)
    assert numbers_left(engine) == [0, 0, 1, 0]
    with engine._store.read() as session:
        assert unfinished_work(session) == []


def test_a_few_rows_are_deleted_by_key(engine: Engine, going: Client, walks: list[purges._PageWalk]) -> None:
    """A walk would read the pages of all other tables."""
    going.write(*(going.put(f"p{n}") for n in range(3)))
    engine.run([DropTable(going.table)])
    do_background_work(engine)
    assert walks == []
    assert numbers_left(engine) == [0, 0, 0, 0]
