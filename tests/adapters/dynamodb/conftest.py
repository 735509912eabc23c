"""DynamoDB in front of a real engine on SQLite in memory, without a server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.adapters.dynamodb.client import DynamoDBService
from tests.support.clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def service(clock: Clock) -> Iterator[DynamoDBService]:
    """Auth dev, no delays."""
    with DynamoDBService.opened(clock) as made:
        yield made


@pytest.fixture
def delayed(clock: Clock) -> Iterator[DynamoDBService]:
    """A control plane that takes ten seconds."""
    with DynamoDBService.opened(clock, table_creation_delay=10.0) as made:
        yield made
