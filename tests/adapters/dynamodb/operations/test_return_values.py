"""ReturnValues and ReturnValuesOnConditionCheckFailure: docs/protocols/dynamodb.md, rules 18 and 19.

The developer guide is tested in tests/source_documents, PartiQL in tests/adapters/dynamodb/features/partiql.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.dynamodb.client import DynamoDBService

KEY = {"pk": {"S": "1"}}
BEFORE = {**KEY, "a": {"N": "1"}, "m": {"M": {"x": {"N": "1"}, "y": {"N": "2"}}}, "gone": {"S": "g"}}
CHANGE = {
    "UpdateExpression": "SET m.x = :new, b = :new REMOVE gone",
    "ExpressionAttributeValues": {":new": {"N": "7"}},
}
AFTER = {**KEY, "a": {"N": "1"}, "m": {"M": {"x": {"N": "7"}, "y": {"N": "2"}}}, "b": {"N": "7"}}


@pytest.fixture
def orders(service: DynamoDBService) -> DynamoDBService:
    service.table()
    service.call("PutItem", {"TableName": "orders", "Item": BEFORE})
    return service


@pytest.mark.parametrize(
    ("mode", "shown"),
    [
        ("NONE", None),
        ("ALL_OLD", BEFORE),
        ("ALL_NEW", AFTER),
        ("UPDATED_OLD", {"m": {"M": {"x": {"N": "1"}}}, "gone": {"S": "g"}}),
        ("UPDATED_NEW", {"m": {"M": {"x": {"N": "7"}}}, "b": {"N": "7"}}),
    ],
)
def test_an_update_shows_whole_items_or_the_changed_leaves(
    orders: DynamoDBService, mode: str, shown: dict[str, Any] | None
) -> None:
    given = {"TableName": "orders", "Key": KEY, "ReturnValues": mode, **CHANGE}
    assert orders.call("UpdateItem", given).get("Attributes") == shown


@pytest.mark.parametrize(
    ("mode", "shown"),
    [("ALL_OLD", None), ("UPDATED_OLD", None), ("UPDATED_NEW", None), ("ALL_NEW", {"pk": {"S": "2"}})],
)
def test_an_update_without_changes_makes_an_item_of_its_key_alone(
    orders: DynamoDBService, mode: str, shown: dict[str, Any] | None
) -> None:
    key = {"pk": {"S": "2"}}
    answer = orders.call("UpdateItem", {"TableName": "orders", "Key": key, "ReturnValues": mode})
    assert answer.get("Attributes") == shown
    assert orders.call("GetItem", {"TableName": "orders", "Key": key})["Item"] == key


@pytest.mark.parametrize("operation", ["PutItem", "DeleteItem"])
@pytest.mark.parametrize(("mode", "shown"), [("NONE", None), ("ALL_OLD", BEFORE)])
def test_a_put_and_a_delete_show_the_item_before(
    orders: DynamoDBService, operation: str, mode: str, shown: dict[str, Any] | None
) -> None:
    member = {"PutItem": "Item", "DeleteItem": "Key"}[operation]
    given = {"TableName": "orders", member: KEY, "ReturnValues": mode}
    assert orders.call(operation, given).get("Attributes") == shown


@pytest.mark.parametrize("operation", ["PutItem", "DeleteItem"])
@pytest.mark.parametrize("mode", ["ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"])
def test_a_put_and_a_delete_take_no_other_mode(orders: DynamoDBService, operation: str, mode: str) -> None:
    member = {"PutItem": "Item", "DeleteItem": "Key"}[operation]
    given = {"TableName": "orders", member: KEY, "ReturnValues": mode}
    code, text = orders.error(operation, given)
    assert code == "ValidationException"
    assert text == "1 validation error detected: ReturnValues can only be ALL_OLD or NONE"


FAILING = {"ConditionExpression": "a = :no", "ExpressionAttributeValues": {":no": {"N": "2"}}}


@pytest.mark.parametrize("operation", ["PutItem", "UpdateItem", "DeleteItem"])
@pytest.mark.parametrize(
    ("key", "mode", "shown"), [("1", "ALL_OLD", BEFORE), ("1", "NONE", None), ("absent", "ALL_OLD", None)]
)
def test_a_failed_condition_comes_with_the_item_if_there_is_one(
    orders: DynamoDBService, operation: str, key: str, mode: str, shown: dict[str, Any] | None
) -> None:
    member = "Item" if operation == "PutItem" else "Key"
    given = {
        "TableName": "orders",
        member: {"pk": {"S": key}},
        "ReturnValuesOnConditionCheckFailure": mode,
        **FAILING,
    }
    answer = orders.call(operation, given)
    assert orders.last.status == 400
    assert answer["__type"].endswith("#ConditionalCheckFailedException")
    assert answer.get("Item") == shown


def test_in_a_transaction_each_action_asks_for_its_own_item(orders: DynamoDBService) -> None:
    check = {"TableName": "orders", "Key": KEY, **FAILING}
    asking = {**check, "Key": {"pk": {"S": "3"}}, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    other = {"pk": {"S": "3"}, "a": {"N": "3"}}
    orders.call("PutItem", {"TableName": "orders", "Item": other})
    answer = orders.call(
        "TransactWriteItems", {"TransactItems": [{"ConditionCheck": check}, {"Delete": asking}]}
    )
    assert [reason.get("Item") for reason in answer["CancellationReasons"]] == [None, other]
