"""Pages that begin with concatenated bodies equal the pages read row by row."""

from __future__ import annotations

import random

import pytest

from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.engine.rows import page_builder, reading
from tablegate.gateway.model.expressions.predicates import Predicate
from tablegate.gateway.model.expressions.ranges import EVERYTHING, KeyRange, within
from tablegate.gateway.model.tables.pages import Concatenation, Page, PageLimits
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.values import Kind, Value, text
from tablegate.gateway.store.sql import checksums
from tablegate.gateway.store.sql.prefilters import prefilter_of
from tests.gateway.engine.conftest import Client, make_table
from tests.gateway.engine.rows.test_reading import partition
from tests.gateway.engine.test_prefiltered_scans import is_equal

pytestmark = pytest.mark.fast_paths

COMMAS = Concatenation(",")
LINES = Concatenation("\n", native=False, moments=True)


@pytest.fixture(params=["verified", "joined by SQL"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to the bodies in one piece."""
    monkeypatch.setattr(checksums, "are_verified", request.param == "verified")


@pytest.fixture
def client(engine: Engine) -> Client:
    """Partitions: a (150 native rows of different sizes), b (with one of foreign kinds), c (empty), d (umlauts and quotes)."""
    made = Client(engine, make_table(engine))
    made.write(*(made.put("a", s, filler=text("x" * (s * 37 % 301))) for s in range(150)))
    made.write(*(made.put("b", s, n=Value(Kind.INT64, s) if s == 20 else text("t")) for s in range(40)))
    made.write(*(made.put("d", s, n=text('\u00e4","\\ \U0001f600')) for s in range(5)))
    return made


def bodies(page: Page) -> bytes:
    head = [concatenated.bodies for concatenated in page.concatenated]
    return b",".join(head + [row.body for row in page.rows])


def outline(page: Page) -> object:
    last = None if page.last is None else page.last.position
    number = len(page.rows) + sum(concatenated.number for concatenated in page.concatenated)
    return bodies(page), number, page.scanned, page.scanned_bytes, last


def some_range(chance: random.Random, name: str) -> KeyRange:
    whole = within(partition(name))
    match chance.randrange(4):
        case 0:
            return whole
        case 1:
            return EVERYTHING
        case 2:
            return whole.after(Position(partition(name), chance.choice([b"\xc1", b"\xc1\x05", b"\xff"])))
        case _:
            return whole.before(Position(partition(name), chance.choice([b"\xc1", b"\xc1\x05", b"\xff"])))


def test_pages_are_those_of_a_walk_row_by_row(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(7)
    joining = 0
    for _ in range(200):
        limits = PageLimits(
            scanned=chance.choice([None, 1, 2, 5, 64, 149, 150, 151]),
            filled_bytes=chance.choice([None, 1, 500, 3_000, 12_000, 1_000_000]),
            peek=chance.random() < 0.1,
        )
        bounds, reverse = some_range(chance, chance.choice("abcd")), chance.random() < 0.5
        with monkeypatch.context() as patched:
            patched.setattr(page_builder, "_INITIAL_BODIES", chance.choice([2, 16, 64]))
            page = client.page(bounds, limits=limits, reverse=reverse, concatenation=COMMAS)
        walked = client.page(bounds, limits=limits, reverse=reverse)
        assert not walked.concatenated
        joining += bool(page.concatenated)
        assert outline(page) == outline(walked), (limits, bounds, reverse)
    assert joining > 30


def test_a_page_may_begin_joined_and_go_on_row_by_row(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_builder, "_INITIAL_BODIES", 8)
    monkeypatch.setattr(page_builder, "_MAX_BODIES", 8)
    page = client.page(within(partition("b")), concatenation=COMMAS)
    assert [concatenated.number for concatenated in page.concatenated] == [8, 8]
    assert len(page.rows) == 24


@pytest.mark.parametrize("reverse", [False, True])
def test_long_keys_are_put_in_order_row_by_row(engine: Engine, reverse: bool) -> None:
    """The columns of keys that share their first kilobyte and more have no order (positions.py)."""
    client = Client(engine, make_table(engine))
    name = "k" * 1_300
    client.write(*(client.put(name, s) for s in range(5)))
    page = client.page(within(partition(name)), reverse=reverse, concatenation=COMMAS)
    assert not page.concatenated
    assert outline(page) == outline(client.page(within(partition(name)), reverse=reverse))


def lines(page: Page) -> object:
    """Return the lines and times of a page, in a form that can be compared."""
    found = [
        (line, moment)
        for concatenated in page.concatenated
        for line, moment in zip(concatenated.bodies.split(b"\n"), concatenated.modified_at, strict=True)
    ]
    assert [len(concatenated.modified_at) for concatenated in page.concatenated] == [
        concatenated.number for concatenated in page.concatenated
    ]
    found += [(row.body, row.modified_at) for row in page.rows]
    last, following = (None if row is None else row.position for row in (page.last, page.next))
    return found, page.scanned, page.scanned_bytes, last, following


def test_pages_of_lines_are_those_of_a_walk_row_by_row(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Covers rows of every kind, limits on the result, and a look at the row after the page."""
    chance = random.Random(11)
    joining = 0
    for _ in range(200):
        limits = PageLimits(
            returned=chance.choice([None, 1, 2, 8, 40, 64, 149, 150, 151, 1000]),
            returned_bytes=chance.choice([None, 1, 500, 3_000, 12_000, 1_000_000]),
            filled_bytes=chance.choice([None, None, 4_000]),
            peek=chance.random() < 0.8,
        )
        bounds, reverse = some_range(chance, chance.choice("abcd")), chance.random() < 0.5
        with monkeypatch.context() as patched:
            patched.setattr(page_builder, "_INITIAL_BODIES_IF_LIMITED", chance.choice([2, 16, 256]))
            patched.setattr(page_builder, "_MAX_BODIES", chance.choice([8, 1024]))
            page = client.page(bounds, limits=limits, reverse=reverse, concatenation=LINES)
        joining += bool(page.concatenated)
        assert lines(page) == lines(client.page(bounds, limits=limits, reverse=reverse)), (
            limits,
            bounds,
            reverse,
        )
    assert joining > 40


def test_rows_of_foreign_kinds_are_concatenated_if_accepted(client: Client) -> None:
    page = client.page(within(partition("b")), concatenation=LINES)
    assert [concatenated.number for concatenated in page.concatenated] == [40]
    assert not page.rows


def test_a_page_that_cannot_be_joined_is_screened(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database evaluates a filter even if the caller accepts concatenated pages."""
    judged: list[Predicate] = []

    def recorded(predicate: Predicate) -> object:
        judged.append(predicate)
        return prefilter_of(predicate)

    monkeypatch.setattr(reading, "prefilter_of", recorded)
    is_twenty = is_equal("n", Value(Kind.INT64, 20))
    page = client.page(within(partition("b")), filter=is_twenty, concatenation=LINES)
    assert [row.latest["s"].data for row in page.rows] == [20]
    assert judged == [is_twenty]
