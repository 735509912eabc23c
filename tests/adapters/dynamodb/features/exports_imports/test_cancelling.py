"""Cancelled jobs.

ImportStatus and BulkOperationStatus have CANCELLING and CANCELLED. ExportStatus has neither (botocore 1.44.5), so an
export ends FAILED. No operation of the service cancels an import or an export, and no text is documented.
"""

from __future__ import annotations

import gzip
from typing import Any

import pytest

from tablegate.gateway.features.history.backup_commands import ResetTables
from tablegate.gateway.features.jobs.job_commands import CancelJob, Job, ListUnfinishedJobs
from tablegate.gateway.security.gate import run_one
from tests.adapters.dynamodb.features.exports_imports.conftest import TABLE_ARN, Exporter
from tests.adapters.dynamodb.features.exports_imports.test_import_api import (
    begun,
    described,
    line,
    parameters,
)
from tests.support.job_runners import runner_of

NEWLINES = gzip.compress(b"\n" * (32 << 20), 1)


def unfinished(exporter: Exporter) -> list[Job]:
    return run_one(exporter.service.gateway.engine, ListUnfinishedJobs(), None)


def cancel(exporter: Exporter, job: Job) -> None:
    run_one(exporter.service.gateway.engine, CancelJob(job), None)


def test_a_cancelled_import_stops(exporter: Exporter) -> None:
    exporter.place.put("in/1", gzip.compress(line("a")) + NEWLINES)
    arn = begun(exporter, InputCompressionType="GZIP")["ImportArn"]
    for _ in range(3):
        exporter.step()
    [job] = unfinished(exporter)
    assert (job.kind, job.table_name) == ("dynamodb-import", "orders")
    cancel(exporter, job)
    assert described(exporter, arn)["ImportStatus"] == "CANCELLING"
    [summary] = exporter.ok("ListImports")["ImportSummaryList"]
    assert summary["ImportStatus"] == "CANCELLING"
    assert exporter.step()
    shown = described(exporter, arn)
    assert (shown["ImportStatus"], shown["FailureCode"]) == ("CANCELLED", "Cancelled")
    assert shown["FailureMessage"] == "The import was cancelled"
    assert "EndTime" in shown
    assert unfinished(exporter) == []
    assert not exporter.step()
    # Imported rows stay, in a normal table.
    assert exporter.service.described()["TableStatus"] == "ACTIVE"
    assert exporter.items("orders") == [{"pk": {"S": "a"}}]
    exporter.ok("DeleteTable", TableName="orders")


def test_an_import_that_has_not_begun(exporter: Exporter) -> None:
    arn = begun(exporter)["ImportArn"]
    cancel(exporter, unfinished(exporter)[0])
    assert exporter.step()
    assert described(exporter, arn)["ImportStatus"] == "CANCELLED"
    assert exporter.error("DescribeTable", TableName="orders")[0] == "ResourceNotFoundException"


@pytest.mark.parametrize("batches", [0, 1, 2, 3])
def test_a_cancelled_export_stops(exporter: Exporter, batches: int) -> None:
    """Before its first batch, while it waits for its copy, and while it writes."""
    exporter.service.table()
    exporter.keep_history()
    for first in range(0, 600, 25):
        puts = [{"PutRequest": {"Item": {"pk": {"S": f"{first + key}"}}}} for key in range(25)]
        exporter.ok("BatchWriteItem", RequestItems={"orders": puts})
    arn = exporter.export()["ExportArn"]
    for batch in range(batches):
        exporter.step()
        if batch:
            while exporter.service.gateway.engine.background.next_batch():
                pass
    [job] = unfinished(exporter)
    cancel(exporter, job)
    # The values of ExportStatus are IN_PROGRESS, COMPLETED and FAILED.
    shown = exporter.ok("DescribeExport", ExportArn=arn)["ExportDescription"]
    assert shown["ExportStatus"] == "IN_PROGRESS"
    assert exporter.step()
    shown = exporter.ok("DescribeExport", ExportArn=arn)["ExportDescription"]
    assert (shown["ExportStatus"], shown["FailureCode"]) == ("FAILED", "Cancelled")
    assert shown["FailureMessage"] == "The export was cancelled"
    exporter.work()
    assert not any(key.endswith("manifest-summary.json") for key in exporter.place.objects())
    with exporter.service.gateway.engine._store.read() as session:
        assert session.query("SELECT count(*) FROM copies") == [(0,)]
        assert session.query("SELECT count(*) FROM tables") == [(1,)]


