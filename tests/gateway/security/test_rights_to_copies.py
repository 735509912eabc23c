"""Operations that copy rows elsewhere need the right to read them: restores, exports, imports, streaming destinations,
split points.

Also the rights of `--admin` on backups, exports and imports of the tables of its pattern (docs/operate/grants.md).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tablegate.adapters.dynamodb.call import CallContext
from tablegate.adapters.dynamodb.features.exports_imports.job_documents import definition_of
from tablegate.adapters.dynamodb.features.exports_imports.object_stores import ObjectStoreRejection
from tablegate.adapters.dynamodb.features.exports_imports.object_worker import check_readable
from tablegate.adapters.dynamodb.wire.signature_claims import Caller
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.features.history.backup_commands import ResetTables
from tablegate.gateway.features.jobs.job_commands import Job
from tablegate.gateway.model.authorization.authorizations import Authorization, RequestSource
from tablegate.gateway.model.authorization.grants import DENY_ALL, EVERYTHING, NOTHING, Policy
from tablegate.gateway.security.credentials import TokenPolicies
from tablegate.gateway.security.gate import run_one
from tablegate.gateway.security.identities import Identity
from tests.support.strict import LIMITED, Strict, Told, strict

ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/"
KINESIS = "arn:aws:kinesis:us-east-1:000000000000:stream/images"
SCHEMA = {
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}
RESTORING = (
    "RestoreTableFromBackup", "RestoreTableToPointInTime", "GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query",
    "Scan", "BatchWriteItem",
)  # fmt: skip


def allow(*actions: str, on: str) -> dict[str, Any]:
    statement = {
        "Effect": "Allow",
        "Action": [f"dynamodb:{action}" for action in actions],
        "Resource": f"{ARN}{on}".replace("us-east-1:000000000000", "*:*"),
    }
    return {"Version": "2012-10-17", "Statement": [statement]}


@pytest.fixture
def server(database_url: str, tmp_path: Path) -> Iterator[Strict]:
    (tmp_path / "objects" / "bucket").mkdir(parents=True)
    settings = {"s3_folder": str(tmp_path / "objects"), "kinesis_endpoint_url": "http://127.0.0.1:1"}
    with strict(database_url, **settings) as made:
        for name in ("orders", "secret"):
            made.ok("CreateTable", TableName=name, **SCHEMA)
            made.ok("PutItem", TableName=name, Item={"pk": {"S": "k"}})
            on = {"PointInTimeRecoveryEnabled": True}
            made.ok("UpdateContinuousBackups", TableName=name, PointInTimeRecoverySpecification=on)
        yield made


def work(server: Strict) -> None:
    """Everything that is to be done in the background."""
    engine = server.gateway.engine
    while engine.background.next_batch() or engine.background.batch_of("jobs"):
        pass


def backup_of(server: Strict, table: str, caller: str = "full") -> str:
    made = server.ok("CreateBackup", caller, TableName=table, BackupName="saved")
    work(server)
    return str(made["BackupDetails"]["BackupArn"])


def refused(told: Told, action: str, resource: str) -> bool:
    named = f"dynamodb:{action} on resource: {ARN}{resource} "
    return (told.status, told.code) == (400, "AccessDeniedException") and named in told.text


def test_a_restore_needs_scan_of_the_source_table(server: Strict) -> None:
    """Otherwise the rows of a table that a caller may not read are read in the copy."""
    backup = backup_of(server, "secret")
    grants = [allow("Restore*", on="secret*"), allow(*RESTORING, on="copy*")]
    server.grant(LIMITED, *grants)
    by_backup = {"BackupArn": backup, "TargetTableName": "copy1"}
    by_moment = {"SourceTableName": "secret", "UseLatestRestorableTime": True, "TargetTableName": "copy2"}
    assert refused(server.dynamodb(LIMITED, "RestoreTableFromBackup", **by_backup), "Scan", "secret")
    assert refused(server.dynamodb(LIMITED, "RestoreTableToPointInTime", **by_moment), "Scan", "secret")
    server.grant(LIMITED, *grants, allow("Scan", on="secret"))
    server.ok("RestoreTableFromBackup", LIMITED, **by_backup)
    server.ok("RestoreTableToPointInTime", LIMITED, **by_moment)


def test_an_export_needs_scan_of_its_table(server: Strict) -> None:
    server.grant(LIMITED, allow("ExportTableToPointInTime", on="secret"))
    given = {"TableArn": f"{ARN}secret", "S3Bucket": "bucket"}
    assert refused(server.dynamodb(LIMITED, "ExportTableToPointInTime", **given), "Scan", "secret")
    server.grant(LIMITED, allow("ExportTableToPointInTime", "Scan", on="secret"))
    server.ok("ExportTableToPointInTime", LIMITED, **given)


@pytest.mark.parametrize("condition", ["dynamodb:Attributes", "dynamodb:LeadingKeys"])
def test_scan_of_some_rows_or_attributes_allows_no_export(server: Strict, condition: str) -> None:
    """An export has all rows and attributes, as a scan without a projection does (docs/operate/grants.md)."""
    some = allow("Scan", on="secret")
    some["Statement"][0]["Condition"] = {"ForAllValues:StringEquals": {condition: ["pk"]}}
    server.grant(LIMITED, allow("ExportTableToPointInTime", on="secret"), some)
    given = {"TableArn": f"{ARN}secret", "S3Bucket": "bucket"}
    assert refused(server.dynamodb(LIMITED, "ExportTableToPointInTime", **given), "Scan", "secret")


def test_a_streaming_destination_needs_the_right_to_read_the_stream(server: Strict) -> None:
    """All images of the table go to it."""
    given = {"TableName": "orders", "StreamArn": KINESIS}
    server.grant(LIMITED, {"define": ["orders"]})
    told = server.dynamodb(LIMITED, "EnableKinesisStreamingDestination", **given)
    assert refused(told, "GetRecords", "orders/stream/*")
    elsewhere = {**given, "StreamArn": KINESIS.replace("us-east-1", "eu-west-1")}
    told = server.dynamodb(LIMITED, "EnableKinesisStreamingDestination", **elsewhere)
    assert refused(told, "GetRecords", "orders/stream/*")
    server.grant(LIMITED, {"define": ["orders"], "stream": ["orders"]})
    server.ok("EnableKinesisStreamingDestination", LIMITED, **given)
    server.grant(LIMITED, allow("*KinesisStreamingDestination", on="orders"))
    precision = {"ApproximateCreationDateTimePrecision": "MICROSECOND"}
    changed = {**given, "UpdateKinesisStreamingConfiguration": precision}
    server.ok("UpdateKinesisStreamingDestination", LIMITED, **changed)
    server.ok("DescribeKinesisStreamingDestination", LIMITED, TableName="orders")


def test_a_policy_can_permit_a_streaming_destination(server: Strict) -> None:
    given = {"TableName": "orders", "StreamArn": KINESIS}
    enabling = allow("EnableKinesisStreamingDestination", on="orders")
    server.grant(LIMITED, enabling, allow("GetRecords", on="orders/stream/2026-01-01T00:00:00.000"))
    told = server.dynamodb(LIMITED, "EnableKinesisStreamingDestination", **given)
    assert refused(told, "GetRecords", "orders/stream/*")
    server.grant(LIMITED, enabling, allow("GetRecords", on="orders/stream/*"))
    server.ok("EnableKinesisStreamingDestination", LIMITED, **given)


@pytest.mark.parametrize(
    ("grant", "status"),
    [
        ({"write": ["orders"]}, 403),
        ({"define": ["orders"]}, 403),
        ({"read": ["orders"], "query": ["orders"]}, 403),
        ({"scan": ["orders"]}, 200),
        ({"admin": ["orders"]}, 200),
        (allow("DescribeTable", on="orders"), 403),
        (allow("Scan", on="orders"), 200),
    ],
)
def test_split_points_need_scan(server: Strict, grant: Any, status: int) -> None:
    """They are partition keys of rows."""
    server.grant(LIMITED, grant)
    message = messages.ComputeSplitPointsBySizeRequest(table_name="orders", split_size=1)
    assert server.tablestore(LIMITED, "ComputeSplitPointsBySize", message).status == status


def test_split_points_have_their_own_action_in_ram(server: Strict) -> None:
    message = messages.ComputeSplitPointsBySizeRequest(table_name="orders", split_size=1)
    for action, status in (
        ("DescribeTable", 403),
        ("PutRow", 403),
        ("GetRange", 403),
        ("ComputeSplitPointsBySize", 200),
    ):
        on = "acs:ots:*:*:instance/inst/table/orders"
        statement = {"Effect": "Allow", "Action": f"ots:{action}", "Resource": on}
        server.grant(LIMITED, {"Version": "1", "Statement": [statement]})
        assert server.tablestore(LIMITED, "ComputeSplitPointsBySize", message).status == status, action
    refusal = {**statement, "Effect": "Deny", "Action": "ots:GetRange"}
    server.grant(LIMITED, {"admin": ["orders"]}, {"Version": "1", "Statement": [refusal]})
    assert server.tablestore(LIMITED, "ComputeSplitPointsBySize", message).status == 403


SCANS_WITH_LIMITS: list[tuple[list[Any], int, int]] = [
    # grants, status of a scan of all attributes, status of a scan of `note`
    ([{"scan": ["orders"], "keys": ["*"]}], 400, 400),
    ([{"scan": ["orders"], "attributes": ["note"]}], 400, 200),
    ([{"read": ["orders"], "query": ["orders"], "scan": ["orders"], "attributes": ["*"]}], 400, 200),
    ([{"admin": ["orders"]}, {"scan": ["orders"], "keys": ["u1"], "deny": True}], 400, 400),
    ([{"admin": ["orders"]}, {"scan": ["orders"], "attributes": ["secret"], "deny": True}], 400, 200),
    ([{"scan": ["orders"], "attributes": ["note"]}, {"scan": ["orders"]}], 200, 200),
]


def test_only_a_scan_without_limits_allows_split_points(server: Strict) -> None:
    """They are keys of any rows."""
    message = messages.ComputeSplitPointsBySizeRequest(table_name="orders", split_size=1)
    for grants, scan, scan_of_note in SCANS_WITH_LIMITS:
        server.grant(LIMITED, *grants)
        found = (
            server.dynamodb(LIMITED, "Scan", TableName="orders").status,
            server.dynamodb(LIMITED, "Scan", TableName="orders", ProjectionExpression="note").status,
            server.tablestore(LIMITED, "ComputeSplitPointsBySize", message).status,
        )
        assert found == (scan, scan_of_note, 200 if scan == 200 else 403), grants


# The life cycle under --admin


def test_admin_of_a_pattern_covers_the_life_of_backups(server: Strict) -> None:
    theirs = backup_of(server, "secret")
    server.grant(LIMITED, {"admin": ["orders*"]})
    own = backup_of(server, "orders", LIMITED)
    listed = server.ok("ListBackups", LIMITED)["BackupSummaries"]
    assert [each["BackupArn"] for each in listed] == [own]
    assert len(server.ok("ListBackups", LIMITED, TableName="orders")["BackupSummaries"]) == 1
    assert server.ok("ListBackups", LIMITED, TableName="secret")["BackupSummaries"] == []
    assert server.ok("DescribeBackup", LIMITED, BackupArn=own)["BackupDescription"]
    server.ok("RestoreTableFromBackup", LIMITED, BackupArn=own, TargetTableName="orders2")
    elsewhere = {"BackupArn": own, "TargetTableName": "copy"}
    assert refused(
        server.dynamodb(LIMITED, "RestoreTableFromBackup", **elsewhere), "RestoreTableFromBackup", "copy"
    )
    work(server)
    server.ok("DeleteBackup", LIMITED, BackupArn=own)
    for operation in ("DescribeBackup", "DeleteBackup"):
        told = server.dynamodb(LIMITED, operation, BackupArn=theirs)
        assert refused(told, operation, theirs.partition(":table/")[2])


def test_admin_of_a_pattern_covers_the_life_of_jobs(server: Strict) -> None:
    arns = {}
    for caller, table in (("full", "secret"), (LIMITED, "orders")):
        server.grant(LIMITED, {"admin": ["orders*"]})
        export = server.ok("ExportTableToPointInTime", caller, TableArn=f"{ARN}{table}", S3Bucket="bucket")
        source = {
            "S3BucketSource": {"S3Bucket": "bucket", "S3KeyPrefix": "in/"},
            "InputFormat": "DYNAMODB_JSON",
        }
        made = server.ok(
            "ImportTable", caller, TableCreationParameters={"TableName": f"{table}2", **SCHEMA}, **source
        )
        bulk = {
            "InputS3Configuration": {
                "S3Bucket": "bucket",
                "S3KeyPrefix": "in/",
                "InputFormat": "DYNAMODB_JSON",
            },
            "OutputS3Configuration": {"S3Bucket": "bucket", "OutputType": ["ERROR"]},
        }
        loaded = server.ok("StartBulkPutItems", caller, TableName=table, **bulk)
        arns[table] = {
            "Export": export["ExportDescription"]["ExportArn"],
            "Import": made["ImportTableDescription"]["ImportArn"],
            "BulkOperation": loaded["BulkOperationDescription"]["BulkOperationArn"],
        }
    lists = {
        "Export": ("ListExports", "ExportSummaries"),
        "Import": ("ListImports", "ImportSummaryList"),
        "BulkOperation": ("ListBulkOperations", "BulkOperationsSummaryList"),
    }
    for kind, (operation, member) in lists.items():
        listed = server.ok(operation, LIMITED)[member]
        assert [each[f"{kind}Arn"] for each in listed] == [arns["orders"][kind]]
        server.ok(f"Describe{kind}", LIMITED, **{f"{kind}Arn": arns["orders"][kind]})
        theirs = arns["secret"][kind]
        told = server.dynamodb(LIMITED, f"Describe{kind}", **{f"{kind}Arn": theirs})
        assert refused(told, f"Describe{kind}", theirs.partition(":table/")[2])
    server.ok("CancelBulkOperation", LIMITED, BulkOperationArn=arns["orders"]["BulkOperation"])


def test_pages_of_a_list_count_what_is_not_shown(server: Strict) -> None:
    """So a page may be empty, but the pages end, and each backup of the caller's tables is on one of them."""
    for table in ("orders", "secret", "orders"):
        backup_of(server, table)
    server.grant(LIMITED, {"admin": ["secret"]})
    found, more, pages = [], {}, 0
    while pages == 0 or more:
        page = server.ok("ListBackups", LIMITED, Limit=1, **more)
        found += page["BackupSummaries"]
        more = (
            {"ExclusiveStartBackupArn": page["LastEvaluatedBackupArn"]}
            if "LastEvaluatedBackupArn" in page
            else {}
        )
        pages += 1
    assert [each["TableName"] for each in found] == ["secret"]
    assert pages == 3


