"""A server and its control API."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.control import Control
from tests.support.live_dynamodb import Live
from tests.support.running import Running, start


@pytest.fixture
def control(server: Running) -> Control:
    return Control(server.url)


@pytest.fixture
def live(server: Running) -> Live:
    return Live(server.url)


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """A database for what does not depend on which one it is."""
    shutil.copy(sqlite_template, tmp_path / "test.sqlite")
    return f"sqlite:///{tmp_path / 'test.sqlite'}"


@pytest.fixture(scope="module")
def shared_server(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server for tests that change nothing."""
    path = tmp_path_factory.mktemp("shared") / "test.sqlite"
    shutil.copy(sqlite_template, path)
    server = start(f"sqlite:///{path}", admin_token="s3cret")
    yield server.url
    server.stop()
