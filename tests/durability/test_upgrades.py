"""Server replacement under load: workers one by one at SIGHUP, with the current program and settings. Also servers of
two releases on one database.

The run takes seconds here. `make soak` replaces workers for a minute.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import boto3
import pytest
import requests
import tablestore as ots
from azure.data.tables import TableServiceClient

from tablegate.gateway.security.credentials import DEV_AZURE_KEY
from tablegate.gateway.store import migrating
from tablegate.gateway.store.migrating import migrate
from tablegate.gateway.store.opening import open_database
from tests.support.databases import PostgresServer
from tests.support.later_release import LATER, add_revisions, later_migrations, source_with_own_migrations
from tests.support.running import Begin, Process, processes
from tests.support.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.extended

SECONDS = float(os.environ.get("TABLEGATE_TEST_SOAK_SECONDS", "0"))
on_postgresql = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


class User(threading.Thread):
    """Writes one row after the other with an SDK as its users have it, and reads what it wrote last. Remembers what was
    acknowledged, and what failed."""

    def __init__(self, write: Callable[[str], object], read: Callable[[str], bool]) -> None:
        super().__init__()
        self._write, self._read = write, read
        self.written: list[str] = []
        self.failures: list[BaseException] = []
        self.is_stopped = False

    def run(self) -> None:
        at = 0
        while not self.is_stopped:
            at += 1
            key = f"k{at:06}"
            try:
                self._write(key)
                self.written.append(key)
                assert self._read(key), f"{key} is lost"
            except BaseException as error:
                self.failures.append(error)


def users(url: str) -> list[User]:
    """One of each SDK, with its own ideas of when to try again."""
    client = boto3.client(
        "dynamodb", "us-east-1", endpoint_url=url, aws_access_key_id="someone", aws_secret_access_key="x"
    )
    client.create_table(
        TableName="music", BillingMode="PAY_PER_REQUEST", KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
    )  # fmt: skip
    people = TableServiceClient.from_connection_string(
        f"AccountName=devstoreaccount1;AccountKey={DEV_AZURE_KEY};TableEndpoint={url}/devstoreaccount1;"
        "DefaultEndpointsProtocol=http"
    ).create_table("people")
    store = ots.OTSClient(url, "tablegate", "tablegate", "here")
    store.create_table(
        ots.TableMeta("songs", [("k", "STRING")]),
        ots.TableOptions(),
        ots.ReservedThroughput(ots.CapacityUnit(0, 0)),
    )
    return [
        User(
            lambda key: client.put_item(TableName="music", Item={"k": {"S": key}}),
            lambda key: (
                "Item" in client.get_item(TableName="music", Key={"k": {"S": key}}, ConsistentRead=True)
            ),
        ),
        User(
            lambda key: people.create_entity({"PartitionKey": "p", "RowKey": key}),
            lambda key: people.get_entity("p", key)["RowKey"] == key,
        ),
        User(
            lambda key: store.put_row("songs", ots.Row([("k", key)], [("x", 1)])),
            lambda key: store.get_row("songs", [("k", key)])[1] is not None,
        ),
    ]


@contextlib.contextmanager
def working(threads: list[User]) -> Iterator[list[User]]:
    """Let users work in the block. Afterwards no call has failed, and no write is lost."""
    for thread in threads:
        thread.start()
    try:
        yield threads
    finally:
        for thread in threads:
            thread.is_stopped = True
        for thread in threads:
            thread.join()
    for thread in threads:
        assert thread.failures == []
        assert thread.written
        lost = [key for key in thread.written if not thread._read(key)]
        assert lost == []


def wait_for_more(threads: list[User]) -> None:
    """Wait until the servers of now have answered each user."""
    for thread in threads:
        known = len(thread.written)
        wait_until(
            lambda thread=thread, known=known: len(thread.written) >= known + 3 or not thread.is_alive()  # type: ignore[misc]
        )


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Start a server of two workers."""
    with processes(tmp_path, "--workers", "2") as begin:
        yield begin


def replaced(server: Process) -> set[int]:
    """Replace all workers. Returns the new ones."""
    before = set(server.workers())
    os.kill(server.pid, signal.SIGHUP)
    server.wait_for_error(*["a worker is replaced"] * 2)
    now = set(server.workers())
    assert len(now) == 2
    assert not now & before
    return now


@pytest.mark.soak
@on_postgresql
def test_workers_are_replaced_under_load_and_no_sdk_call_fails(begin: Begin, database_url: str) -> None:
    server = begin(database_url)
    with working(users(server.url)) as threads:
        until = time.monotonic() + SECONDS
        rounds = 0
        while rounds < 1 or time.monotonic() < until:
            replaced(server)
            rounds += 1
        wait_for_more(threads)


@on_postgresql
def test_new_workers_have_the_settings_of_now_or_the_old_ones_stay(
    begin: Begin, database_url: str, tmp_path: Path
) -> None:
    config = tmp_path / "tablegate.toml"
    config.write_text("emulator_health = false\n")
    server = begin(database_url, "--config", str(config))
    answer = requests.get(server.url, timeout=PATIENCE_S).status_code
    config.write_text("emulator_health = true\n")
    replaced(server)
    assert requests.get(server.url, timeout=PATIENCE_S).status_code == 400 != answer
    # The settings are invalid: the running workers stay.
    config.write_text("no_such_setting = 1\n")
    before = set(server.workers())
    os.kill(server.pid, signal.SIGHUP)
    server.wait_for_error("the old ones stay")
    assert set(server.workers()) == before
    assert requests.get(f"{server.url}/readyz", timeout=PATIENCE_S).status_code == 200
    # One that dies is replaced all the same.
    config.write_text("")
    os.kill(min(before), signal.SIGKILL)
    server.wait_for_error("died and is being restarted")
    wait_until(lambda: len(server.workers()) == 2)
    assert server.terminate()[0] == 0


def test_two_releases_serve_one_database_during_an_upgrade(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steps of docs/operate/upgrade.md, on one machine."""
    url = postgres.empty_database()
    source = source_with_own_migrations(tmp_path / "source")
    with contextlib.ExitStack() as stack:
        server = Process(
            tmp_path, "--workers", "2", "--database", url, environment={"PYTHONPATH": str(source)}
        )
        stack.callback(server.kill)
        server.wait_until_ready()
        with working(users(server.url)) as threads:
            add_revisions(source / "tablegate" / "migrations")  # a later release is installed
            before = set(server.workers())
            os.kill(server.pid, signal.SIGHUP)
            server.wait_for_error("run `tablegate migrate` first", "the old ones stay")
            assert set(server.workers()) == before
            with monkeypatch.context() as patched:
                patched.setattr(migrating, "FOLDER", later_migrations(tmp_path))
                database = open_database(url)
                assert migrate(database) == LATER
                database.close()
            wait_for_more(threads)
            old = Process(tmp_path, "--database", url)
            stack.callback(old.kill)
            old.wait_until_ready()
            replaced(server)
            wait_for_more(threads)
