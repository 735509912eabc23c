"""Wrong numbers and repeated members of sets, by operation: the service has a newer and an older validation of values.

Source: paritysuite error-messages/valueLayers.test.ts, four regions, 2026-10-09. Three of them use the older validation
for transactions, and so does this server.
"""

from __future__ import annotations

from typing import Any

import pytest

OVERFLOW = "Number overflow. Attempting to store a number with magnitude larger than supported range"
UNDERFLOW = "Number underflow. Attempting to store a number with magnitude smaller than supported range"
NO_NUMBER = "The parameter cannot be converted to a numeric value"
NUMBERS = ("abc", "", "1e126", "1e2147483647")
NEWER = (f"{NO_NUMBER}: abc", f"{NO_NUMBER}: ", OVERFLOW, OVERFLOW)
OLDER = (f"{NO_NUMBER}: abc", NO_NUMBER, OVERFLOW, UNDERFLOW)
INVALID = "One or more parameter values were invalid: "
SETS = ({"SS": ["b", "a", "b"]}, {"BS": ["/w==", "AA==", "AA=="]}, {"NS": ["2", "1", "2"]})
NEWER_SETS = (
    f'{INVALID}Input collection ["a", "b", "b"] contains duplicates.',
    f'{INVALID}Input collection ["AA==","/w==","AA=="]of type BS contains duplicates.',
    f"{INVALID}Input collection contains duplicates.",
)
OLDER_SETS = (
    f"{INVALID}Input collection [b, a, b] contains duplicates.",
    f"{INVALID}Input collection [/w==, AA==, AA==]of type BS contains duplicates.",
    "Input collection contains duplicates",
)
Value = dict[str, Any]
S = {"S": "x"}
T = {"TableName": "orders"}


def values(value: Value, expression: str = "attribute_not_exists(pk) OR n = :v") -> dict[str, Any]:
    return {"ConditionExpression": expression, "ExpressionAttributeValues": {":v": value}}


def update(value: Value) -> dict[str, Any]:
    return {
        "Key": {"pk": S},
        "UpdateExpression": "SET n = :v",
        "ExpressionAttributeValues": {":v": value},
    }


def enveloped(texts: tuple[str, ...]) -> list[str]:
    return [f"1 validation error detected: {text}" for text in texts]


def wrapped(texts: tuple[str, ...]) -> list[str]:
    return [f"ExpressionAttributeValues contains invalid value: {text} for key :v" for text in texts]


def transacted(action: str, **given: Any) -> dict[str, Any]:
    return {"TransactItems": [{action: {**T, **given}}]}


def shapes(value: Value) -> dict[str, tuple[str, dict[str, Any]]]:
    """Every place of a value, with its operation and the request."""
    other = {"ExpressionAttributeValues": {":o": {"N": "1"}}, "UpdateExpression": "SET n = :o"}
    query = {"KeyConditionExpression": "pk = :p", "FilterExpression": "n = :v"}
    return {
        "item of PutItem": ("PutItem", {"Item": {"pk": S, "n": value}}),
        "nested in PutItem": ("PutItem", {"Item": {"pk": S, "n": {"M": {"x": {"L": [value]}}}}}),
        "condition of PutItem": ("PutItem", {"Item": {"pk": S}, **values(value)}),
        "Expected of PutItem": ("PutItem", {"Item": {"pk": S}, "Expected": {"n": {"Value": value}}}),
        "value of UpdateItem": ("UpdateItem", update(value)),
        "AttributeUpdates": (
            "UpdateItem",
            {"Key": {"pk": S}, "AttributeUpdates": {"n": {"Action": "PUT", "Value": value}}},
        ),
        "key of UpdateItem": ("UpdateItem", {"Key": {"pk": value}, **other}),
        "condition of DeleteItem": ("DeleteItem", {"Key": {"pk": S}, **values(value, "n = :v")}),
        "key of DeleteItem": ("DeleteItem", {"Key": {"pk": value}}),
        "GetItem": ("GetItem", {"Key": {"pk": value}}),
        "BatchGetItem": ("BatchGetItem", {"RequestItems": {"orders": {"Keys": [{"pk": value}]}}}),
        "Query": ("Query", {**query, "ExpressionAttributeValues": {":p": S, ":v": value}}),
        "put of BatchWriteItem": (
            "BatchWriteItem",
            {"RequestItems": {"orders": [{"PutRequest": {"Item": {"pk": S, "n": value}}}]}},
        ),
        "delete of BatchWriteItem": (
            "BatchWriteItem",
            {"RequestItems": {"orders": [{"DeleteRequest": {"Key": {"pk": value}}}]}},
        ),
        "Put of a transaction": ("TransactWriteItems", transacted("Put", Item={"pk": S, "n": value})),
        "Delete of a transaction": ("TransactWriteItems", transacted("Delete", Key={"pk": value})),
        "TransactGetItems": ("TransactGetItems", transacted("Get", Key={"pk": value})),
        "Update of a transaction": ("TransactWriteItems", transacted("Update", **update(value))),
        "condition of a Put": ("TransactWriteItems", transacted("Put", Item={"pk": S}, **values(value))),
        "condition of a Delete": ("TransactWriteItems", transacted("Delete", Key={"pk": S}, **values(value))),
        "ConditionCheck": (
            "TransactWriteItems",
            transacted("ConditionCheck", Key={"pk": S}, **values(value)),
        ),
    }


def told(service, place: str, value: Value) -> str:
    operation, request = shapes(value)[place]
    code, text = service.error(operation, {**T, **request} if "Items" not in operation else request)
    assert code == "ValidationException"
    return text


PLACES = list(shapes(S))
SINGLE, BARE, BATCHED, WRAPPED = PLACES[:9], PLACES[9:12], PLACES[12:17], PLACES[17:]


@pytest.mark.parametrize("place", PLACES)
def test_numbers(service, place):
    service.table()
    found = [told(service, place, {"N": number}) for number in NUMBERS]
    expected = {"S": enveloped(NEWER), "B": list(NEWER), "O": list(OLDER), "W": wrapped(OLDER)}
    assert found == expected[layer(place)]


@pytest.mark.parametrize("place", PLACES)
def test_sets(service, place):
    service.table()
    found = [told(service, place, each) for each in SETS]
    expected = {
        "S": enveloped(NEWER_SETS),
        "B": list(NEWER_SETS),
        "O": list(OLDER_SETS),
        "W": wrapped(OLDER_SETS),
    }
    assert found == expected[layer(place)]


def layer(place: str) -> str:
    """Return the kind of text.

    S: with an envelope. B: without. O: older validation. W: older validation, with the name of the placeholder.
    """
    return next(
        name for name, places in zip("SBOW", (SINGLE, BARE, BATCHED, WRAPPED), strict=True) if place in places
    )
