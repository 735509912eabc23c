"""A service with a place for exports and imports, on both databases."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tablegate.gateway.features.jobs import job_runner
from tablegate.gateway.features.jobs.job_commands import ListUnfinishedJobs
from tests.adapters.dynamodb.client import DynamoDBService
from tests.support.clock import Clock
from tests.support.object_places import FolderPlace, Place, S3Place, moto_endpoint, reset_moto

ACCOUNT = "000000000000"
TABLE_ARN = f"arn:aws:dynamodb:us-east-1:{ACCOUNT}:table/orders"
HOUR_MS = 3_600_000


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    with moto_endpoint() as endpoint:
        yield endpoint


@pytest.fixture(params=["folder", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "folder":
        return FolderPlace(tmp_path / "exports")
    endpoint = request.getfixturevalue("s3_endpoint")
    reset_moto(endpoint)
    return S3Place(endpoint)


@pytest.fixture
def without_ion(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hides amazon-ion, as in an installation without the extra."""
    monkeypatch.setitem(sys.modules, "tablegate.adapters.dynamodb.export_files.ion_values", None)


class Exporter:
    """A service, its place of objects, and the work behind both."""

    def __init__(self, service: DynamoDBService, place: Place, start: Callable[[], DynamoDBService]) -> None:
        self.service = service
        self.place = place
        self._start = start

    def ok(self, operation: str, **given: Any) -> Any:
        answer = self.service.call(operation, given)
        assert self.service.last.status == 200, answer
        return answer

    def error(self, operation: str, **given: Any) -> tuple[str, str]:
        return self.service.error(operation, given)

    def work(self) -> None:
        """Everything that is to be done in the background."""
        engine = self.service.gateway.engine
        while engine.background.next_batch() or engine.background.batch_of("jobs"):
            pass

    def step(self) -> bool:
        """One batch of a job."""
        return self.service.gateway.engine.background.batch_of("jobs") is not None

    def done_of_total(self) -> tuple[int, int] | None:
        """The work done and the whole work of the only unfinished job."""
        [jobs] = self.service.gateway.engine.run([ListUnfinishedJobs()])
        return jobs[0].done_of_total if jobs else None

    def is_copying(self) -> bool:
        """True if rows are still being copied."""
        with self.service.gateway.engine._store.read() as session:
            return bool(session.query("SELECT 1 FROM copies"))

    def restart(self) -> None:
        """As if the server had been killed."""
        self.service.gateway.engine.close()
        self.service = self._start()

    def keep_history(self, name: str = "orders") -> None:
        on = {"PointInTimeRecoveryEnabled": True}
        self.ok("UpdateContinuousBackups", TableName=name, PointInTimeRecoverySpecification=on)

    def put(self, *keys: str, table: str = "orders", **more: Any) -> None:
        for key in keys:
            self.service.clock.ms += 1
            self.ok("PutItem", TableName=table, Item={"pk": {"S": key}, **more})

    def items(self, name: str) -> list[dict[str, Any]]:
        found, more = [], {}
        while True:
            page = self.ok("Scan", TableName=name, **more)
            found += page["Items"]
            if "LastEvaluatedKey" not in page:
                return sorted(found, key=lambda item: item["pk"]["S"])
            more = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def export(self, **more: Any) -> dict[str, Any]:
        """An export that was begun, as it is described."""
        given = {"TableArn": TABLE_ARN, "S3Bucket": "some-bucket", **more}
        return self.ok("ExportTableToPointInTime", **given)["ExportDescription"]

    def exported(self, **more: Any) -> dict[str, Any]:
        """An export that is complete."""
        arn = self.export(**more)["ExportArn"]
        self.work()
        shown = self.ok("DescribeExport", ExportArn=arn)["ExportDescription"]
        assert shown["ExportStatus"] == "COMPLETED", shown
        return shown


@pytest.fixture
def short_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    """Claims of a killed server expire at once."""
    monkeypatch.setattr(job_runner, "_CLAIM_LIFETIME_MS", 0)


@pytest.fixture
def exporter(database_url: str, place: Place, clock: Clock) -> Iterator[Exporter]:
    with contextlib.ExitStack() as opened:

        def start() -> DynamoDBService:
            service = DynamoDBService.opened(clock, database=database_url, **place.settings)
            return opened.enter_context(service)

        yield Exporter(start(), place, start)
