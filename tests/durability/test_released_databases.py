"""Databases of earlier releases under this one: what clients had begun goes on (tests/support/released_databases.py).

The server's clock stands a second after the release made the database, so that iterators and tokens are still valid.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import ResourceModifiedError
from botocore.exceptions import ClientError

from tablegate.gateway import wiring
from tablegate.gateway.clock import Clock
from tablegate.gateway.store.opening.migrating import migrate, revision_of, steps
from tablegate.gateway.store.opening.opening import open_database
from tests.support import released_databases as released
from tests.support.released_databases import Clients, song, songs_of_year
from tests.support.running import ROOT, Process, start
from tests.support.soak import minutes_long
from tests.support.waiting import wait_until

RELEASED = [(release, kind) for release in released.COMMITS for kind in ("sqlite", "postgresql")]


@dataclass
class Upgraded:
    """A server of this release on a database of an earlier one."""

    release: str
    url: str
    facts: dict[str, Any]
    clients: Clients


def place_of(kind: str, folder: Path, request: pytest.FixtureRequest) -> tuple[str, str]:
    """Return the place to restore a database to, and its URL."""
    if kind == "sqlite":
        return str(folder / "a.sqlite"), f"sqlite:///{folder / 'a.sqlite'}"
    url = request.getfixturevalue("postgres").empty_database()
    return url, url


@pytest.fixture(scope="module", params=RELEASED, ids="-".join)
def upgraded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upgraded]:
    release, kind = request.param
    place, url = place_of(kind, tmp_path_factory.mktemp("released"), request)
    facts = released.restore(release, kind, place)

    class ClockOfThen(Clock):
        def __init__(self) -> None:
            super().__init__()
            self._frozen_at_ns = (facts["made_at_ms"] + 1000) * 1_000_000

    database = open_database(url)
    assert revision_of(database) < steps()[-1]
    assert migrate(database)[-1] == steps()[-1]
    database.close()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(wiring, "Clock", ClockOfThen)
        running = start(url, auth="strict", secret_key=released.SECRET_KEY)
    yield Upgraded(release, running.url, facts, Clients(running.url))
    running.stop()


def test_rows_are_there_and_cursors_continue(upgraded: Upgraded) -> None:
    clients, facts = upgraded.clients, upgraded.facts
    items = [song(number) for number in range(released.SONGS)]
    page = clients.dynamodb.query(
        TableName="music", KeyConditionExpression="artist = :a", ExpressionAttributeValues={":a": {"S": "a"}}
    )
    assert page["Items"] == items
    rest = clients.dynamodb.query(**songs_of_year(), ExclusiveStartKey=facts["year_cursor"])["Items"]
    of_year = [each for each in items if each["year"] == {"N": "2000"}]
    assert rest == of_year[2:]
    pages = clients.azure.get_table_client("people").query_entities("PartitionKey eq 'p'")
    [*entities] = [
        entity["age"] for each in pages.by_page(continuation_token=facts["azure_cursor"]) for entity in each
    ]
    assert entities == [2, 3, 4]
    start, end = [tuple(each) for each in facts["tablestore_cursor"]], [("k", released.ots.INF_MAX)]
    _, _, rows, _ = clients.tablestore.get_range("plays", "FORWARD", start, end)
    assert [row.attribute_columns[0][1] for row in rows] == [2, 3, 4]


def test_an_etag_holds_until_the_entity_changes(upgraded: Upgraded) -> None:
    people = upgraded.clients.azure.get_table_client("people")
    changed = {"PartitionKey": "p", "RowKey": "r0", "age": 50}
    condition = {"etag": upgraded.facts["etag"], "match_condition": MatchConditions.IfNotModified}
    people.update_entity(changed, **condition)
    with pytest.raises(ResourceModifiedError):
        people.update_entity(changed, **condition)


def test_a_token_is_remembered(upgraded: Upgraded) -> None:
    dynamodb = upgraded.clients.dynamodb
    key = {"artist": {"S": "counter"}, "song": {"S": "s"}}

    def plays() -> str:
        return str(dynamodb.get_item(TableName="music", Key=key, ConsistentRead=True)["Item"]["plays"]["N"])

    before = plays()
    dynamodb.transact_write_items(**released.counted(released.TOKEN))
    assert plays() == before
    dynamodb.transact_write_items(**released.counted("another-token"))
    assert plays() != before


def test_a_stream_goes_on_behind_the_iterator(upgraded: Upgraded) -> None:
    clients = upgraded.clients
    clients.dynamodb.put_item(TableName="music", Item={"artist": {"S": "new"}, "song": {"S": "s"}})
    records = clients.streams.get_records(ShardIterator=upgraded.facts["iterator"])["Records"]
    names = [each["dynamodb"]["Keys"]["song"]["S"] for each in records]
    old = [f"s{number:02}" for number in range(5, released.SONGS)]
    assert names[: len(old) + 1] == [*old, "s"]
    assert {"artist": {"S": "new"}, "song": {"S": "s"}} in [each["dynamodb"]["Keys"] for each in records]
    numbers = [int(each["dynamodb"]["SequenceNumber"]) for each in records]
    assert numbers == sorted({*numbers})


def test_credentials_and_grants_hold(upgraded: Upgraded) -> None:
    if upgraded.release in released.WITHOUT_GRANTS:
        # Each credential of that release could do everything.
        assert "music" in upgraded.clients.dynamodb.list_tables()["TableNames"]
        return
    reader = Clients(upgraded.url, released.READER).dynamodb
    assert reader.get_item(TableName="music", Key={"artist": {"S": "a"}, "song": {"S": "s00"}})[
        "Item"
    ] == song(0)
    with pytest.raises(ClientError, match="AccessDenied"):
        reader.put_item(TableName="music", Item=song(0))


def test_a_backup_can_be_restored(upgraded: Upgraded) -> None:
    if upgraded.release in released.WITHOUT_GRANTS:
        pytest.skip("that release had no backups")
    dynamodb = upgraded.clients.dynamodb
    dynamodb.restore_table_from_backup(TargetTableName="restored", BackupArn=upgraded.facts["backup"])
    waiter = dynamodb.get_waiter("table_exists")
    waiter.wait(TableName="restored", WaiterConfig={"Delay": 0.05, "MaxAttempts": 1200})
    assert dynamodb.scan(TableName="restored")["Count"] == released.SONGS + 1


def test_expiry_and_the_history_go_on(upgraded: Upgraded) -> None:
    dynamodb = upgraded.clients.dynamodb
    expiry = dynamodb.describe_time_to_live(TableName="music")["TimeToLiveDescription"]
    assert expiry == {"TimeToLiveStatus": "ENABLED", "AttributeName": "until"}
    if upgraded.release in released.WITHOUT_GRANTS:
        return  # that release kept no history
    backups = dynamodb.describe_continuous_backups(TableName="music")["ContinuousBackupsDescription"]
    assert backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"
    dynamodb.restore_table_to_point_in_time(
        SourceTableName="music", TargetTableName="as-it-was", UseLatestRestorableTime=True
    )
    waiter = dynamodb.get_waiter("table_exists")
    waiter.wait(TableName="as-it-was", WaiterConfig={"Delay": 0.05, "MaxAttempts": 1200})
    found = {each["song"]["S"] for each in dynamodb.scan(TableName="as-it-was")["Items"]}
    assert {f"s{number:02}" for number in range(released.SONGS)} <= found


@pytest.mark.extended
@pytest.mark.parametrize(
    ("which", "databases"),
    [
        pytest.param("steps", RELEASED[:1], id="steps"),
        pytest.param("middle", RELEASED[1:2], id="middle"),
        pytest.param("statements", RELEASED, id="statements", marks=[pytest.mark.soak, minutes_long]),
    ],
)
def test_a_killed_migration_can_be_run_again(
    which: str, databases: list[tuple[str, str]], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A kill inside each step (in `make test` on SQLite) or after each statement (in `make soak` on both databases)."""
    urls = []
    for release, kind in databases:
        (tmp_path / release).mkdir(exist_ok=True)
        place, url = place_of(kind, tmp_path / release, request)
        released.restore(release, kind, place)
        urls.append(url)
    command = [sys.executable, "-m", "tests.support.killed_migrations", which, *urls]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(urls)
    for line in lines:
        missing, *killed = map(int, line.replace(":", "").split())
        every = [*range(1, missing + 2)]  # the last one records which releases can serve the schema
        assert sorted({*killed}) == ([missing // 2 + 1] if which == "middle" else every)
        assert which != "statements" or len(killed) > len(every)


@pytest.mark.extended
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_an_older_release_refuses_this_schema_in_one_line(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    release = "0.1.0"
    if not released.is_known(release):
        pytest.skip(f"this checkout does not have the commit of {release}")
    _, url = place_of(kind, tmp_path, request)
    database = open_database(url)
    migrate(database)
    database.close()
    source = released.checked_out(release, tmp_path / "source")
    environment = {"TABLEGATE_SECRET_KEY": released.SECRET_KEY, "PYTHONPATH": str(source)}
    old = Process(source, "--database", url, environment=environment)
    status, errors = old.end()
    assert (status, old.url) == (1, "")
    [line] = errors.splitlines()
    assert "later release" in line
    assert steps()[-1] in line


class Writer(threading.Thread):
    """Writes rows of the three dialects through one gateway, and reads each one back."""

    def __init__(self, url: str, name: str) -> None:
        super().__init__()
        self._clients, self._prefix = Clients(url), name
        self.written: list[str] = []
        self.failures: list[BaseException] = []
        self.is_stopped = False

    def run(self) -> None:
        while not self.is_stopped and not self.failures:
            key = f"{self._prefix}{len(self.written)}"
            try:
                self._write(key)
                self.written.append(key)
                assert has(self._clients, key), f"{key} is lost"
            except BaseException as error:
                self.failures.append(error)

    def _write(self, key: str) -> None:
        self._clients.dynamodb.put_item(TableName="music", Item={"artist": {"S": "w"}, "song": {"S": key}})
        people = self._clients.azure.get_table_client("people")
        people.create_entity({"PartitionKey": "w", "RowKey": key})
        self._clients.tablestore.put_row("plays", released.ots.Row([("k", key)], [("n", 1)]))

    def wait_for_more(self) -> None:
        """Wait until three more rows have been written."""
        known = len(self.written)
        wait_until(lambda: len(self.written) >= known + 3 or not self.is_alive())

    def stop(self) -> list[str]:
        self.is_stopped = True
        self.join()
        assert self.failures == []
        return self.written


def has(clients: Clients, key: str) -> bool:
    """Return True if a row of a writer is in each table."""
    place = {"artist": {"S": "w"}, "song": {"S": key}}
    item = clients.dynamodb.get_item(TableName="music", Key=place, ConsistentRead=True)
    entity = clients.azure.get_table_client("people").get_entity("w", key)
    row = clients.tablestore.get_row("plays", [("k", key)])[1]
    return "Item" in item and entity["RowKey"] == key and row is not None


def streamed(clients: Clients) -> set[str]:
    """Return the keys of writers that the stream of the table `music` has."""
    streams, found = clients.streams, set()
    arn = clients.dynamodb.describe_table(TableName="music")["Table"]["LatestStreamArn"]
    for shard in streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
        place = {"StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        page = {"NextShardIterator": streams.get_shard_iterator(**place)["ShardIterator"]}
        while page.get("NextShardIterator"):
            page = streams.get_records(ShardIterator=page["NextShardIterator"])
            if not page["Records"]:
                break
            found |= {each["dynamodb"]["Keys"]["song"]["S"] for each in page["Records"]}
    return found


@pytest.mark.extended
def test_two_releases_serve_one_database_during_an_upgrade(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    release = [*released.COMMITS][-1]
    if not released.is_known(release):
        pytest.skip(f"this checkout does not have the commit of {release}")
    place, url = place_of("postgresql", tmp_path, request)
    released.restore(release, "postgresql", place)
    source = released.checked_out(release, tmp_path / "source")
    environment = {"TABLEGATE_SECRET_KEY": released.SECRET_KEY}
    flags = ("--database", url, "--auth", "strict")
    with contextlib.ExitStack() as stack:
        old = Process(source, *flags, environment={**environment, "PYTHONPATH": str(source)})
        stack.callback(old.kill)
        old_writer = Writer(old.url, "old")
        stack.callback(setattr, old_writer, "is_stopped", True)
        old.wait_until_ready()
        old_writer.start()
        old_writer.wait_for_more()
        database = open_database(url)
        assert migrate(database)[-1] == steps()[-1]
        database.close()
        old_writer.wait_for_more()
        new = Process(tmp_path, *flags, environment=environment)
        stack.callback(new.kill)
        new_writer = Writer(new.url, "new")
        stack.callback(setattr, new_writer, "is_stopped", True)
        new.wait_until_ready()
        new_writer.start()
        new_writer.wait_for_more()
        old_writer.wait_for_more()
        keys = old_writer.stop()
        assert old.terminate()[0] == 0
        new_writer.wait_for_more()
        keys = keys + new_writer.stop()
        clients = Clients(new.url)
        assert [key for key in keys if not has(clients, key)] == []
        assert {*keys} - streamed(clients) == set()
        assert new.terminate()[0] == 0
