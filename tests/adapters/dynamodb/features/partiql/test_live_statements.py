"""PartiQL through boto3 in front of a live server, on both databases: every kind of value and of key, and long pages."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from boto3.dynamodb.types import TypeSerializer
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.adapters.dynamodb.statement_literals import literal
from tests.support.examples import examples
from tests.support.live_dynamodb import Index, Live, reasons, refused
from tests.support.running import start

SCALARS = (
    st.text(max_size=8).map(lambda text: {"S": text})
    | st.integers(-(10**20), 10**20).map(lambda number: {"N": str(number)})
    | st.decimals(-1000, 1000, places=3).map(lambda number: {"N": str(number)})
    | st.booleans().map(lambda truth: {"BOOL": truth})
    | st.just({"NULL": True})
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda members: {"L": members})
        | st.dictionaries(st.text(min_size=1, max_size=4), inner, max_size=3).map(
            lambda members: {"M": members}
        )
    ),
    max_leaves=6,
) | st.sets(st.text(min_size=1, max_size=4), min_size=1, max_size=3).map(lambda texts: {"SS": sorted(texts)})
KEYS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@pytest.fixture(scope="module")
def live(shared_database_url: str) -> Iterator[Live]:
    running = start(shared_database_url, dialects="dynamodb")
    yield Live(running.url)
    running.stop()


@pytest.fixture(scope="module")
def things(live: Live) -> str:
    """A table with key name (S), number (N)."""
    return str(live.create("name:S", "number:N", indexes=[Index("by-kind", "kind:S", "number:N")]).name)


@pytest.fixture(scope="module")
def table(live: Live, things: str) -> Any:
    """The table as boto3's resource, which is slow to create."""
    return live.resource.Table(things)


@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=KEYS, number=st.integers(-(10**9), 10**9), value=VALUES)
def test_a_select_by_key_gives_what_get_item_gives(
    live: Live, things: str, table: Any, name: str, number: int, value: dict[str, Any]
) -> None:
    """Also when the item was inserted as a literal, and as a parameter."""
    client, key = live.client, {"name": {"S": name}, "number": {"N": str(number)}}
    where = f"name = {literal(key['name'])} AND number = {number}"
    for spelled, parameters in ((literal(value), []), ("?", [value])):
        client.delete_item(TableName=things, Key=key)
        more = {"Parameters": parameters} if parameters else {}
        client.execute_statement(
            Statement=f'INSERT INTO "{things}" VALUE '
            f"{{'name': {literal(key['name'])}, 'number': {number}, 'value': {spelled}}}",
            **more,
        )
        stored = client.get_item(TableName=things, Key=key)["Item"]
        found = client.execute_statement(Statement=f'SELECT * FROM "{things}" WHERE {where}')["Items"]
        assert found == [stored]
        by_value = client.execute_statement(
            Statement=f'SELECT * FROM "{things}" WHERE {where} AND "value" = {spelled}', **more
        )["Items"]
        assert by_value == [stored]
        assert table.get_item(Key={"name": name, "number": number})["Item"]["number"] == number


@pytest.fixture(scope="module")
def many(live: Live) -> str:
    """Three hundred items of 10 KB in three partitions: three pages and more."""
    table = live.create("group:S", "at:N", indexes=[Index("by-parity", "parity:N", "at:N")])
    with table.batch_writer() as batch:
        for at in range(300):
            batch.put_item(Item={"group": "abc"[at % 3], "at": at, "parity": at % 2, "text": "x" * 10_000})
    return str(table.name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 300),
        ("WHERE parity = 1", 150),
        ("WHERE group IN ['c', 'a']", 200),
        ("WHERE group IN ['a', 'b', 'c'] AND at >= 150 ORDER BY group DESC, at DESC", 150),
        ("WHERE group = 'b'", 100),
    ],
)
@pytest.mark.parametrize("limit", [None, 7])
def test_pages_hold_every_item_once(
    live: Live, many: str, text: str, expected: int, limit: int | None
) -> None:
    given: dict[str, Any] = {"Statement": f'SELECT "group", at FROM "{many}" {text}'}
    if limit is not None:
        given["Limit"] = limit
    found: list[tuple[str, int]] = []
    pages = 0
    while True:
        answer = live.client.execute_statement(**given)
        page = [(item["group"]["S"], int(item["at"]["N"])) for item in answer["Items"]]
        assert limit is None or len(page) <= limit
        found += page
        pages += 1
        if "NextToken" not in answer:
            break
        given["NextToken"] = answer["NextToken"]
    assert len(found) == len(set(found)) == expected
    assert pages > 1 or (expected == 100 and limit is None)
    if "ORDER BY" in text:
        assert found == sorted(found, reverse=True)


def test_an_index_is_paged_in_its_order(live: Live, many: str) -> None:
    given: dict[str, Any] = {
        "Statement": f'SELECT at FROM "{many}"."by-parity" WHERE parity = ? AND at BETWEEN 10 AND ? ORDER BY at DESC',
        "Parameters": [{"N": "0"}, {"N": "50"}],
        "Limit": 4,
    }
    found: list[int] = []
    while True:
        answer = live.client.execute_statement(**given)
        found += [int(item["at"]["N"]) for item in answer["Items"]]
        if "NextToken" not in answer:
            break
        given["NextToken"] = answer["NextToken"]
    assert found == list(range(50, 9, -2))


def test_the_three_operations(live: Live, things: str) -> None:
    client = live.client
    client.execute_transaction(
        TransactStatements=[
            {"Statement": f"INSERT INTO \"{things}\" VALUE {{'name': 'a', 'number': {number}}}"}
            for number in (1, 2)
        ]
    )
    with refused("TransactionCanceledException") as caught:
        client.execute_transaction(
            TransactStatements=[
                {"Statement": f"INSERT INTO \"{things}\" VALUE {{'name': 'a', 'number': {number}}}"}
                for number in (2, 3)
            ]
        )
    assert reasons(caught) == ["DuplicateItem", "None"]
    with refused("DuplicateItemException"):
        client.execute_statement(Statement=f"INSERT INTO \"{things}\" VALUE {{'name': 'a', 'number': 1}}")
    answer = client.batch_execute_statement(
        Statements=[
            {
                "Statement": f"UPDATE \"{things}\" SET kind = ? WHERE name = 'a' AND number = ?",
                "Parameters": given,
            }
            for given in ([{"S": "k"}, {"N": "1"}], [{"S": "k"}, {"N": "9"}])
        ]
    )
    first, second = answer["Responses"]
    assert first == {"TableName": things}
    assert second["Error"]["Code"] == "ConditionalCheckFailed"
    found = live.resource.meta.client.execute_statement(
        Statement=f'SELECT number FROM "{things}"."by-kind" WHERE kind = ?', Parameters=["k"]
    )
    assert found["Items"] == [{"number": Decimal(1)}]
    assert TypeSerializer().serialize(found["Items"][0]["number"]) == {"N": "1"}
