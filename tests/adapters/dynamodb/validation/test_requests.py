"""Requests: what is refused and how (refusals.txt), what is let through and cleaned, limits on both sides."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tablegate.adapters.dynamodb.operation_table import OPERATIONS
from tablegate.adapters.dynamodb.validation import table_rules
from tablegate.adapters.dynamodb.validation.fast_validator import Rule
from tablegate.adapters.dynamodb.values.values import ParsedItem
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.errors import RuleContext, ServiceError
from tests.support.tables import each_row


def refusals() -> Iterator[tuple[str, Any, str]]:
    """(operation, body, error) of every block of refusals.txt."""
    lines = (Path(__file__).parent / "refusals.txt").read_text().splitlines()
    text = "\n".join(line for line in lines if not line.startswith("#"))
    for block in text.split("\n\n"):
        if block.strip():
            request, _, expected = block.strip().partition("\n----\n")
            operation, _, body = request.partition("\n")
            yield operation, json.loads(body), expected


def refusal(operation: str, body: Any) -> str:
    with pytest.raises(ServiceError) as caught:
        OPERATIONS[operation].check(body)
    return f"{caught.value.code}: {caught.value.message}"


@each_row("operation, body, expected", list(refusals()))
def test_the_service_says(operation: str, body: Any, expected: str) -> None:
    assert refusal(operation, body) == expected


def test_an_empty_number_is_reported_with_a_colon() -> None:
    """paritysuite valueLayers.test.ts (four regions, 2026-10-09). Here, because refusals.txt has no spaces at ends of lines."""
    text = "ValidationException: {}The parameter cannot be converted to a numeric value{}"
    item = {"a": {"S": "k"}, "n": {"M": {"x": {"L": [{"NS": ["1", ""]}]}}}}
    put = {"TableName": "abc", "Item": item}
    assert refusal("PutItem", put) == text.format("1 validation error detected: ", ": ")
    batch = {"RequestItems": {"abc": [{"PutRequest": {"Item": item}}]}}
    assert refusal("BatchWriteItem", batch) == text.format("", "")
    get = {"TableName": "abc", "Key": {"a": {"N": ""}}}
    assert refusal("GetItem", get) == text.format("", ": ")


@each_row(
    "rule, member",
    [
        (table_rules.create_table, "VectorIndexes"),
        (table_rules.create_table, "GlobalTableSettingsReplicationMode"),
        (table_rules.update_table, "VectorIndexUpdates"),
        (table_rules.update_table, "ReplicaUpdates"),
    ],
)
def test_members_of_an_absent_capability_are_refused(
    rule: Rule, member: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 47: a capability can be deleted. Its members must not seem to work then."""
    monkeypatch.setattr(table_rules, "EXTENSIONS", [])
    with pytest.raises(ServiceError, match=f"{member} is not supported by this gateway"):
        rule({"TableName": "abc", member: []}, RuleContext("UpdateTable"))


# Accepted requests


def test_nulls_and_unknown_members_are_dropped() -> None:
    body = {"TableName": "abc", "Key": {"a": {"S": "x", "N": None}}, "AttributesToGet": None, "Colour": "red"}
    assert OPERATIONS["GetItem"].check(body) == {"TableName": "abc", "Key": {"a": {"S": "x"}}}


def test_values_are_put_into_canonical_form() -> None:
    body = {"TableName": "abc", "Key": {"a": {"N": "1.50e1"}}}
    assert OPERATIONS["GetItem"].check(body)["Key"] == {"a": {"N": "15"}}


def test_items_of_puts_come_with_their_contents() -> None:
    item = {"a": {"S": "x"}, "n": {"N": "1e1"}}
    put = OPERATIONS["PutItem"].check({"TableName": "abc", "Item": dict(item)})
    with_null = OPERATIONS["PutItem"].check({"TableName": "abc", "Item": dict(item), "Expected": None})
    for found in (put["Item"], with_null["Item"]):
        assert isinstance(found, ParsedItem)
        assert found.contents.body == b'{"a":{"S":"x"},"n":{"N":"10"}}'