def test_a_bulk_put_reports_its_items(exporter: Exporter) -> None:
    exporter.service.table()
    exporter.place.put("in/1", line("a") + b"\n" * (1 << 20) + line("b"))
    arn = exporter.ok(
        "StartBulkPutItems",
        TableName="orders",
        InputS3Configuration={
            "S3Bucket": "some-bucket",
            "S3KeyPrefix": "in/",
            "InputFormat": "DYNAMODB_JSON",
        },
        OutputS3Configuration={"S3Bucket": "some-bucket", "S3KeyPrefix": "r", "OutputType": ["ERROR"]},
    )["BulkOperationDescription"]["BulkOperationArn"]
    exporter.step()
    exporter.step()
    cancel(exporter, unfinished(exporter)[0])
    shown = exporter.ok("DescribeBulkOperation", BulkOperationArn=arn)["BulkOperationDescription"]
    assert (shown["BulkOperationStatus"], shown["ProcessedItemCount"]) == ("CANCELLING", 1)
    exporter.work()
    shown = exporter.ok("DescribeBulkOperation", BulkOperationArn=arn)["BulkOperationDescription"]
    assert (shown["BulkOperationStatus"], shown["ProcessedItemCount"]) == ("CANCELLED", 1)


def test_a_cancelled_job_is_ended_before_anything_else_is_done(exporter: Exporter) -> None:
    exporter.place.put("in/1", NEWLINES)
    arns = [
        begun(
            exporter,
            InputCompressionType="GZIP",
            TableCreationParameters=parameters(f"many{number}"),
        )["ImportArn"]
        for number in range(14)
    ]
    for _ in range(20):
        exporter.step()
    jobs = unfinished(exporter)
    assert len(jobs) == 14
    for number in (13, 0):
        cancel(exporter, jobs[number])
    exporter.step()
    exporter.step()
    states = [described(exporter, arn)["ImportStatus"] for arn in arns]
    assert states == ["CANCELLED", *["IN_PROGRESS"] * 12, "CANCELLED"]


@pytest.mark.parametrize("given", [{}, {"names": frozenset({"orders"})}])
def test_a_reset_ends_jobs(exporter: Exporter, given: dict[str, Any]) -> None:
    """Covers a reset of all tables and of the tables that it drops."""
    exporter.place.put("in/1", NEWLINES)
    arn = begun(exporter, InputCompressionType="GZIP")["ImportArn"]
    other = begun(exporter, InputCompressionType="GZIP", TableCreationParameters=parameters("other"))
    for _ in range(6):
        exporter.step()
    worker = runner_of(exporter.service.gateway.engine)._workers["dynamodb-import"]
    assert len(worker._open) == 2  # type: ignore[attr-defined]
    run_one(exporter.service.gateway.engine, ResetTables(**given), None)
    assert exporter.error("DescribeImport", ImportArn=arn)[0] == "ImportNotFoundException"
    left = unfinished(exporter)
    assert [job.table_name for job in left] == (["other"] if given else [])
    exporter.step()
    assert len(worker._open) == len(left)  # type: ignore[attr-defined]
    if given:
        assert described(exporter, other["ImportArn"])["ImportStatus"] == "IN_PROGRESS"
    else:
        assert exporter.ok("ListTables")["TableNames"] == []
    exporter.service.table()
    assert exporter.service.described()["TableArn"] == TABLE_ARN
