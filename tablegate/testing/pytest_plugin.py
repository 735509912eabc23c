"""The pytest plugin: fixtures that give each test an empty server. Other tests cost nothing.

Each process of the run (each worker of xdist) has one server at a time, on one port. Clock, faults and recorded
requests belong to a server, so workers do not share one. `pytest --markers` and the ini options of `pytest --help` list
the options. docs/test/pytest.md has examples.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tablegate.testing.process_server import ProcessServer
    from tablegate.testing.server import Server

_WORKER = "PYTEST_XDIST_WORKER"
_MARKER = (
    "tablegate(database=..., seed=..., start_from=..., clock=..., record=..., **settings): the server of this test. "
    "`clock` is the time at which its clock is frozen, `record` is the number of requests to keep, "
    "and the others are settings of `tablegate serve`"
)


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
        "folder of tables and items for the initial state of each test "
        "(https://github.com/tablegate/tablegate/blob/main/docs/test/control.md#seeds)",
        default="",
    )
    parser.addini("tablegate_clock", "time at which the clock is frozen", default="")
    parser.addini(
        "tablegate_scope",
        "scope of the fixtures, at whose beginning the server is emptied: function, class, module, package or session",
        default="function",
    )
    parser.addini(
        "tablegate_environment",
        "when the variables for SDKs are set: test (while a test uses `tablegate`), or session (before conftest.py "
        "and the modules of tests are imported)",
        default="test",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Start the server and set the variables for SDKs before any code of the project is imported, if that is wanted."""
    when = early_config.getini("tablegate_environment")
    if when == "test":
        return
    if when != "session":
        raise pytest.UsageError(f"tablegate_environment: {when!r} is neither test nor session")
    from tablegate.testing.process_server import PROCESS_SERVER
    from tablegate.testing.server import ServerFailed

    settings = _settings(early_config, {})
    if getattr(early_config.known_args_namespace, "numprocesses", None) and _WORKER not in os.environ:
        settings.pop("database", None)  # no test runs in the process that starts the workers
    try:
        server = PROCESS_SERVER.begin(settings)
    except ServerFailed as error:
        raise pytest.UsageError(str(error)) from None
    session = contextlib.ExitStack()
    session.callback(PROCESS_SERVER.stop)
    session.enter_context(server.set_environment())
    early_config.add_cleanup(session.close)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and give `mock_aws` the settings of the ini file."""
    config.addinivalue_line("markers", _MARKER)
    settings = _settings(config, {})
    if settings:
        from tablegate.testing.process_server import PROCESS_SERVER

        PROCESS_SERVER.defaults = settings


def _settings(config: pytest.Config, marker: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a test's server: those of the ini file, overridden by those of the marker."""
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
        wanted["database"] = _own_database(str(wanted["database"]))
    return wanted


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


def _scope(fixture_name: str, config: pytest.Config) -> str:
    return str(config.getini("tablegate_scope"))


@pytest.fixture(scope="session")
def _process_server() -> Iterator[ProcessServer]:
    from tablegate.testing.process_server import PROCESS_SERVER

    yield PROCESS_SERVER
    PROCESS_SERVER.stop()


@pytest.fixture(scope=_scope)  # type: ignore[arg-type]
def tablegate(request: pytest.FixtureRequest, _process_server: ProcessServer) -> Iterator[Server]:
    """A server in its initial state. The environment variables for SDKs are set during the test."""
    marker: dict[str, Any] = {}
    for mark in reversed([*request.node.iter_markers("tablegate")]):
        marker |= mark.kwargs
    clock = marker.pop("clock", request.config.getini("tablegate_clock"))
    recorded = marker.pop("record", 0)
    server = _process_server.begin(_settings(request.config, marker))
    if clock:
        server.control.freeze(clock)
    if recorded:
        server.control.record(recorded)
    with server.set_environment(), _process_server.hold(request.scope):
        yield server


@pytest.fixture(scope=_scope)  # type: ignore[arg-type]
def dynamodb_client(tablegate: Server) -> Any:
    """A DynamoDB client of boto3."""
    _wants("boto3", "boto3")
    return tablegate.dynamodb_client()


@pytest.fixture(scope=_scope)  # type: ignore[arg-type]
def dynamodb(tablegate: Server) -> Any:
    """A DynamoDB resource of boto3."""
    _wants("boto3", "boto3")
    return tablegate.dynamodb()


@pytest.fixture(scope=_scope)  # type: ignore[arg-type]
def azure_tables(tablegate: Server) -> Iterator[Any]:
    """A TableServiceClient of azure-data-tables."""
    _wants("azure.data.tables", "azure-data-tables")
    with tablegate.azure_tables() as client:
        yield client


@pytest.fixture(scope=_scope)  # type: ignore[arg-type]
def tablestore_client(tablegate: Server) -> Any:
    """An OTSClient of tablestore."""
    _wants("tablestore", "tablestore")
    return tablegate.tablestore_client()


def _wants(module: str, package: str) -> None:
    try:
        __import__(module)
    except ModuleNotFoundError:
        pytest.fail(f"this fixture needs an SDK: run pip install {package}", pytrace=False)
