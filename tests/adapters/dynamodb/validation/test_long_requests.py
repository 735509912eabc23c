"""Long requests on both sides of each limit: no limit on cost rejects a request that the service accepts.

The limits of an item and of numbers are the service's (developer guide, quotas). Limits that limits.py marks as
tablegate's are not documented, and are wide.
"""

from __future__ import annotations

import gc
import itertools
import re
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.adapters.dynamodb.features.exports_imports.operations import _BUCKET
from tablegate.adapters.dynamodb.operation_table import OPERATIONS
from tablegate.adapters.dynamodb.values.scalars import InvalidValue, canonical_number
from tablegate.adapters.dynamodb.values.values import ParsedItem, item_of
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.errors import ServiceError
from tests.adapters.dynamodb.client import DynamoDBService

BAD_SIZE = "Item size has exceeded the maximum allowed size"


def refusal(operation: str, body: dict[str, Any]) -> str:
    OPERATIONS[operation].shorten(body)
    with pytest.raises(ServiceError) as caught:
        OPERATIONS[operation].check(body)
    return f"{caught.value.code}: {caught.value.message}"


def put(member: Any) -> dict[str, Any]:
    return {"TableName": "orders", "Item": {"pk": {"S": "1"}, "v": member}}


def small_texts(most_bytes: int) -> list[str]:
    """As many different texts as fit."""
    letters = [chr(code) for code in range(128)]
    found: list[str] = []
    for length in range(4):
        for parts in itertools.product(letters, repeat=length):
            most_bytes -= length
            if most_bytes < 0:
                return found
            found.append("".join(parts))
    return found


def test_the_set_of_most_members_that_an_item_holds_is_taken() -> None:
    texts = small_texts(limits.ITEM_BYTES - len("pk1v"))
    assert len(texts) > 140_000
    assert item_of(put({"SS": texts})["Item"]).size_bytes <= limits.ITEM_BYTES


@pytest.mark.parametrize(
    ("tag", "member", "text"),
    [
        ("SS", "1", "contains duplicates"),
        ("NS", "1", "contains duplicates"),
        ("BS", "AA==", "contains duplicates"),
        ("SS", None, "may not have a null string as a member"),
        ("NS", "x", "cannot be converted to a numeric value"),
    ],
)
def test_a_set_of_more_members_than_may_differ_is_too_large(tag: str, member: Any, text: str) -> None:
    assert text in refusal("PutItem", put({tag: [member] * limits.SET_MEMBERS}))
    assert BAD_SIZE in refusal("PutItem", put({tag: [member] * (limits.SET_MEMBERS + 1)}))


def test_errors_of_a_set_are_reported_in_order() -> None:
    for members, rule in (
        (["x", None], "not-a-number"),
        ([None, "x"], "null-in-number-set"),
        (["1", "1", "x"], "not-a-number"),
        (["1", "1.0"], "duplicate-numbers"),
    ):
        with pytest.raises(InvalidValue) as caught:
            item_of({"v": {"NS": members}})
        assert caught.value.rule == rule


def test_a_number_may_be_long_for_its_zeros() -> None:
    assert canonical_number("0" * (limits.MEASURED_BYTES - 1) + "7") == "7"
    with pytest.raises(InvalidValue, match=BAD_SIZE):
        canonical_number("0" * limits.MEASURED_BYTES + "7")


def test_a_wrong_type_is_reported_first_among_many_values() -> None:
    """Later ones are found as well, in their turn."""
    bad = {"N": "x"}
    for before, code in ((limits.TYPED_VALUES - 4, "Serialization"), (limits.TYPED_VALUES, "Validation")):
        members = [bad, *[{"S": ""}] * before, {"S": 1}]
        assert refusal("PutItem", put({"L": members})).startswith(code)
    members = [{"S": ""}] * (2 * limits.TYPED_VALUES)
    assert refusal("PutItem", put({"L": [*members, {"S": 1}]})).startswith("Serialization")
    assert isinstance(
        OPERATIONS["PutItem"].check(put({"L": [*members, {"S": None, "N": "1"}]}))["Item"], ParsedItem
    )


