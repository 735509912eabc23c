"""Findings of table-streams-encryption-class.md about encryption at rest, table classes, and requests
during a change.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.dynamodb.measured.recorded import (
    CREATE,
    INVALID,
    OK,
    answer,
    check,
    in_use,
    not_found,
    units,
)
from tests.adapters.dynamodb.measured.test_table_settings import (
    BY_DEFAULT,
    INFREQUENT,
    ORDERS,
    PROTECT,
    STANDARD,
    encrypted,
    everything_else,
    streaming,
)
from tests.adapters.dynamodb.measured.test_throughput import maxima, warm

KEYS = "arn:aws:kms:us-east-1:000000000000:key/"
FIRST, SECOND = f"{KEYS}11111111-2222-4333-8444-555555555555", f"{KEYS}66666666-7777-4888-9999-000000000000"
SAME_KEY = (
    f"{INVALID}Table is already encrypted with given KMSMasterKeyId. "
    "Use KMSMasterKeyId parameter if you want to change Master Key"
)
NOT_ENCRYPTED = {"SSESpecification": {"Enabled": False}}
IN_PROCESS = in_use("Table: orders is in the process of being updated.")
STILL = in_use("Server-Side Encryption is still being updated")
STUB = {"Status": "UPDATING"}
DAY_MS = 24 * 60 * 60 * 1000


def shown(key: str | None, status: str = "ENABLED") -> dict[str, str]:
    """An SSEDescription."""
    return {"Status": status, "SSEType": "KMS", "KMSMasterKeyArn": key} if key else {"Status": status}


def described(service) -> Any:
    return service.described().get("SSEDescription")


def service_key(service) -> str:
    """The key of the service in the account of the tests."""
    service.table("with-service-key", SSESpecification={"Enabled": True})
    key: str = service.described("with-service-key")["SSEDescription"]["KMSMasterKeyArn"]
    return key


def settled(service, name: str = "orders", **more: Any) -> Any:
    """The service with a table that is ACTIVE."""
    service.table(name, **more)
    service.clock.ms += 20_000
    return service


# Keys


def test_a_new_table_describes_its_key_table_027_table_044(service):
    own = service_key(service)
    for number, (given, key) in enumerate(
        [
            (None, None),
            ({"Enabled": False}, None),
            ({}, None),
            ({"Enabled": True}, own),
            ({"SSEType": "KMS"}, own),
            ({"SSEType": "KMS", "KMSMasterKeyId": "alias/aws/dynamodb"}, own),
            ({"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": FIRST}, FIRST),
            ({"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": FIRST.rpartition("/")[2]}, FIRST),
        ]
    ):
        more = {} if given is None else {"SSESpecification": given}
        made = service.table(f"table-{number}", **more)
        expected = shown(key) if key else None
        assert made.get("SSEDescription") == expected
        assert service.described(f"table-{number}").get("SSEDescription") == expected


@pytest.mark.parametrize("key", ["mrk-67c1526d2d8940a3947df29d0358c35a", "alias/mine", FIRST])
def test_keys_of_this_region_table_328(separate, key):
    check(separate, "CreateTable", {**CREATE, **encrypted(key)}, OK)
    found = separate.described("new")["SSEDescription"]["KMSMasterKeyArn"]
    assert found.startswith(KEYS)


@pytest.mark.parametrize("operation", ["CreateTable", "UpdateTable"])
def test_keys_of_other_places_table_020_table_021_table_037_table_139_table_328(separate, operation):
    given = CREATE if operation == "CreateTable" else ORDERS
    invalid = (
        "KMS validation error: com.amazonaws.services.kms.model.NotFoundException: Invalid arn eu-west-1"
    )
    denied = "KMS key access denied error: com.amazonaws.services.kms.model.AWSKMSException: User: "
    for key, code, text in [
        (
            FIRST.replace("us-east-1", "eu-west-1"),
            "ValidationException",
            f"{invalid} (Service: AWSKMS; Status Code: 400; Error Code: NotFoundException; Request ID: ",
        ),
        (FIRST.replace("000000000000", "111122223333"), "AccessDeniedException", denied),
    ]:
        found = answer(separate, operation, {**given, **encrypted(key)})
        assert (found[0], found[1][: len(text)]) == (code, text)
        assert found[1].endswith("; Proxy: null)")
    assert "is not authorized to perform: kms:DescribeKey on this resource because the resource" in found[1]
    check(separate, "DescribeTable", {"TableName": "new"}, not_found("Table: new not found"))
    assert described(separate) is None


@pytest.mark.parametrize("operation", ["CreateTable", "UpdateTable"])
def test_a_key_of_another_service_is_refused_table_461(service, operation):
    """The other keys of finding 461 are refused by KMS, which is not here."""
    service.table()
    given = CREATE if operation == "CreateTable" else ORDERS
    code, text = answer(service, operation, {**given, **encrypted("alias/aws/s3")})
    assert code == "AccessDeniedException"
    assert text.startswith(
        "KMS key access denied error: com.amazonaws.services.kms.model.AWSKMSException: User: "
    )
    assert f"is not authorized to perform: kms:CreateGrant on resource: {KEYS}" in text
    assert "because no resource-based policy allows the kms:CreateGrant action (" in text
    assert described(service) is None


# Changes of encryption


@pytest.mark.parametrize("before", [None, FIRST, "alias/aws/dynamodb"])
@pytest.mark.parametrize("after", [None, FIRST, SECOND, "alias/aws/dynamodb"])
def test_a_change_of_the_key_is_described_table_065_table_079_table_140_table_361_table_371(
    delayed, before, after
):
    own = service_key(delayed)
    settled(delayed, **(encrypted(before) if before else {}))
    old, new = (key if key is None or key in (FIRST, SECOND) else own for key in (before, after))
    change = encrypted(after) if after else NOT_ENCRYPTED
    if before == after and after != "alias/aws/dynamodb":
        check(delayed, "UpdateTable", {**ORDERS, **change}, SAME_KEY if after else BY_DEFAULT)
        return
    answered = delayed.update(**change)
    assert (answered["TableStatus"], answered["SSEDescription"]) == ("ACTIVE", shown(old, "UPDATING"))
    assert described(delayed) == shown(old, "UPDATING")
    delayed.clock.ms += 5_000
    assert described(delayed) == shown(new, "UPDATING")
    assert delayed.described()["TableStatus"] == "ACTIVE"
    delayed.clock.ms += 5_000
    assert described(delayed) == (shown(new) if new else None)


@pytest.mark.parametrize("given", ["alias/mine", None, "alias/aws/dynamodb"])
def test_a_key_by_another_name_is_a_change_table_078_table_082_table_141(service, given):
    made = service.table(**encrypted(given))
    key = made["SSEDescription"]["KMSMasterKeyArn"]
    check(service, "UpdateTable", {**ORDERS, **encrypted(key)}, SAME_KEY)
    for again in (encrypted(given), encrypted(given, SSEType="KMS")):
        assert service.update(**again)["SSEDescription"] == shown(key, "UPDATING")
        assert described(service) == shown(key)
    if given == "alias/mine":
        by_id = encrypted(key.rpartition("/")[2])
        assert service.update(**by_id)["SSEDescription"] == shown(key, "UPDATING")


def test_changes_of_a_day_table_081_table_120_table_142(service):
    service.table(**encrypted(FIRST))
    service.clock.ms = 1_760_000_000_000
    for number in range(4):
        check(service, "UpdateTable", {**ORDERS, **encrypted((SECOND, FIRST)[number % 2])}, OK)
        service.clock.ms += 60_000
    check(service, "UpdateTable", {**ORDERS, **encrypted(FIRST)}, SAME_KEY)
    text = (
        "Subscriber limit exceeded: Encryption mode changes are limited in the 24h window ending at "
        "2025-10-10T08:53:20.000Z. After the first 4 change, each subsequent change in the same window can be performed at "
        "most once every 21600 seconds. Number of updates today: {}. Last change at {}. Next changes can be made at {}."
    )
    for given in (encrypted(SECOND), NOT_ENCRYPTED, encrypted("alias/aws/s3"), encrypted()):
        refused = text.format(4, "2025-10-09T08:56:20.000Z", "2025-10-09T14:56:20.000Z")
        check(service, "UpdateTable", {**ORDERS, **given}, ("LimitExceededException", refused))
    service.clock.ms += 6 * 60 * 60 * 1000
    check(service, "UpdateTable", {**ORDERS, **NOT_ENCRYPTED}, OK)
    refused = text.format(5, "2025-10-09T14:57:20.000Z", "2025-10-09T20:57:20.000Z")
    check(service, "UpdateTable", {**ORDERS, **encrypted()}, ("LimitExceededException", refused))
    check(service, "UpdateTable", {**ORDERS, **NOT_ENCRYPTED}, BY_DEFAULT)
    service.clock.ms += DAY_MS
    for _ in range(4):
        check(service, "UpdateTable", {**ORDERS, **encrypted()}, OK)
    assert answer(service, "UpdateTable", {**ORDERS, **encrypted()})[0] == "LimitExceededException"


def test_refused_keys_do_not_count_table_139(service):
    service.table()
    for _ in range(5):
        assert (
            answer(service, "UpdateTable", {**ORDERS, **encrypted("alias/aws/s3")})[0]
            == "AccessDeniedException"
        )
    for _ in range(4):
        check(service, "UpdateTable", {**ORDERS, **encrypted()}, OK)


def test_changes_while_encryption_changes_have_recorded_answers_table_065_table_069_table_120(delayed):
    settled(delayed)
    delayed.update(**encrypted(FIRST))
    check(delayed, "DeleteTable", ORDERS, IN_PROCESS)
    check(delayed, "UpdateTable", {**ORDERS, **NOT_ENCRYPTED}, STILL)
    check(delayed, "UpdateTable", {**ORDERS, **encrypted(FIRST.rpartition("/")[2])}, OK)
    assert delayed.update(**PROTECT)["TableStatus"] == "ACTIVE"
    assert delayed.update(DeletionProtectionEnabled=False)["TableStatus"] == "ACTIVE"
    assert delayed.update(**streaming("KEYS_ONLY"))["TableStatus"] == "UPDATING"
    assert described(delayed) == STUB
    delayed.clock.ms += 10_000
    assert described(delayed) == shown(FIRST)
    check(delayed, "DeleteTable", ORDERS, OK)


def test_a_class_while_encryption_changes_table_120(delayed):
    settled(delayed)
    delayed.update(**encrypted())
    assert delayed.update(**INFREQUENT)["TableStatus"] == "UPDATING"


# Table classes


def class_of(service) -> tuple[str, Any]:
    found = service.described()
    return found["TableStatus"], found.get("TableClassSummary")


def test_a_class_is_shown_once_it_holds_table_180_table_284_table_285_table_052(delayed):
    settled(delayed)
    before = None
    for given in (INFREQUENT, STANDARD):
        answered = delayed.update(**given)
        assert (answered["TableStatus"], answered.get("TableClassSummary")) == ("UPDATING", before)
        for again in (INFREQUENT, STANDARD):
            text = "Can't update table class when a table class update is in progress. Table: orders "
            refused = in_use(f"{text}TableClassUpdateInProgress: {given['TableClass']}")
            check(delayed, "UpdateTable", {**ORDERS, **again}, refused)
        assert delayed.update(DeletionProtectionEnabled=False)["TableStatus"] == "UPDATING"
        check(delayed, "DeleteTable", ORDERS, IN_PROCESS)
        assert class_of(delayed) == ("UPDATING", before)
        at = delayed.clock.ms / 1000 + 10
        delayed.clock.ms += 10_000
        before = {"TableClass": given["TableClass"], "LastUpdateDateTime": at}
        assert class_of(delayed) == ("ACTIVE", before)
    check(delayed, "DeleteTable", ORDERS, OK)


def test_changes_of_the_class_in_a_month_table_283_table_365_table_180(service):
    service.table()
    check(service, "UpdateTable", {**ORDERS, **STANDARD}, OK)
    since = service.clock.ms / 1000
    for given, after in ((INFREQUENT, INFREQUENT), (INFREQUENT, INFREQUENT), (STANDARD, STANDARD)):
        check(service, "UpdateTable", {**ORDERS, **given}, OK)
        assert service.described()["TableClassSummary"] == {**after, "LastUpdateDateTime": since}
    text = "Subscriber limit exceeded: Updates to TableClass are limited to 2 times in 30 day(s)."
    for given in (INFREQUENT, STANDARD):
        check(service, "UpdateTable", {**ORDERS, **given}, ("LimitExceededException", text))
    service.clock.ms += 30 * DAY_MS
    check(service, "UpdateTable", {**ORDERS, **INFREQUENT}, OK)


# Requests during a change of the table


STREAM_CHANGES = "OnDemandThroughput cannot be updated while stream status update is i…"
CLASS_CHANGES = (
    "OnDemandThroughput cannot be updated while TableClass update is in progress. "
    "TableClassUpdateInProgress: STANDARD_INFREQUENT_ACCESS"
)
BILLING_CHANGES = "OnDemandThroughput cannot be updated while BillingMode update is in progress"
CLASS_MEANWHILE = (
    "Can't change stream status when a table class update is in progress. Table: orders "
    "TableClassUpdateInProgress: STANDARD_INFREQUENT_ACCESS"
)
MAXIMA = {"OnDemandThroughput": maxima(100, 100)}
PROVISION = {"BillingMode": "PROVISIONED", "ProvisionedThroughput": units(1, 1)}
IOPS = "Table IOPS are currently being updated. Table: orders"
JOBS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, str]]] = {
    "stream": (
        streaming("KEYS_ONLY"),
        streaming(),
        {
            "DeleteTable": "Cannot delete table while stream is being enabled/disabled.",
            "TableClass": "Can't update table class when stream status is being updated. Table: orders …",
            "OnDemandThroughput": STREAM_CHANGES,
            "reverse": "A stream status change is currently in progress. Table: orders …",
        },
    ),
    "class": (
        INFREQUENT,
        STANDARD,
        {
            "DeleteTable": "Table: orders is in the process of being updated.",
            "StreamSpecification": CLASS_MEANWHILE,
            "OnDemandThroughput": CLASS_CHANGES,
            "reverse": CLASS_MEANWHILE.replace("change stream status", "update table class"),
        },
    ),
    "billing": (
        PROVISION,
        {"BillingMode": "PROVISIONED", "ProvisionedThroughput": units(2, 2)},
        {
            "DeleteTable": "Table: orders is in the process of being updated.",
            "StreamSpecification": "Can't enable or disable stream while table IOPS are being updated. Table: orders",
            "OnDemandThroughput": BILLING_CHANGES,
            "reverse": IOPS,
        },
    ),
}


@pytest.mark.parametrize("job", JOBS)
def test_conflicting_changes_are_refused_meanwhile_table_002_table_119_table_286_table_369_table_450(
    delayed, job
):
    settled(delayed)
    began, reverse, refused = JOBS[job]
    delayed.update(**began)
    check(
        delayed,
        "CreateTable",
        {**CREATE, **ORDERS},
        ("ResourceInUseException", "Table already exists: orders"),
    )
    changes = {
        "TableClass": INFREQUENT,
        "StreamSpecification": streaming("KEYS_ONLY"),
        "OnDemandThroughput": MAXIMA,
    }
    for name, change in {**changes, "reverse": reverse}.items():
        if name in refused:
            check(delayed, "UpdateTable", {**ORDERS, **change}, in_use(refused[name]))
    check(delayed, "DeleteTable", ORDERS, in_use(refused["DeleteTable"]))
    if job == "stream":  # the same again, as in finding 002
        assert answer(delayed, "UpdateTable", {**ORDERS, **began})[0] in (
            "ResourceInUseException",
            "ValidationException",
        )


@pytest.mark.parametrize("job", JOBS)
def test_independent_changes_are_allowed_meanwhile_table_002_table_119_table_286_table_369_table_450(
    delayed, job
):
    settled(delayed)
    began, _, _ = JOBS[job]
    delayed.update(**began)
    assert delayed.update(**PROTECT)["TableStatus"] == "UPDATING"
    assert delayed.update(WarmThroughput=warm(13_000, 5_000))["TableStatus"] == "UPDATING"
    answered = delayed.update(**encrypted())
    assert (answered["TableStatus"], answered["SSEDescription"]) == ("ACTIVE", STUB)
    everything_else(delayed)
    assert delayed.described()["TableStatus"] == "UPDATING"
    delayed.clock.ms += 20_000
    found = delayed.described()
    assert (found["TableStatus"], found["DeletionProtectionEnabled"]) == ("ACTIVE", True)
    assert found["WarmThroughput"]["ReadUnitsPerSecond"] == 13_000
    assert found["SSEDescription"]["Status"] == "ENABLED"


def test_changes_while_a_table_becomes_on_demand_have_recorded_answers_table_369(delayed):
    settled(delayed, BillingMode=None, ProvisionedThroughput=units(1, 1))
    delayed.update(BillingMode="PAY_PER_REQUEST")
    for change in (PROVISION, {"BillingMode": "PAY_PER_REQUEST"}):
        check(delayed, "UpdateTable", {**ORDERS, **change}, in_use(IOPS))
    no_maxima = "MaxReadRequestUnits for OnDemandThroughput cannot be specified when the table BillingMode is PROVISIONED"
    check(delayed, "UpdateTable", {**ORDERS, **MAXIMA}, INVALID + no_maxima)
    check(delayed, "DeleteTable", ORDERS, IN_PROCESS)
    assert delayed.update(**PROTECT)["TableStatus"] == "UPDATING"
    delayed.clock.ms += 20_000
    check(delayed, "UpdateTable", {**ORDERS, **MAXIMA}, OK)


def test_maxima_are_changed_at_once_table_361(delayed):
    settled(delayed)
    for value in (100, 200):
        given = {"OnDemandThroughput": maxima(value, value)}
        for found in (delayed.update(**given), delayed.described()):
            assert (found["TableStatus"], found["OnDemandThroughput"]) == ("ACTIVE", maxima(value, value))
