"""Jobs of ten accounts take turns: a short one does not wait until the long ones of others are done."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tablegate.gateway.engine import scheduler
from tablegate.gateway.engine.scheduler import MIN_ROWS
from tablegate.gateway.security.credentials import Credential, Scheme
from tests.adapters.dynamodb.client import DynamoDBService, signed
from tests.adapters.dynamodb.features.exports_imports.test_import_api import given, line, parameters
from tests.support.clock import Clock
from tests.support.object_places import FolderPlace

ACCOUNTS = [f"{number:012}" for number in range(10)]
KEYS = [Credential(Scheme.AWS, f"AKIA{account}", ("secret",), account) for account in ACCOUNTS]
ROWS = 4_000


class Accounts:
    """One server that ten accounts use, each in two regions: regions of an account share its turns."""

    def __init__(self, service: DynamoDBService) -> None:
        self._service = service
        self.engine = service.gateway.engine
        self.job_batches = 0
        self.region = "us-east-1"

    def call(self, account: str, operation: str, **members: Any) -> Any:
        answer = self._service.call(operation, members, **signed(f"AKIA{account}", self.region))
        assert self._service.last.status == 200, answer
        return answer

    def table(self, account: str, keys: int) -> str:
        """Return the ARN of a table with some items and a history."""
        made = self.call(account, "CreateTable", **parameters("orders"))["TableDescription"]["TableArn"]
        on = {"PointInTimeRecoveryEnabled": True}
        self.call(account, "UpdateContinuousBackups", TableName="orders", PointInTimeRecoverySpecification=on)
        for first in range(0, keys, 25):
            puts = [{"PutRequest": {"Item": {"pk": {"S": f"{first + key}"}}}} for key in range(min(25, keys))]
            self.call(account, "BatchWriteItem", RequestItems={"orders": puts})
        return str(made)

    def work_until(self, account: str, operation: str, member: str, status: str, **arn: str) -> None:
        """Run batches of copies and of jobs alternately, as their threads do, until a job has ended."""
        while True:
            shown = self.call(account, operation, **arn)[member]
            if shown[status] != "IN_PROGRESS":
                break
            self.engine.background.next_batch()
            assert self.engine.background.batch_of("jobs") is not None
            self.job_batches += 1
        assert shown[status] == "COMPLETED", shown


@pytest.fixture
def accounts(
    database_url: str, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Accounts]:
    """All batches are of the same size, however quick the machine is."""
    monkeypatch.setattr(scheduler, "MAX_ROWS", MIN_ROWS)
    place = FolderPlace(tmp_path / "exports")
    place.put("many/1", b"".join(line(f"{number:06}") for number in range(ROWS)))
    place.put("one/1", line("1"))
    settings = {"database": database_url, "namespaces": "separate", "s3_bucket": ("some-bucket",)}
    with DynamoDBService.opened(clock, *KEYS, **settings, **place.settings) as service:
        yield Accounts(service)


def test_a_short_job_beside_long_ones_of_nine_accounts(accounts: Accounts) -> None:
    long = {}
    for account in ACCOUNTS[:-1]:
        for number in range(4):
            accounts.region = f"us-east-{number % 2 + 1}"
            told = accounts.call(
                account,
                "ImportTable",
                **given("many/", TableCreationParameters=parameters(f"many{number}")),
            )
            long[told["ImportTableDescription"]["ImportArn"]] = account, accounts.region
    for _ in range(20):
        accounts.engine.background.batch_of("jobs")
    last, accounts.region = ACCOUNTS[-1], "us-east-1"
    arn = accounts.table(last, 1)
    export = accounts.call(last, "ExportTableToPointInTime", TableArn=arn, S3Bucket="some-bucket")
    imported = accounts.call(last, "ImportTable", **given("one/", TableCreationParameters=parameters("one")))
    accounts.work_until(
        last,
        "DescribeExport",
        "ExportDescription",
        "ExportStatus",
        ExportArn=export["ExportDescription"]["ExportArn"],
    )
    accounts.work_until(
        last,
        "DescribeImport",
        "ImportTableDescription",
        "ImportStatus",
        ImportArn=imported["ImportTableDescription"]["ImportArn"],
    )
    # Each of its two jobs takes three or four batches, and every account has had as many.
    assert accounts.job_batches <= 2 * 4 * len(ACCOUNTS)
    for arn, (account, accounts.region) in long.items():
        shown = accounts.call(account, "DescribeImport", ImportArn=arn)["ImportTableDescription"]
        assert shown["ImportStatus"] == "IN_PROGRESS"


def test_a_short_export_beside_long_copies(accounts: Accounts) -> None:
    """An export waits for a copy of its table, so copies of accounts take turns as well."""
    for account in ACCOUNTS[:2]:
        arn = accounts.table(account, 1_000)
        for number in range(3):
            accounts.call(
                account,
                "ExportTableToPointInTime",
                TableArn=arn,
                S3Bucket="some-bucket",
                S3Prefix=f"{number}",
            )
    last = ACCOUNTS[-1]
    arn = accounts.table(last, 1)
    begun = accounts.call(last, "ExportTableToPointInTime", TableArn=arn, S3Bucket="some-bucket")
    copies = 0
    with accounts.engine._store.read() as session:
        [(newest,)] = session.query("SELECT max(target_id) FROM copies")
    waiting = {newest}
    while newest in waiting:
        batch = accounts.engine.background.next_batch()
        assert batch is not None
        copies += batch.work == "copy"
        with accounts.engine._store.read() as session:
            waiting = {target for (target,) in session.query("SELECT target_id FROM copies")}
    # A copy of one row takes two or three batches: the rows, and what changed since the moment.
    assert copies <= 3 * 3
    assert len(waiting) == 6
    accounts.work_until(
        last,
        "DescribeExport",
        "ExportDescription",
        "ExportStatus",
        ExportArn=begun["ExportDescription"]["ExportArn"],
    )
