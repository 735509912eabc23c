"""Start and end of a query's pages: a token together with a filter, and the limit of five seconds.

Sources: REST reference, *Query Timeout and Pagination*: a query returns at most 1,000 entities and runs for at most
five seconds. It then returns continuation tokens, which the client adds to the URI of the query with its filter.
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from tablegate.adapters.azuretable.queries import token_of
from tablegate.gateway.engine.rows import page_builder
from tablegate.gateway.http.messages import Reply
from tests.adapters.azuretable.client import AzureTableService, query_string

# Filters that SQL cannot evaluate, so that each row is evaluated separately.
ALL, NONE = "not (n gt 100)", "not (n lt 100)"
PARTITION, ROW = "x-ms-continuation-NextPartitionKey", "x-ms-continuation-NextRowKey"


@pytest.fixture
def people(service: AzureTableService) -> AzureTableService:
    """(a, 0) to (d, 4), with n: 0 to 4."""
    service.create()
    for partition in "abcd":
        for row in range(5):
            assert service.insert("people", partition, str(row), n=row).status == 201
    return service


def ask(service: AzureTableService, **options: str) -> Reply:
    reply = service.send("GET", f"/people(){query_string(options)}")
    assert reply.status == 200, reply
    return reply


def keys_of(reply: Reply) -> list[str]:
    return [each["PartitionKey"] + each["RowKey"] for each in json.loads(reply.body)["value"]]


def token(reply: Reply) -> dict[str, str]:
    headers = dict(reply.headers)
    return {"NextPartitionKey": headers[PARTITION], "NextRowKey": headers[ROW]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PartitionKey eq 'b'", ["b0", "b1", "b2", "b3", "b4"]),
        ("PartitionKey eq 'b' and RowKey ge '3'", ["b3", "b4"]),
        ("PartitionKey gt 'c'", ["d0", "d1", "d2", "d3", "d4"]),
        ("PartitionKey eq 'b' and RowKey eq '2'", ["b2"]),
        ("PartitionKey eq 'b' and n ge 4", ["b4"]),
    ],
)
def test_a_token_below_the_range_of_its_filter_brings_nothing_from_below(
    people: AzureTableService, text: str, expected: list[str]
) -> None:
    """A client may send the token of one query with the filter of another: the filter still holds."""
    below = token(ask(people, top="2"))  # of (a, 2)
    assert keys_of(ask(people, filter=text, **below)) == expected
    assert keys_of(ask(people, filter=text, NextPartitionKey=token_of(b""))) == expected


def test_a_token_inside_the_range_goes_on_there_and_one_above_it_ends_it(people: AzureTableService) -> None:
    inside = token(ask(people, filter="PartitionKey eq 'b'", top="3"))
    assert keys_of(ask(people, filter="PartitionKey eq 'b'", **inside)) == ["b3", "b4"]
    above = token(ask(people, filter="PartitionKey eq 'd'", top="1"))
    reply = ask(people, filter="PartitionKey eq 'b'", **above)
    assert keys_of(reply) == []
    assert PARTITION not in dict(reply.headers)


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The time to evaluate a row, on a test clock: `judged.seconds`."""
    state = SimpleNamespace(now=1000.0, seconds=0.0)
    matches = page_builder.matches

    def slow(*given: Any) -> bool:
        state.now += state.seconds
        return matches(*given)

    monkeypatch.setattr(page_builder, "matches", slow)
    monkeypatch.setattr(page_builder, "monotonic", lambda: state.now)
    return state


@pytest.mark.parametrize(
    ("seconds", "rows"), [(1.0, 6), (1.25, 5), (1.26, 4), (5.01, 1), (60.0, 1), (0.2, 20)]
)
def test_a_page_with_a_filter_ends_after_five_seconds(
    people: AzureTableService, judged: Any, seconds: float, rows: int
) -> None:
    """A row that begins within the limit is still evaluated.

    Each page has at least one row, so that every query ends.
    """
    judged.seconds = seconds
    reply = ask(people, filter=ALL)
    assert len(keys_of(reply)) == rows
    assert (PARTITION in dict(reply.headers)) is (rows < 20)
    assert len(people.query("people", filter=ALL)) == 20


def test_a_page_that_finds_nothing_ends_after_five_seconds_too(
    people: AzureTableService, judged: Any
) -> None:
    """It is empty, and has a token."""
    judged.seconds = 2.0
    reply = ask(people, filter=NONE)
    assert keys_of(reply) == []
    assert PARTITION in dict(reply.headers)
