"""Quotas hold for every operation that reads or stores: restores, imports, bulk puts, backups, reads of streams."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tablegate.gateway.model.authorization.quotas import Quota
from tablegate.gateway.security.quotas import QuotaSync
from tests.adapters.dynamodb.client import DynamoDBService, signed
from tests.adapters.dynamodb.features.exports_imports import test_bulk_put_api, test_import_api
from tests.adapters.dynamodb.features.exports_imports.conftest import Exporter
from tests.support.capabilities import needs
from tests.support.clock import Clock
from tests.support.object_places import FolderPlace

OWNER = "aws/anybody"
TOO_MANY_TABLES = ("LimitExceededException", "Subscriber limit exceeded: at most {} tables are allowed.")
TOO_MANY_BYTES = (
    "LimitExceededException",
    "Subscriber limit exceeded: at most {} bytes of storage are allowed.",
)


class Monotonic:
    """A fixed clock for quotas."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def namespaces() -> str:
    return "shared"


@pytest.fixture
def exporter(database_url: str, namespaces: str, tmp_path: Path, clock: Clock) -> Iterator[Exporter]:
    place = FolderPlace(tmp_path / "exports")
    settings = {"database": database_url, "namespaces": namespaces, **place.settings}
    with DynamoDBService.opened(clock, **settings) as service:
        service.gateway.quotas.now = Monotonic()
        yield Exporter(service, place, lambda: service)


def limit(exporter: Exporter, owner: str = OWNER, **limits: Any) -> None:
    """Put one quota in force, and count what there is."""
    gateway = exporter.service.gateway
    gateway.quotas.replace({})
    gateway.quotas.replace({owner: Quota(**limits)})
    count(exporter)


def count(exporter: Exporter) -> None:
    gateway = exporter.service.gateway
    QuotaSync(gateway.engine._store, gateway.engine, gateway.quotas).count()


def of(refusal: tuple[str, str], number: int) -> tuple[str, str]:
    code, text = refusal
    return code, text.format(number)


# Tables


RESTORED: dict[str, Callable[[Exporter, str], dict[str, Any]]] = {
    "RestoreTableFromBackup": lambda exporter, backup: {"TargetTableName": "copy", "BackupArn": backup},
    "RestoreTableToPointInTime": lambda exporter, backup: {
        "TargetTableName": "copy", "SourceTableName": "orders", "UseLatestRestorableTime": True,
    },
    "ImportTable": lambda exporter, backup: test_import_api.given(TableCreationParameters=test_import_api.parameters("copy")),
    "CreateTable": lambda exporter, backup: test_import_api.parameters("copy"),
    "UpdateTable": lambda exporter, backup: {
        "TableName": "orders", "ReplicaUpdates": [{"Create": {"RegionName": "eu-west-1"}}],
    },
}  # fmt: skip


@pytest.mark.parametrize("namespaces", ["separate"])  # replicas are in other regions
@pytest.mark.parametrize(
    "operation",
    [pytest.param(name, marks=needs("global_tables") if name == "UpdateTable" else ()) for name in RESTORED],
)
def test_a_quota_of_tables_bounds_every_operation_that_makes_one(exporter: Exporter, operation: str) -> None:
    exporter.service.table(
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    )
    exporter.keep_history()
    exporter.put("a")
    backup = exporter.ok("CreateBackup", TableName="orders", BackupName="saved")["BackupDetails"]["BackupArn"]
    exporter.work()
    given = RESTORED[operation](exporter, backup)
    limit(exporter, tables=1)
    assert exporter.error(operation, **given) == of(TOO_MANY_TABLES, 1)
    limit(exporter, tables=2)
    exporter.ok(operation, **given)


def test_an_import_whose_table_is_one_too_many_by_then_fails(exporter: Exporter) -> None:
    limit(exporter, tables=1)
    exporter.place.put("in/1.json", test_import_api.line("a"))
    arns = [
        exporter.ok(
            "ImportTable", **test_import_api.given(TableCreationParameters=test_import_api.parameters(name))
        )["ImportTableDescription"]["ImportArn"]
        for name in ("one", "two")
    ]
    exporter.work()
    ended = [test_import_api.described(exporter, arn) for arn in arns]
    assert sorted(each["ImportStatus"] for each in ended) == ["COMPLETED", "FAILED"]
    [failed] = [each for each in ended if each["ImportStatus"] == "FAILED"]
    assert (failed["FailureCode"], failed["FailureMessage"]) == of(TOO_MANY_TABLES, 1)
    assert len(exporter.ok("ListTables")["TableNames"]) == 1


@pytest.mark.parametrize("namespaces", ["separate"])
@pytest.mark.parametrize("owner", [OWNER, "namespace/aws/000000000000"])
def test_regions_that_a_client_makes_up_have_no_allowance_of_their_own(
    exporter: Exporter, owner: str
) -> None:
    limit(exporter, owner, tables=3, bytes=2_000)
    service, made = exporter.service, 0
    for number in range(6):
        service.call("CreateTable", test_import_api.parameters(), **signed(region=f"r{number}"))
        made += service.last.status == 200
    assert made == 3
    for number in range(3):
        item = {"pk": {"S": "a"}, "x": {"S": "x" * 998}}
        service.call("PutItem", {"TableName": "orders", "Item": item}, **signed(region=f"r{number}"))
        assert (service.last.status == 200) is (number < 2)


@pytest.mark.parametrize("namespaces", ["separate"])
def test_a_quota_of_one_region_is_of_that_region(exporter: Exporter) -> None:
    limit(exporter, "namespace/aws/000000000000/r1", tables=0)
    for region, status in (("r1", 400), ("r2", 200)):
        exporter.service.call("CreateTable", test_import_api.parameters(), **signed(region=region))
        assert exporter.service.last.status == status


