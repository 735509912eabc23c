"""Pages that are read in slices are what they would be in one piece, of one moment, whatever happens in between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tablegate.gateway.model.commands.row_commands import Get, Read
from tablegate.gateway.model.expressions.predicates import (
    And,
    Attribute,
    Compare,
    Comparison,
    ExtractedValue,
    Literal,
    Not,
    Pattern,
    Predicate,
)
from tablegate.gateway.model.expressions.ranges import EVERYTHING
from tablegate.gateway.model.tables.pages import Page, PageLimits
from tablegate.gateway.model.values.values import Kind, Value, decimal
from tablegate.gateway.store.sql.databases import Database
from tests.gateway.engine.conftest import Client

ROWS = 1_000
# No prefilter exists for this predicate, so each row is evaluated.
EVEN = Not(Compare(Attribute(("odd",)), Comparison.EQ, Literal(decimal(1))))
NONE = Not(Compare(Attribute(("odd",)), Comparison.LE, Literal(decimal(1))))


@pytest.fixture
def thousand(things: Client) -> Client:
    things.write(*(things.put(f"p{at % 7}", at, odd=decimal(at % 2)) for at in range(ROWS)))
    return things


def read(client: Client, predicate: Any, **limits: Any) -> Read:
    return Read(client.table, EVERYTHING, PageLimits(**limits), filter=predicate)


def outline(outcome: Any) -> Any:
    """Return the comparable fields of a row or a page."""
    if not isinstance(outcome, Page):
        return outcome and (outcome.position, outcome.body)
    rows = [(row.position, row.body) for row in outcome.rows]
    ends = [row and row.position for row in (outcome.last, outcome.next)]
    return rows, outcome.scanned, outcome.scanned_bytes, ends


def run(slices: Iterator[None]) -> int:
    """Return the number of slices."""
    return sum(1 for _ in slices)


def test_outcomes_are_those_of_one_piece(thousand: Client) -> None:
    engine = thousand.engine
    commands = [
        read(thousand, EVEN),
        Get(thousand.table, thousand.key("p1", 1).position),
        read(thousand, NONE),
        read(thousand, EVEN, scanned=700),
        read(thousand, EVEN, returned=10, peek=True),
        Get(thousand.table, thousand.key("p1", 2).position),
    ]
    outcomes: dict[int, Any] = {}
    assert run(engine.run_in_slices(commands, outcomes, 1)) > len(commands)
    assert [outline(outcomes[at]) for at in range(len(commands))] == [*map(outline, engine.run([*commands]))]
    assert len(outcomes[0].rows) == ROWS // 2
    assert outcomes[5] is None


def test_pages_take_turns(thousand: Client) -> None:
    """A short page does not wait for an earlier, long page."""
    outcomes: dict[int, Any] = {}
    commands = [read(thousand, NONE), read(thousand, EVEN, returned=1)]
    slices = thousand.engine.run_in_slices(commands, outcomes, 1)
    while 1 not in outcomes:
        next(slices)
    assert 0 not in outcomes
    run(slices)
    assert 0 in outcomes


TEXT = Literal(Value(Kind.TEXT, "-"))
SLOW = Compare(ExtractedValue(Attribute(("page",)), Pattern("(a|b|c)*" * 20), Kind.TEXT), Comparison.EQ, TEXT)


@pytest.mark.parametrize(
    "predicate", [SLOW, And((Compare(Attribute(("n",)), Comparison.EQ, Literal(decimal(1))), SLOW))]
)
def test_slow_rows_are_evaluated_in_separate_slices(things: Client, predicate: Predicate) -> None:
    """The worst pattern takes 50 ms for each row.

    The database prefilters rows for the second predicate, and all rows pass.
    """
    rows = 10
    page = Value(Kind.TEXT, "abc" * 20_000)
    things.write(*(things.put("p", at, n=decimal(1), page=page) for at in range(rows)))
    outcomes: dict[int, Any] = {}
    assert run(things.engine.run_in_slices([read(things, predicate)], outcomes, 1)) >= rows - 1
    assert (outcomes[0].scanned, outcomes[0].rows) == (rows, [])


def test_writes_between_slices_are_not_seen(thousand: Client) -> None:
    engine = thousand.engine
    outcomes: dict[int, Any] = {}
    slices = engine.run_in_slices([read(thousand, EVEN), read(thousand, NONE)], outcomes, 1)
    next(slices)
    thousand.write(*(thousand.remove(f"p{at % 7}", at) for at in range(ROWS)))
    thousand.write(thousand.put("p9", 1, odd=decimal(0)))
    assert engine.run([Get(thousand.table, thousand.key("p1", 1).position)]) == [None]
    run(slices)
    assert len(outcomes[0].rows) == ROWS // 2
    assert outcomes[1].scanned == ROWS
    [after] = engine.run([read(thousand, EVEN)])
    assert len(after.rows) == 1


def test_lists_of_two_moments_are_read_at_the_same_time(thousand: Client) -> None:
    engine = thousand.engine
    before: dict[int, Any] = {}
    after: dict[int, Any] = {}
    first = engine.run_in_slices([read(thousand, EVEN)], before, 1)
    next(first)
    thousand.write(thousand.put("p0", ROWS, odd=decimal(0)))
    second = engine.run_in_slices([read(thousand, EVEN)], after, 2)
    next(second)
    run(first)
    run(second)
    assert (len(before[0].rows), len(after[0].rows)) == (ROWS // 2, ROWS // 2 + 1)


def test_a_list_that_is_given_up_frees_its_session(thousand: Client) -> None:
    engine = thousand.engine
    for _ in range(3):
        slices = engine.run_in_slices([read(thousand, NONE)], {}, 1)
        next(slices)
        del slices
    outcomes: dict[int, Any] = {}
    run(engine.run_in_slices([read(thousand, EVEN)], outcomes, 1))
    assert len(outcomes[0].rows) == ROWS // 2


def test_pages_are_read_in_one_piece_after_a_lost_session(thousand: Client, database: Database) -> None:
    engine = thousand.engine
    outcomes: dict[int, Any] = {}
    commands = [read(thousand, EVEN, returned=1), read(thousand, EVEN), read(thousand, NONE)]
    slices = engine.run_in_slices(commands, outcomes, 1)
    while 0 not in outcomes:
        next(slices)
    first = outcomes[0]
    if database.shared:
        with database.write() as session:
            session.query(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'"
                " AND pid <> pg_backend_pid() AND datname = current_database()"
            )
    else:
        database._local.readers[1].connection.close()
    run(slices)
    assert outcomes[0] is first
    assert [outline(outcomes[at]) for at in (1, 2)] == [*map(outline, engine.run([*commands[1:]]))]
    assert len(outcomes[1].rows) == ROWS // 2