def test_a_policy_on_everything_lists_every_backup(server: Strict) -> None:
    """ListBackups has no resource of its own (service authorization reference)."""
    backup_of(server, "secret")
    statement = {"Effect": "Allow", "Action": "dynamodb:ListBackups", "Resource": "*"}
    server.grant(LIMITED, {"Version": "2012-10-17", "Statement": [statement]})
    assert len(server.ok("ListBackups", LIMITED)["BackupSummaries"]) == 1
    server.grant(LIMITED, allow("ListBackups", on="secret"))
    assert server.dynamodb(LIMITED, "ListBackups", TableName="secret").code == "AccessDeniedException"


# Objects of exports


def importing(prefix: str) -> dict[str, Any]:
    source = {"S3Bucket": "bucket", "S3KeyPrefix": prefix} if prefix else {"S3Bucket": "bucket"}
    parameters = {"TableName": "orders2", **SCHEMA}
    return {"S3BucketSource": source, "InputFormat": "DYNAMODB_JSON", "TableCreationParameters": parameters}


def loading(prefix: str) -> dict[str, Any]:
    source = {"S3Bucket": "bucket", "S3KeyPrefix": prefix, "InputFormat": "DYNAMODB_JSON"}
    report = {"S3Bucket": "bucket", "OutputType": ["ERROR"]}
    return {"TableName": "orders", "InputS3Configuration": source, "OutputS3Configuration": report}


