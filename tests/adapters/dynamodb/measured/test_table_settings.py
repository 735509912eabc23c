"""Findings of table-streams-encryption-class.md about streams, deletion protection, and changes that exclude each other."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from tests.adapters.dynamodb.measured.recorded import (
    DETECTED,
    ENABLE,
    INVALID,
    OK,
    Case,
    answer,
    arn,
    check,
    each,
    tags,
    units,
)
from tests.adapters.dynamodb.measured.test_throughput import changed, made, maxima, null, warm

ORDERS = {"TableName": "orders"}
NO_STREAM = "Table has no stream to disable: TableName: {}"
HAS_STREAM = "Table already has an enabled stream: TableName: {}"
PROTECTED = "Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first."
BY_DEFAULT = f"{INVALID}Table is already encrypted by default"
INFREQUENT = {"TableClass": "STANDARD_INFREQUENT_ACCESS"}
STANDARD = {"TableClass": "STANDARD"}
PROTECT = {"DeletionProtectionEnabled": True}
ENUM = " failed to satisfy constraint: Member must satisfy enum value set: "
VIEWS = "[OLD_IMAGE, KEYS_ONLY, NEW_AND_OLD_IMAGES, NEW_IMAGE]"
KEY = "11111111-2222-4333-8444-555555555555"


def streaming(view: str | None = None) -> dict[str, Any]:
    """The member that switches a stream on with a view, or off."""
    on = {"StreamEnabled": True, "StreamViewType": view}
    return {"StreamSpecification": on if view else {"StreamEnabled": False}}


def encrypted(key: str | None = None, **more: Any) -> dict[str, Any]:
    given = {"SSEType": "KMS", "KMSMasterKeyId": key} if key else {}
    return {"SSESpecification": {"Enabled": True, **given, **more}}


def streams(service, **more: Any) -> list[str]:
    """The ARNs that ListStreams has."""
    found = service.call("ListStreams", more, prefix="DynamoDBStreams_20120810")["Streams"]
    return [each["StreamArn"] for each in found]


def stream_status(service, stream: str) -> str:
    found = service.call("DescribeStream", {"StreamArn": stream}, prefix="DynamoDBStreams_20120810")
    status: str = found["StreamDescription"]["StreamStatus"]
    return status


# Invalid combinations

CREATED_WITH = f"{INVALID}Table is being created with a stream "
SPECIFIED: list[Case] = [
    *(
        made("TABLE-035", recorded, StreamSpecification=given)
        for given, recorded in [
            (
                {"StreamEnabled": False, "StreamViewType": "NEW_IMAGE"},
                f"{CREATED_WITH}disabled, UpdateViewType should not be specified",
            ),
            ({"StreamEnabled": True}, f"{CREATED_WITH}enabled, UpdateViewType is required"),
            ({"StreamViewType": "NEW_IMAGE"}, null("streamSpecification.streamEnabled")),
            ({}, null("streamSpecification.streamEnabled")),
            (
                {"StreamEnabled": True, "StreamViewType": "new_image"},
                f"{DETECTED}'new_image' at 'streamSpecification.streamViewType'{ENUM}{VIEWS}",
            ),
        ]
    ),
    *(
        made("TABLE-036", recorded, SSESpecification=given)
        for given, recorded in [
            (
                {"Enabled": False, "SSEType": "KMS"},
                f"{INVALID}SSEType can not be specified if Enabled is false",
            ),
            (
                {"Enabled": False, "KMSMasterKeyId": KEY},
                f"{INVALID}KMSMasterKeyId can not be specified if Enabled is false",
            ),
            (
                {"Enabled": False, "SSEType": "KMS", "KMSMasterKeyId": KEY},
                f"{INVALID}SSEType can not be specified if Enabled is false",
            ),
            ({"Enabled": True, "SSEType": "AES256"}, f"{INVALID}SSEType AES256 is not supported"),
            (
                {"Enabled": False, "SSEType": "AES256"},
                f"{INVALID}SSEType can not be specified if Enabled is false",
            ),
            ({}, OK),
            ({"SSEType": "KMS"}, OK),
            ({"SSEType": "KMS", "KMSMasterKeyId": KEY}, OK),
            ({"SSEType": "kms"}, f"{DETECTED}'kms' at 'sSESpecification.sSEType'{ENUM}[AES256, KMS]"),
        ]
    ),
    *(
        made(
            "TABLE-031",
            f"{INVALID}SSEType KMS is required if KMSMasterKeyId is specified",
            SSESpecification={"Enabled": True, "KMSMasterKeyId": key},
        )
        for key in ("alias/aws/dynamodb", KEY)
    ),
    *(
        made("TABLE-031", OK, SSESpecification={"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": key})
        for key in ("alias/mine", KEY, f"arn:aws:kms:us-east-1:000000000000:key/{KEY}")
    ),
]


@each(SPECIFIED)
def test_streams_and_encryption_of_a_new_table(service, operation, request_, recorded):
    check(service, operation, request_, recorded)


# The members of an UpdateTable, in the order in which the service names those that must be alone.
CHANGES: dict[str, dict[str, Any]] = {
    "Server-Side Encryption modification": encrypted(),
    "TableClass modification": INFREQUENT,
    "DeletionProtection modification": PROTECT,
    "OnDemandThroughput": {"OnDemandThroughput": maxima(100, 100)},
    "WarmThroughput": {"WarmThroughput": warm(13_000, 5_000)},
    "BillingMode": {"BillingMode": "PAY_PER_REQUEST"},
    "units": {"BillingMode": "PROVISIONED", "ProvisionedThroughput": units(11, 11)},
    "ProvisionedThroughput": {"ProvisionedThroughput": units(11, 11)},
    "stream": streaming("KEYS_ONLY"),
}
IOPS = ("units", "ProvisionedThroughput")
NO_PAIRS = [
    ("BillingMode", "units"),  # one member twice, or a known rule of throughput (TABLE-056)
    ("BillingMode", "ProvisionedThroughput"),
    ("units", "ProvisionedThroughput"),
    ("OnDemandThroughput", "units"),  # TABLE-038
]
BOTH_DONE = [("OnDemandThroughput", "BillingMode"), ("BillingMode", "stream")]


@pytest.mark.parametrize("name", ["plain", "provisioned"])
@pytest.mark.parametrize(
    "pair", [pair for pair in combinations(CHANGES, 2) if pair not in NO_PAIRS + BOTH_DONE], ids=" and ".join
)
def test_changes_that_exclude_each_other_table_382_table_433(prepared, name, pair):
    first, second = pair
    if first == "OnDemandThroughput":
        text = "OnDemandThroughput can only be combined with BillingMode in an UpdateTable request"
    elif first in IOPS:
        text = "You cannot modify stream status while updating table IOPS"
    else:
        text = f"{first} must be the only operation in the request"
    before = prepared.described(name)
    check(
        prepared, "UpdateTable", {"TableName": name, **CHANGES[first], **CHANGES[second]}, f"{INVALID}{text}"
    )
    assert prepared.described(name) == before


@pytest.mark.parametrize("pair", BOTH_DONE, ids=" and ".join)
def test_changes_that_go_together_table_382_table_433(prepared, pair):
    answered = prepared.update("provisioned", **CHANGES[pair[0]], **CHANGES[pair[1]])
    assert answered["TableStatus"] == "UPDATING"
    described = prepared.described("provisioned")
    assert described["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert ("StreamSpecification" in described, "OnDemandThroughput" in described) == (
        "stream" in pair,
        "OnDemandThroughput" in pair,
    )


# Streams


def test_the_life_of_streams_table_050_table_362_table_367_table_378_table_386(service):
    assert not {"StreamSpecification", "LatestStreamArn", "LatestStreamLabel"} & service.table().keys()
    first = service.update(**streaming("NEW_IMAGE"))["LatestStreamArn"]
    enable = {**ORDERS, **streaming("NEW_IMAGE")}
    check(service, "UpdateTable", enable, HAS_STREAM.format("orders"))
    check(service, "UpdateTable", {**ORDERS, **streaming("NEW_AND_OLD_IMAGES")}, HAS_STREAM.format("orders"))
    check(
        service,
        "UpdateTable",
        {**ORDERS, "StreamSpecification": {"StreamEnabled": True}},
        f"{INVALID}If stream is being enabled then UpdateViewType is required",
    )
    check(
        service,
        "UpdateTable",
        {**ORDERS, "StreamSpecification": {"StreamEnabled": False, "StreamViewType": "KEYS_ONLY"}},
        f"{INVALID}If stream is being disabled, then UpdateViewType must not be specified",
    )
    assert service.update(**streaming())["TableStatus"] == "UPDATING"
    described = service.described()
    assert "StreamSpecification" not in described
    assert described["LatestStreamArn"] == first
    assert described["LatestStreamLabel"] == first.rpartition("/")[2]
    check(service, "UpdateTable", {**ORDERS, **streaming()}, NO_STREAM.format("orders"))
    service.clock.ms += 8_000
    second = service.update(**streaming("NEW_AND_OLD_IMAGES"))["LatestStreamArn"]
    assert second == service.described()["LatestStreamArn"] != first
    assert stream_status(service, first) == "DISABLED"
    service.call("DeleteTable", ORDERS)
    service.clock.ms += 8_000
    assert stream_status(service, second) == "DISABLED"
    third = service.table(**streaming("KEYS_ONLY"))["LatestStreamArn"]
    assert third not in (first, second)
    assert sorted(streams(service, TableName="orders")) == [first, second, third]
    assert stream_status(service, third) == "ENABLED"


@pytest.mark.parametrize("view", ["KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES", None])
def test_a_new_table_describes_its_stream_table_029(service, view):
    service.table(**streaming(view))
    described = service.described()
    assert described.get("StreamSpecification") == (streaming(view)["StreamSpecification"] if view else None)
    assert ("LatestStreamArn" in described, "LatestStreamLabel" in described) == (bool(view), bool(view))


def test_a_stream_is_shown_while_it_is_switched_table_004_table_180(delayed):
    delayed.table()
    delayed.clock.ms += 20_000
    for given, shown in (
        (streaming("KEYS_ONLY"), streaming("KEYS_ONLY")["StreamSpecification"]),
        (streaming(), None),
    ):
        answered = delayed.update(**given)
        described = delayed.described()
        for found in (answered, described):
            assert (found["TableStatus"], found.get("StreamSpecification")) == ("UPDATING", shown)
            assert found["LatestStreamArn"] == described["LatestStreamArn"]
        delayed.clock.ms += 20_000
        assert delayed.described()["TableStatus"] == "ACTIVE"


def test_a_stream_has_a_policy_of_its_own_table_213(service):
    stream = service.table(**streaming("KEYS_ONLY"))["LatestStreamArn"]

    def policy(resource: str, action: str) -> str:
        statement = '{"Effect":"Allow","Principal":{"AWS":"000000000000"},"Action":"%s","Resource":"%s"}'
        return '{"Version":"2012-10-17","Statement":[' + statement % (action, resource) + "]}"

    table = arn("orders")
    given = {"ResourceArn": stream, "Policy": policy(stream, "dynamodb:DescribeStream")}
    first = service.call("PutResourcePolicy", given)["RevisionId"]
    none = "PolicyNotFoundException", f"Resource-based policy not found for the provided ResourceArn: {table}"
    check(service, "GetResourcePolicy", {"ResourceArn": table}, none)
    check(
        service,
        "PutResourcePolicy",
        {"ResourceArn": table, "Policy": policy(table, "dynamodb:GetItem")},
        OK,
    )
    of_table = service.call("GetResourcePolicy", {"ResourceArn": table})
    given = {"ResourceArn": stream, "Policy": policy(stream, "dynamodb:GetRecords")}
    second = service.call("PutResourcePolicy", given)["RevisionId"]
    assert second != first
    assert service.call("GetResourcePolicy", {"ResourceArn": table}) == of_table
    assert service.call("DeleteResourcePolicy", {"ResourceArn": stream}) == {"RevisionId": second}
    check(service, "GetResourcePolicy", {"ResourceArn": stream}, (none[0], none[1].replace(table, stream)))
    check(service, "DeleteResourcePolicy", {"ResourceArn": table}, OK)


# Deletion protection


def test_a_protected_table_cannot_be_deleted_table_016_table_017_table_030_table_034_table_438(delayed):
    delayed.table("plain")
    assert delayed.described("plain")["DeletionProtectionEnabled"] is False
    delayed.table(**PROTECT)
    delayed.clock.ms += 20_000
    check(delayed, "DeleteTable", ORDERS, PROTECTED)
    assert delayed.described()["TableStatus"] == "ACTIVE"
    answered = delayed.update(DeletionProtectionEnabled=False)
    for found in (answered, delayed.described()):
        assert (found["TableStatus"], found["DeletionProtectionEnabled"]) == ("ACTIVE", False)
    check(delayed, "DeleteTable", ORDERS, OK)


# Changes to what is so already

RESENT: list[Case] = [
    changed("TABLE-018", OK, DeletionProtectionEnabled=False),
    changed("TABLE-018", OK, BillingMode="PAY_PER_REQUEST"),
    changed("TABLE-018", OK, **STANDARD),
    changed("TABLE-018", BY_DEFAULT, SSESpecification={"Enabled": False}),
    changed("TABLE-018", NO_STREAM.format("plain"), **streaming()),
    changed(
        "TABLE-018",
        f"{INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified w…",
        ProvisionedThroughput=units(1, 1),
    ),
]


@each(RESENT)
def test_a_request_for_the_current_settings_gets_the_recorded_answer(prepared, operation, request_, recorded):
    check(prepared, operation, request_, recorded)


def test_the_class_that_a_table_has_table_018_table_019_table_026_table_177_table_365_table_383(delayed):
    delayed.table()
    delayed.clock.ms += 20_000
    since = delayed.described()["BillingModeSummary"]
    for _ in range(20):
        for given in (STANDARD, {"BillingMode": "PAY_PER_REQUEST"}):
            answered = delayed.update(**given)
            assert (answered["TableStatus"], answered["BillingModeSummary"]) == ("UPDATING", since)
            assert "TableClassSummary" not in answered
            described = delayed.described()
            assert (described["TableStatus"], described["BillingModeSummary"]) == ("ACTIVE", since)
            assert "TableClassSummary" not in described
        assert delayed.update(DeletionProtectionEnabled=False)["TableStatus"] == "ACTIVE"


def test_the_class_that_a_new_table_is_given_table_026(service):
    for name, given in (("standard", "STANDARD"), ("infrequent", "STANDARD_INFREQUENT_ACCESS")):
        service.table(name, TableClass=given)
        assert service.described(name)["TableClassSummary"] == {"TableClass": given}
    service.table("none")
    assert "TableClassSummary" not in service.described("none")


# Requests permitted immediately after a change


def everything_else(service) -> None:
    """Change and read all settings of `orders` that have operations of their own."""
    live = {"TimeToLiveSpecification": {"AttributeName": "ttl", "Enabled": True}}
    recover = {"PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}}
    statement = (
        f'{{"Effect":"Allow","Principal":{{"AWS":"000000000000"}},"Action":"dynamodb:GetItem",'
        f'"Resource":"{arn("orders")}"}}'
    )
    policy = f'{{"Version":"2012-10-17","Statement":[{statement}]}}'
    for operation, request in [
        ("UpdateTimeToLive", {**ORDERS, **live}),
        ("UpdateContinuousBackups", {**ORDERS, **recover}),
        ("UpdateContributorInsights", {**ORDERS, **ENABLE}),
        ("TagResource", {"ResourceArn": arn("orders"), "Tags": tags(a="1")}),
        ("PutResourcePolicy", {"ResourceArn": arn("orders"), "Policy": policy}),
        ("CreateBackup", {**ORDERS, "BackupName": "backup"}),
        ("DescribeTimeToLive", ORDERS),
        ("DescribeContinuousBackups", ORDERS),
        ("DescribeContributorInsights", ORDERS),
        ("ListContributorInsights", ORDERS),
    ]:
        assert answer(service, operation, request) == ("", ""), operation


@pytest.mark.parametrize(
    ("given", "status"),
    [(PROTECT, "ACTIVE"), (streaming("KEYS_ONLY"), "UPDATING")],
    ids=["protection", "stream"],
)
def test_other_settings_follow_at_once_table_117_table_119_table_435(delayed, given, status):
    delayed.table()
    delayed.clock.ms += 20_000
    for found in (delayed.update(**given), delayed.described()):
        assert found["TableStatus"] == status
    everything_else(delayed)
    assert delayed.described()["TableStatus"] == status
    delayed.clock.ms += 20_000
    assert delayed.described().items() >= {"TableStatus": "ACTIVE", **given}.items()


def test_modes_of_contributor_insights_table_092(service):
    def mode(**given: str) -> tuple[str, str]:
        answered = service.call("UpdateContributorInsights", {**ORDERS, **given})
        described = service.call("DescribeContributorInsights", ORDERS)
        return answered["ContributorInsightsStatus"], described["ContributorInsightsMode"]

    service.table()
    both, throttled = "ACCESSED_AND_THROTTLED_KEYS", "THROTTLED_KEYS"
    assert mode(**ENABLE) == ("ENABLING", both)
    assert mode(**ENABLE, ContributorInsightsMode=throttled) == ("ENABLING", throttled)
    assert mode(**ENABLE) == ("ENABLING", both)
    assert mode(**ENABLE, ContributorInsightsMode=both) == ("ENABLED", both)
    disable = {**ORDERS, "ContributorInsightsAction": "DISABLE", "ContributorInsightsMode": throttled}
    assert service.call("UpdateContributorInsights", disable)["ContributorInsightsStatus"] == "DISABLING"