def test_fractions_of_integers_are_cut_off_and_texts_make_booleans() -> None:
    body = {"TableName": "abc", "Limit": 3.9, "ConsistentRead": "yes"}
    assert OPERATIONS["Scan"].check(body) == {"TableName": "abc", "Limit": 3, "ConsistentRead": True}


def test_a_table_may_be_named_by_its_arn() -> None:
    arn = "arn:aws:dynamodb:us-east-1:123456789012:table/orders"
    key = {"a": {"S": "x"}}
    assert OPERATIONS["GetItem"].check({"TableName": arn, "Key": key})["TableName"] == arn
    assert OPERATIONS["DescribeTable"].check({"TableName": arn})["TableName"] == arn
    assert arn in OPERATIONS["BatchGetItem"].check({"RequestItems": {arn: {"Keys": [key]}}})["RequestItems"]


def test_key_conditions_may_go_with_other_expressions() -> None:
    conditions = {"a": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "x"}]}}
    body = {"TableName": "abc", "KeyConditions": conditions, "FilterExpression": "b = c"}
    assert OPERATIONS["Query"].check(body) == body


# Limits


@pytest.mark.parametrize("length", [3, 255])
def test_table_names_of_item_operations_may_have(length: int) -> None:
    OPERATIONS["GetItem"].check({"TableName": "a" * length, "Key": {}})


@pytest.mark.parametrize("length", [0, 1, 2, 256])
def test_table_names_of_item_operations_may_not_have(length: int) -> None:
    assert "Member must have length" in refusal("GetItem", {"TableName": "a" * length, "Key": {}})


def table(**more: Any) -> dict[str, Any]:
    return {
        "TableName": "abc",
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in "ab"],
        "KeySchema": [{"AttributeName": "a", "KeyType": "HASH"}, {"AttributeName": "b", "KeyType": "RANGE"}],
        **more,
    }


def index(name: str, keys: str = "b", kinds: str = "H", **projection: Any) -> dict[str, Any]:
    types = {"H": "HASH", "R": "RANGE"}
    schema = [{"AttributeName": key, "KeyType": types[kind]} for key, kind in zip(keys, kinds, strict=True)]
    return {"IndexName": name, "KeySchema": schema, "Projection": projection or {"ProjectionType": "ALL"}}


@pytest.mark.parametrize("length", [3, 255])
def test_tables_may_be_created_with_names_of(length: int) -> None:
    OPERATIONS["CreateTable"].check(table(TableName="a" * length))


@pytest.mark.parametrize("length", [1, 2, 256])
def test_tables_may_not_be_created_with_names_of(length: int) -> None:
    assert "Member must have length" in refusal("CreateTable", table(TableName="a" * length))


def test_twenty_global_indexes_are_taken_and_twenty_one_are_not() -> None:
    indexes = [index(f"ind{number}") for number in range(21)]
    OPERATIONS["CreateTable"].check(table(GlobalSecondaryIndexes=indexes[:20]))
    assert "per-table limit of 20" in refusal("CreateTable", table(GlobalSecondaryIndexes=indexes))


def test_five_local_indexes_are_taken_and_six_are_not() -> None:
    indexes = [index(f"ind{number}", "ab", "HR") for number in range(6)]
    OPERATIONS["CreateTable"].check(table(LocalSecondaryIndexes=indexes[:5]))
    assert "per-table limit of 5" in refusal("CreateTable", table(LocalSecondaryIndexes=indexes))