IMPORT = ("ImportTable", "DescribeImport", "ImportTableDescription", "ImportArn", "ImportStatus")
BULK = (
    "StartBulkPutItems", "DescribeBulkOperation", "BulkOperationDescription", "BulkOperationArn", "BulkOperationStatus",
)  # fmt: skip


def outcome(server: Strict, job: tuple[str, ...], given: dict[str, Any]) -> tuple[str, str]:
    """The FailureCode of a job of the limited caller, or else its status, and its FailureMessage."""
    operation, describe, member, arn, status = job
    number = server.ok(operation, LIMITED, **given)[member][arn]
    work(server)
    shown = server.ok(describe, LIMITED, **{arn: number})[member]
    if operation == "ImportTable":
        server.dynamodb("full", "DeleteTable", TableName="orders2")
        work(server)
    return shown.get("FailureCode", shown[status]), shown.get("FailureMessage", "")


def exported(server: Strict, **more: Any) -> str:
    """The folder of a complete export of the table "secret"."""
    given = {"TableArn": f"{ARN}secret", "S3Bucket": "bucket", "S3Prefix": "out", **more}
    made = server.ok("ExportTableToPointInTime", **given)
    work(server)
    return f"out/AWSDynamoDB/{made['ExportDescription']['ExportArn'].rpartition('/')[2]}/"


