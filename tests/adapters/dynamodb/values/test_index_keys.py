"""Key attributes of items, parameters and indexes in writes: permitted values, and the texts of refusals.

Texts: dynoxide's captures (eu-west-2, 2026) and dynalite putItem.js, updateItem.js, batchWriteItem.js (recorded). See
docs/protocols/dynamodb.md rules 11, 23, 36, 37.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.dynamodb.client import DynamoDBService

EMPTY = "The AttributeValue for a key attribute cannot contain an empty {} value."
MISMATCH = "One or more parameter values were invalid: Type mismatch for Index Key {} Expected: S Actual: {} IndexName: {}"
UPDATED_TO = (
    "One or more parameter values are not valid. The update expression attempted to update a secondary index key to a "
    "value that is not supported. " + EMPTY
)
KEY = {"pk": {"S": "k"}}


def index(name: str, key: str) -> dict[str, Any]:
    return {
        "IndexName": name,
        "KeySchema": [{"AttributeName": key, "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
    }


def definitions(**types: str) -> list[dict[str, str]]:
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in types.items()]


@pytest.fixture
def orders(service: DynamoDBService) -> DynamoDBService:
    """The service with `orders`: key pk, indexes on g (S) and b (B), the first by name made last."""
    service.table(
        AttributeDefinitions=definitions(pk="S", g="S", b="B"),
        GlobalSecondaryIndexes=[index("on-g", "g"), index("on-b", "b"), index("another-on-g", "g")],
    )
    return service


def update(service: DynamoDBService, expression: str, **values: Any) -> tuple[str, str]:
    """Return the answer to an update of the item KEY."""
    given: dict[str, Any] = {"TableName": "orders", "Key": KEY, "UpdateExpression": expression}
    if values:
        given["ExpressionAttributeValues"] = {f":{name}": value for name, value in values.items()}
    return service.error("UpdateItem", given)


def invalid(text: str) -> tuple[str, str]:
    return "ValidationException", text


# Items


@pytest.mark.parametrize(
    ("value", "tag"), [({"N": "5"}, "N"), ({"L": []}, "L"), ({"SS": ["a"]}, "SS"), ({"NULL": True}, "NULL")]
)
def test_an_item_with_an_index_key_of_another_type_names_the_first_such_index(orders, value, tag):
    given = {"TableName": "orders", "Item": {**KEY, "g": value}}
    assert orders.error("PutItem", given) == invalid(MISMATCH.format("g", tag, "another-on-g"))


@pytest.mark.parametrize(("name", "value", "what"), [("g", {"S": ""}, "string"), ("b", {"B": ""}, "binary")])
def test_an_item_with_an_empty_index_key_names_index_and_key(orders, name, value, what):
    head = "One or more parameter values are not valid. A value specified for a secondary index key is not supported. "
    where = f" IndexName: {'another-on-g' if name == 'g' else 'on-b'}, IndexKey: {name}"
    given = {"TableName": "orders", "Item": {**KEY, name: value}}
    assert orders.error("PutItem", given) == invalid(head + EMPTY.format(what) + where)


def test_a_batch_reports_keys_of_items_as_parameters(orders):
    for item in ({}, {"g": {"S": "x"}}, {"pk": {"N": "1"}}):
        given = {"RequestItems": {"orders": [{"PutRequest": {"Item": item}}]}}
        assert orders.error("BatchWriteItem", given) == invalid(
            "The provided key element does not match the schema"
        )


# Updates


def test_an_update_cannot_give_an_index_key_another_type(orders):
    assert update(orders, "SET g = :v", v={"N": "5"}) == invalid(MISMATCH.format("g", "N", "another-on-g"))
    assert update(orders, "ADD g :v", v={"N": "5"}) == invalid(MISMATCH.format("g", "N", "another-on-g"))
    assert update(orders, "SET g = x + :v", v={"N": "5"}) == invalid(
        MISMATCH.format("g", "N", "another-on-g")
    )
    assert update(orders, "SET g = list_append(x, :v)", v={"L": []}) == invalid(
        MISMATCH.format("g", "L", "another-on-g")
    )
    legacy = {"TableName": "orders", "Key": KEY, "AttributeUpdates": {"g": {"Value": {"N": "5"}}}}
    assert orders.error("UpdateItem", legacy) == invalid(MISMATCH.format("g", "N", "another-on-g"))


def test_index_key_errors_that_depend_on_the_item_have_another_text(orders):
    orders.call("PutItem", {"TableName": "orders", "Item": {**KEY, "x": {"N": "1"}}})
    told = invalid("The update expression attempted to update the secondary index key to unsupported type")
    assert update(orders, "SET g = x") == told
    assert update(orders, "SET g = if_not_exists(y, x)") == told


@pytest.mark.parametrize(("name", "value", "what"), [("g", {"S": ""}, "string"), ("b", {"B": ""}, "binary")])
def test_an_update_cannot_empty_an_index_key(orders, name, value, what):
    assert update(orders, f"SET {name} = :v", v=value) == invalid(UPDATED_TO.format(what))
    orders.call("PutItem", {"TableName": "orders", "Item": {**KEY, "x": value}})
    assert update(orders, f"SET {name} = x") == invalid(UPDATED_TO.format(what))


def test_an_update_may_take_an_index_key_away(orders):
    orders.call("PutItem", {"TableName": "orders", "Item": {**KEY, "g": {"S": "x"}}})
    orders.call("UpdateItem", {"TableName": "orders", "Key": KEY, "UpdateExpression": "REMOVE g"})
    assert orders.last.status == 200


VIOLATIONS = {
    "number": ({"N": "5"}, "unsupported type"),
    "map": ({"M": {}}, "unsupported type"),
    "null": ({"NULL": True}, "unsupported type"),
    "empty": ({"S": ""}, "cannot contain an empty string value"),
    "long": ({"S": "x" * 2049}, "beyond allowed size limits"),
}
SET = {"UpdateExpression": "SET x = :v", "ExpressionAttributeValues": {":v": {"S": "x"}}}
ON_ITEM = {"TableName": "orders", "Key": KEY}
STATEMENT = {"Statement": "UPDATE orders SET x = 'x' WHERE pk = 'k'"}
WRITES = {
    "expression": ("UpdateItem", {**ON_ITEM, **SET}),
    "same value": ("UpdateItem", {**ON_ITEM, "UpdateExpression": "SET g = g"}),
    "other attribute removed": ("UpdateItem", {**ON_ITEM, "UpdateExpression": "REMOVE x"}),
    "no expression": ("UpdateItem", ON_ITEM),
    "legacy": ("UpdateItem", {**ON_ITEM, "AttributeUpdates": {"x": {"Value": {"S": "x"}, "Action": "PUT"}}}),
    "transaction": ("TransactWriteItems", {"TransactItems": [{"Update": {**ON_ITEM, **SET}}]}),
    "statement": ("ExecuteStatement", STATEMENT),
    "batch of statements": ("BatchExecuteStatement", {"Statements": [STATEMENT]}),
    "transaction of statements": ("ExecuteTransaction", {"TransactStatements": [STATEMENT]}),
}


def added_later(service: DynamoDBService, value: dict[str, Any], *keys: str, pk: str = "k") -> None:
    """Put an item with the value as g, then add an index on keys."""
    service.table()
    service.call("PutItem", {"TableName": "orders", "Item": {"pk": {"S": pk}, "g": value}})
    later = index("on-g", keys[0])
    later["KeySchema"] += [{"AttributeName": key, "KeyType": "RANGE"} for key in keys[1:]]
    service.update(
        AttributeDefinitions=definitions(**dict.fromkeys({"pk", *keys}, "S")),
        GlobalSecondaryIndexUpdates=[{"Create": later}],
    )


@pytest.mark.parametrize("violation", VIOLATIONS)
@pytest.mark.parametrize("write", WRITES)
def test_updates_that_leave_a_violation_of_a_later_index_are_refused(service, write, violation):
    """Developer guide, GSI.OnlineOps.ViolationDetection: all writes to items that violate an index are rejected.

    DynamoDB Local 2.6.1 refuses each of these, too. Texts: those of updates, as Local has for an empty value.
    """
    value, text = VIOLATIONS[violation]
    added_later(service, value, "g")
    operation, body = WRITES[write]
    answer = service.call(operation, body)
    assert text in str(answer)
    assert "Validation" in str(answer)
    [item] = service.call("Scan", {"TableName": "orders"})["Items"]
    assert item == {**KEY, "g": value}


@pytest.mark.parametrize(
    ("pk", "value", "keys"), [("k", "x" * 1025, ("pk", "g")), ("k" * 1025, "x", ("g", "pk"))]
)
def test_sort_key_of_a_later_index_has_its_own_limit(service, pk, value, keys):
    """Developer guide, GSI.OnlineOps.ViolationDetection: 1024 bytes. The table's key can violate it, too."""
    added_later(service, {"S": value}, *keys, pk=pk)
    code, text = service.error("UpdateItem", {**ON_ITEM, "Key": {"pk": {"S": pk}}, **SET})
    assert (code, "beyond allowed size limits" in text) == ("ValidationException", True)


