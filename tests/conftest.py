"""Fixtures of all tests: databases, and live servers on them.

`database` is an open, migrated, empty database, once on SQLite and once on PostgreSQL. `database_url` is its URL alone.
`serve` starts servers in this process. `server` is one with default settings.

TABLEGATE_TEST_DATABASE_URL (a PostgreSQL URL whose role can create databases) replaces both databases by that server.
With TABLEGATE_TEST_SECOND_DATABASE_URL, the two are the coordinator and a worker of Citus, and databases are
distributed (`make test-distributed`).

Property-based tests use the same examples each time, so that a commit either passes or fails. `make fuzz` uses new
examples. Its findings become separate tests.
"""

from __future__ import annotations

import contextlib
import decimal
import gc
import os
import shlex
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hypothesis
import pytest
from botocore.loaders import Loader
from werkzeug.routing import Rule

from tablegate.gateway.engine.rows import page_builder
from tablegate.gateway.features.jobs import job_runner
from tablegate.gateway.model import fast_paths
from tablegate.gateway.server import server as server_module
from tablegate.gateway.store.migrating import migrate
from tablegate.gateway.store.opening import open_database
from tablegate.gateway.store.sql.databases import Database
from tablegate.transfer import threads
from tests.support import tiers
from tests.support.databases import OWN_URL, PostgresServer, leave_own_server, start_postgres
from tests.support.running import Running, start

# Tests check meaning and races, not the disk of this machine. Tests of power failures use the disk explicitly.
_MEMORY = Path("/dev/shm")
if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > 4 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))

# Decimal arithmetic without a context of its own rounds to 28 digits. Here it raises Inexact instead. New threads copy
# DefaultContext.
decimal.DefaultContext.traps[decimal.Inexact] = True
decimal.setcontext(decimal.DefaultContext.copy())

# The time to generate an example depends on the machine and is no property of the code.
_HEALTH = [hypothesis.HealthCheck.too_slow]
for _name, _examples in {"short": 25, "full": 100}.items():
    hypothesis.settings.register_profile(
        _name, derandomize=True, max_examples=_examples, deadline=None, suppress_health_check=_HEALTH
    )
hypothesis.settings.register_profile(
    "fuzz", derandomize=False, max_examples=2000, deadline=None, suppress_health_check=_HEALTH
)
hypothesis.settings.load_profile(os.environ.get("TABLEGATE_TEST_EXAMPLES", "short"))

_OTHERS = pytest.StashKey[set[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tier", action="append", choices=tiers.TIERS, help="run the cases of this tier alone")
    parser.addoption(
        "--record-seconds", action="store_true", help="write the seconds of each file to tests/seconds.json"
    )


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a process of xdist its files. With `--dist each`, each process collects and runs its own files alone."""
    if node.config.option.dist == "each":
        seconds = tiers.recorded_seconds(node.config.option.tier or tiers.TIERS)
        shares = tiers.shares(tiers.files_of_tests(), seconds, node.workerinput["workercount"])
        number = int(node.workerinput["workerid"].removeprefix("gw"))
        node.workerinput["files_of_others"] = sorted(set().union(*shares) - shares[number])


def pytest_sessionstart(session: pytest.Session) -> None:
    if session.config.getoption("dist", "no") == "each" and not hasattr(session.config, "workerinput"):
        session.config.pluginmanager.register(tiers.Progress(session))


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_OTHERS] = set(getattr(config, "workerinput", {}).get("files_of_others", ()))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if tiers.name_of(collection_path) in config.stash[_OTHERS] else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the cases of the tiers that are asked for, and of the files of this process.

    With fast paths off (`make test-general`) the tests marked `fast_paths` are skipped.
    """
    wanted = config.option.tier or tiers.TIERS
    kept, others = [], []
    for item in items:
        is_ours = tiers.tier_of(item) in wanted and tiers.name_of(item.path) not in config.stash[_OTHERS]
        (kept if is_ours else others).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=others)
    if not fast_paths.ARE_ON:
        for item in items:
            if item.get_closest_marker("fast_paths"):
                item.add_marker(pytest.mark.skip(reason="fast paths are off"))


def pytest_collection_finish() -> None:
    """Freeze the objects of collected tests, so that the garbage collector does not scan hundreds of thousands of them
    each time.
    """
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Databases on a server that is not ours go with the tests."""
    leave_own_server()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print one line for each failed test that runs it alone. Record seconds and counts where they are asked for."""
    if hasattr(config, "workerinput"):
        return  # the process that started this one has the reports of all
    for report in [*terminalreporter.stats.get("failed", ()), *terminalreporter.stats.get("error", ())]:
        terminalreporter.write_line(f"again: .venv/bin/pytest {shlex.quote(report.nodeid)}")
    if config.option.record_seconds:
        tiers.record_seconds(config.option.tier or tiers.TIERS, terminalreporter.stats)
    if counts := os.environ.get("TABLEGATE_TEST_COUNTS"):
        tiers.add_counts(Path(counts), terminalreporter.stats)


@pytest.fixture(scope="session", autouse=True)
def _a_busy_machine_changes_no_answer() -> Iterator[None]:
    """Disable limits that depend on elapsed time: pages and job batches.

    Tests of these limits set a clock.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(page_builder, "monotonic", time.process_time)
        patched.setattr(job_runner, "_BATCH_WAIT_S", 60.0)
        yield


@pytest.fixture(scope="session", autouse=True)
def _refusals_are_not_held_back() -> Iterator[None]:
    """Servers in this process answer unauthenticated requests at once. The tests of the delay set it themselves."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(server_module, "REFUSAL_DELAY_S", 0.0)
        yield


_threads_of_earlier_tests: set[threading.Thread] = set()


def pytest_runtest_setup() -> None:
    """Note the threads that earlier tests left, such as those of a pool that is not collected yet."""
    _threads_of_earlier_tests.clear()
    _threads_of_earlier_tests.update(threading.enumerate())


@pytest.fixture(scope="session", autouse=True)
def _commands_see_their_own_threads() -> Iterator[None]:
    """A command of transfers ends the process by `os._exit` if threads of pools are busy. Those of earlier tests do not
    count, or the command would end the process of the tests.
    """
    busy_threads = threads.busy_threads

    def busy_threads_of_this_test() -> list[threading.Thread]:
        return [thread for thread in busy_threads() if thread not in _threads_of_earlier_tests]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(threads, "busy_threads", busy_threads_of_this_test)
        yield


@pytest.fixture(scope="session", autouse=True)
def _addresses_of_routes_are_compiled_once() -> Iterator[None]:
    """Werkzeug generates and compiles two functions for each route of each application. This takes most of the time to
    start a server. The functions of equal routes are equal.
    """
    compile_builder = Rule._compile_builder
    compiled: dict[tuple[object, ...], Callable[..., tuple[str, str]]] = {}

    def compile_once(rule: Rule, append_unknown: bool = True) -> Callable[..., tuple[str, str]]:
        if rule.defaults:
            return compile_builder(rule, append_unknown)
        key = (rule.rule, *rule._trace, append_unknown)
        if key not in compiled:
            compiled[key] = compile_builder(rule, append_unknown)
        return compiled[key]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Rule, "_compile_builder", compile_once)
        yield


