"""Retries of SDKs against failures: each official SDK succeeds by its own retries, and nothing is lost.

The server is a separate process. Sleeps are disabled in the test process, so back-off takes no time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import tablestore as ots
from botocore.config import Config

from tablegate.testing import Server

SEED = 4


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


@pytest.fixture
def without_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)


def _dynamodb(server: Server) -> tuple[Callable[[int], object], Callable[[], int]]:
    client = server.dynamodb_client(config=Config(retries={"mode": "standard", "total_max_attempts": 12}))
    client.create_table(
        TableName="things", BillingMode="PAY_PER_REQUEST", KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
    )  # fmt: skip

    def count() -> int:
        pages = client.get_paginator("scan").paginate(TableName="things")
        return sum(page["Count"] for page in pages)

    return lambda number: client.put_item(TableName="things", Item={"id": {"S": str(number)}}), count


def _azure(server: Server) -> tuple[Callable[[int], object], Callable[[], int]]:
    table = server.azure_tables(retry_total=12, retry_status=12).create_table("things")
    return (
        lambda number: table.upsert_entity({"PartitionKey": "p", "RowKey": str(number)}),
        lambda: len([*table.list_entities()]),
    )


def _table_store(server: Server) -> tuple[Callable[[int], object], Callable[[], int]]:
    client = server.tablestore_client()
    throughput = ots.ReservedThroughput(ots.CapacityUnit(0, 0))
    client.create_table(ots.TableMeta("things", [("id", "STRING")]), ots.TableOptions(), throughput)

    def put(number: int) -> None:
        client.put_row("things", ots.Row([("id", str(number))], [("v", number)]), ots.Condition("IGNORE"))

    def count() -> int:
        found, start = 0, [("id", ots.INF_MIN)]
        while start:
            _, start, rows, _ = client.get_range(
                "things", "FORWARD", start, [("id", ots.INF_MAX)], max_version=1
            )
            found += len(rows)
        return found

    return put, count


def _come_through(server: Server, make: Any, errors: tuple[str, ...], operations: int) -> None:
    control = server.control
    control.reset()
    write, count = make(server)
    share = operations // len(errors)
    for at, error in enumerate(errors):
        with control.fault(error=error, rate=0.3, seed=SEED):
            for number in range(share):
                write(at * share + number)
            [fault] = control.faults()
        # Each error was followed by another try of the same request.
        assert fault["seen"] == share + fault["met"]
        assert 0.25 * share < fault["met"] < share
    assert count() == operations


CASES = [
    pytest.param(_dynamodb, ("throttling",), id="boto3"),
    pytest.param(_azure, ("ServerBusy",), id="azure-core"),
    pytest.param(_table_store, ("OTSServerBusy", "OTSNotEnoughCapacityUnit"), id="tablestore"),
]


@pytest.mark.parametrize(("make", "errors"), CASES)
def test_an_sdk_comes_through(
    server: Server, without_sleep: None, make: Any, errors: tuple[str, ...]
) -> None:
    _come_through(server, make, errors, operations=100)


@pytest.mark.extended
@pytest.mark.soak
@pytest.mark.parametrize(("make", "errors"), CASES)
def test_an_sdk_comes_through_with_a_thousand_operations(
    server: Server, without_sleep: None, make: Any, errors: tuple[str, ...]
) -> None:
    if "TABLEGATE_TEST_SOAK_SECONDS" not in os.environ:
        pytest.skip("a thousand operations: make soak")
    _come_through(server, make, errors, operations=1000)