def test_a_hundred_projected_names_are_taken_and_one_more_is_not() -> None:
    """Twenty of each index (ack-api-quirks 126, October 2026)."""

    def created(count: int) -> dict[str, Any]:
        names = [f"n{number}" for number in range(count)]
        parts = [names[at : at + 20] for at in range(0, count, 20)]
        return table(
            GlobalSecondaryIndexes=[
                index(f"ind{number}", ProjectionType="INCLUDE", NonKeyAttributes=part)
                for number, part in enumerate(parts)
            ]
        )

    OPERATIONS["CreateTable"].check(created(100))
    assert "Number of attributes to project exceeds the limit of 100" in refusal("CreateTable", created(101))


def multi_part(hashes: int, ranges: int) -> dict[str, Any]:
    names = "abcdefghijkl"[: hashes + ranges]
    definitions = [{"AttributeName": name, "AttributeType": "S"} for name in dict.fromkeys("ab" + names)]
    return table(
        AttributeDefinitions=definitions,
        GlobalSecondaryIndexes=[index("ind", names, "H" * hashes + "R" * ranges)],
    )


def test_global_index_keys_of_four_and_four_attributes_are_taken() -> None:
    OPERATIONS["CreateTable"].check(multi_part(4, 4))
    OPERATIONS["CreateTable"].check(multi_part(2, 0))


def test_global_index_keys_of_five_attributes_of_a_role_are_not() -> None:
    assert "maximum allowed number of HASH key attributes" in refusal("CreateTable", multi_part(5, 0))
    assert "maximum allowed number of RANGE key attributes" in refusal("CreateTable", multi_part(1, 5))
    assert "length less than or equal to 8" in refusal("CreateTable", multi_part(4, 5))


def test_twenty_five_writes_are_taken_and_twenty_six_are_not() -> None:
    writes = [{"DeleteRequest": {"Key": {"a": {"N": str(number)}}}} for number in range(26)]
    OPERATIONS["BatchWriteItem"].check({"RequestItems": {"abc": writes[:25]}})
    assert "less than or equal to 25" in refusal("BatchWriteItem", {"RequestItems": {"abc": writes}})
    spread = {"abc": writes[:20], "def": writes[:6]}
    assert "ValidationException" in refusal("BatchWriteItem", {"RequestItems": spread})


def test_a_hundred_keys_are_taken_and_one_more_is_not() -> None:
    keys = [{"a": {"N": str(number)}} for number in range(101)]
    OPERATIONS["BatchGetItem"].check({"RequestItems": {"abc": {"Keys": keys[:100]}}})
    assert refusal("BatchGetItem", {"RequestItems": {"abc": {"Keys": keys}}}) == (
        "ValidationException: 1 validation error detected: Value at 'RequestItems.abc.member.Keys' "
        "failed to satisfy constraint: Member must have length less than or equal to 100"
    )
    spread = {"abc": {"Keys": keys[:60]}, "def": {"Keys": keys[:41]}}
    assert "less than or equal to 100" in refusal("BatchGetItem", {"RequestItems": spread})


def test_a_hundred_actions_are_taken_and_one_more_is_not() -> None:
    actions = [{"Delete": {"TableName": "abc", "Key": {"a": {"N": str(number)}}}} for number in range(101)]
    OPERATIONS["TransactWriteItems"].check({"TransactItems": actions[:100]})
    assert "less than or equal to 100" in refusal("TransactWriteItems", {"TransactItems": actions})


def test_transactions_of_four_megabytes_are_taken_and_one_byte_more_is_not() -> None:
    """Only what the request itself carries counts (test_transact.py test_transact_write_items_delete_5MB)."""

    def written(size: int) -> dict[str, Any]:
        puts = []
        while size > 0:
            part = min(size, limits.ITEM_BYTES)
            puts.append({"Put": {"TableName": "abc", "Item": {"a": {"S": "x" * (part - 1)}}}})
            size -= part
        return {"TransactItems": puts}

    OPERATIONS["TransactWriteItems"].check(written(limits.TRANSACTION_BYTES))
    assert "size cannot exceed 4 MB" in refusal("TransactWriteItems", written(limits.TRANSACTION_BYTES + 1))