def test_an_import_reads_no_export_of_a_table_that_the_caller_may_not_scan(server: Strict) -> None:
    """Each object names its table."""
    folder = exported(server)
    server.grant(LIMITED, {"admin": ["orders*"]})
    for prefix in (folder, f"{folder}data/", "out/", "out/AWS", ""):
        for job, given in ((IMPORT, importing(prefix)), (BULK, loading(prefix))):
            if prefix or job is IMPORT:
                code, text = outcome(server, job, given)
                assert code == "S3AccessDenied", (prefix, given)
                assert f"s3://bucket/{prefix} has objects" in text
                assert "secret" not in text
    items = server.ok("Scan", TableName="orders")["Items"]
    assert items == [{"pk": {"S": "k"}}]
    assert outcome(server, BULK, loading("in/"))[0] == "COMPLETED"
    assert outcome(server, IMPORT, importing("out/elsewhere/"))[0] == "COMPLETED"
    server.grant(LIMITED, {"admin": ["orders*"], "scan": ["secret"]})
    given = {**importing(f"{folder}data/"), "InputCompressionType": "GZIP"}
    assert outcome(server, IMPORT, given)[0] == "COMPLETED"


def test_an_export_stays_bound_without_its_job_and_its_table(server: Strict) -> None:
    """Nothing of it is in the database then."""
    folder = exported(server)
    run_one(server.gateway.engine, ResetTables(), None)
    work(server)
    server.ok("CreateTable", TableName="orders", **SCHEMA)
    server.grant(LIMITED, {"admin": ["orders*"]})
    assert outcome(server, IMPORT, importing(f"{folder}data/"))[0] == "S3AccessDenied"
    assert outcome(server, BULK, loading(f"{folder}data/"))[0] == "S3AccessDenied"


