"""The size of an index with the projections KEYS_ONLY and INCLUDE, and its read and write units, to the byte.

Sources:

- Developer guide, *Using Global Secondary Indexes*: a query is charged for the sizes of the index entries and not of
  the items, summed over the page and then rounded up. A write is charged for the projected item, before and after.
- *DynamoDB item sizes*: names and values in UTF-8.
- API reference, GlobalSecondaryIndexDescription: IndexSizeBytes.
- Captures by paritysuite (September 2026): a change in place and a move.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.dynamodb.client import DynamoDBService

# An entry of `keys` has p, s, g with one letter each for name and value. An entry of `some` also has "shown".
KEYS_BYTES = 6
SHOWN_NAME_BYTES = len("shown")


@pytest.fixture
def items(service: DynamoDBService) -> DynamoDBService:
    """A table `items` with key p and s.

    It has global indexes on g (`keys` KEYS_ONLY, `some` INCLUDE shown, `all` ALL) and a local one on l.
    """

    def index(name: str, column: str, kind: str, *names: str) -> dict[str, Any]:
        projection: dict[str, Any] = {"ProjectionType": kind}
        if names:
            projection["NonKeyAttributes"] = list(names)
        keys = [column] if column == "g" else ["p", column]
        schema = [
            {"AttributeName": key, "KeyType": role}
            for key, role in zip(keys, ("HASH", "RANGE"), strict=False)
        ]
        return {"IndexName": name, "KeySchema": schema, "Projection": projection}

    service.table(
        "items",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in "psgl"],
        KeySchema=[{"AttributeName": "p", "KeyType": "HASH"}, {"AttributeName": "s", "KeyType": "RANGE"}],
        GlobalSecondaryIndexes=[
            index("keys", "g", "KEYS_ONLY"),
            index("some", "g", "INCLUDE", "shown"),
            index("all", "g", "ALL"),
        ],
        LocalSecondaryIndexes=[index("local", "l", "KEYS_ONLY")],
    )
    return service


def put(service: DynamoDBService, s: str, **more: str) -> dict[str, float]:
    """Put an item. Returns the units charged to each index."""
    item = {name: {"S": value} for name, value in {"p": "p", "s": s, "g": "g", **more}.items()}
    given = {"TableName": "items", "Item": item, "ReturnConsumedCapacity": "INDEXES"}
    return arms(service.call("PutItem", given))


def arms(answer: Any) -> dict[str, float]:
    consumed = answer["ConsumedCapacity"]
    found = {**consumed.get("GlobalSecondaryIndexes", {}), **consumed.get("LocalSecondaryIndexes", {})}
    return {name: units["CapacityUnits"] for name, units in found.items()}


def sizes(service: DynamoDBService) -> dict[str, int]:
    table = service.described("items")
    indexes = table["GlobalSecondaryIndexes"] + table["LocalSecondaryIndexes"]
    return {index["IndexName"]: index["IndexSizeBytes"] for index in indexes}


def units(service: DynamoDBService, index: str, **more: Any) -> float:
    column, value = ("p", "p") if index == "local" else ("g", "g")
    answer = service.call(
        "Query",
        {
            "TableName": "items",
            "IndexName": index,
            "KeyConditionExpression": f"{column} = :value",
            "ExpressionAttributeValues": {":value": {"S": value}},
            "ReturnConsumedCapacity": "INDEXES",
            **more,
        },
    )
    assert "ConsumedCapacity" in answer, answer
    return arms(answer)[index]


def test_the_size_of_an_index_is_of_what_it_projects(items: DynamoDBService) -> None:
    put(items, "1", l="l", shown="x" * 100, hidden="y" * 1_000)
    put(items, "2", hidden="y" * 1_000)
    whole = KEYS_BYTES + len("hidden") + 1_000
    assert sizes(items) == {
        "keys": 2 * KEYS_BYTES,
        "some": 2 * KEYS_BYTES + SHOWN_NAME_BYTES + 100,
        "all": 2 * whole + SHOWN_NAME_BYTES + 100 + len("l" + "l"),
        "local": KEYS_BYTES,  # p, s and l
    }


def test_the_size_follows_a_change_of_what_is_projected(items: DynamoDBService) -> None:
    """The entry keeps its position and changes its size."""
    put(items, "1", shown="x" * 10, hidden="y")
    put(items, "1", shown="x" * 300, hidden="y" * 700)
    assert sizes(items)["some"] == KEYS_BYTES + SHOWN_NAME_BYTES + 300
    assert sizes(items)["keys"] == KEYS_BYTES
    put(items, "1", hidden="y" * 700)
    assert sizes(items)["some"] == KEYS_BYTES


def test_the_size_of_an_index_that_is_made_later_is_the_same(items: DynamoDBService) -> None:
    put(items, "1", shown="x" * 100, hidden="y" * 1_000)
    later = {
        "IndexName": "later",
        "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["shown"]},
    }
    items.update(
        "items",
        AttributeDefinitions=[{"AttributeName": "g", "AttributeType": "S"}],
        GlobalSecondaryIndexUpdates=[{"Create": later}],
    )
    while items.gateway.engine.background.next_batch():
        pass
    assert sizes(items)["later"] == KEYS_BYTES + SHOWN_NAME_BYTES + 100


@pytest.mark.parametrize(("entry_bytes", "expected"), [(4096, 0.5), (4097, 1.0)])
def test_a_query_is_charged_for_the_entries(
    items: DynamoDBService, entry_bytes: int, expected: float
) -> None:
    """INCLUDE is charged to the byte. KEYS_ONLY costs the minimum, however large the items are."""
    put(items, "1", l="l", shown="x" * (entry_bytes - KEYS_BYTES - SHOWN_NAME_BYTES), hidden="y" * 20_000)
    assert units(items, "some") == expected
    assert units(items, "keys") == units(items, "local") == 0.5
    assert units(items, "keys", Select="COUNT") == 0.5
    assert units(items, "all") > 2.5


@pytest.mark.parametrize(("last", "expected"), [(2048, 0.5), (2049, 1.0)])
def test_a_page_is_summed_and_then_rounded(items: DynamoDBService, last: int, expected: float) -> None:
    around = KEYS_BYTES + SHOWN_NAME_BYTES
    put(items, "1", shown="x" * (2048 - around), hidden="y" * 9_000)
    put(items, "2", shown="x" * (last - around), hidden="y" * 9_000)
    assert units(items, "some") == expected
    assert units(items, "keys") == 0.5


@pytest.mark.parametrize(("last", "expected"), [(2048, 0.5), (2049, 1.0)])
@pytest.mark.parametrize("condition", ["shown = :shown", "NOT shown = :shown"])
def test_a_page_with_a_filter_is_charged_for_the_entries_that_it_looked_at(
    items: DynamoDBService, last: int, expected: float, condition: str
) -> None:
    """Covers a filter that SQL evaluates and one evaluated on each row.

    No row passes the first, and all rows pass the second.
    """
    around = KEYS_BYTES + SHOWN_NAME_BYTES
    put(items, "1", shown="x" * (2048 - around), hidden="y" * 9_000)
    put(items, "2", shown="x" * (last - around), hidden="y" * 9_000)
    values = {":value": {"S": "g"}, ":shown": {"S": "-"}}
    assert units(items, "some", FilterExpression=condition, ExpressionAttributeValues=values) == expected


@pytest.mark.parametrize(
    "asked",
    [
        {"ProjectionExpression": "#h", "ExpressionAttributeNames": {"#h": "hidden"}},
        {"Select": "ALL_ATTRIBUTES"},
    ],
)
def test_a_range_of_a_local_index_is_charged_for_the_whole_items_that_it_fetches(
    items: DynamoDBService, asked: dict[str, Any]
) -> None:
    """Each fetched item is rounded up separately and charged to the table. The entries are summed and charged to the
    index.

    Source: developer guide, *Local Secondary Indexes*, read capacity units of fetches.
    """
    around = KEYS_BYTES + len("l" + "l") + len("hidden")
    put(items, "1", l="l", hidden="y" * (4096 - around))
    put(items, "2", l="l", hidden="y" * (4097 - around))
    query = {
        "TableName": "items",
        "IndexName": "local",
        "KeyConditionExpression": "p = :p",
        "ExpressionAttributeValues": {":p": {"S": "p"}},
        "ReturnConsumedCapacity": "INDEXES",
    }

    def consumed(**more: Any) -> tuple[float, float]:
        found = items.call("Query", {**query, **more})["ConsumedCapacity"]
        assert (
            found["CapacityUnits"]
            == found["Table"]["CapacityUnits"] + arms({"ConsumedCapacity": found})["local"]
        )
        return found["Table"]["CapacityUnits"], arms({"ConsumedCapacity": found})["local"]

    assert consumed() == (0.0, 0.5)
    assert consumed(**asked) == (1.5, 0.5)
    assert consumed(**asked, ConsistentRead=True) == (3.0, 1.0)
    assert consumed(**asked, ConsistentRead=True, Limit=1) == (1.0, 1.0)


@pytest.mark.parametrize(("entry_bytes", "expected"), [(1024, 1), (1025, 2)])
def test_a_write_costs_an_index_what_it_projects(
    items: DynamoDBService, entry_bytes: int, expected: float
) -> None:
    shown = "x" * (entry_bytes - KEYS_BYTES - SHOWN_NAME_BYTES)
    consumed = put(items, "1", shown=shown, hidden="y" * 3_000)
    assert (consumed["keys"], consumed["some"], consumed["all"]) == (1, expected, 4)


def test_a_change_in_place_costs_the_larger_entry(items: DynamoDBService) -> None:
    """Not the sum of both, and not the later one."""
    around = KEYS_BYTES + SHOWN_NAME_BYTES
    put(items, "1", shown="x" * (2049 - around))
    assert put(items, "1", shown="x")["some"] == 3
    assert put(items, "1", shown="x" * (2049 - around))["some"] == 3
    assert "keys" not in put(items, "1", shown="y")


def test_a_moved_entry_costs_each_of_both_by_itself(items: DynamoDBService) -> None:
    """A deletion of 1,025 bytes is two units, an insertion of 1,023 one: together 2,048 bytes would be two."""
    around = KEYS_BYTES + SHOWN_NAME_BYTES
    put(items, "1", shown="x" * (1025 - around))
    consumed = put(items, "1", g="h", shown="x" * (1023 - around))
    assert (consumed["some"], consumed["keys"]) == (3, 2)