@pytest.mark.parametrize("operation", ["PutItem", "BatchWriteItem", "TransactWriteItems"])
def test_an_item_of_409600_bytes_is_taken_and_one_byte_more_is_not(operation: str) -> None:
    def request(size: int) -> dict[str, Any]:
        item = {"a": {"S": "x" * (size - 1)}}
        match operation:
            case "PutItem":
                return {"TableName": "abc", "Item": item}
            case "BatchWriteItem":
                return {"RequestItems": {"abc": [{"PutRequest": {"Item": item}}]}}
        return {"TransactItems": [{"Put": {"TableName": "abc", "Item": item}}]}

    OPERATIONS[operation].check(request(limits.ITEM_BYTES))
    assert "Item size has exceeded the maximum allowed size" in refusal(
        operation, request(limits.ITEM_BYTES + 1)
    )


def test_throughput_up_to_a_bound_is_taken_and_more_is_not() -> None:
    def created(units: int) -> dict[str, Any]:
        throughput = {"ReadCapacityUnits": units, "WriteCapacityUnits": 1}
        return table(BillingMode="PROVISIONED", ProvisionedThroughput=throughput)

    OPERATIONS["CreateTable"].check(created(limits.THROUGHPUT_UNITS))
    assert "Given value 1000000000001 for ReadCapacityUnits is out of bounds" in refusal(
        "CreateTable", created(limits.THROUGHPUT_UNITS + 1)
    )


def test_key_names_have_255_characters_at_most() -> None:
    def created(length: int) -> dict[str, Any]:
        name = "k" * length
        return table(
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"}],
            KeySchema=[{"AttributeName": name, "KeyType": "HASH"}],
        )

    OPERATIONS["CreateTable"].check(created(255))
    assert "length less than or equal to 255" in refusal("CreateTable", created(256))


@pytest.mark.parametrize(
    ("member", "mark", "value"),
    [("ExpressionAttributeNames", "#", "a"), ("ExpressionAttributeValues", ":", {"S": "a"})],
)
def test_placeholders_have_255_bytes_with_their_mark(member: str, mark: str, value: Any) -> None:
    """Developer guide, "Expression parameters": the maximum length of #name or :val is 255 bytes."""

    def scan(length: int) -> dict[str, Any]:
        return {"TableName": "abc", "FilterExpression": "a = b", member: {mark + "k" * (length - 1): value}}

    OPERATIONS["Scan"].check(scan(255))
    told = "The expression attribute map contains a key that is too long; size of key: 256"
    assert refusal("Scan", scan(256)) == f"ValidationException: {member} contains invalid key: {told}"


# Captures of the live service, October 2026: {"N": "1e2147483647"} is an underflow in the older validation of values.
HUGE = {"N": "1e2147483647"}
HUGE_UPDATE = {
    "TableName": "abc",
    "Key": {"pk": {"S": "x"}},
    "UpdateExpression": "SET a = :a",
    "ExpressionAttributeValues": {":a": HUGE},
}


@pytest.mark.parametrize(
    ("operation", "body", "told"),
    [
        ("BatchWriteItem", {"RequestItems": {"abc": [{"PutRequest": {"Item": {"a": HUGE}}}]}}, "underflow"),
        ("TransactWriteItems", {"TransactItems": [{"Update": HUGE_UPDATE}]}, "underflow"),
        (
            "TransactWriteItems",
            {"TransactItems": [{"Put": {"TableName": "abc", "Item": {"a": HUGE}}}]},
            "underflow",
        ),
        ("PutItem", {"TableName": "abc", "Item": {"a": HUGE}}, "overflow"),
        ("UpdateItem", HUGE_UPDATE, "overflow"),
    ],
)
def test_an_exponent_that_32_bits_do_not_hold(operation: str, body: dict[str, Any], told: str) -> None:
    with pytest.raises(ServiceError, match=f"Number {told}"):
        OPERATIONS[operation].check(body)