@pytest.mark.parametrize(
    ("value", "keys"),
    [
        ("x", ("g",)),
        ("ü" * 1024, ("g",)),
        ("\U0001f600" * 512, ("g",)),
        ("x" * 1024, ("pk", "g")),
        ("\U0001f600" * 256, ("pk", "g")),
    ],
)
def test_valid_keys_of_a_later_index_can_be_updated(service, value, keys):
    """Limits are 2048 bytes of UTF-8 for HASH, and 1024 for RANGE. One byte more is refused."""
    added_later(service, {"S": value}, *keys)
    service.call("UpdateItem", {**ON_ITEM, **SET})
    assert service.last.status == 200
    longer = {**ON_ITEM, "UpdateExpression": "SET g = x", "ReturnValues": "NONE"}
    if len(value) > 1:
        service.call("DeleteItem", ON_ITEM)
        service.call("PutItem", {"TableName": "orders", "Item": {**KEY, "x": {"S": value + "x"}}})
        assert "beyond allowed size limits" in service.error("UpdateItem", longer)[1]


def test_condition_precedes_violations_of_a_later_index(service):
    """DynamoDB Local 2.6.1."""
    added_later(service, {"N": "5"}, "g")
    body = {**ON_ITEM, **SET, "ConditionExpression": "attribute_exists(x)"}
    assert service.error("UpdateItem", body)[0] == "ConditionalCheckFailedException"


