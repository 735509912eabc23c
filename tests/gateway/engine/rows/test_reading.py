"""Pages: order, limits, resuming in both directions, segments, indexes, and reading at one moment."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.engine.rows import reading
from tablegate.gateway.model.commands.row_commands import Get, Read, ReadAll
from tablegate.gateway.model.commands.table_commands import DropTable, NewIndex
from tablegate.gateway.model.errors import IndexMissing, LimitExceeded
from tablegate.gateway.model.expressions.predicates import Attribute, Compare, Comparison, Literal
from tablegate.gateway.model.expressions.ranges import EVERYTHING, within
from tablegate.gateway.model.tables.indexes import IndexProjection
from tablegate.gateway.model.tables.pages import PageLimits, Segment
from tablegate.gateway.model.tables.tables import ExpiryRule, Rules, Table
from tablegate.gateway.model.values.keys import KeySchema, Position, encode_column
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import decimal, text
from tests.gateway.engine.conftest import Client, by_color, column, make_table


@pytest.fixture
def numbered(things: Client) -> Client:
    """Partitions a, b, c with sort keys 0 to 19."""
    things.write(*(things.put(p, s, even=decimal(s % 2)) for p in "cab" for s in range(20)))
    return things


def sorts(rows) -> list[int]:
    return [int(row.latest["s"].data) for row in rows]


def partition(name: str) -> bytes:
    return encode_column(text(name))


def test_a_table_is_read_in_key_order(numbered: Client) -> None:
    keys = [(row.latest["p"].data, int(row.latest["s"].data)) for row in numbered.rows()]
    assert keys == [(p, s) for p in "abc" for s in range(20)]


@pytest.mark.parametrize("reverse", [False, True])
def test_pages_resume_after_their_last_row(numbered: Client, reverse: bool) -> None:
    bounds, seen = within(partition("b")), []
    while True:
        page = numbered.page(bounds, limits=PageLimits(scanned=7), reverse=reverse)
        seen += sorts(page.rows)
        if page.last is None:
            break
        bounds = bounds.before(page.last.position) if reverse else bounds.after(page.last.position)
    assert seen == sorted(range(20), reverse=reverse)


def test_a_limit_that_ends_with_the_range_still_has_a_cursor(numbered: Client) -> None:
    """DynamoDB gives LastEvaluatedKey whenever a limit stopped the page (docs/protocols/dynamodb.md rule 27)."""
    assert numbered.page(within(partition("b")), limits=PageLimits(scanned=20)).last is not None
    assert numbered.page(within(partition("b")), limits=PageLimits(scanned=21)).last is None


def test_a_peeking_page_has_the_next_row(numbered: Client) -> None:
    page = numbered.page(within(partition("b")), limits=PageLimits(returned=5, peek=True))
    assert page.next is not None and sorts([page.next]) == [5]
    assert numbered.page(within(partition("b")), limits=PageLimits(returned=20, peek=True)).next is None


def test_limits_count_evaluated_rows(numbered: Client) -> None:
    is_even = Compare(Attribute(("even",)), Comparison.EQ, Literal(decimal(0)))
    page = numbered.page(within(partition("b")), limits=PageLimits(scanned=7), filter=is_even)
    assert (sorts(page.rows), page.scanned) == ([0, 2, 4, 6], 7)
    page = numbered.page(within(partition("b")), limits=PageLimits(returned=3), filter=is_even)
    assert sorts(page.rows) == [0, 2, 4]


def test_a_page_stops_before_it_is_too_large_but_holds_one_row(things: Client) -> None:
    things.write(*(things.put("a", s, x=text("x" * 1_000)) for s in range(10)))
    assert len(things.rows(limits=PageLimits(size_bytes=5_100))) == 5
    assert len(things.rows(limits=PageLimits(size_bytes=10))) == 1


def test_a_page_may_stop_after_the_row_that_fills_it(things: Client) -> None:
    things.write(*(things.put("a", s, x=text("x" * 1_000)) for s in range(1, 10)))
    size = things.rows()[0].size_bytes
    assert len(things.rows(limits=PageLimits(filled_bytes=5 * size))) == 5
    assert len(things.rows(limits=PageLimits(filled_bytes=5 * size + 1))) == 6
    page = things.page(EVERYTHING, limits=PageLimits(filled_bytes=9 * size))
    assert page.last is not None and page.scanned_bytes == 9 * size
    assert things.page(EVERYTHING, limits=PageLimits(filled_bytes=9 * size + 1)).last is None


def test_a_page_has_more_rows_than_a_chunk(things: Client) -> None:
    things.write(*(things.put("a", s) for s in range(3_000)))
    assert sorts(things.rows()) == list(range(3_000))
    assert sorts(things.rows(reverse=True)) == list(range(2_999, -1, -1))


@pytest.mark.parametrize("total", [2, 3, 7, 256, 1_000])
def test_segments_divide_a_table(things: Client, total: int) -> None:
    things.write(*(things.put(f"p{n}") for n in range(300)))
    seen = []
    for number in range(total):
        after = None
        while True:
            segment = Segment(number, total)
            page = things.page(segment=segment, after=after, limits=PageLimits(scanned=50))
            assert all(segment.contains(row.position) for row in page.rows)
            seen += [row.latest["p"].data for row in page.rows]
            if page.last is None:
                break
            after = page.last.position
    assert sorted(seen) == sorted(f"p{n}" for n in range(300))


def test_a_segment_visits_only_its_share(things: Client) -> None:
    things.write(*(things.put(f"p{n}") for n in range(2_000)))
    statements: list[int] = []
    with things.engine._store.read() as session:
        from tablegate.gateway.store.rows.scans import Walk, rows_source

        walk = Walk(session, rows_source(things.table.id))
        fetch = walk._fetch

        def counting(*arguments):
            found = fetch(*arguments)
            statements.append(len(found[0]))
            return found

        walk._fetch = counting  # type: ignore[method-assign]
        segment = Segment(1, 4)
        returned = sum(len(chunk) for chunk in walk.segment(segment.lowest, segment.highest, None))
    assert sum(statements) == returned
    assert 350 < returned < 650


def test_an_index_is_read_in_its_own_order(engine: Engine) -> None:
    things = Client(engine, make_table(engine, indexes=(by_color(),)))
    things.write(*(things.put(f"p{n}", n, color=text("red" if n % 3 else "blue")) for n in range(30)))
    index = things.table.index("by_color")
    page = things.page(within(partition("red")), index=index, reverse=True, limits=PageLimits(scanned=5))
    assert sorts(page.rows) == [29, 28, 26, 25, 23]


def test_equal_index_keys_are_all_found_and_resumed(engine: Engine) -> None:
    index_on_color = NewIndex("by_color", KeySchema((column("color"),)), IndexProjection.ALL)
    things = Client(engine, make_table(engine, indexes=(index_on_color,)))
    things.write(*(things.put(f"p{n:02}", color=text("red")) for n in range(20)))
    index = things.table.index("by_color")
    bounds, seen = within(partition("red")), []
    while True:
        page = things.page(bounds, index=index, limits=PageLimits(scanned=6))
        seen += [row.latest["p"].data for row in page.rows]
        if page.last is None:
            break
        row = page.last.position
        bounds = bounds.after(Position(partition("red"), row.partition + row.sort))
    assert seen == [f"p{n:02}" for n in range(20)]


def test_an_index_shows_what_it_projects(engine: Engine) -> None:
    things = Client(engine, make_table(engine, indexes=(by_color(IndexProjection.KEYS),)))
    things.write(things.put("a", 1, color=text("red"), x=text("hidden")))
    index = things.table.index("by_color")
    page = things.page(within(partition("red")), index=index)
    assert set(page.rows[0].latest) == {"p", "s", "color"}
    assert page.scanned_bytes == page.rows[0].size_bytes
    assert "x" in things.rows(bounds=within(partition("red")), index=index, whole_rows=True)[0].latest


def test_a_filter_cannot_see_what_the_index_does_not_project(engine: Engine) -> None:
    things = Client(engine, make_table(engine, indexes=(by_color(IndexProjection.KEYS),)))
    things.write(things.put("a", 1, color=text("red"), x=text("v")))
    has_x = Compare(Attribute(("x",)), Comparison.EQ, Literal(text("v")))
    assert (
        things.rows(bounds=within(partition("red")), index=things.table.index("by_color"), filter=has_x) == []
    )


def test_an_index_that_was_dropped_is_missing(engine: Engine) -> None:
    with_index = Client(engine, make_table(engine, indexes=(by_color(),)))
    without = Client(engine, make_table(engine, "others"))
    [answer] = engine.run(
        [Read(without.table, EVERYTHING, PageLimits(), index=with_index.table.index("by_color"))]
    )
    assert isinstance(answer, IndexMissing)


def test_rows_are_read_together_in_order(things: Client) -> None:
    things.write(things.put("a"), things.put("b"))
    gets = tuple(Get(things.table, things.key(p).position) for p in ("b", "missing", "a"))
    [rows] = things.engine.run([ReadAll(gets)])
    assert [row and row.latest["p"].data for row in rows] == ["b", None, "a"]


def test_rows_read_together_have_a_maximum_size(things: Client, monkeypatch: Any) -> None:
    """Rows of exactly the maximum size are read.

    With a limit one byte lower, none is. Of a hundred rows, only those needed to detect the excess are fetched.
    """
    names = [f"{at:03}" for at in range(100)]
    things.write(*[things.put(name, body=text("x" * 5000)) for name in names])
    gets = tuple(Get(things.table, things.key(name).position) for name in names)
    [[row]] = things.engine.run([ReadAll(gets[:1])])
    fetched: list[int] = []
    fetch_many = reading.rows.fetch_many

    def counted(session: Any, keys: Any) -> Any:
        fetched.append(len(keys))
        return fetch_many(session, keys)

    monkeypatch.setattr(reading.rows, "fetch_many", counted)
    for number in (1, 10, 11, 100):
        [together] = things.engine.run([ReadAll(gets[:number], number * row.size_bytes)])
        assert [found.latest["p"].data for found in together] == names[:number]
        [refused] = things.engine.run([ReadAll(gets[:number], number * row.size_bytes - 1)])
        assert isinstance(refused, LimitExceeded)
        assert (refused.what, refused.limit) == ("rows-together", number * row.size_bytes - 1)
    fetched.clear()
    [refused] = things.engine.run([ReadAll(gets, 20 * row.size_bytes)])
    assert isinstance(refused, LimitExceeded)
    assert sum(fetched) == 30


def test_writes_of_a_list_come_before_its_reads(things: Client) -> None:
    from tablegate.gateway.model.commands.row_commands import WriteGroup

    row, _ = things.engine.run([Get(things.table, things.key("a").position), WriteGroup((things.put("a"),))])
    assert row is not None


# Looking up in one statement


def outline(outcome: Any) -> Any:
    if isinstance(outcome, list):
        return [outline(row) for row in outcome]
    return (outcome.position, outcome.body) if isinstance(outcome, Row) else repr(outcome)


def test_looking_up_in_one_statement_finds_what_a_transaction_finds(engine: Engine) -> None:
    """Covers present and missing rows, long keys, expired cells, rows too large together, and dropped or outdated
    tables. SQLite does not use this lookup, because one process has the database.
    """
    chance = random.Random(3)
    rules = Rules(expiry=ExpiryRule(age_ms=86_400_000), stamped=True)
    things = Client(engine, make_table(engine))
    aged = Client(engine, make_table(engine, "aged", rules=rules))
    gone = Client(engine, make_table(engine, "gone"))
    names = ["a", "b" * 1_300, "c"]
    for client in (things, aged, gone):
        client.write(*(client.put(p, s, n=decimal(s)) for p in names[:2] for s in range(3)))
    engine.run([DropTable(gone.table)])
    stale = replace(things.table, version=things.table.version - 1)
    current = [things.table, things.table, aged.table]

    def some_get(tables: list[Table]) -> Get:
        table = chance.choice(tables)
        return Get(table, Client(engine, table).key(chance.choice(names), chance.randrange(4)).position)

    for _ in range(60):
        # A list has one descriptor of a table.
        tables = chance.choice([current, current, [*current, gone.table], [stale, aged.table]])
        commands = [
            some_get(tables)
            if chance.random() < 0.5
            else ReadAll(
                tuple(some_get(tables) for _ in range(chance.randrange(1, 12))),
                chance.choice([None, None, 100, 9_000]),
            )
            for _ in range(chance.randrange(1, 4))
        ]
        now_ms = 1_700_000_000_000 + chance.choice([0, 90_000_000])
        looked_up = reading.read(engine._store, list(commands), {}, now_ms)
        # A list with a page is read in a transaction.
        page = Read(things.table, EVERYTHING, PageLimits(scanned=1))
        *found, _ = reading.read(engine._store, [*commands, page], {}, now_ms)
        assert outline(looked_up) == outline(found), commands
