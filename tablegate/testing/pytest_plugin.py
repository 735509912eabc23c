"""The pytest plugin: fixtures that give each test an empty server. No cost for tests that do not use them.

One server is started for each process of the run (each worker of xdist) and each set of settings. Clock, faults and
recorded requests belong to a server, so workers do not share one. `pytest --markers` and the ini options of `pytest
--help` list the options. docs/test/pytest.md has examples.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tablegate.testing.server import Server

_WORKER = "PYTEST_XDIST_WORKER"
_MARKER = (
    "tablegate(database=..., seed=..., start_from=..., clock=..., record=..., **settings): the server of this test. "
    "`clock` is the time at which its clock is frozen, `record` is the number of requests to keep, "
    "and the others are settings of `tablegate serve`"
)
_BEGINNING = "pytest-beginning"
# A clock cannot go back. A server with a larger offset is not reused for another test.
_CLOCK_SLACK_MS = 1000


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the ini options."""
    parser.addini(
        "tablegate_database",
        "URL of the servers' database; {worker} is replaced by the name of the xdist worker",
        default="",
    )
    parser.addini(
        "tablegate_settings",
        "settings of `tablegate serve`, one `name = value` per line",
        "linelist",
        default=[],
    )
    parser.addini(
        "tablegate_seed",
        "folder of tables and items for the initial state of each test (docs/test/control.md)",
        default="",
    )
    parser.addini("tablegate_clock", "time at which the clock is frozen", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", _MARKER)


class _Servers:
    """The servers of this process, by settings."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._servers: dict[str, Server] = {}

    def of(self, wanted: dict[str, Any]) -> Server:
        """Return a server with these settings in its initial state. Start it if there is none."""
        from tablegate.testing.server import Server

        key = repr(sorted(wanted.items()))
        server = self._servers.get(key)
        begins_as_made = not {"seed", "start_from"}.isdisjoint(wanted)
        if server is None:
            server = self._servers[key] = Server(**wanted).start()
            if begins_as_made:
                server.control.save(_BEGINNING)
        if begins_as_made:
            server.control.load(_BEGINNING)
        else:
            server.control.reset()
        return server

    def retire(self, server: Server) -> None:
        """Stop a server that cannot be reused."""
        server.stop()
        self._servers = {key: known for key, known in self._servers.items() if known is not server}

    def stop(self) -> None:
        for server in self._servers.values():
            server.stop()
        self._servers.clear()

    def wanted(self, marker: dict[str, Any]) -> dict[str, Any]:
        """Return the settings of a test's server: those of the ini file, overridden by those of the marker."""
        config = self._config
        wanted: dict[str, Any] = {}
        for line in config.getini("tablegate_settings"):
            name, separator, value = line.partition("=")
            if not separator:
                raise pytest.UsageError(f"tablegate_settings: {line!r} is not `name = value`")
            wanted[name.strip().lstrip("-").replace("-", "_")] = _plain(value.strip())
        if config.getini("tablegate_database"):
            wanted["database"] = config.getini("tablegate_database")
        if config.getini("tablegate_seed"):
            wanted["seed"] = str(config.rootpath / config.getini("tablegate_seed"))
        wanted |= marker
        if "database" in wanted:
            wanted["database"] = self._own_database(str(wanted["database"]))
        return wanted

    @staticmethod
    def _own_database(url: str) -> str:
        worker = os.environ.get(_WORKER, "")
        if worker and "{worker}" not in url:
            raise pytest.UsageError(
                f"tablegate_database {url} would be shared by all workers of xdist: put {{worker}} into its name"
            )
        return url.replace("{worker}", worker or "main")


def _plain(value: str) -> Any:
    return {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}.get(
        value.lower(), value
    )


@pytest.fixture(scope="session")
def tablegate_servers(pytestconfig: pytest.Config) -> Iterator[_Servers]:
    """The servers of this process. They stop at its end."""
    servers = _Servers(pytestconfig)
    yield servers
    servers.stop()


@pytest.fixture
def tablegate(
    request: pytest.FixtureRequest, tablegate_servers: _Servers, pytestconfig: pytest.Config
) -> Iterator[Server]:
    """A server in its initial state. The environment variables for SDKs are set during the test."""
    marker: dict[str, Any] = {}
    for mark in reversed([*request.node.iter_markers("tablegate")]):
        marker |= mark.kwargs
    clock = marker.pop("clock", pytestconfig.getini("tablegate_clock"))
    recorded = marker.pop("record", 0)
    server = tablegate_servers.of(tablegate_servers.wanted(marker))
    control = server.control
    if clock:
        control.freeze(clock)
    if recorded:
        control.record(recorded)
    try:
        with server.set_environment():
            yield server
    finally:
        if server.pid is None or abs(control.clock()["ahead_ms"]) > _CLOCK_SLACK_MS:
            tablegate_servers.retire(server)
        else:
            control.unfreeze()
            control.clear_faults()
            control.record(0)


@pytest.fixture
def dynamodb_client(tablegate: Server) -> Any:
    """A DynamoDB client of boto3."""
    _wants("boto3", "boto3")
    return tablegate.dynamodb_client()


@pytest.fixture
def dynamodb(tablegate: Server) -> Any:
    """A DynamoDB resource of boto3."""
    _wants("boto3", "boto3")
    return tablegate.dynamodb()


@pytest.fixture
def azure_tables(tablegate: Server) -> Iterator[Any]:
    """A TableServiceClient of azure-data-tables."""
    _wants("azure.data.tables", "azure-data-tables")
    with tablegate.azure_tables() as client:
        yield client


@pytest.fixture
def tablestore_client(tablegate: Server) -> Any:
    """An OTSClient of tablestore."""
    _wants("tablestore", "tablestore")
    return tablegate.tablestore_client()


def _wants(module: str, package: str) -> None:
    try:
        __import__(module)
    except ModuleNotFoundError:
        pytest.fail(f"this fixture needs an SDK: run pip install {package}", pytrace=False)