@pytest.mark.parametrize("spare", [0, 1])
@pytest.mark.parametrize(
    ("operation", "member", "most", "request_of"),
    [
        ("Scan", "ScanFilter", limits.LEGACY_VALUES, lambda n: {"a": one_of(n)}),
        ("Scan", "ScanFilter", limits.LEGACY_VALUES, lambda n: {"a": one_of(n - 3), "b": one_of(3)}),
        (
            "Scan",
            "ScanFilter",
            limits.LEGACY_CONDITIONS,
            lambda n: {f"a{i}": {"ComparisonOperator": "NULL"} for i in range(n)},
        ),
        (
            "DeleteItem",
            "Expected",
            limits.LEGACY_CONDITIONS,
            lambda n: {f"a{i}": {"Exists": False} for i in range(n)},
        ),
        (
            "UpdateItem",
            "AttributeUpdates",
            limits.LEGACY_CONDITIONS,
            lambda n: {f"a{i}": {"Action": "DELETE"} for i in range(n)},
        ),
    ],
)
def test_parameters_from_before_expressions(
    operation: str, member: str, most: int, request_of: Any, spare: int
) -> None:
    given = request_of(most + spare)
    body = {"TableName": "orders", member: given}
    if operation != "Scan":
        body["Key"] = {"pk": {"S": "1"}}
    if spare:
        told = refusal(operation, body)
        text = f"The expression contains too many operators; operator count: {most + 1}"
        assert told == f"ValidationException: {text}"
    else:
        OPERATIONS[operation].shorten(body)
        assert OPERATIONS[operation].check(body)[member] == request_of(most)


def one_of(count: int) -> dict[str, Any]:
    return {"ComparisonOperator": "IN", "AttributeValueList": [{"N": "1"}] * count}


def test_an_error_repeats_long_lists_whole_but_no_more_than_so_much() -> None:
    """The error lists all of 101 actions (nubo-db/dynamodb-conformance, transactGetItems.test.ts)."""
    gets = [{"Get": {"TableName": "orders", "Key": {"pk": {"S": f"tgi-{n}"}}}} for n in range(101)]
    told = refusal("TransactGetItems", {"TransactItems": gets})
    assert all(f"s=tgi-{n}," in told for n in range(101))
    assert "))]' at 'transactItems' failed" in told
    name = {"-": [{"DeleteRequest": {"Key": {"pk": {"S": str(n)}}}} for n in range(26)]}
    many = {f"-{n}": name["-"] for n in range(90)}
    assert len(refusal("BatchWriteItem", {"RequestItems": many})) < limits.ERROR_ECHO_CHARACTERS + 10_000


def test_the_collector_rests_only_while_a_large_body_is_read(service: DynamoDBService) -> None:
    service.table()
    large = {"TableName": "orders", "Item": {"pk": {"S": "1"}, "v": {"S": "x" * limits.LARGE_REQUEST_BYTES}}}
    for body in (large, {"TableName": "orders", "Item": {"pk": {"N": "x" * limits.LARGE_REQUEST_BYTES}}}):
        service.call("PutItem", body)
        assert gc.isenabled()
    gc.disable()
    try:
        service.call("PutItem", large)
        assert not gc.isenabled()
    finally:
        gc.enable()
    assert orjson.loads(service.last.body) == {}


# Regular expressions take linear time. With exponential ones, these tests would not end.

LONG = 100_000


@given(st.text(st.sampled_from("aZ0.-_!é\n"), max_size=8))
def test_the_applied_bucket_pattern_equals_the_documented_one(name: str) -> None:
    told, applied = (re.fullmatch(pattern, name) for pattern in (_BUCKET.pattern, _BUCKET.applied))
    assert (told is None) == (applied is None)


@pytest.mark.parametrize("more", [{}, {"TableArn": "arn:aws:dynamodb:us-east-1:000000000000:table/orders"}])
def test_a_long_name_of_a_bucket_is_refused(service: DynamoDBService, more: dict[str, str]) -> None:
    given = {"S3Bucket": "a" * LONG + "!", **more}
    code, text = service.error("ExportTableToPointInTime", given)
    assert code == "ValidationException" and f"regular expression pattern: {_BUCKET.pattern}" in text
