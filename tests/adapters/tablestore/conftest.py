"""Table Store in front of a real engine on SQLite in memory, without a server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.adapters.tablestore.client import TableStoreService
from tests.support.clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def service(clock: Clock) -> Iterator[TableStoreService]:
    with TableStoreService.opened(clock) as made:
        yield made
