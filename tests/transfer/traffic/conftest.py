"""Servers that traffic is recorded in front of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.databases import PostgresServer
from tests.support.running import Running, start


@pytest.fixture
def sqlite_server(sqlite_template: Path, tmp_path: Path) -> Iterator[Running]:
    """A server on an empty SQLite database."""
    path = tmp_path / "server.sqlite"
    path.write_bytes(sqlite_template.read_bytes())
    server = start(f"sqlite:///{path}")
    yield server
    server.stop()


@pytest.fixture
def postgres_server(postgres: PostgresServer) -> Iterator[Running]:
    """A server on an empty PostgreSQL database."""
    with postgres.new_database() as url:
        server = start(url)
        yield server
        server.stop()
