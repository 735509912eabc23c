"""The order in which a Query, Scan or UpdateItem checks its clauses, its start key and the table's keys.

From dynalite's tests (recorded from the service), and ScyllaDB's where named.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.dynamodb.client import DynamoDBService

INDEXES = {
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "global",
            "KeySchema": [
                {"AttributeName": "c", "KeyType": "HASH"},
                {"AttributeName": "d", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ]
}


@pytest.fixture
def tables(service: DynamoDBService) -> DynamoDBService:
    """`hash` has key pk (S). `range` has key a, b (S) and a global index on c, d (S)."""
    service.table("hash")
    service.table(
        "range",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in "abcd"],
        KeySchema=[{"AttributeName": "a", "KeyType": "HASH"}, {"AttributeName": "b", "KeyType": "RANGE"}],
        **INDEXES,
    )
    return service


def refusal(service: DynamoDBService, operation: str, **given: Any) -> str:
    code, text = service.error(operation, {"TableName": "range", **given})
    assert code == "ValidationException"
    return text


def query(service: DynamoDBService, condition: str = "a = :a", **given: Any) -> str:
    values = {":a": {"S": "a"}, ":n": {"N": "1"}} if ":n" in condition else {":a": {"S": "a"}}
    return refusal(
        service, "Query", KeyConditionExpression=condition, ExpressionAttributeValues=values, **given
    )


def test_the_type_of_a_key_condition_is_checked_after_the_other_expressions(
    tables: DynamoDBService,
) -> None:
    condition = "attribute_type(a, :a)"
    given = {
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": {":a": {"S": "N"}},
    }
    assert refusal(tables, "Query", **given, FilterExpression="", ProjectionExpression="") == (
        "Invalid FilterExpression: The expression can not be empty;"
    )
    assert refusal(tables, "Query", **given, FilterExpression="a > b", ProjectionExpression="") == (
        "Invalid ProjectionExpression: The expression can not be empty;"
    )
    assert (
        refusal(tables, "Query", **given) == "Invalid operator used in KeyConditionExpression: attribute_type"
    )


# Start keys

A, B, C, D = ({"S": letter} for letter in "abcd")
KEY_PAIR = {"a": A, "b": B}
OUTSIDE = "The provided starting key is outside query boundaries based on provided conditions"
MISMATCH = "The provided key element does not match the schema"
INVALID = "The provided starting key is invalid"


@pytest.mark.parametrize(
    ("condition", "start", "said"),
    [
        ("a = :a", {}, INVALID),
        ("a = :a", {"a": A}, INVALID),
        ("a = :a", {"a": A, "z": B}, INVALID),
        ("a = :a", {"a": A, "b": B, "c": C}, INVALID),
        ("z = :a", {"a": {"N": "1"}, "b": B}, MISMATCH),
        ("z = :a", KEY_PAIR, "Query condition missed key schema element: a"),
        ("a = :a and b = :n", {"a": A, "b": {"N": "1"}}, MISMATCH),
        ("a = :a", {"a": B, "b": A}, OUTSIDE),
        (
            "a = :a and b > :a",
            {"a": A, "b": A},
            "The provided starting key does not match the range key predicate",
        ),
        (
            "a = :a and b > :a",
            {"a": B, "b": B},
            "The query can return at most one row and cannot be restarted",
        ),
    ],
)
def test_start_keys_that_a_query_does_not_take(
    tables: DynamoDBService, condition: str, start: dict[str, Any], said: str
) -> None:
    assert query(tables, condition, ExclusiveStartKey=start) == said


@pytest.mark.parametrize(
    ("start", "said"),
    [
        ({"a": A, "b": B, "c": C}, INVALID),
        ({"c": A, "d": B, "x": C, "y": D}, f"{INVALID}: {MISMATCH}"),
        ({"a": A, "b": B, "c": C, "x": D}, INVALID),
        ({"a": A, "b": B, "c": {"N": "1"}, "d": D}, MISMATCH),
        ({"a": A, "b": {"N": "1"}, "c": A, "d": D}, f"{INVALID}: {MISMATCH}"),
    ],
)
def test_a_start_key_of_an_index_has_the_keys_of_both(
    tables: DynamoDBService, start: dict[str, Any], said: str
) -> None:
    assert query(tables, "c = :a", IndexName="global", ExclusiveStartKey=start) == said
    assert refusal(tables, "Scan", IndexName="global", ExclusiveStartKey=start) == said


def test_a_scan_of_a_table_says_more_of_a_start_key(tables: DynamoDBService) -> None:
    for start in ({}, {"a": A}, {"a": A, "b": B, "c": C}, {"a": A, "b": {"N": "1"}}):
        assert refusal(tables, "Scan", ExclusiveStartKey=start) == f"{INVALID}: {MISMATCH}"


def test_a_partition_of_one_item_cannot_be_resumed(tables: DynamoDBService) -> None:
    # test_query.py test_query_no_sort_key_exclusive_start_key
    assert refusal(
        tables,
        "Query",
        TableName="hash",
        KeyConditionExpression="pk = :a",
        ExpressionAttributeValues={":a": A},
        ExclusiveStartKey={"pk": A},
    ) == ("The provided exclusive start key is invalid: ExclusiveStartKey: {pk=AttributeValue: {S:a}}")


# Keys of the table and its indexes in other clauses

INTO = "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: "
GLOBAL_ALL = (
    "One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported for global secondary index "
    "global because its projection type is not ALL"
)


def test_paths_do_not_reach_into_keys(tables: DynamoDBService) -> None:
    pair = {"Key": KEY_PAIR}
    assert refusal(tables, "GetItem", **pair, ProjectionExpression="x, a.b") == INTO + "Key: a"
    assert refusal(tables, "GetItem", **pair, ProjectionExpression="d[0]") == INTO + "IndexKey: d"
    assert refusal(tables, "Scan", ProjectionExpression="d.x") == INTO + "IndexKey: d"
    assert refusal(tables, "Scan", FilterExpression="attribute_exists(c[1])") == INTO + "IndexKey: c"
    assert query(tables, ProjectionExpression="b.x", FilterExpression="a = :a") == INTO + "Key: b"
    assert query(tables, FilterExpression="c.x = :a") == INTO + "IndexKey: c"
    batch = {"range": {"Keys": [KEY_PAIR], "ProjectionExpression": "a.b"}}
    assert tables.error("BatchGetItem", {"RequestItems": batch})[1] == INTO + "Key: a"
    get = {"TableName": "range", "Key": KEY_PAIR, "ProjectionExpression": "a.b"}
    assert tables.error("TransactGetItems", {"TransactItems": [{"Get": get}]})[1] == INTO + "Key: a"
    assert refusal(tables, "UpdateItem", **pair, UpdateExpression="set x = c[1]") == INTO + "IndexKey: c"


def test_select_is_looked_at_between_the_two_checks_of_the_filter(tables: DynamoDBService) -> None:
    given = {"IndexName": "global", "Select": "ALL_ATTRIBUTES"}
    filtered = "Filter Expression can only contain non-primary key attributes: Primary key attribute: d"
    assert query(tables, "c = :a", FilterExpression="d = :a", **given) == filtered
    assert query(tables, "c = :a", FilterExpression="a.x = :a", **given) == GLOBAL_ALL
    assert query(tables, "z = :a", **given) == "Query condition missed key schema element: c"


def test_index_keys_of_a_wrong_type(tables: DynamoDBService) -> None:
    pair = {"Key": KEY_PAIR}
    early = (
        "One or more parameter values were invalid: "
        "Type mismatch for Index Key {} Expected: S Actual: {} IndexName: global"
    )
    one = {"ExpressionAttributeValues": {":n": {"N": "1"}}}
    # Errors that do not depend on the item come first
    said = refusal(tables, "UpdateItem", **pair, UpdateExpression="set d.x = a add c :n", **one)
    assert said == early.format("c", "N")
    said = refusal(tables, "UpdateItem", **pair, UpdateExpression="set e = c[1], c = a + :n", **one)
    assert said == early.format("c", "N")
    said = refusal(tables, "UpdateItem", **pair, UpdateExpression="set c = list_append(x, y)")
    assert said == early.format("c", "L")
    said = refusal(tables, "UpdateItem", **pair, AttributeUpdates={"d": {"Value": {"N": "1"}}})
    assert said == early.format("d", "N")
    # and has other words than what does not
    tables.call("UpdateItem", {"TableName": "range", **pair, "UpdateExpression": "set e = :n", **one})
    said = refusal(tables, "UpdateItem", **pair, UpdateExpression="set c = e")
    assert said == "The update expression attempted to update the secondary index key to unsupported type"
    long = {"ExpressionAttributeValues": {":s": {"S": "x" * 3000}}}
    tables.call("UpdateItem", {"TableName": "range", **pair, "UpdateExpression": "set e = :s", **long})
    said = refusal(tables, "UpdateItem", **pair, UpdateExpression="set c = e")
    assert (
        said == "The update expression attempted to update the secondary index key beyond allowed size limits"
    )
