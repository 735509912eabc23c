"""A Table service in one process, on a database of its own for each test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.dialect import Gateway
from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.security.credentials import Credentials
from tablegate.gateway.store.opening.opening import open_database
from tablegate.gateway.store.store import Store
from tests.adapters.azuretable.client import OTHER, Clock, Service
from tests.support.databases import with_database


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def service(clock: Clock, sqlite_template: Path, tmp_path: Path) -> Iterator[Service]:
    path = tmp_path / "azure.sqlite"
    shutil.copy(sqlite_template, path)
    with with_database(Settings(database=f"sqlite:///{path}")) as settings:
        engine = Engine(Store(open_database(settings.database, "normal")), now=clock)
        now_ms = lambda: clock.ns // 1_000_000  # noqa: E731
        gateway = Gateway(engine, Credentials(settings, [OTHER]), settings, now_ms, now_ms)
        yield Service(gateway, clock)
        engine.close()
