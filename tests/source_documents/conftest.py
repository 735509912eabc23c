"""Live servers for the tests of the source documents: one for each module and database. Tests keep to tables of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.live_dynamodb import Live
from tests.support.live_tablestore import LiveTableStore
from tests.support.running import start


@pytest.fixture(scope="module")
def dynamodb(shared_database_url: str) -> Iterator[Live]:
    """boto3 at a live server with default settings."""
    running = start(shared_database_url, dialects="dynamodb")
    yield Live(running.url)
    running.stop()


@pytest.fixture
def catalog(dynamodb: Live) -> Any:
    """A table with a simple primary key."""
    return dynamodb.create("Id:N")


@pytest.fixture
def thread(dynamodb: Live) -> Any:
    """A table with a composite primary key."""
    return dynamodb.create("ForumName:S", "Subject:S")


@pytest.fixture(scope="module")
def tablestore(shared_database_url: str) -> Iterator[LiveTableStore]:
    """The wire client at a live server with default settings."""
    running = start(shared_database_url, dialects="tablestore")
    yield LiveTableStore(running.url)
    running.stop()
