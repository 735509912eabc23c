"""api-quirks/service.md: errors and tags of all resources."""

from __future__ import annotations

import uuid

import pytest

from tests.adapters.dynamodb.measured.recorded import (
    CREATE,
    DETECTED,
    ENABLE,
    GONE,
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
)

NO_ARN = not_found(f"ResourceArn: {arn('missing')} not found")
NO_BACKED_UP = ("TableNotFoundException", "Table not found: missing")
NO_GROUP = ("ResourceNotFoundException", "Global table with name: 'missing' does not exist.")
TTL = {"TimeToLiveSpecification": {"Enabled": True, "AttributeName": "ttl"}}
RECOVERY = {"PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}}

# Missing tables

MISSING_TABLES: list[Case] = [
    ("TABLE-070", "DescribeTable", GONE, NO_TABLE),
    ("TABLE-070", "UpdateTable", {**GONE, "DeletionProtectionEnabled": True}, NO_TABLE),
    ("TABLE-070", "DeleteTable", GONE, NO_TABLE),
    ("TABLE-070", "DescribeTimeToLive", GONE, NO_TABLE),
    ("TABLE-070", "UpdateTimeToLive", {**GONE, **TTL}, NO_TABLE),
    ("TABLE-070", "DescribeContributorInsights", GONE, NO_TABLE),
    ("TABLE-070", "DescribeKinesisStreamingDestination", GONE, NO_TABLE),
    ("TABLE-070", "TagResource", {"ResourceArn": arn("missing"), "Tags": tags(a="b")}, NO_ARN),
    ("TABLE-070", "UntagResource", {"ResourceArn": arn("missing"), "TagKeys": ["a"]}, NO_ARN),
    ("TABLE-070", "ListTagsOfResource", {"ResourceArn": arn("missing")}, NO_ARN),
    ("TABLE-074", "DescribeContinuousBackups", GONE, NO_BACKED_UP),
    ("TABLE-074", "CreateBackup", {**GONE, "BackupName": "bkp"}, NO_BACKED_UP),
    ("TABLE-098", "UpdateContinuousBackups", {**GONE, **RECOVERY}, NO_BACKED_UP),
    ("TABLE-098", "UpdateContributorInsights", {**GONE, **ENABLE}, NO_TABLE),
    ("TABLE-098", "ListContributorInsights", GONE, NO_TABLE),
    ("TABLE-098", "DescribeTableReplicaAutoScaling", GONE, NO_GROUP),
    (
        "TABLE-098",
        "RestoreTableToPointInTime",
        {"SourceTableName": "missing", "TargetTableName": "target", "UseLatestRestorableTime": True},
        NO_BACKED_UP,
    ),
    ("TABLE-098", "ListBackups", GONE, OK),
    (
        "TABLE-070",
        "UpdateTable",
        {**GONE, "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 0}},
        (
            f"{DETECTED}'0' at 'provisionedThroughput.writeCapacityUnits' failed to satisfy constraint: "
            "Member must have value greater than or equal to 1"
        ),
    ),
]


@each(MISSING_TABLES)
def test_a_missing_table_has_the_recorded_error(service, operation, request_, recorded):
    check(service, operation, request_, recorded)


def test_errors_name_the_missing_resource_table_446(prepared):
    ghost = {"GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "ghost"}}]}
    check(
        prepared, "UpdateTable", {"TableName": "orders", **ghost}, not_found("Index ghost for table orders")
    )
    insights = {"TableName": "orders", "IndexName": "ghost"}
    check(
        prepared,
        "DescribeContributorInsights",
        insights,
        not_found("Index: ghost not found for table: orders"),
    )
    key = {"pk": {"S": "a"}}
    check(
        prepared,
        "GetItem",
        {**GONE, "Key": key},
        ("ResourceNotFoundException", "Requested resource not found"),
    )


def test_backups_echo_how_the_table_was_named_table_447(service):
    restore = {"TargetTableName": "target", "UseLatestRestorableTime": True}
    bare = ("TableNotFoundException", "Table not found")
    named = ("TableNotFoundException", "Table not found: missing")
    check(service, "RestoreTableToPointInTime", {"SourceTableArn": arn("missing"), **restore}, bare, named)


# Identities


def test_a_table_may_be_named_by_its_arn_table_011(separate):
    table = arn("orders")
    for operation in (
        "DescribeTable",
        "DescribeTimeToLive",
        "DescribeContinuousBackups",
        "DescribeContributorInsights",
        "DescribeKinesisStreamingDestination",
    ):
        check(separate, operation, {"TableName": table}, OK)
    assert separate.described(table)["TableName"] == "orders"
    check(separate, "PutItem", {"TableName": table, "Item": {"pk": {"S": "a"}}}, OK)
    elsewhere = arn("orders", region="us-west-2")
    check(
        separate,
        "DescribeTable",
        {"TableName": elsewhere},
        f"1 validation error detected: Invalid AWS region in '{elsewhere}'",
    )
    other = arn("orders", account="111122223333")
    check(separate, "DescribeTable", {"TableName": other}, ("AccessDeniedException", "Access is denied"))
    for part in ("index/gsi1", "stream/2026-10-08T00:00:00.000"):
        assert (
            answer(separate, "DescribeTable", {"TableName": arn(f"orders/{part}")})[0]
            == "ValidationException"
        )
    table_id = separate.described()["TableId"]
    check(separate, "DescribeTable", {"TableName": table_id}, not_found(f"Table: {table_id} not found"))
    check(separate, "DeleteTable", {"TableName": table}, OK)


NAMED_BY: list[Case] = [
    (
        "TABLE-071",
        "ListTagsOfResource",
        {"ResourceArn": "not-an-arn"},
        f"{INVALID}ARNs must start with 'arn:': not-an-arn",
    ),
    (
        "TABLE-071",
        "ListTagsOfResource",
        {"ResourceArn": "orders"},
        f"{INVALID}ARNs must start with 'arn:': orders",
    ),
    (
        "TABLE-071",
        "TagResource",
        {"ResourceArn": "orders", "Tags": tags(a="b")},
        f"{INVALID}ARNs must start with 'arn:': orders",
    ),
    (
        "TABLE-071",
        "ListTagsOfResource",
        {"ResourceArn": arn("orders", account="111122223333")},
        ("AccessDeniedException", "Access is denied"),
    ),
    (
        "TABLE-071",
        "ListTagsOfResource",
        {"ResourceArn": arn("orders", region="us-west-2")},
        f"Invalid TableArn: Invalid ResourceArn provided as input {arn('orders', region='us-west-2')}",
    ),
    (
        "TABLE-071",
        "ListTagsOfResource",
        {"ResourceArn": arn("orders/stream/2026-10-08T00:00:00.000")},
        not_found(f"ResourceArn: {arn('orders/stream/2026-10-08T00:00:00.000')} not found"),
    ),
    (
        "TABLE-071",
        "ListTagsOfResource",
        {"ResourceArn": arn("ORDERS")},
        not_found(f"ResourceArn: {arn('ORDERS')} not found"),
    ),
]


@each(NAMED_BY)
def test_resources_of_tags(separate, operation, request_, recorded):
    check(separate, operation, request_, recorded)


@pytest.mark.parametrize("operation", ["TagResource", "UntagResource", "ListTagsOfResource"])
def test_backups_and_indexes_have_no_tags_backup_013_table_136(prepared, operation):
    more = {"TagResource": {"Tags": tags(a="b")}, "UntagResource": {"TagKeys": ["a"]}}.get(operation, {})
    backup = prepared.call("CreateBackup", {"TableName": "orders", "BackupName": "bkp"})["BackupDetails"][
        "BackupArn"
    ]
    text = f"{INVALID}Provided Arn is not a DynamoDB resource arn: {backup}"
    check(prepared, operation, {"ResourceArn": backup, **more}, text)
    index = arn("orders/index/gsi1")
    text = f"{INVALID}Invalid resource arn provided, only table or stream is accepted. Provided resource arn: {index}"
    check(prepared, operation, {"ResourceArn": index, **more}, text)


def test_a_table_made_anew_has_another_id_table_013(service):
    first = service.table()
    service.call("DeleteTable", {"TableName": "orders"})
    second = service.table()
    assert first["TableArn"] == second["TableArn"] == arn("orders")
    assert first["TableId"] != second["TableId"]
    assert str(uuid.UUID(second["TableId"])) == second["TableId"]


NAMES: list[Case] = [
    ("TABLE-041", "CreateTable", {**CREATE, "TableName": "ORDERS"}, OK),
    ("TABLE-041", "DescribeTable", {"TableName": "Orders"}, not_found("Table: Orders not found")),
    (
        "TABLE-041",
        "CreateTable",
        {**CREATE, "TableName": "ab"},
        f"{DETECTED}'ab' at 'tableName' failed to satisfy constraint: Member must have length greater than or equal to 3",
    ),
    (
        "TABLE-041",
        "CreateTable",
        {**CREATE, "TableName": "a b c"},
        (
            f"{DETECTED}'a b c' at 'tableName' failed to satisfy constraint: "
            "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"
        ),
    ),
]


@each(NAMES)
def test_names_of_tables(prepared, operation, request_, recorded):
    check(prepared, operation, request_, recorded)


# Tags

TOO_MANY = "Number of Tags exceed the current limit for the provided ResourceArn"
KEY = "The Tag Key provided is invalid, Key: "
VALUE = "The Tag Value provided is invalid, Value: "
RESERVED = "Tag Key cannot be prefixed with aws:, Key: "
NO_TAG = "Atleast one Tag needs to be provided as Input."
NO_KEY = "Atleast one Tag Key needs to be provided as Input."

ADDED: list[tuple[str, list[dict[str, str]], str]] = [
    ("TABLE-107", tags(**{"k" * 128: "v" * 256}), OK),
    ("TABLE-107", tags(**{"k" * 129: ""}), f"{KEY}{'k' * 129}"),
    ("TABLE-107", tags(k="v" * 257), f"{VALUE}{'v' * 257}"),
    ("TABLE-107", [], NO_TAG),
    ("TABLE-107", [{"Key": "k"}], f"{VALUE}null"),
    (
        "TABLE-107",
        tags(dup="1") + tags(dup="2"),
        "Duplicate Tag Keys provided as input: Duplicate Tag Key found dup",
    ),
    ("TABLE-105", tags(**{"aws:foo": "x"}), f"{RESERVED}aws:foo"),
    ("TABLE-105", tags(**{"AWS:foo": "x"}), f"{RESERVED}AWS:foo"),
    ("TABLE-105", tags(**{"myaws:foo": "x"}), OK),
    ("TABLE-106", tags(**{"sp ace": "a b+c-d=e.f_g:h/i@j", " ключ": "表"}), OK),
    ("TABLE-106", tags(**{"bad#char": "x"}), f"{KEY}bad#char"),
    ("TABLE-106", tags(k="bad#char"), f"{VALUE}bad#char"),
    ("TABLE-372", tags(k="café\u00a0\u3000"), OK),
    *(
        ("TABLE-372", tags(k=value), VALUE + value)
        for value in ("🔑", "100%", "a,b", "a&b", "a|b", "<a>", "~a", '"q"')
    ),
    ("TABLE-457", [{}], f"{KEY}null"),
    ("TABLE-457", [{"Value": "v"}], f"{KEY}null"),
    ("TABLE-108", tags(**{str(n): "" for n in range(51)}), TOO_MANY),
]
TAKEN = [
    ("TABLE-107", [], NO_KEY),
    ("TABLE-107", ["k" * 129], f"{KEY}{'k' * 129}"),
    ("TABLE-107", [str(n) for n in range(51)], TOO_MANY),
    ("TABLE-105", ["absent"], OK),
    ("TABLE-105", ["aws:foo"], f"{RESERVED}aws:foo"),
    ("TABLE-457", [""], KEY),
]


@pytest.mark.parametrize(("given", "recorded"), [pytest.param(*each[1:], id=each[0]) for each in ADDED])
def test_added_tags_are_all_or_none(prepared, given, recorded):
    orders = {"ResourceArn": arn("orders")}
    check(prepared, "TagResource", {**orders, "Tags": given}, recorded)
    if recorded:
        check(
            prepared,
            "TagResource",
            {**orders, "Tags": tags(good="1") + given},
            recorded,
            OK if not given else recorded,
        )
        assert ("good" in tags_of(prepared)) is (not given)


@pytest.mark.parametrize(("given", "recorded"), [pytest.param(*each[1:], id=each[0]) for each in TAKEN])
def test_tags_taken_away(prepared, given, recorded):
    check(prepared, "UntagResource", {"ResourceArn": arn("orders"), "TagKeys": given}, recorded)


def tags_of(service) -> dict[str, str]:
    listed = service.call("ListTagsOfResource", {"ResourceArn": arn("orders")})
    assert "NextToken" not in listed
    return {each["Key"]: each["Value"] for each in listed["Tags"]}


def tagged(service, **given: str) -> str:
    return answer(service, "TagResource", {"ResourceArn": arn("orders"), "Tags": tags(**given)})[1]


def test_keys_are_taken_as_they_are_table_368(prepared):
    given = {"k": "1", "k ": "2", " k": "3", " ": "4", "Env": "", "env": "x"}
    tagged(prepared, **given)
    assert tags_of(prepared) == given


def test_fifty_tags_after_the_change_are_the_most_table_108(prepared):
    fifty = {f"k{n:02}": "v" for n in range(50)}
    assert tagged(prepared, **fifty) == ""
    assert tagged(prepared, k51="") == TOO_MANY
    assert tagged(prepared, k01="new", k51="") == TOO_MANY
    assert tagged(prepared, **dict.fromkeys(fifty, "again")) == ""
    assert len(tags_of(prepared)) == 50


def test_all_tags_together_are_bounded_table_109(prepared):
    large = {f"{n:02}": "v" * 256 for n in range(39)}  # 39 * 258 = 10,062 bytes
    assert tagged(prepared, **large) == ""
    assert tagged(prepared, more="v" * 174) == ""  # 10,240
    text = "Tag set size 10241 bytes is above max size limit of 10240 bytes"
    assert tagged(prepared, more="v" * 175) == text


def test_a_stream_has_tags_of_its_own_table_373(service):
    stream = service.table(StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"})[
        "LatestStreamArn"
    ]
    assert service.call("ListTagsOfResource", {"ResourceArn": stream}) == {"Tags": []}
    check(service, "TagResource", {"ResourceArn": stream, "Tags": tags(a="b")}, OK)
    assert tags_of(service) == {}


# States


def test_a_table_is_seen_as_soon_as_it_is_made_table_075(delayed):
    assert delayed.table()["TableStatus"] == "CREATING"
    assert delayed.described()["TableStatus"] == "CREATING"


def test_tags_of_a_table_that_is_being_made_table_101(delayed):
    assert "Tags" not in delayed.table(Tags=tags(a="b"))
    missing, orders = not_found(f"ResourceArn: {arn('orders')} not found"), {"ResourceArn": arn("orders")}
    check(
        delayed,
        "TagResource",
        {**orders, "Tags": tags(c="d")},
        missing,
        in_use("Table is being created: orders"),
    )
    check(delayed, "UntagResource", {**orders, "TagKeys": ["c"]}, missing, OK)
    if answer(delayed, "ListTagsOfResource", orders) != missing:
        assert tags_of(delayed) == {}
    delayed.clock.ms += 10_000
    assert tags_of(delayed) == {"a": "b"}
    assert tagged(delayed, c="d") == ""


BEING_MADE = [
    (
        "TABLE-115",
        "UpdateTimeToLive",
        TTL,
        (not_found("Table: orders not found"), in_use("Table orders is being created")),
    ),
    (
        "TABLE-114",
        "DescribeTimeToLive",
        {},
        ("Cannot describe time to live while table is in CREATING state: Current table state is CREATING",),
    ),
    (
        "TABLE-115",
        "UpdateContinuousBackups",
        RECOVERY,
        (
            ("TableNotFoundException", "Table not found: orders"),
            (
                "ContinuousBackupsUnavailableException",
                "Backups are being enabled for the table: orders. Please retry later",
            ),
        ),
    ),
    (
        "TABLE-115",
        "CreateBackup",
        {"BackupName": "bkp"},
        (
            ("TableNotFoundException", "Table not found: orders"),
            (
                "ContinuousBackupsUnavailableException",
                "Backups are being enabled for the table: orders. Please retry later",
            ),
        ),
    ),
    (
        "TABLE-115",
        "DescribeContinuousBackups",
        {},
        (("TableNotFoundException", "Table not found: orders"), OK),
    ),
    (
        "TABLE-115",
        "UpdateContributorInsights",
        ENABLE,
        (
            not_found("Table: orders not found"),
            (
                "Table or Index is not in a valid state to update Key Access Insights: "
                "TableStatus must be ACTIVE to enable ContributorInsights."
            ),
        ),
    ),
    ("TABLE-115", "DescribeContributorInsights", {}, (not_found("Table: orders not found"), OK)),
    (
        "TABLE-444",
        "UpdateTable",
        {"DeletionProtectionEnabled": True},
        (in_use("Table is being created: orders"),),
    ),
]


@pytest.mark.parametrize(
    ("operation", "more", "recorded"), [pytest.param(*each[1:], id=each[0]) for each in BEING_MADE]
)
def test_a_table_that_is_being_made(delayed, operation, more, recorded):
    delayed.table()
    check(delayed, operation, {"TableName": "orders", **more}, *recorded)


def test_a_name_that_is_taken_table_444(delayed):
    delayed.table()
    check(delayed, "CreateTable", {**CREATE, "TableName": "orders"}, in_use("Table is being created: orders"))
    delayed.clock.ms += 10_000
    check(
        delayed,
        "CreateTable",
        {**CREATE, "TableName": "orders"},
        ("ResourceInUseException", "Table already exists: orders"),
    )


DELETED = in_use("Table is being deleted: orders")
BEING_DELETED = [
    (
        "TABLE-118",
        "UpdateTimeToLive",
        {"TableName": "orders", **TTL},
        (OK, not_found("Table: orders not found")),
    ),
    (
        "TABLE-118",
        "DescribeTimeToLive",
        {"TableName": "orders"},
        ("Cannot describe time to live while table is in DELETING state: Current table state is DELETING",),
    ),
    (
        "TABLE-118",
        "UpdateContinuousBackups",
        {"TableName": "orders", **RECOVERY},
        (OK, ("TableNotFoundException", "Table not found: orders")),
    ),
    (
        "TABLE-118",
        "DescribeContinuousBackups",
        {"TableName": "orders"},
        (OK, ("TableNotFoundException", "Table not found: orders")),
    ),
    ("TABLE-118", "DescribeContributorInsights", {"TableName": "orders"}, (OK,)),
    (
        "TABLE-374",
        "CreateBackup",
        {"TableName": "orders", "BackupName": "bkp"},
        (OK, ("TableNotFoundException", "Table not found: orders")),
    ),
    (
        "TABLE-374",
        "TagResource",
        {"ResourceArn": arn("orders"), "Tags": tags(a="b")},
        (DELETED, not_found(f"ResourceArn: {arn('orders')} not found")),
    ),
    (
        "TABLE-455",
        "UpdateContributorInsights",
        {"TableName": "orders", **ENABLE},
        (
            OK,
            (
                "Table or Index is not in a valid state to update Key Access Insights: "
                "TableStatus must be ACTIVE to enable ContributorInsights."
            ),
        ),
    ),
    ("TABLE-455", "UpdateTable", {"TableName": "orders", "DeletionProtectionEnabled": True}, (DELETED,)),
    (
        "TABLE-455",
        "ListTagsOfResource",
        {"ResourceArn": arn("orders")},
        (OK, not_found(f"ResourceArn: {arn('orders')} not found")),
    ),
]


@pytest.mark.parametrize(
    ("operation", "request_", "recorded"), [pytest.param(*each[1:], id=each[0]) for each in BEING_DELETED]
)
def test_a_table_that_is_being_deleted(delayed, operation, request_, recorded):
    delayed.table()
    delayed.clock.ms += 20_000
    delayed.call("DeleteTable", {"TableName": "orders"})
    assert delayed.described()["TableStatus"] == "DELETING"
    check(delayed, operation, request_, *recorded)


def test_a_new_table_inherits_nothing_from_a_deleted_one_table_377_table_455(service):
    service.table(
        BillingMode=None,
        ProvisionedThroughput={"ReadCapacityUnits": 10, "WriteCapacityUnits": 10},
        Tags=tags(a="b"),
    )
    service.call("UpdateTimeToLive", {"TableName": "orders", **TTL})
    service.call("UpdateContributorInsights", {"TableName": "orders", **ENABLE})
    service.call("UpdateContinuousBackups", {"TableName": "orders", **RECOVERY})
    for read in (9, 8, 7, 6):
        service.update(ProvisionedThroughput={"ReadCapacityUnits": read, "WriteCapacityUnits": 10})
    service.call("DeleteTable", {"TableName": "orders"})
    service.table(BillingMode=None, ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 5})
    table = {"TableName": "orders"}
    assert service.call("DescribeTimeToLive", table)["TimeToLiveDescription"] == {
        "TimeToLiveStatus": "DISABLED"
    }
    assert service.call("DescribeContributorInsights", table)["ContributorInsightsStatus"] == "DISABLED"
    continuous = service.call("DescribeContinuousBackups", table)["ContinuousBackupsDescription"]
    assert continuous["PointInTimeRecoveryDescription"] == {"PointInTimeRecoveryStatus": "DISABLED"}
    assert tags_of(service) == {}
    described = service.described()
    assert described["ProvisionedThroughput"]["NumberOfDecreasesToday"] == 0
    assert described["WarmThroughput"]["ReadUnitsPerSecond"] == 5
    service.update(ProvisionedThroughput={"ReadCapacityUnits": 4, "WriteCapacityUnits": 5})
    check(service, "UpdateTimeToLive", {**table, **TTL}, OK)
