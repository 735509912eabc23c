"""Findings of import.md that tests/adapters/dynamodb/features/exports_imports/test_import_api.py has not."""

from __future__ import annotations

import pytest

from tests.adapters.dynamodb.features.exports_imports.test_import_api import (
    begun,
    counts,
    described,
    given,
    imported,
    line,
    parameters,
)
from tests.adapters.dynamodb.measured.recorded import (
    DETECTED,
    INVALID,
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

ON_DEMAND = {"MaxReadRequestUnits": 100, "MaxWriteRequestUnits": 100}
UNITS = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
BACKUPS = (
    "ContinuousBackupsUnavailableException",
    "Backups are being enabled for the table: orders. Please retry later",
)
# For a table of CreateTable (TABLE-115). An imported table gives the answer of UpdateContinuousBackups.
NOT_THERE = ("TableNotFoundException", "Table not found: orders")
TTL = {"TimeToLiveSpecification": {"Enabled": True, "AttributeName": "ttl"}}
RECOVERY = {"PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}}
ORDERS = {"TableName": "orders"}


def test_a_table_that_is_being_imported_import_001(exporter):
    exporter.place.put("in/1.json", line("a"))
    begun(exporter)
    check(
        exporter.service,
        "UpdateTable",
        {**ORDERS, "DeletionProtectionEnabled": True},
        not_found("Table: orders not found"),
    )
    assert exporter.step()
    for operation, more, recorded in [
        ("UpdateTable", {"DeletionProtectionEnabled": True}, in_use("Table is being created: orders")),
        ("CreateBackup", {"BackupName": "bkp"}, NOT_THERE),
        ("UpdateTimeToLive", TTL, in_use("Table orders is being created")),
        ("UpdateContinuousBackups", RECOVERY, BACKUPS),
        ("DescribeContinuousBackups", {}, OK),
    ]:
        check(exporter.service, operation, {**ORDERS, **more}, recorded)
    tagged = {"ResourceArn": arn("orders"), "Tags": tags(a="b")}
    check(exporter.service, "TagResource", tagged, not_found(f"ResourceArn: {arn('orders')} not found"))


def test_descriptions_repeat_the_parameters_import_004(exporter):
    encryption = {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": "alias/aws/dynamodb"}
    made = parameters(SSESpecification=encryption, OnDemandThroughput=ON_DEMAND)
    shown = imported(exporter, TableCreationParameters=made)
    assert (shown["ImportStatus"], shown["TableCreationParameters"]) == ("COMPLETED", made)


def test_an_imported_table_is_as_any_other_import_005(exporter):
    imported(exporter)
    assert not [name for name in exporter.service.described() if "Import" in name or "Restore" in name]
    tagged = {"ResourceArn": arn("orders"), "Tags": tags(a="b")}
    exporter.ok("TagResource", **tagged)
    exporter.ok("UpdateTimeToLive", **ORDERS, **TTL)
    exporter.ok("UpdateContinuousBackups", **ORDERS, **RECOVERY)
    exporter.ok("UpdateTable", **ORDERS, DeletionProtectionEnabled=True)
    exporter.ok("CreateBackup", **ORDERS, BackupName="bkp")


def test_objects_that_change_meanwhile_import_007(exporter):
    for number in range(4):
        exporter.place.put(f"in/{number}", line(str(number)))
    shown = begun(exporter)
    exporter.step()
    exporter.place.put("in/3", b"no item\n")
    exporter.work()
    shown = described(exporter, shown["ImportArn"])
    assert (shown["ImportStatus"], shown["FailureCode"], counts(shown)) == (
        "FAILED",
        "ItemValidationError",
        (4, 3, 1),
    )
    assert exporter.service.described()["TableStatus"] == "ACTIVE"


REFUSED: list[Case] = [
    (
        "IMPORT-009",
        "ImportTable",
        {
            "TableCreationParameters": {
                name: value for name, value in parameters().items() if name != "BillingMode"
            }
        },
        f"{INVALID}ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED",
    ),
    (
        "IMPORT-009",
        "ImportTable",
        {
            "TableCreationParameters": parameters(
                BillingMode="PROVISIONED",
                ProvisionedThroughput=UNITS,
                OnDemandThroughput={"MaxWriteRequestUnits": 100},
            )
        },
        f"{INVALID}MaxWriteRequestUnits for OnDemandThroughput cannot be specified when table BillingMode is PROVISIONED.",
    ),
    (
        "IMPORT-009",
        "ImportTable",
        {"InputFormat": "CSV", "InputFormatOptions": {"Csv": {"Delimiter": ";;"}}},
        (
            "2 validation errors detected: Value ';;' at 'inputFormatOptions.csv.delimiter' failed to satisfy constraint: "
            "Member must satisfy regular expression pattern: [,;…"
        ),
    ),
    (
        "IMPORT-009",
        "ImportTable",
        {"InputFormatOptions": {"Csv": {"Delimiter": ";"}}},
        "Invalid Request: Unsupported InputFormatOptions for the given input format: DYNAMODB_JSON.",
    ),
    (
        "IMPORT-009",
        "ImportTable",
        {"InputCompressionType": "BZIP2"},
        (
            f"{DETECTED}'BZIP2' at 'inputCompressionType' failed to satisfy constraint: "
            "Member must satisfy enum value set: [ZSTD, NONE, GZIP]"
        ),
    ),
]


@each(REFUSED)
def test_imports_that_are_refused(exporter, operation, request_, recorded):
    check(exporter.service, operation, given(**request_), recorded)


NO_SUCH_JOB = [
    ("IMPORT-010", arn("orders/import/01700000000000-0123abcd"), "NotFound"),
    ("IMPORT-010", arn("orders"), "Invalid"),
    ("IMPORT-010", arn("orders/{other}/01700000000000-0123abcd"), "Invalid"),
    ("IMPORT-010", arn("orders/import/01700000000000-0123abcd", region="us-west-2"), "NotFound"),
    ("IMPORT-010", arn("orders/import/01700000000000-0123abcd", account="111122223333"), "Denied"),
]


@pytest.mark.parametrize("kind", ["Import", "Export"])
@pytest.mark.parametrize(("name", "outcome"), [pytest.param(*each[1:], id=each[0]) for each in NO_SUCH_JOB])
def test_jobs_that_are_not_there(separate, kind, name, outcome):
    other = "export" if kind == "Import" else "import"
    name = name.replace("/import/", f"/{kind.lower()}/").replace("{other}", other)
    code, text = answer(separate, f"Describe{kind}", {f"{kind}Arn": name})
    if outcome == "NotFound":
        assert code == f"{kind}NotFoundException"
    elif outcome == "Denied":
        assert (code, text) == ("AccessDeniedException", "Access is denied")
    else:
        assert (code, text) == ("ValidationException", f"Invalid {kind} ARN")


BOUNDS: list[Case] = [
    (
        "IMPORT-011",
        operation,
        {name: size},
        f"{DETECTED}'{size}' at '{name[0].lower()}{name[1:]}' failed to satisfy constraint: Member must have value {bound}",
    )
    for operation, name in (("ListImports", "PageSize"), ("ListExports", "MaxResults"))
    for size, bound in ((0, "greater than or equal to 1"), (26, "less than or equal to 25"))
]


@each(BOUNDS)
def test_pages_of_jobs(service, operation, request_, recorded):
    check(service, operation, request_, recorded)


@pytest.mark.parametrize("compression", [{"InputCompressionType": "NONE"}, {}])
def test_packed_files_read_as_they_are_import_020(exporter, compression):
    exporter.service.table()
    exporter.keep_history()
    exporter.put(*"abc")
    manifest = exporter.exported()["ExportManifest"]
    prefix = manifest.rpartition("/")[0] + "/data/"
    shown = imported(exporter, prefix=prefix, TableCreationParameters=parameters("again"), **compression)
    assert (shown["ImportStatus"], shown["FailureCode"]) == ("FAILED", "ItemValidationError")
    assert shown["ImportedItemCount"] == 0
    assert exporter.items("again") == []


def test_a_name_that_is_being_deleted_import_019(delayed_exporter):
    exporter = delayed_exporter
    exporter.service.table()
    exporter.service.clock.ms += 20_000
    exporter.ok("DeleteTable", TableName="orders")
    assert exporter.service.described()["TableStatus"] == "DELETING"
    assert exporter.error("ImportTable", **given()) == (
        "ResourceInUseException",
        "Table already exists: orders",
    )