@pytest.mark.parametrize("violation", VIOLATIONS)
@pytest.mark.parametrize(
    ("operation", "body"),
    [
        ("UpdateItem", {**ON_ITEM, "UpdateExpression": "REMOVE g"}),
        ("UpdateItem", {**ON_ITEM, "AttributeUpdates": {"g": {"Action": "DELETE"}}}),
        (
            "UpdateItem",
            {**ON_ITEM, "UpdateExpression": "SET g = :v", "ExpressionAttributeValues": {":v": {"S": "x"}}},
        ),
        ("PutItem", {"TableName": "orders", "Item": KEY}),
        ("BatchWriteItem", {"RequestItems": {"orders": [{"PutRequest": {"Item": KEY}}]}}),
        ("ExecuteStatement", {"Statement": "UPDATE orders REMOVE g WHERE pk = 'k'"}),
        ("DeleteItem", ON_ITEM),
        ("TransactWriteItems", {"TransactItems": [{"Delete": ON_ITEM}]}),
    ],
)
def test_writes_that_end_a_violation_of_a_later_index_are_accepted(service, operation, body, violation):
    """Developer guide, GSI.OnlineOps.ViolationDetection."""
    added_later(service, VIOLATIONS[violation][0], "g")
    service.call(operation, body)
    assert service.last.status == 200


def test_types_of_index_keys_come_after_the_table_key_and_before_paths_into_keys(orders):
    told = invalid(
        "One or more parameter values were invalid: Cannot update attribute pk. This attribute is part of the key"
    )
    assert update(orders, "SET pk = :v, g = :v", v={"N": "1"}) == told
    assert update(orders, "SET x = b.y, g = :v", v={"N": "1"}) == invalid(
        MISMATCH.format("g", "N", "another-on-g")
    )
    assert "not allowed: IndexKey: b" in update(orders, "SET x = b.y")[1]


def test_in_a_transaction_a_wrong_type_is_a_reason_and_an_empty_value_an_error(orders):
    def action(value: dict[str, Any]) -> dict[str, Any]:
        given = {"TableName": "orders", "Key": KEY, "UpdateExpression": "SET g = :v"}
        return {"TransactItems": [{"Update": {**given, "ExpressionAttributeValues": {":v": value}}}]}

    answer = orders.call("TransactWriteItems", action({"N": "5"}))
    assert answer["CancellationReasons"] == [
        {"Code": "ValidationError", "Message": MISMATCH.format("g", "N", "another-on-g")}
    ]
    assert orders.error("TransactWriteItems", action({"S": ""})) == invalid(UPDATED_TO.format("string"))


# Key parameters

ON_KEYS = {
    "GetItem": lambda key: {"TableName": "orders", "Key": key},
    "DeleteItem": lambda key: {"TableName": "orders", "Key": key},
    "UpdateItem": lambda key: {"TableName": "orders", "Key": key},
    "BatchGetItem": lambda key: {"RequestItems": {"orders": {"Keys": [key]}}},
    "TransactGetItems": lambda key: {"TransactItems": [{"Get": {"TableName": "orders", "Key": key}}]},
}


@pytest.mark.parametrize("operation", ON_KEYS)
def test_an_empty_key_is_refused(service, operation):
    service.table(BillingMode=None, ProvisionedThroughput={"ReadCapacityUnits": 1, "WriteCapacityUnits": 1})
    told = "One or more parameter values are not valid. " + EMPTY.format("string") + " Key: pk"
    assert service.error(operation, ON_KEYS[operation]({"pk": {"S": ""}})) == invalid(told)
