"""A page ends at its deadline for each way of reading: row by row, in bulk, or prefiltered by SQL.

The clock of these tests advances by a fixed number of seconds at each reading.
"""

from __future__ import annotations

from typing import Any

import pytest

from tablegate.gateway.model.expressions.predicates import (
    ALWAYS,
    Attribute,
    Compare,
    Comparison,
    Literal,
    Predicate,
)
from tablegate.gateway.model.expressions.ranges import EVERYTHING, KeyRange
from tablegate.gateway.model.tables.pages import PageLimits
from tablegate.gateway.model.values.values import text
from tests.gateway.engine.conftest import Client

ROWS = 1_500
LIMITS = PageLimits(seconds=5.0, peek=True)


def color(comparison: Comparison, value: str) -> Predicate:
    return Compare(Attribute(("color",)), comparison, Literal(text(value)))


WAYS: dict[str, Predicate] = {
    "many together": ALWAYS,
    "prefiltered, none passes": color(Comparison.EQ, "blue"),
    "one by one, none passes": color(Comparison.NE, "red"),
}


@pytest.fixture
def full(things: Client) -> Client:
    things.write(*(things.put("p", number, color=text("red")) for number in range(ROWS)))
    return things


def test_a_page_that_has_taken_its_time_ends(full: Client, clock_of_pages: Any) -> None:
    """The second reading of the clock exceeds the limit. The page then has some rows, but not all."""
    clock_of_pages.step = 2.6
    for way, condition in WAYS.items():
        page = full.page(filter=condition, limits=LIMITS)
        assert page.next is not None, way
        assert 0 < page.scanned < ROWS, way
        rest = full.page(KeyRange(page.next.position, EVERYTHING.upper), filter=condition)
        assert rest.scanned == ROWS - page.scanned, way


def test_a_page_with_time_reaches_the_end_and_a_page_without_has_one_row(
    full: Client, clock_of_pages: Any
) -> None:
    """Or a query would never come to its end."""
    for way, condition in WAYS.items():
        clock_of_pages.step = 0.0001
        page = full.page(filter=condition, limits=LIMITS)
        assert (page.next, page.scanned) == (None, ROWS), way
        clock_of_pages.step = 60.0
        assert full.page(filter=condition, limits=LIMITS).scanned == 1, way
