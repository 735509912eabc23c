"""The Table service in front of a real engine on SQLite in memory, without a server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.adapters.azuretable.client import OTHER, AzureTableService
from tests.support.clock import Clock


@pytest.fixture
def clock() -> Clock:
    """The clock advances at each reading, so that no two writes have the same Timestamp."""
    return Clock(step_ns=1_000)


@pytest.fixture
def service(clock: Clock) -> Iterator[AzureTableService]:
    with AzureTableService.opened(clock, OTHER) as made:
        yield made
