"""Filtered pages: what is read of them from SQL, and that they are the pages one gets by looking at every row."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.engine.rows import reading
from tablegate.gateway.engine.rows.page_builder import PageBudget
from tablegate.gateway.model.commands.row_commands import Read
from tablegate.gateway.model.expressions.predicates import (
    And,
    Attribute,
    Compare,
    Comparison,
    Exists,
    Literal,
    Not,
    Predicate,
)
from tablegate.gateway.model.expressions.ranges import EVERYTHING, KeyRange, within
from tablegate.gateway.model.tables.indexes import IndexProjection
from tablegate.gateway.model.tables.pages import Page, PageLimits
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.values import Value, decimal, text
from tablegate.gateway.store.postgresql.database import PostgresSession
from tablegate.gateway.store.rows import range_scans
from tablegate.gateway.store.rows.scans import ROW_WIDTH, Columns
from tablegate.gateway.store.sql.databases import Session
from tests.gateway.engine.conftest import Client, by_color, make_table
from tests.gateway.engine.rows.test_reading import partition, sorts

pytestmark = pytest.mark.fast_paths


def is_equal(name: str, value: Value) -> Compare:
    return Compare(Attribute((name,)), Comparison.EQ, Literal(value))


def filled(engine: Engine, projection: IndexProjection = IndexProjection.ALL) -> Client:
    """Partitions a, b and c have 200, 40 and 3 rows of different sizes.

    Every 7th row has one tag, every 3rd another.
    """
    client = Client(engine, make_table(engine, indexes=(by_color(projection),)))
    for name, count in (("a", 200), ("b", 40), ("c", 3)):
        client.write(
            *(
                client.put(
                    name,
                    s,
                    color=text("blue" if s % 2 else "red"),
                    tag=text("seventh" if s % 7 == 0 else "third" if s % 3 == 0 else "none"),
                    filler=text("x" * (s * 37 % 101)),
                    **({"rare": decimal(s)} if s in (30, 170) else {}),
                )
                for s in range(count)
            )
        )
    return client


FILTERS: list[Predicate] = [
    is_equal("tag", text("seventh")),
    is_equal("tag", text("third")),
    is_equal("tag", text("nobody")),
    Exists(("rare",)),
    Exists(("tag",)),  # of every row: the scan gives up
    And((is_equal("tag", text("third")), Not(is_equal("color", text("red"))))),
]


def random_limits(chance: random.Random) -> PageLimits:
    some = [None, 1, 2, 5, 30, 100, 1_000]
    sizes = [None, 1, 500, 3_000, 12_000, 1_000_000]
    return PageLimits(
        scanned=chance.choice(some),
        returned=chance.choice(some),
        size_bytes=chance.choice(sizes),
        filled_bytes=chance.choice(sizes),
        returned_bytes=chance.choice(sizes),
        seconds=chance.choice([None, None, 0.0, 60.0]),
        peek=chance.random() < 0.5,
    )


def random_range(chance: random.Random) -> KeyRange:
    name = partition(chance.choice("abcd"))
    match chance.randrange(3):
        case 0:
            return EVERYTHING
        case 1:
            return within(name)
        case _:
            return EVERYTHING.after(Position(name, b"")).before(Position(partition("c"), b"\xff"))


def outline(page: Page, with_sizes: bool = True) -> object:
    """Return the comparable fields of a page. The bytes scanned count only if they are limited."""
    last, following = (None if row is None else row.position for row in (page.last, page.next))
    size = page.scanned_bytes if with_sizes else None
    return [(row.position, row.body) for row in page.rows], page.scanned, size, last, following


@pytest.mark.parametrize("projection", [None, IndexProjection.ALL, IndexProjection.KEYS])
def test_pages_are_those_of_a_walk_row_by_row(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, projection: IndexProjection | None
) -> None:
    client = filled(engine, projection or IndexProjection.ALL)
    index = None if projection is None else client.table.indexes[0]
    chance = random.Random(5)
    for _ in range(150):
        limits = random_limits(chance)
        options = {
            "limits": limits,
            "filter": chance.choice(FILTERS),
            "reverse": chance.random() < 0.5,
            "index": index,
        }
        bounds = EVERYTHING if index is not None else random_range(chance)
        with monkeypatch.context() as patched:
            patched.setattr(range_scans, "_FIRST_RANGE_ROWS", chance.choice([2, 16, 256]))
            prefiltered = client.page(bounds, **options)
            patched.setattr(reading, "prefilter_of", lambda predicate: None)
            walked = client.page(bounds, **options)
        assert outline(prefiltered, PageBudget(limits).needs_sizes) == outline(
            walked, PageBudget(limits).needs_sizes
        ), (
            bounds,
            options,
        )


@pytest.mark.parametrize("reverse", [False, True])
def test_ties_of_long_keys_are_put_in_order(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, reverse: bool
) -> None:
    """These keys share their first kilobyte and more (positions.py)."""
    client = Client(engine, make_table(engine))
    names = ["a", "k" * 1_300 + "b", "k" * 1_300 + "a", "k" * 1_240, "k" * 1_300 + "c", "z"]
    client.write(*(client.put(name, s, tag=decimal((s + len(name)) % 3)) for name in names for s in range(4)))
    for range_rows in (1, 2, 3, 5, 256):
        monkeypatch.setattr(range_scans, "_FIRST_RANGE_ROWS", range_rows)
        for rest in range(4):
            tagged = client.page(filter=is_equal("tag", decimal(rest)), reverse=reverse)
            every = [row for row in client.rows(reverse=reverse) if row.latest["tag"] == decimal(rest)]
            assert [row.position for row in tagged.rows] == [row.position for row in every]
            assert tagged.scanned == 24


def test_rows_that_are_kept_back_never_leave_the_database(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = filled(engine)
    fetched: list[object] = []

    def counted(query: Callable[..., list[Columns]]) -> Callable[..., list[Columns]]:
        def counting(session: Session, *arguments: object) -> list[Columns]:
            found = query(session, *arguments)
            fetched.extend(columns for columns in found if len(columns) >= ROW_WIDTH)
            return found

        return counting

    for kind in (Session, PostgresSession):
        monkeypatch.setattr(kind, "query", counted(vars(kind)["query"]))
    page = client.page(filter=Exists(("rare",)))
    assert (sorts(page.rows), page.scanned) == ([30, 170, 30], 243)
    # And one row at the end of each scanned range.
    assert len(fetched) <= 3 + 2


def test_readers_of_one_snapshot_measure_a_range_once(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = filled(engine)
    measured: list[str] = []

    def counted(query: Callable[..., list[Columns]]) -> Callable[..., list[Columns]]:
        def counting(session: Session, statement: str, *arguments: object) -> list[Columns]:
            if "COUNT(*)" in statement:
                measured.append(statement)
            return query(session, statement, *arguments)

        return counting

    for kind in (Session, PostgresSession):
        monkeypatch.setattr(kind, "query", counted(vars(kind)["query"]))
    bounds = within(partition("a"))
    commands = [Read(client.table, bounds, PageLimits(), filter=part) for part in FILTERS[:3]]
    pages = engine.run(commands)
    assert len(measured) == 1
    assert [outline(page) for page in pages] == [
        outline(client.page(bounds, filter=part)) for part in FILTERS[:3]
    ]
    assert len(measured) == 4


def test_pages_read_in_one_snapshot_are_those_read_alone(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = filled(engine)
    chance = random.Random(11)
    monkeypatch.setattr(range_scans, "_FIRST_RANGE_ROWS", 16)
    ranges = [EVERYTHING, within(partition("a")), within(partition("b"))]
    for _ in range(20):
        commands = [
            Read(
                client.table,
                chance.choice(ranges),
                random_limits(chance),
                filter=chance.choice(FILTERS),
                reverse=chance.random() < 0.5,
            )
            for _ in range(8)
        ]
        together = [outline(page) for page in engine.run(commands)]
        assert together == [outline(page) for command in commands for page in engine.run([command])]
