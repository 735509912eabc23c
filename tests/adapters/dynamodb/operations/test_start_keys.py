"""ExclusiveStartKey of Query and Scan: the position of the next page, rejected keys, and the order of checks.

Texts and order: dynalite query.js and scan.js (recorded from the service), ScyllaDB's test_query.py for later changes,
and docs/protocols/dynamodb.md rule 28.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.dynamodb.client import DynamoDBService
from tests.support.tables import each_row

INVALID = "The provided starting key is invalid"
SCHEMA = "The provided key element does not match the schema"
OUTSIDE = "The provided starting key is outside query boundaries based on provided conditions"
NOT_IN_RANGE = "The provided starting key does not match the range key predicate"
ONE_ROW = "The query can return at most one row and cannot be restarted"


def wire(**texts: str) -> dict[str, Any]:
    return {name: {"S": text} for name, text in texts.items()}


def schema(*names: str) -> list[dict[str, str]]:
    return [
        {"AttributeName": name, "KeyType": role} for name, role in zip(names, ("HASH", "RANGE"), strict=False)
    ]


@pytest.fixture
def pairs(service: DynamoDBService) -> DynamoDBService:
    """A service with `pairs`: key a, b.

    Its indexes are `local` on a, c, `single` on c, and `double` on c, d (keys only).
    """
    units = {"ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}}
    keys_only = {"ProjectionType": "KEYS_ONLY"}
    service.table(
        "pairs",
        BillingMode=None,
        **units,
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in "abcd"],
        KeySchema=schema("a", "b"),
        LocalSecondaryIndexes=[
            {"IndexName": "local", "KeySchema": schema("a", "c"), "Projection": keys_only}
        ],
        GlobalSecondaryIndexes=[
            {"IndexName": "single", "KeySchema": schema("c"), "Projection": keys_only, **units},
            {"IndexName": "double", "KeySchema": schema("c", "d"), "Projection": keys_only, **units},
        ],
    )
    return service


def ask(
    service: DynamoDBService, condition: str, start: dict[str, Any], operation: str = "Query", **more: Any
) -> str:
    """Return the answer of a Query (or of a Scan without a condition) with a start key.

    `more` can have values of one letter each.
    """
    values = {f":{name}": {"S": more.pop(name)} for name in list(more) if len(name) == 1}
    given = {"TableName": "pairs", "ExclusiveStartKey": start, **more}
    if condition:
        given |= {"KeyConditionExpression": condition, "ExpressionAttributeValues": values}
    code, text = service.error(operation, given)
    assert code == "ValidationException"
    return text


# Going on


def put_all(service: DynamoDBService) -> None:
    for a in "xy":
        for b in "12345":
            item = wire(a=a, b=b, c="c", d=b)
            service.call("PutItem", {"TableName": "pairs", "Item": item})


def pages(service: DynamoDBService, operation: str, **given: Any) -> list[str]:
    """All pages of two items, as texts of a and b, going on from each last key."""
    seen: list[str] = []
    start: dict[str, Any] = {}
    while True:
        answer = service.call(operation, {"TableName": "pairs", "Limit": 2, **given, **start})
        assert service.last.status == 200, answer
        seen += [item["a"]["S"] + item["b"]["S"] for item in answer["Items"]]
        if "LastEvaluatedKey" not in answer:
            return seen
        start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}


QUERIES = [
    ("", "a = :v", "x", ["x1", "x2", "x3", "x4", "x5"]),
    ("local", "a = :v", "y", ["y1", "y2", "y3", "y4", "y5"]),
    ("double", "c = :v", "c", ["x1", "y1", "x2", "y2", "x3", "y3", "x4", "y4", "x5", "y5"]),
    ("single", "c = :v", "c", ["x1", "x2", "x3", "x4", "x5", "y1", "y2", "y3", "y4", "y5"]),
]


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize(("index", "condition", "value", "found"), QUERIES)
def test_a_query_goes_on_after_its_last_key_both_ways(pairs, forward, index, condition, value, found):
    put_all(pairs)
    given = {"KeyConditionExpression": condition, "ExpressionAttributeValues": {":v": {"S": value}}}
    named = {"IndexName": index} if index else {}
    seen = pages(pairs, "Query", ScanIndexForward=forward, **given, **named)
    assert seen == (found if forward else found[::-1])


@pytest.mark.parametrize("index", ["", "local", "single", "double"])
def test_a_scan_goes_on_after_its_last_key(pairs, index):
    put_all(pairs)
    named = {"IndexName": index} if index else {}
    assert sorted(pages(pairs, "Scan", **named)) == sorted(a + b for a in "xy" for b in "12345")


def test_the_item_of_a_start_key_need_not_be_there(pairs):
    put_all(pairs)
    given = {"KeyConditionExpression": "a = :a", "ExpressionAttributeValues": {":a": {"S": "x"}}}
    answer = pairs.call("Query", {"TableName": "pairs", "ExclusiveStartKey": wire(a="x", b="25"), **given})
    assert [item["b"]["S"] for item in answer["Items"]] == ["3", "4", "5"]


# Names and types


@pytest.mark.parametrize(
    "start", [wire(), wire(a="a"), wire(b="b"), wire(a="a", z="z"), wire(a="a", b="b", c="c")]
)
def test_a_query_requires_exactly_the_keys_of_its_table(pairs, start):
    if start != wire(a="a", z="z"):
        assert ask(pairs, "a = :a", start, a="a") == INVALID
    assert ask(pairs, "a = :a and b = :b", start, a="a", b="b") == INVALID


@pytest.mark.parametrize("start", [wire(), wire(a="a"), wire(a="a", z="z"), wire(a="a", b="b", c="c")])
def test_a_scan_reports_why_its_key_is_invalid(pairs, start):
    assert ask(pairs, "", start, "Scan") == f"{INVALID}: {SCHEMA}"


@pytest.mark.parametrize("operation", ["Query", "Scan"])
def test_an_index_requires_its_own_keys_and_those_of_the_table(pairs, operation):
    condition, value = ("c = :c", {"c": "c"}) if operation == "Query" else ("", {})
    for start in (wire(c="c"), wire(a="a", b="b"), wire(a="a", b="b", c="c", z="z")):
        assert ask(pairs, condition, start, operation, IndexName="double", **value) == INVALID


def test_a_wrong_type_has_a_bare_text_for_queried_keys_and_a_framed_one_for_others(pairs):
    wrong = {"a": {"S": "a"}, "b": {"N": "1"}}
    assert ask(pairs, "a = :a", wrong, a="a") == SCHEMA
    of_index, of_table = {**wire(a="a", b="b"), "c": {"N": "1"}}, {**wire(a="a", c="c"), "b": {"N": "1"}}
    for operation, condition, value in (("Query", "c = :c", {"c": "c"}), ("Scan", "", {})):
        assert ask(pairs, condition, of_index, operation, IndexName="single", **value) == SCHEMA
        assert (
            ask(pairs, condition, of_table, operation, IndexName="single", **value) == f"{INVALID}: {SCHEMA}"
        )
    assert ask(pairs, "", wrong, "Scan") == f"{INVALID}: {SCHEMA}"


def test_keys_in_it_are_neither_empty_nor_too_long(pairs):
    assert "cannot contain an empty string value. Key: b" in ask(pairs, "a = :a", wire(a="a", b=""), a="a")
    assert "limit of2048 bytes" in ask(pairs, "a = :a", wire(a="a" * 2049, b="b"), a="a")
    assert "limit of 1024 bytes" in ask(pairs, "a = :a", wire(a="a", b="b" * 1025), a="a")


# Position


def test_a_start_key_must_be_in_the_partition_of_the_query(pairs):
    assert ask(pairs, "a = :a", wire(a="b", b="b"), a="a") == OUTSIDE
    assert ask(pairs, "a = :a", wire(a="b", b="b", c="c"), a="a", IndexName="local") == OUTSIDE
    assert ask(pairs, "c = :c", wire(a="a", b="b", c="d"), c="c", IndexName="single") == OUTSIDE


@each_row(
    "test, good, bad",
    [
        ("b > :b", "n", "m"),
        ("b >= :b", "m", "l"),
        ("b < :b", "l", "m"),
        ("b <= :b", "m", "n"),
        ("b = :b", "m", "n"),
        ("begins_with(b, :b)", "mm", "n"),
        ("b between :b and :b", "m", "n"),
    ],
)
def test_a_start_key_must_pass_the_condition_on_the_sort_key(pairs, test, good, bad):
    assert ask(pairs, f"a = :a and {test}", wire(a="a", b=bad), a="a", b="m") == NOT_IN_RANGE
    given = {"KeyConditionExpression": f"a = :a and {test}", "TableName": "pairs"}
    values = {":a": {"S": "a"}, ":b": {"S": "m"}}
    start = wire(a="a", b=good)
    pairs.call("Query", {**given, "ExpressionAttributeValues": values, "ExclusiveStartKey": start})
    assert pairs.last.status == 200


def test_the_sort_key_is_looked_at_before_the_partition(pairs):
    assert ask(pairs, "a = :a and b < :b", wire(a="z", b="z"), a="a", b="m") == NOT_IN_RANGE
    assert ask(pairs, "a = :a and b < :b", wire(a="z", b="a"), a="a", b="m") == ONE_ROW


def test_nothing_comes_after_the_only_item_of_a_partition(service):
    service.table("orders")
    item = {"pk": {"S": "p"}}
    service.call("PutItem", {"TableName": "orders", "Item": item})
    asked = {
        "TableName": "orders",
        "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": {"S": "p"}},
    }
    told = "The provided exclusive start key is invalid: ExclusiveStartKey: {pk=AttributeValue: {S:p}}"
    assert service.error("Query", {**asked, "ExclusiveStartKey": item}) == ("ValidationException", told)
    # No answer contains such a key, not even when a limit was reached.
    assert service.call("Query", {**asked, "Limit": 1}) == {"Count": 1, "ScannedCount": 1, "Items": [item]}
    assert service.call("Scan", {"TableName": "orders", "Limit": 1})["LastEvaluatedKey"] == item


def test_a_start_key_must_be_of_the_scanned_segment(pairs):
    put_all(pairs)
    given = {"TotalSegments": 2, "Limit": 1}
    [segment] = [
        n for n in (0, 1) if pairs.call("Scan", {"TableName": "pairs", "Segment": n, **given})["Count"]
    ][:1]
    start = pairs.call("Scan", {"TableName": "pairs", "Segment": segment, **given})["LastEvaluatedKey"]
    told = "Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct Segment. TotalSegments: 2 Segment: "
    assert ask(pairs, "", start, "Scan", Segment=1 - segment, **given) == f"{INVALID}: {told}{1 - segment}"
    pairs.call("Scan", {"TableName": "pairs", "Segment": segment, "ExclusiveStartKey": start, **given})
    assert pairs.last.status == 200


# Order


def test_the_number_of_keys_comes_before_the_key_condition(pairs):
    assert ask(pairs, "z = :z", wire(a="a"), z="z") == INVALID


def test_each_key_comes_before_the_condition_on_it(pairs):
    assert ask(pairs, "b = :b", {"a": {"N": "1"}, "b": {"S": "b"}}, b="b") == SCHEMA
    missed = "Query condition missed key schema element: a"
    assert ask(pairs, "b = :b", {"a": {"S": "a"}, "b": {"N": "1"}}, b="b") == missed


def test_a_start_key_is_checked_before_filters_and_projections(pairs):
    more = {"FilterExpression": "attribute_exists(a.x)", "ProjectionExpression": "b.x"}
    assert ask(pairs, "a = :a", wire(a="b", b="b"), a="a", **more) == OUTSIDE
    text = (
        "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: Key: b"
    )
    assert ask(pairs, "a = :a", wire(a="a", b="b"), a="a", **more) == text


def test_select_comes_between_the_keys_of_the_index_and_those_of_the_table(pairs):
    more = {"Select": "ALL_ATTRIBUTES", "IndexName": "double"}
    start = {**wire(x="x", y="y", c="c"), "d": {"N": "1"}}
    assert ask(pairs, "", start, "Scan", **more) == SCHEMA
    start = wire(x="x", y="y", c="c", d="d")
    assert "because its projection type is not ALL" in ask(pairs, "", start, "Scan", **more)
    assert ask(pairs, "", start, "Scan", IndexName="double") == f"{INVALID}: {SCHEMA}"
