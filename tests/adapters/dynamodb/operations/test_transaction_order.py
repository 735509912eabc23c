"""TransactWriteItems with two errors: actions are checked one by one, and the first error is reported.

Source: paritysuite validation-ordering/deepRequests.test.ts and transactions.test.ts, ten regions, 2026-10-09. The
texts of an ExpressionAttributeValue nested too deep are those of eight of the ten. No table exists, because these
checks precede the lookup.
"""

from __future__ import annotations

from typing import Any

import pytest

NEST = "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit"
NAMED = f"ExpressionAttributeValues contains invalid value: {NEST} for key :deep"
EMPTY = "Empty attribute name"
SYNTAX = 'Invalid ConditionExpression: Syntax error; token: "=", near: "= = b"'
UNUSED = "Value provided in ExpressionAttributeValues unused in expressions: keys: {:u}"
S = {"S": "x"}


def deep(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"S": "leaf"}
    for _ in range(levels):
        value = {"M": {"n": value}}
    return value


def put(condition: str = "", **item: Any) -> dict[str, Any]:
    more = {"ConditionExpression": condition} if condition else {}
    return {"Put": {"TableName": "absent", "Item": {"pk": S, **item}, **more}}


def delete(levels: int, **more: Any) -> dict[str, Any]:
    return {"Delete": {"TableName": "absent", "Key": {"pk": deep(levels)}, **more}}


def check(levels: int, by_key: bool = False) -> dict[str, Any]:
    if by_key:
        key, condition = {"pk": deep(levels)}, {"ConditionExpression": "attribute_exists(a)"}
    else:
        key, condition = {"pk": S}, {"ConditionExpression": "d = :deep"}
        condition["ExpressionAttributeValues"] = {":deep": deep(levels)}
    return {"ConditionCheck": {"TableName": "absent", "Key": key, **condition}}


def update(expression: str, **values: Any) -> dict[str, Any]:
    named = {f":{name}": value for name, value in values.items()}
    return {
        "Update": {
            "TableName": "absent",
            "Key": {"pk": S},
            "UpdateExpression": expression,
            "ExpressionAttributeValues": named,
        }
    }


EMPTY_NAME = put(**{"": S})
LONG = "a = :v" + " AND a = :v" * 373
LONG_UPDATE = "SET " + ", ".join(f"a{n} = :v" for n in range(500))
TOO_LONG = "Expression size has exceeded the maximum allowed size;"

CASES = {
    "deep item, then an empty name": ([put(d=deep(40)), EMPTY_NAME], NEST),
    "empty name, then a deep item": ([EMPTY_NAME, put(d=deep(100))], EMPTY),
    "empty name and depth in one item": ([put(**{"": S, "d": deep(100)})], EMPTY),
    "depth and empty name in one item": ([put(**{"d": deep(100), "": S})], EMPTY),
    "empty map key and depth in one item": ([put(m={"M": {"": S}}, d=deep(40))], NEST),
    "empty map key alone": ([put(m={"M": {"": S}}, d=deep(31))], EMPTY),
    "empty name, then a deep value": ([EMPTY_NAME, check(100)], EMPTY),
    "deep value, then an empty name": ([check(40), EMPTY_NAME], NAMED),
    "deep value of an update, then an empty name": (
        [update("SET d = :deep", deep=deep(40)), EMPTY_NAME],
        NAMED,
    ),
    "deep key, then a syntax error": ([delete(40), put("a = = b")], NEST),
    "deep key, then an unused value": ([check(40, True), update("SET a = :v", v=S, u=S)], NEST),
    "syntax error, then a deep key": ([put("a = = b"), delete(100)], SYNTAX),
    "syntax error and deep key in one action": ([delete(100, ConditionExpression="a = = b")], SYNTAX),
    "long condition and deep key in one action": (
        [delete(100, ConditionExpression=LONG, ExpressionAttributeValues={":v": S})],
        f"Invalid ConditionExpression: {TOO_LONG} expression size: 4109",
    ),
    "long update, then a deep key": (
        [update(LONG_UPDATE, v=S), check(100, True)],
        f"Invalid UpdateExpression: {TOO_LONG}",
    ),
    "unused value, then a deep key": ([update("SET a = :v", v=S, u=S), check(100, True)], UNUSED),
    "syntax error, then an empty name": ([put("a = = b"), EMPTY_NAME], SYNTAX),
    "syntax error, then an item that is too large": ([put("a = = b"), put(b={"S": "x" * 409_600})], SYNTAX),
    "item that is too large, then a syntax error": (
        [put(b={"S": "x" * 409_600}), put("a = = b")],
        "Item size has exceeded the maximum allowed size",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_first_error_is_reported(service, case):
    actions, text = CASES[case]
    assert service.error("TransactWriteItems", {"TransactItems": actions}) == ("ValidationException", text)
