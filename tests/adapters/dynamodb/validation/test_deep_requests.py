"""Requests with a value that is nested deep, and another mistake.

Source: paritysuite validation-ordering/deepRequests.test.ts, eu-west-2 and us-east-1, 2026-10-09. No table is there: all this
comes before it is looked up. Transactions: operations/test_transaction_order.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.dynamodb.operations.test_transaction_order import deep

ENUM = "failed to satisfy constraint: Member must satisfy enum value set"
OLDER_ENUM = (
    f"1 validation error detected: Value 'BOGUS' at 'returnValues' {ENUM}: "
    "[ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]"
)
NEWER_ENUM = (
    f"1 validation error detected: {ENUM.capitalize().replace('member', 'Member')}: "
    "[ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]"
)
OPERATOR = f"1 validation error detected: Value 'XOR' at 'conditionalOperator' {ENUM}: [OR, AND]"
ONLY = "ReturnValues can only be ALL_OLD or NONE"
KEY = {"pk": {"S": "a"}, "sk": {"S": "1"}}
UPDATES = {"x": {"Action": "PUT", "Value": {"S": "1"}}}


def condition(levels: int) -> dict[str, Any]:
    return {
        "Key": KEY,
        "ConditionExpression": "#d = :deep",
        "ExpressionAttributeNames": {"#d": "d"},
        "ExpressionAttributeValues": {":deep": deep(levels)},
    }


def expected(levels: int) -> dict[str, Any]:
    conditions = {"a": {"Value": deep(levels)}, "b": {"Exists": False}}
    return {"Expected": conditions, "ConditionalOperator": "XOR"}


@pytest.mark.parametrize(
    ("operation", "request_", "text"),
    [
        ("DeleteItem", {**condition(63), "ReturnValues": "BOGUS"}, OLDER_ENUM),
        (
            "DeleteItem",
            {"Key": KEY, "Expected": {"d": {"Value": deep(63)}}, "ReturnValues": "BOGUS"},
            OLDER_ENUM,
        ),
        ("DeleteItem", {"Key": {**KEY, "pk": deep(100)}, "ReturnValues": "BOGUS"}, OLDER_ENUM),
        ("DeleteItem", {**condition(100), "ReturnValues": "UPDATED_NEW"}, ONLY),
        ("DeleteItem", {**condition(40), "ReturnValues": "BOGUS"}, NEWER_ENUM),
        (
            "DeleteItem",
            {**condition(40), "ReturnValues": "UPDATED_NEW"},
            f"1 validation error detected: {ONLY}",
        ),
        ("PutItem", {"Item": KEY, **expected(100)}, OPERATOR),
        ("UpdateItem", {"Key": KEY, "AttributeUpdates": UPDATES, **expected(100)}, OPERATOR),
    ],
)
def test_errors_reported_beside_a_deep_value(service, operation, request_, text) -> None:
    assert service.error(operation, {"TableName": "absent", **request_}) == ("ValidationException", text)


def test_many_values_are_not_deep(service) -> None:
    many = {f"a{number}": {"L": []} for number in range(200)}
    given = {"TableName": "absent", "Item": {**KEY, **many}, "ReturnValues": "UPDATED_NEW"}
    assert service.error("PutItem", given) == ("ValidationException", f"1 validation error detected: {ONLY}")