@pytest.fixture(scope="session", autouse=True)
def _models_of_aws_are_read_once() -> Iterator[None]:
    """Each boto3 session reads the JSON models of its services anew, in 0.1 s. All sessions of these tests share them."""
    initialise = Loader.__init__
    cache: dict[Any, Any] = {}

    def share_cache(loader: Loader, *args: Any, **options: Any) -> None:
        initialise(loader, *args, **options)
        loader._cache = cache

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Loader, "__init__", share_cache)
        yield


@pytest.fixture
def clock_of_pages(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a page clock that advances by `step` seconds at each reading."""
    state = SimpleNamespace(now=1000.0, step=0.0)

    def monotonic() -> float:
        state.now += state.step
        return state.now

    monkeypatch.setattr(page_builder, "monotonic", monotonic)
    return state


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Return a PostgreSQL server that starts at first use."""
    with start_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated, empty SQLite file, to be copied."""
    path = tmp_path_factory.mktemp("sqlite") / "template.sqlite"
    database = open_database(f"sqlite:///{path}")
    migrate(database)
    database.close()
    return path


KINDS = ["postgresql"] if OWN_URL else ["sqlite", "postgresql"]


@pytest.fixture(params=KINDS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Return the URL of a migrated, empty database for one test."""
    with new_database(request, tmp_path) as url:
        yield url


@pytest.fixture(scope="module", params=KINDS)
def shared_database_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """One database for all tests of a module, for those that keep to tables of their own."""
    with new_database(request, tmp_path_factory.mktemp("shared")) as url:
        yield url


@contextlib.contextmanager
def new_database(request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    if request.param == "sqlite":
        path = folder / "test.sqlite"
        shutil.copy(request.getfixturevalue("sqlite_template"), path)
        yield f"sqlite:///{path}"
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    with server.new_database() as url:
        yield url


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """An open, migrated, empty database."""
    opened = open_database(database_url)
    yield opened
    opened.close()


Serve = Callable[..., Running]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Return a function that starts a server in this process: `serve(database_url, auth="strict", ...)`.

    All servers stop at the end.
    """
    running: list[Running] = []

    def begin(database_url: str, **settings: Any) -> Running:
        running.append(start(database_url, **settings))
        return running[-1]

    yield begin
    for each in running:
        each.stop()


@pytest.fixture
def server(serve: Serve, database_url: str) -> Running:
    """A live server with default settings on `database_url`."""
    return serve(database_url)
