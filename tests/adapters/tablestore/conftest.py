"""Table Store on SQLite in memory, without a server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.adapters.tablestore.client import Clock, Service, opened


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def service(clock: Clock) -> Iterator[Service]:
    with opened(clock) as made:
        yield made
