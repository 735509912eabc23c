"""Pages decoded in bulk equal the pages decoded row by row."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.engine.rows import page_budget, page_builder
from tablegate.gateway.engine.rows.page_builder import PageBuilder
from tablegate.gateway.model.expressions.ranges import EVERYTHING
from tablegate.gateway.model.tables.pages import PageLimits
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import text
from tablegate.gateway.store.rows.scans import Chunk
from tests.gateway.engine.conftest import Client, make_table

pytestmark = pytest.mark.fast_paths


def cut(row: Row) -> Row:
    """The key and the first half of a text: the bytes of a page are not those of its rows."""
    values = {**row.latest, "filler": text(str(row.latest["filler"].data)[::2])}
    return Row(row.position, Contents.of_values(values), row.modified_at)


def cut_many(rows: Sequence[Row]) -> list[Row]:
    return [cut(row) for row in rows]


@pytest.fixture
def client(engine: Engine) -> Client:
    made = Client(engine, make_table(engine))
    for name in "abc":
        made.write(*(made.put(name, s, filler=text("x" * (s * 37 % 301))) for s in range(50)))
    return made


def outline(client: Client, limits: PageLimits, reverse: bool, many: bool) -> object:
    page = client.page(
        EVERYTHING, limits=limits, reverse=reverse, cut=cut, cut_many=cut_many if many else None
    )
    ends = [None if row is None else (row.position, row.body) for row in (page.last, page.next)]
    return [(row.position, row.body) for row in page.rows], page.scanned, page.scanned_bytes, ends


def any_limits(chance: random.Random) -> PageLimits:
    return PageLimits(
        scanned=chance.choice([None, 1, 2, 64, 149, 150, 151]),
        returned=chance.choice([None, None, 1, 63, 64, 65, 150]),
        size_bytes=chance.choice([None, 1, 500, 3_000, 7_000, 1_000_000]),
        seconds=chance.choice([None, 60.0]),
        peek=chance.random() < 0.5,
        filled_bytes=chance.choice([None, None, 3_000]),
        returned_bytes=chance.choice([None, None, 3_000]),
    )


def test_pages_are_those_of_rows_cut_one_by_one(client: Client) -> None:
    chance = random.Random(7)
    for _ in range(150):
        limits = any_limits(chance)
        reverse = chance.random() < 0.5
        assert outline(client, limits, reverse, True) == outline(client, limits, reverse, False), limits


@pytest.mark.parametrize("is_cut", [False, True])
def test_pages_taken_many_rows_at_once_are_those_of_a_walk_row_by_row(
    client: Client, monkeypatch: pytest.MonkeyPatch, is_cut: bool
) -> None:
    chance = random.Random(13)
    taken: list[int] = []
    fast_take = PageBuilder._fast_take

    def counted(self: PageBuilder, chunk: Chunk) -> int:
        taken.append(fast_take(self, chunk))
        return taken[-1]

    def compared(limits: PageLimits, reverse: bool) -> object:
        options = {"cut": cut, "cut_many": cut_many} if is_cut else {}
        page = client.page(EVERYTHING, limits=limits, reverse=reverse, **options)
        ends = [None if row is None else (row.position, row.body) for row in (page.last, page.next)]
        return [(row.position, row.body) for row in page.rows], page.scanned, page.scanned_bytes, ends

    for _ in range(150):
        limits = any_limits(chance)
        reverse = chance.random() < 0.5
        with monkeypatch.context() as patched:
            patched.setattr(PageBuilder, "_fast_take", counted)
            together = compared(limits, reverse)
            patched.setattr(page_builder, "_TAKES_MANY", False)
            number = len(taken)
            assert together == compared(limits, reverse), limits
            assert len(taken) == number
    assert sum(taken) > 1_000


def test_a_page_that_takes_long_ends_after_rows_cut_together(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = iter(range(1000))
    monkeypatch.setattr(page_budget, "monotonic", lambda: next(seconds))
    page = client.page(EVERYTHING, limits=PageLimits(seconds=1.5, peek=True), cut=cut, cut_many=cut_many)
    assert 0 < len(page.rows) < 150
    assert page.next is not None and page.scanned == len(page.rows)
