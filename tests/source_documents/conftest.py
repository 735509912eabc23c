"""Live servers for the tests of the source documents: one for each module and database. Tests keep to tables of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.live_dynamodb import Live
from tests.support.running import start


@pytest.fixture(scope="module")
def dynamodb(shared_database_url: str) -> Iterator[Live]:
    """boto3 at a live server with default settings."""
    running = start(shared_database_url, dialects="dynamodb")
    yield Live(running.url)
    running.stop()