def test_an_export_that_ends_while_an_import_runs_is_not_read(server: Strict) -> None:
    server.grant(LIMITED, {"admin": ["orders*"]})
    begun = server.ok("ImportTable", LIMITED, **importing("out/"))["ImportTableDescription"]["ImportArn"]
    server.gateway.engine.background.batch_of("jobs")
    exported(server)
    work(server)
    shown = server.ok("DescribeImport", LIMITED, ImportArn=begun)["ImportTableDescription"]
    assert shown["FailureCode"] == "S3AccessDenied"


def test_a_grant_that_is_removed_counts_for_an_import_that_runs(server: Strict) -> None:
    folder = exported(server)
    server.grant(LIMITED, {"admin": ["orders*"], "scan": ["secret"]})
    begun = server.ok("ImportTable", LIMITED, **importing(f"{folder}data/"))["ImportTableDescription"]
    server.grant(LIMITED, {"admin": ["orders*"]})
    work(server)
    shown = server.ok("DescribeImport", LIMITED, ImportArn=begun["ImportArn"])["ImportTableDescription"]
    assert shown["FailureCode"] == "S3AccessDenied"


def test_scan_of_some_attributes_reads_no_export(server: Strict) -> None:
    folder = exported(server)
    some = allow("Scan", on="secret")
    some["Statement"][0]["Condition"] = {"ForAllValues:StringEquals": {"dynamodb:Attributes": ["pk"]}}
    server.grant(LIMITED, {"admin": ["orders*"]}, some)
    assert outcome(server, IMPORT, importing(f"{folder}data/"))[0] == "S3AccessDenied"