# Bytes


def test_a_namespace_without_tables_is_bounded_from_its_first_row_on(exporter: Exporter) -> None:
    limit(exporter, bytes=1_000)
    exporter.service.table()
    exporter.put("a", x={"S": "x" * 1_000})
    assert exporter.error("PutItem", TableName="orders", Item={"pk": {"S": "b"}}) == of(TOO_MANY_BYTES, 1_000)


def big(number: int) -> dict[str, Any]:
    return {"x": {"S": "x" * number}}


@pytest.mark.parametrize("operation", ["RestoreTableFromBackup", "RestoreTableToPointInTime", "CreateBackup"])
def test_the_size_of_a_copy_counts_from_its_request(exporter: Exporter, operation: str) -> None:
    exporter.service.table()
    exporter.keep_history()
    exporter.put("a", **big(998))
    backup = exporter.ok("CreateBackup", TableName="orders", BackupName="saved")["BackupDetails"]["BackupArn"]
    exporter.work()
    given = {"TableName": "orders", "BackupName": "again"}
    if operation != "CreateBackup":
        given = RESTORED[operation](exporter, backup)
    # The table and its backup have 1,002 bytes each, and the copy will have as many.
    limit(exporter, bytes=3_005)
    assert exporter.error(operation, **given) == of(TOO_MANY_BYTES, 3_005)
    limit(exporter, bytes=3_006)
    exporter.ok(operation, **given)
    assert exporter.error("CreateBackup", TableName="orders", BackupName="more") == of(TOO_MANY_BYTES, 3_006)
    count(exporter)  # before the rows of the copy are there
    assert exporter.error("CreateBackup", TableName="orders", BackupName="more") == of(TOO_MANY_BYTES, 3_006)
    exporter.work()
    count(exporter)
    assert exporter.error("CreateBackup", TableName="orders", BackupName="more") == of(TOO_MANY_BYTES, 3_006)


def test_an_import_ends_where_the_bytes_do(exporter: Exporter) -> None:
    limit(exporter, bytes=10_000_000)
    for number in range(30):
        exporter.place.put(f"in/{number:02}.json", test_import_api.line(f"{number:02}", **big(399_000)))
    shown = test_import_api.imported(exporter)
    assert (shown["ImportStatus"], shown["FailureCode"]) == ("FAILED", "LimitExceededException")
    size = exporter.service.described()["TableSizeBytes"]
    assert 5_000_000 < size <= 10_000_000
    assert exporter.error("ImportTable", **test_import_api.given())[0] == "ResourceInUseException"
    exporter.ok("DeleteTable", TableName="orders")
    count(exporter)
    test_import_api.begun(exporter)


def test_a_bulk_put_ends_where_the_bytes_do(exporter: Exporter) -> None:
    exporter.service.table()
    limit(exporter, bytes=10_000_000)
    for number in range(30):
        exporter.place.put(f"in/{number:02}.json", test_bulk_put_api.line(f"{number:02}", **big(399_000)))
    shown = test_bulk_put_api.done(exporter)
    assert (shown["BulkOperationStatus"], shown["FailureCode"]) == ("FAILED", "LimitExceededException")
    assert 5_000_000 < exporter.service.described()["TableSizeBytes"] <= 10_000_000
    exporter.put("one more", **big(390_000))
    limit(exporter, bytes=1_000)
    assert exporter.error("StartBulkPutItems", **test_bulk_put_api.given()) == of(TOO_MANY_BYTES, 1_000)


# Rates


def test_reads_of_streams_take_read_units(exporter: Exporter) -> None:
    service = exporter.service
    service.table(StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"})
    exporter.put("a", **big(8_000))
    streams = {"prefix": "DynamoDBStreams_20120810"}
    arn = service.described()["LatestStreamArn"]
    shards = service.call("DescribeStream", {"StreamArn": arn}, **streams)["StreamDescription"]["Shards"]
    wanted = {"StreamArn": arn, "ShardId": shards[0]["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
    iterator = service.call("GetShardIterator", wanted, **streams)["ShardIterator"]
    assert_takes_read_units(
        exporter, lambda: service.call("GetRecords", {"ShardIterator": iterator}, **streams)
    )


def assert_takes_read_units(exporter: Exporter, ask: Callable[[], Any]) -> None:
    """Check that a request of at least two read units is refused until they are there again."""
    limit(exporter, read_units=4)
    ask()
    assert exporter.service.last.status == 200, exporter.service.last
    answer = ask()
    assert answer["__type"].endswith("#RequestLimitExceeded"), answer
    # One unit was left, and at least two were taken: at 4 a second there is none again after 0.4 s.
    clock = exporter.service.gateway.quotas.now
    clock.now += 0.4
    assert ask()["__type"].endswith("#RequestLimitExceeded")
    clock.now += 10
    assert "__type" not in ask()


def test_refused_requests_are_counted_by_owner_and_kind(
    exporter: Exporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, str]] = []
    monkeypatch.setattr(
        "tablegate.gateway.observability.metrics.record_quota_refusal",
        lambda owner, kind: told.append((owner, kind)),
    )
    limit(exporter, tables=0, requests=4)
    exporter.error("CreateTable", **test_import_api.parameters())
    exporter.error("ListTables")
    assert told == [(OWNER, "tables"), (OWNER, "requests")]


def test_a_service_without_quotas_pays_nothing(service: DynamoDBService) -> None:
    service.table()
    assert json.loads(service.last.body)
    assert not service.gateway.quotas.is_on
