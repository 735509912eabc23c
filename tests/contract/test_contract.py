"""Semantics that the three dialects share: the same scenarios, through each dialect, on each database.

Tests of one dialect's own semantics are with its adapter. Tests of rows of other dialects are in
test_across_dialects.py.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial

import pytest

from tests.contract.clients import CLIENTS, Delete, GroupWrite, Insert, Put, Refused, TableClient
from tests.support.across import Across
from tests.support.concurrency import all_at_once
from tests.support.running import start


@pytest.fixture(scope="module")
def url(shared_database_url: str) -> Iterator[str]:
    running = start(shared_database_url)
    yield running.url
    running.stop()


@pytest.fixture(params=CLIENTS)
def table(request: pytest.FixtureRequest, url: str) -> TableClient:
    return CLIENTS[request.param](Across(url))


KEY = ("partition", "row")
OTHER = ("partition", "sow")


def test_a_row_can_be_inserted_once(table: TableClient) -> None:
    assert table.get(KEY) is None
    table.insert(KEY, {"a": "first"})
    with pytest.raises(Refused):
        table.insert(KEY, {"a": "second"})
    assert table.get(KEY) == {"a": "first"}


def test_a_put_replaces_and_a_merge_adds(table: TableClient) -> None:
    table.put(KEY, {"a": "1", "b": "2"})
    table.merge(KEY, {"b": "3", "c": "4"})
    assert table.get(KEY) == {"a": "1", "b": "3", "c": "4"}
    table.put(KEY, {"d": "5"})
    assert table.get(KEY) == {"d": "5"}
    table.merge(OTHER, {"a": "new"})
    assert table.get(OTHER) == {"a": "new"}


def test_a_condition_looks_at_the_row_as_it_is(table: TableClient) -> None:
    with pytest.raises(Refused):
        table.replace_if(KEY, 1, {"version": 2})
    assert table.get(KEY) is None, "what was refused makes no row"
    table.insert(KEY, {"version": 1, "a": "x"})
    table.replace_if(KEY, 1, {"version": 2})
    with pytest.raises(Refused):
        table.replace_if(KEY, 1, {"version": 3})
    assert table.get(KEY) == {"version": 2}


def test_a_delete_needs_a_row(table: TableClient) -> None:
    with pytest.raises(Refused):
        table.delete(KEY)
    table.insert(KEY, {"a": "x"})
    table.delete(KEY)
    assert table.get(KEY) is None
    table.insert(KEY, {"b": "y"})
    assert table.get(KEY) == {"b": "y"}, "nothing of the old row comes back"


def test_a_group_is_written_whole(table: TableClient) -> None:
    table.insert(OTHER, {"a": "old"})
    table.group([Insert(KEY, {"a": "1"}), Delete(OTHER), Put(("partition", "third"), {"a": "3"})])
    assert table.partition("partition", 10) == [KEY, ("partition", "third")]


REFUSALS: dict[str, GroupWrite] = {
    "a row that is there": Insert(KEY, {"a": "again"}),
    "a row that is not there": Delete(("partition", "absent")),
}


@pytest.mark.parametrize("refused", REFUSALS.values(), ids=REFUSALS)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_group_that_is_refused_leaves_no_trace(table: TableClient, refused: GroupWrite, at: int) -> None:
    table.insert(KEY, {"a": "x"})
    table.insert(OTHER, {"a": "y"})
    writes: list[GroupWrite] = [Put(OTHER, {"a": "z"}), Insert(("partition", "new"), {"a": "n"})]
    writes.insert(at, refused)
    with pytest.raises(Refused):
        table.group(writes)
    assert table.partition("partition", 10) == [KEY, OTHER]
    assert table.get(KEY) == {"a": "x"}
    assert table.get(OTHER) == {"a": "y"}


@pytest.mark.parametrize("page", [1, 7, 40])
def test_a_partition_is_read_in_order_and_each_row_once(table: TableClient, page: int) -> None:
    sorts = [f"{number:03d}" for number in range(30)] + ["", "A", "a", "aa", "é", "\uffee"]
    if not isinstance(table, CLIENTS["azure"]):
        sorts.remove("")  # the others have no empty keys
    expected = sorted(sorts, key=str.encode)
    random.Random(page).shuffle(sorts)
    for sort in sorts:
        table.insert(("p", sort), {"a": sort})
    for neighbour in ("o", "p ", "q", "pp"):
        table.insert((neighbour, "x"), {"a": "not of this partition"})
    assert table.partition("p", page) == [("p", sort) for sort in expected]


def test_one_of_many_inserts_of_a_key_succeeds(table: TableClient) -> None:
    won: list[str] = []

    def insert(writer: str) -> None:
        try:
            table.insert(KEY, {"a": writer})
        except Refused:
            return
        won.append(writer)

    all_at_once([partial(insert, writer) for writer in "abcdefgh"])
    assert len(won) == 1
    assert table.get(KEY) == {"a": won[0]}


def test_a_version_that_is_compared_counts_each_success(table: TableClient) -> None:
    table.insert(KEY, {"version": 0})
    successes: list[int] = []

    def count() -> None:
        for _ in range(20):
            seen = table.get(KEY)
            assert seen is not None
            try:
                table.replace_if(KEY, seen["version"], {"version": seen["version"] + 1})
            except Refused:
                continue
            successes.append(seen["version"])

    all_at_once([count] * 4)
    assert sorted(successes) == list(range(len(successes)))
    assert table.get(KEY) == {"version": len(successes)}