def test_a_report_of_a_bulk_put_is_bound_to_its_table(server: Strict, tmp_path: Path) -> None:
    """Its lines have the items of others, and those of the table."""
    (tmp_path / "objects" / "bucket" / "in").write_text('{"Item": {"x": {"S": "1"}}}\n')
    report = {"S3Bucket": "bucket", "S3KeyPrefix": "report", "OutputType": ["ERROR"]}
    made = server.ok(
        "StartBulkPutItems", **{**loading("in"), "TableName": "secret", "OutputS3Configuration": report}
    )
    work(server)
    arn = made["BulkOperationDescription"]["BulkOperationArn"]
    shown = server.ok("DescribeBulkOperation", BulkOperationArn=arn)["BulkOperationDescription"]
    assert shown["BulkOperationStatus"] == "COMPLETED_WITH_ERRORS"
    server.grant(LIMITED, {"admin": ["orders*"]})
    assert outcome(server, BULK, loading("report/"))[0] == "S3AccessDenied"
    assert outcome(server, BULK, loading("in"))[0] == "COMPLETED_WITH_ERRORS"


@pytest.mark.parametrize("namespace", ["aws/2/us-east-1", "aws/1/eu-west-1"])
def test_an_export_of_another_account_is_read_by_no_key(database_url: str, namespace: str) -> None:
    """If accounts are separate, a bucket that both can name is no grant. Regions of an account are not separate."""
    with strict(database_url, namespaces="separate") as server:
        definition = {"caller": {"access_id": "full"}, "source": None}
        job = Job(1, "dynamodb-import", "aws/1/us-east-1", "orders", definition, {}, "", 0)
        allowed = namespace.startswith("aws/1/")
        with contextlib.nullcontext() if allowed else pytest.raises(ObjectStoreRejection):
            check_readable(server.gateway, job, f"{namespace}/secret", "s3://bucket/")


@pytest.mark.parametrize(
    ("policy", "is_allowed"), [(EVERYTHING, True), (NOTHING, False)], ids=["all", "none"]
)
def test_an_unrestricted_identity_reads_exports_as_a_key_does(
    server: Strict, policy: Policy, is_allowed: bool
) -> None:
    caller = Caller("entra/alice", "000000000000", "us-east-1", "shared")
    authorization = Authorization(policy, Identity("alice").caller_in(), RequestSource("127.0.0.1", True), 0)
    call = CallContext("ImportTable", {}, caller, server.gateway, authorization=authorization)
    job = Job(1, "dynamodb-import", "shared", "orders", definition_of(call, "orders"), {}, "", 0)
    with contextlib.nullcontext() if is_allowed else pytest.raises(ObjectStoreRejection):
        check_readable(server.gateway, job, "shared/secret", "s3://bucket/")


def test_the_groups_and_roles_of_an_identity_decide_which_exports_its_job_reads(server: Strict) -> None:
    """A job has the principals of the token that began it. Their grants count when an object is read."""
    caller, identity = (
        Caller("entra/alice", "000000000000", "us-east-1", "shared"),
        Identity("alice", ("ops",), ("clerk",)),
    )
    authorization = Authorization(NOTHING, identity.caller_in(), RequestSource("127.0.0.1", True), 0)
    call = CallContext("ImportTable", {}, caller, server.gateway, authorization=authorization)
    stored = json.loads(json.dumps(definition_of(call, "orders")))
    job = Job(1, "dynamodb-import", "shared", "orders", stored, {}, "", 0)
    for policies, is_allowed in (
        ({}, False),
        ({"group/ops": None}, True),
        ({"role/clerk": None}, True),
        ({"group/other": None}, False),
        ({"entra/alice": None, "group/ops": DENY_ALL}, False),
        ({"entra/alice": None, "role/clerk": DENY_ALL}, False),
    ):
        server.gateway.credentials.token_policies = TokenPolicies(policies)
        with contextlib.nullcontext() if is_allowed else pytest.raises(ObjectStoreRejection):
            check_readable(server.gateway, job, "shared/secret", "s3://bucket/")
