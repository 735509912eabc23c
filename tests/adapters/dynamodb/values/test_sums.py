"""Sums of numbers at the limit of 38 significant digits.

Sources: developer guide, *Supported data types and naming rules*, Number: "up to 38 digits of precision. Exceeding this
results in an exception". The words: dynalite updateItem.js (recorded from the service).
"""

from __future__ import annotations

import pytest

from tests.adapters.dynamodb.client import DynamoDBService


@pytest.fixture
def counter(service: DynamoDBService) -> DynamoDBService:
    service.table()
    return service


def added(service: DynamoDBService, left: str, right: str, expression: str) -> str:
    """Return the stored sum, or "" if it was refused."""
    service.call("PutItem", {"TableName": "orders", "Item": {"pk": {"S": "a"}, "n": {"N": left}}})
    given = {
        "TableName": "orders",
        "Key": {"pk": {"S": "a"}},
        "UpdateExpression": expression,
        "ExpressionAttributeValues": {":by": {"N": right}},
        "ReturnValues": "ALL_NEW",
    }
    answer = service.call("UpdateItem", given)
    if service.last.status == 200:
        return str(answer["Attributes"]["n"]["N"])
    assert answer["__type"].endswith("#ValidationException")
    kept = service.call("GetItem", {"TableName": "orders", "Key": {"pk": {"S": "a"}}})
    assert kept["Item"]["n"]["N"] == left
    return ""


WAYS = ("ADD n :by", "SET n = n + :by", "SET n = :by + n")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("left", "right", "total"),
    [
        ("9" * 37 + "8", "1", "9" * 38),
        ("9" * 38, "1", "1" + "0" * 38),  # 39 digits before the point, one of them significant
        ("1" + "0" * 38, "10", "1" + "0" * 36 + "10"),
        ("1" + "0" * 37, "0.1", ""),  # 39: the last is a 1
        ("1" + "0" * 38, "1", ""),
        ("5" + "0" * 36 + "1", "5" + "0" * 37, ""),  # 39 digits of a carry
        ("1", "1" + "0" * 37, "1" + "0" * 36 + "1"),
        ("1", "0." + "0" * 36 + "1", "1." + "0" * 36 + "1"),
        ("1", "0." + "0" * 37 + "1", ""),
        ("-1" + "0" * 38, "-1", ""),
        ("1" + "0" * 39, "1", ""),  # 40, whose first 39 are a number that fits
        ("1" + "0" * 100, "1", ""),
        ("1" + "0" * 125, "0." + "0" * 129 + "1", ""),  # the two ends of what a number can be: 256 digits
        ("-1" + "0" * 38, "1", "-" + "9" * 38),
    ],
)
def test_a_sum_has_38_digits_and_not_39(
    counter: DynamoDBService, left: str, right: str, total: str, way: str
) -> None:
    assert added(counter, left, right, way) == total


def test_a_difference_has_the_same_limit(counter: DynamoDBService) -> None:
    assert added(counter, "1" + "0" * 38, "1", "SET n = n - :by") == "9" * 38
    assert added(counter, "1" + "0" * 38, "-1", "SET n = n - :by") == ""
    assert added(counter, "0.1", "1" + "0" * 37, "SET n = n - :by") == "-" + "9" * 37 + ".9"
    assert added(counter, "0.1", "1" + "0" * 38, "SET n = n - :by") == ""
    long = "12345678901234567890123456789012345678"
    assert added(counter, long, long, "SET n = n - :by") == "0"
    assert added(counter, "0", long, "SET n = n - :by") == f"-{long}"
    assert added(counter, f"-{long}", "1", "SET n = :by - n") == "12345678901234567890123456789012345679"
    statement = {"Statement": "UPDATE orders SET n = n - n WHERE pk = 'a' RETURNING ALL NEW *"}
    assert counter.call("ExecuteStatement", statement)["Items"][0]["n"] == {"N": "0"}
