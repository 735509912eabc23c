"""Servers with the tables that most recorded requests name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.dynamodb.client import DynamoDBService
from tests.adapters.dynamodb.features.exports_imports.conftest import Exporter
from tests.support.clock import Clock
from tests.support.object_places import FolderPlace

BY_A = {
    "IndexName": "gsi1",
    "KeySchema": [{"AttributeName": "a", "KeyType": "HASH"}],
    "Projection": {"ProjectionType": "ALL"},
}


def with_index(**more: Any) -> dict[str, Any]:
    """Members of CreateTable for a global index `gsi1` on the attribute `a`."""
    defined = [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "a")]
    return {"AttributeDefinitions": defined, "GlobalSecondaryIndexes": [{**BY_A, **more}]}


@pytest.fixture
def prepared(service: DynamoDBService) -> DynamoDBService:
    """`orders` is on demand with an index `gsi1`, and `plain` has no index.

    `provisioned` and its index have 5 and 5 units.
    """
    small = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
    service.table("orders", **with_index())
    service.table("plain")
    service.table(
        "provisioned",
        BillingMode=None,
        ProvisionedThroughput=small,
        **with_index(ProvisionedThroughput=small),
    )
    return service


@pytest.fixture
def separate(clock: Clock) -> Iterator[DynamoDBService]:
    """A server with tables in an account and a region, and the table `orders`."""
    with DynamoDBService.opened(clock, namespaces="separate") as service:
        service.table()
        yield service


def exporting(tmp_path: Path, clock: Clock, **more: Any) -> Iterator[Exporter]:
    """A service on SQLite with a folder for exports and imports."""
    place = FolderPlace(tmp_path / "objects")
    with DynamoDBService.opened(clock, **place.settings, **more) as service:
        yield Exporter(service, place, lambda: service)


@pytest.fixture
def exporter(tmp_path: Path, clock: Clock) -> Iterator[Exporter]:
    yield from exporting(tmp_path, clock)


@pytest.fixture
def delayed_exporter(tmp_path: Path, clock: Clock) -> Iterator[Exporter]:
    """An exporter with a delay of ten seconds in its control plane."""
    yield from exporting(tmp_path, clock, table_creation_delay=10.0)
