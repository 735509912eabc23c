"""A request with mistakes gets the same answer on the fast paths and on the general ways, whether or not its table is there.

A request for a table that is absent shows in which order mistakes are looked for: those that are found without the table come
before ResourceNotFoundException.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.adapters.dynamodb.operation_table import OPERATIONS
from tablegate.adapters.dynamodb.validation import fast_validator
from tests.adapters.dynamodb.client import DynamoDBService
from tests.support.clock import Clock
from tests.support.examples import examples

VALUES = st.sampled_from(
    [{"S": "x"}, {"S": ""}, {"N": "1"}, {"N": "x"}, {"N": "1e200"}, {"SS": ["a", "a"]}, {"NULL": False}, {"X": 1}, {}]
)  # fmt: skip
TEXTS = st.lists(
    st.sampled_from(
        ["pk = :a", "sk > :b", "z = :a", "begins_with(#n, :b)", "size(z) = :a", "pk = pk", "a.b <> :b", ")"]
    ),
    min_size=1,
    max_size=4,
    unique=True,
).map(" AND ".join)
PATHS = st.sampled_from(["pk", "#n", "a.b[0]", "pk, pk", "a, a.b", "pk.x", "[1]", ""])
UPDATES = st.sampled_from(
    ["SET a = :a", "SET pk = :a", "SET a = :a, a = :b", "REMOVE #n", "ADD a :b", "DELETE a :a SET a = :b", "SET"]
)  # fmt: skip
ITEMS = st.dictionaries(st.sampled_from(["pk", "sk", "a", ""]), VALUES, max_size=3)
TABLES = st.sampled_from(["missing", "missing", "orders", "a", None])
LEGACY = st.dictionaries(
    st.sampled_from(["pk", "sk", "z", "w"]),
    st.fixed_dictionaries(
        {"ComparisonOperator": st.sampled_from(["EQ", "GT", "NE", "NULL", "BOGUS"])},
        optional={"AttributeValueList": st.lists(VALUES, max_size=2)},
    ),
    max_size=4,
)
COUNTS = st.sampled_from([1, 0, -1])
RETURNS = st.sampled_from(["NONE", "ALL_OLD", "UPDATED_NEW", "BOGUS"])
COMMON = {
    "ExpressionAttributeNames": st.sampled_from([{"#n": "n"}, {"#n": "pk", "#m": "m"}, {"n": "n"}, {}]),
    "ExpressionAttributeValues": st.dictionaries(st.sampled_from([":a", ":b", "c"]), VALUES, max_size=3),
    "ReturnConsumedCapacity": st.sampled_from(["TOTAL", "BOGUS"]),
}
READ = {
    **COMMON,
    "TableName": TABLES,
    "FilterExpression": TEXTS,
    "ProjectionExpression": PATHS,
    "AttributesToGet": st.lists(PATHS, max_size=2),
    "ConditionalOperator": st.sampled_from(["AND", "BOGUS"]),
    "IndexName": st.sampled_from(["index", "", "x"]),
    "Select": st.sampled_from(["COUNT", "SPECIFIC_ATTRIBUTES", "BOGUS"]),
    "Limit": COUNTS,
    "ExclusiveStartKey": ITEMS,
    "ConsistentRead": st.booleans(),
}
WRITE = {
    **COMMON,
    "TableName": TABLES,
    "ConditionExpression": TEXTS,
    "Expected": LEGACY,
    "ReturnValues": RETURNS,
    "ReturnValuesOnConditionCheckFailure": RETURNS,
}
GETS = {"TableName": TABLES, "Key": ITEMS, "ProjectionExpression": PATHS, **COMMON}
MEMBERS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "PutItem": {**WRITE, "Item": ITEMS},
    "DeleteItem": {**WRITE, "Key": ITEMS},
    "UpdateItem": {**WRITE, "Key": ITEMS, "UpdateExpression": UPDATES},
    "GetItem": {**GETS, "AttributesToGet": READ["AttributesToGet"]},
    "Query": {**READ, "KeyConditionExpression": TEXTS, "KeyConditions": LEGACY, "QueryFilter": LEGACY},
    "Scan": {**READ, "ScanFilter": LEGACY, "Segment": COUNTS, "TotalSegments": COUNTS},
    "BatchGetItem": {
        "RequestItems": st.dictionaries(
            TABLES.map(str), st.fixed_dictionaries({"Keys": st.lists(ITEMS, max_size=2)}, optional=GETS), max_size=2
        )
    },
    "BatchWriteItem": {
        "RequestItems": st.dictionaries(
            TABLES.map(str),
            st.lists(
                st.fixed_dictionaries(
                    {},
                    optional={
                        "PutRequest": st.fixed_dictionaries({"Item": ITEMS}),
                        "DeleteRequest": st.fixed_dictionaries({"Key": ITEMS}),
                    },
                ),
                max_size=2,
            ),
            max_size=2,
        )
    },
    "TransactGetItems": {
        "TransactItems": st.lists(
            st.fixed_dictionaries({}, optional={"Get": st.fixed_dictionaries({}, optional=GETS)}), max_size=2
        )
    },
    "TransactWriteItems": {
        "TransactItems": st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "Put": st.fixed_dictionaries({}, optional={**WRITE, "Item": ITEMS}),
                    "Update": st.fixed_dictionaries({}, optional={**WRITE, "Key": ITEMS, "UpdateExpression": UPDATES}),
                },
            ),
            max_size=2,
        )
    },
}  # fmt: skip
NEEDED = {
    "Query": ["TableName", "KeyConditionExpression"],
    "UpdateItem": ["TableName", "Key", "UpdateExpression"],
    "PutItem": ["TableName", "Item"],
    "DeleteItem": ["TableName", "Key"],
    "GetItem": ["TableName", "Key"],
    "Scan": ["TableName"],
}
PLACEHOLDERS = {
    "ExpressionAttributeNames": {"#n": "n"},
    "ExpressionAttributeValues": {":a": {"S": "x"}, ":b": {"S": "y"}},
}
GOOD_KEY = {"pk": {"S": "x"}, "sk": {"S": "y"}}


@st.composite
def bodies(draw: st.DrawFn, operation: str) -> dict[str, Any]:
    """A request with few mistakes: mostly up to three members beside the needed ones, and the placeholders that are used."""
    members = MEMBERS[operation]
    needed = NEEDED.get(operation, list(members))
    chosen = draw(st.lists(st.sampled_from(sorted(members)), max_size=3))
    body = {name: draw(members[name]) for name in dict.fromkeys([*needed, *chosen])}
    if draw(st.integers(0, 3)):
        body |= {name: GOOD_KEY for name in ("Key", "Item") if name in body}
        text = " ".join(value for name, value in body.items() if name.endswith("Expression"))
        for name, known in PLACEHOLDERS.items():
            used = {each: stands_for for each, stands_for in known.items() if each in text}
            body = {
                **{member: value for member, value in body.items() if member != name},
                **({name: used} if used else {}),
            }
    return body


@pytest.fixture(scope="module")
def dynamodb() -> Iterator[DynamoDBService]:
    """A service with the table `orders` with a pair of keys. `missing` is absent."""
    with DynamoDBService.opened(Clock()) as service:
        names = ("pk", "sk")
        service.table(
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in names],
            KeySchema=[
                {"AttributeName": name, "KeyType": kind}
                for name, kind in zip(names, ("HASH", "RANGE"), strict=True)
            ],
        )
        yield service


def answers(service: DynamoDBService, operation: str, body: Any) -> tuple[int, Any]:
    """The answer while `orders` is empty. A request without mistakes writes, and what was written last would show in the next."""
    for sort_key in ("x", "y"):  # the only keys that `bodies` makes without a mistake
        service.call("DeleteItem", {"TableName": "orders", "Key": {"pk": {"S": "x"}, "sk": {"S": sort_key}}})
    return service.call(operation, body), service.last.status


def answers_generally(service: DynamoDBService, operation: str, body: Any) -> tuple[int, Any]:
    """The answer without the fast paths that DynamoDB has in front of the engine."""
    general = replace(OPERATIONS[operation].check, fast_check=fast_validator.leave_to_full_validator)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(OPERATIONS[operation].__dict__, "check", general)
        return answers(service, operation, body)


@pytest.mark.parametrize("operation", sorted(MEMBERS))
def test_errors_have_equal_texts(dynamodb: DynamoDBService, operation: str) -> None:
    @examples(150)
    @given(bodies(operation))
    def run(body: Any) -> None:
        assert answers(dynamodb, operation, body) == answers_generally(dynamodb, operation, body)

    run()


@pytest.mark.parametrize("name", ["missing", "orders"])
def test_the_number_of_key_conditions(dynamodb: DynamoDBService, name: str) -> None:
    """The table is looked for before three conditions are refused."""
    body = {
        "TableName": name,
        "KeyConditionExpression": "pk = :a AND sk = :a AND z = :a",
        "ExpressionAttributeValues": {":a": {"S": "x"}},
    }
    found = answers(dynamodb, "Query", body)
    assert found == answers_generally(dynamodb, "Query", body)
    assert ("not found" in found[0]["message"]) is (name == "missing")
