"""Findings of table.md."""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.dynamodb.measured.recorded import (
    CREATE,
    DETECTED,
    INVALID,
    NO_TABLE,
    OK,
    Case,
    answer,
    arn,
    check,
    each,
    in_use,
    not_found,
    tags,
    units,
)
from tests.adapters.dynamodb.measured.test_indexes import defined, index, keys

ORDERS = {"TableName": "orders"}
MAKE = {**CREATE, **ORDERS}
EXISTS = ("ResourceInUseException", "Table already exists: orders")
BEING_MADE = in_use("Table is being created: orders")
BEING_DROPPED = in_use("Table is being deleted: orders")
STREAM = {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}}
NUMBER_KEY = [{"AttributeName": "pk", "AttributeType": "N"}]
ERRONEOUS = {**MAKE, "KeySchema": keys("-pk")}


def status(service) -> str:
    shown: str = service.described()["TableStatus"]
    return shown


def names(service, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = service.call("ListTables", more)
    assert service.last.status == 200
    return found


def check_duplicates(service, recorded) -> None:
    check(service, "CreateTable", MAKE, recorded)
    check(service, "CreateTable", {**MAKE, "AttributeDefinitions": NUMBER_KEY}, recorded)
    provisioned = {"BillingMode": "PROVISIONED", "ProvisionedThroughput": units(1, 1)}
    check(service, "CreateTable", {**MAKE, **provisioned}, recorded)
    text = "Invalid KeySchema: The first KeySchemaElement is not a HASH key type"
    check(service, "CreateTable", ERRONEOUS, text)


def test_a_table_passes_each_state_of_its_life_table_001_table_005_table_006_table_008_table_010_table_387_table_394(
    delayed,
):
    assert delayed.table()["TableStatus"] == status(delayed) == "CREATING"
    for change in ({"DeletionProtectionEnabled": True}, STREAM):
        check(delayed, "UpdateTable", {**ORDERS, **change}, BEING_MADE)
    check(delayed, "DeleteTable", ORDERS, BEING_MADE)
    check_duplicates(delayed, BEING_MADE)
    delayed.clock.ms += 20_000
    assert status(delayed) == "ACTIVE"
    check_duplicates(delayed, EXISTS)
    delayed.update(**STREAM)
    assert status(delayed) == "UPDATING"
    check_duplicates(delayed, EXISTS)
    delayed.clock.ms += 20_000
    assert delayed.call("DeleteTable", ORDERS)["TableDescription"]["TableStatus"] == "DELETING"
    assert status(delayed) == "DELETING"
    check(delayed, "DeleteTable", ORDERS, BEING_DROPPED)
    check(delayed, "UpdateTable", {**ORDERS, "DeletionProtectionEnabled": True}, BEING_DROPPED)
    check_duplicates(delayed, EXISTS)
    delayed.clock.ms += 20_000
    check(delayed, "DescribeTable", ORDERS, not_found("Table: orders not found"))
    check(delayed, "DeleteTable", ORDERS, not_found("Table: orders not found"))


def test_a_name_is_listed_for_the_life_of_its_table_table_007_table_076(delayed):
    delayed.table()
    assert names(delayed)["TableNames"] == ["orders"]
    delayed.clock.ms += 20_000
    delayed.call("DeleteTable", ORDERS)
    assert names(delayed)["TableNames"] == ["orders"]
    delayed.clock.ms += 20_000
    check(delayed, "DescribeTable", ORDERS, not_found("Table: orders not found"))
    assert names(delayed)["TableNames"] == []


def test_a_name_is_free_once_its_table_is_gone_table_009_table_077(service):
    before = service.table()
    service.call("DeleteTable", ORDERS)
    check(service, "DescribeTable", ORDERS, not_found("Table: orders not found"))
    after = service.table()
    assert after["TableArn"] == before["TableArn"]
    assert after["TableId"] != before["TableId"]


def test_names_differ_by_case_table_010(service):
    service.table()
    check(service, "CreateTable", {**MAKE, "TableName": "ORDERS"}, OK)
    assert names(service)["TableNames"] == ["ORDERS", "orders"]


# Pages of names


def test_the_last_page_announces_no_other_table_012_table_181_table_400(service):
    listed = ["Alpha", "Zeta", "alpha", "alpha-2", "alpha.1", "alpha_3"]
    for name in listed:
        service.table(name)
    listed.sort(key=str.encode)
    after: dict[str, str] = {}
    for place, name in enumerate(listed, 1):
        page = names(service, Limit=1, **after)
        assert page["TableNames"] == [name]
        assert page.get("LastEvaluatedTableName") == (None if place == len(listed) else name)
        after = {"ExclusiveStartTableName": name}
    assert names(service, Limit=1, **after) == {"TableNames": []}
    assert names(service, Limit=len(listed)) == {"TableNames": listed}


def test_a_page_begins_after_any_name_table_379(service):
    for name in ("alpha", "gamma"):
        service.table(name)
    service.call("DeleteTable", {"TableName": "alpha"})
    for cursor in ("alpha", "beta"):
        assert names(service, ExclusiveStartTableName=cursor) == {"TableNames": ["gamma"]}
    assert names(service, ExclusiveStartTableName="zeta") == {"TableNames": []}


LISTED: list[Case] = [
    ("TABLE-379", "ListTables", {"ExclusiveStartTableName": "bad name!"}, f"{DETECTED}'bad name!' at 'exclusiveStartTable…"),
    ("TABLE-379", "ListTables", {"ExclusiveStartTableName": "ab"}, f"{DETECTED}'ab' at 'exclusiveStartTableName' failed…"),
    ("TABLE-072", "ListTables", {"ExclusiveStartTableName": arn("orders")}, f"{DETECTED}'{arn('orders')}' at 'exclusive…"),
    ("TABLE-072", "DescribeTable", {"TableName": arn("orders")}, OK),
    ("TABLE-072", "DescribeTable", {"TableName": arn("missing")}, NO_TABLE),
    ("TABLE-366", "CreateTable", {
        **CREATE,
        "AttributeDefinitions": defined("pk", "a"),
        "GlobalSecondaryIndexes": [
            index("gsi1", keys("a"), {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["b", "b"]})
        ],
    }, f"{INVALID}…"),
]  # fmt: skip


@each(LISTED)
def test_names(prepared, operation, request_, recorded):
    check(prepared, operation, request_, recorded)


def test_projected_keys_are_kept_table_366(service):
    projection = {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["a", "b", "pk"]}
    service.table(
        AttributeDefinitions=defined("pk", "a"), GlobalSecondaryIndexes=[index("gsi1", keys("a"), projection)]
    )
    assert service.described()["GlobalSecondaryIndexes"][0]["Projection"] == projection


# Tags


def tags_of(service, **more: Any) -> list[dict[str, str]]:
    found: list[dict[str, str]] = service.call("ListTagsOfResource", {"ResourceArn": arn("orders"), **more})[
        "Tags"
    ]
    return found


def test_a_wrong_token_of_tags_is_ignored_table_073(service):
    service.table(Tags=tags(a="1"))
    assert tags_of(service, NextToken="no such token") == tags(a="1")


def test_tags_while_a_table_changes_table_104(delayed):
    """For the first second of DELETING the service still lists tags."""
    delayed.table(BillingMode=None, ProvisionedThroughput=units(1, 1))
    delayed.clock.ms += 20_000
    delayed.update(ProvisionedThroughput=units(2, 2))
    tag = {"ResourceArn": arn("orders"), "Tags": tags(a="1")}
    untag = {"ResourceArn": arn("orders"), "TagKeys": ["b"]}
    check(delayed, "TagResource", tag, OK)
    check(delayed, "UntagResource", untag, OK)
    assert tags_of(delayed) == tags(a="1")
    delayed.clock.ms += 20_000
    delayed.call("DeleteTable", ORDERS)
    gone = not_found(f"ResourceArn: {arn('orders')} not found")
    for seconds in (0, 20):
        delayed.clock.ms += seconds * 1000
        check(delayed, "TagResource", tag, gone)
        check(delayed, "UntagResource", untag, gone)
        check(delayed, "ListTagsOfResource", {"ResourceArn": arn("orders")}, gone)


FIFTY = [{"Key": f"k{n:02}", "Value": "v"} for n in range(50)]


@pytest.mark.parametrize(
    ("given", "recorded"),
    [
        ([{"Key": "aws:foo", "Value": "v"}], "Tag Key cannot be prefixed with aws:, Key: aws:foo"),
        ([{"Key": "x" * 129, "Value": "v"}], f"The Tag Key provided is invalid, Key: {'x' * 20}…"),
        ([*FIFTY, {"Key": "k50", "Value": "v"}], "Number of Tags exceed the current limit for the provided ResourceArn"),
        ([*tags(a="1"), *tags(a="2")], "…"),
        (tags(**{"#": "1"}), "…"),
        ([], OK),
        (FIFTY, OK),
    ],
)  # fmt: skip
def test_tags_of_a_new_table_table_110(service, given, recorded):
    check(service, "CreateTable", {**MAKE, "Tags": given}, recorded or OK)
    if recorded == OK:
        assert tags_of(service) == given
    else:
        check(service, "DescribeTable", ORDERS, not_found("Table: orders not found"))


def test_tags_that_change_nothing_table_441(service):
    service.table(Tags=tags(a="1"))
    for _ in range(20):
        assert answer(service, "TagResource", {"ResourceArn": arn("orders"), "Tags": tags(a="1")}) == ("", "")
        assert answer(service, "UntagResource", {"ResourceArn": arn("orders"), "TagKeys": ["b"]}) == ("", "")
    assert tags_of(service) == tags(a="1")


def test_the_limits_of_an_account_table_131(service):
    assert service.call("DescribeLimits", {}) == {
        "AccountMaxReadCapacityUnits": 80_000,
        "AccountMaxWriteCapacityUnits": 80_000,
        "TableMaxReadCapacityUnits": 40_000,
        "TableMaxWriteCapacityUnits": 40_000,
    }
