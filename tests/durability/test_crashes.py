"""Faults of real server processes and their databases: killed or paused processes, a lost or full database.

No acknowledged write is lost, no partial write is visible, and service continues. The run takes seconds here. `make
soak` kills for a minute on each database.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import os
import random
import resource
import signal
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import requests
from sqlalchemy import make_url

from tablegate.gateway.configuration.loading import load
from tablegate.gateway.engine.tables import row_counting
from tablegate.gateway.store.store import Store
from tablegate.gateway.wiring import connect
from tests.conftest import Serve
from tests.support import loads
from tests.support.loads import LoadProcess, number, text
from tests.support.raw_client import Lost, RawClient, Refused
from tests.support.running import Begin, processes
from tests.support.waiting import wait_at_random, wait_until

SECONDS = float(os.environ.get("TABLEGATE_TEST_SOAK_SECONDS", "1.5"))
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
on_postgresql = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Start a server process on a database: `begin(url, *flags)`. Those that still run are killed at the end."""
    with processes(tmp_path, "--dialects", "dynamodb") as begin:
        yield begin


# kill -9


class Writer(threading.Thread):
    """A client that writes until the server is gone: single puts, transactions over two tables, increments.

    It records the acknowledgements. `numbers` continues over restarts.
    """

    def __init__(self, url: str, name: str, numbers: Iterator[int]) -> None:
        super().__init__()
        self._url = url
        self._name = name
        self._numbers = numbers
        self.singles: list[str] = []
        self.pairs: list[str] = []
        self.unknown = 0
        self._is_stopped = False

    def run(self) -> None:
        with RawClient(self._url) as client:
            try:
                while not self._is_stopped:
                    try:
                        self._write(client)
                    except Refused:  # by a process that does not write, while the one that does is gone
                        self.unknown += 1
                        time.sleep(0.02)
            except Lost:
                self.unknown += 1

    def stop(self) -> None:
        """Wait until the write that it is at is answered."""
        self._is_stopped = True
        self.join()

    def _write(self, client: RawClient) -> None:
        key = {"p": text(f"{self._name}-{next(self._numbers):06}")}
        client.call("PutItem", TableName="things", Item={**key, "x": text("x" * 300)})
        self.singles.append(key["p"]["S"])
        client.call(
            "TransactWriteItems",
            TransactItems=[
                {"Put": {"TableName": "left", "Item": {**key, "n": number(1)}}},
                {"Put": {"TableName": "right", "Item": {**key, "n": number(1)}}},
                {
                    "Update": {
                        "TableName": "things",
                        "Key": {"p": text(self._name)},
                        "UpdateExpression": "ADD n :one",
                        "ExpressionAttributeValues": {":one": number(1)},
                    }
                },
            ],
        )
        self.pairs.append(key["p"]["S"])


@pytest.mark.soak
def test_a_killed_server_keeps_every_acknowledged_write_and_no_half_transaction(
    begin: Begin, database_url: str
) -> None:
    chance = random.Random(1)
    server = begin(database_url)
    with RawClient(server.url) as client:
        for table in ("things", "left", "right"):
            client.create_table(table)
    streams = [itertools.count() for _ in range(4)]
    writers: list[Writer] = []
    until = time.monotonic() + SECONDS
    kills = 0
    while kills < 2 or time.monotonic() < until:
        batch = [Writer(server.url, f"w{at}", numbers) for at, numbers in enumerate(streams)]
        for writer in batch:
            writer.start()
        wait_until(lambda batch=batch: all(writer.pairs or not writer.is_alive() for writer in batch))  # type: ignore[misc]
        assert all(writer.is_alive() for writer in batch)
        wait_at_random(chance, 0.5)
        server.kill()
        kills += 1
        for writer in batch:
            writer.join()
        writers += batch
        server = begin(database_url)
        _check(server.url, database_url, writers)


@pytest.mark.extended
@pytest.mark.soak
def test_killed_workers_keep_every_acknowledged_write(begin: Begin, database_url: str) -> None:
    """Like the test above, but one of two workers or both are killed and replaced.

    On SQLite, one worker writes for both.
    """
    chance = random.Random(2)
    server = begin(database_url, "--workers", "2")
    with RawClient(server.url) as client:
        for table in ("things", "left", "right"):
            client.create_table(table)
    streams = [itertools.count() for _ in range(4)]
    writers: list[Writer] = []
    until = time.monotonic() + SECONDS
    kills = 0
    while kills < 3 or time.monotonic() < until:
        batch = [Writer(server.url, f"w{at}", numbers) for at, numbers in enumerate(streams)]
        for writer in batch:
            writer.start()
        wait_until(lambda batch=batch: any(writer.pairs for writer in batch))  # type: ignore[misc]
        wait_at_random(chance, 0.5)
        workers = server.workers()
        victims = chance.sample(workers, chance.choice([1, 2]))
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        kills += 1
        wait_until(
            lambda victims=victims: len(server.workers()) == 2 and not set(victims) & set(server.workers())  # type: ignore[misc]
        )
        for writer in batch:
            writer.stop()
        writers += batch
        _check(server.url, database_url, writers)
    assert any(writer.unknown for writer in writers), "no client has noticed anything"
    assert any(writer.pairs for writer in writers)


def _check(url: str, database_url: str, writers: list[Writer]) -> None:
    with RawClient(url) as client:
        things = {item["p"]["S"]: item for item in client.scan("things")}
        left = {item["p"]["S"] for item in client.scan("left")}
        right = {item["p"]["S"] for item in client.scan("right")}
    assert left == right
    assert {key for writer in writers for key in writer.pairs} <= left
    assert {key for writer in writers for key in writer.singles} <= things.keys()
    for name in ("w0", "w1", "w2", "w3"):
        # The counter moves in the same transaction, so it counts exactly the pairs that are there.
        counted = int(things[name]["n"]["N"]) if name in things else 0
        assert counted == sum(key.startswith(name) for key in left)
    database = connect(load({"database": database_url}, {}))
    try:
        assert [*row_counting.mismatches(Store(database))] == []
    finally:
        database.close()


# SIGSTOP


@pytest.mark.extended
@on_postgresql
def test_a_stopped_server_that_holds_locks_freezes_no_other(begin: Begin, database_url: str) -> None:
    """Stopped in the middle of a transaction, under a load on four items. The other server can write these when the locks
    of the first are forgotten, after five seconds, and everything else meanwhile."""
    stopped, going = begin(database_url), begin(database_url)
    with RawClient(going.url) as client, postgres_at(database_url) as postgres:
        client.create_table("things")
        of_the_stopped = [LoadProcess(loads.touch, stopped.url, 8, seed) for seed in range(2)]
        wait_until(lambda: client.scan("things"))
        _stop_within_a_transaction(stopped.pid, postgres)
        hot = LoadProcess(loads.touch, going.url, 6.5, 10)
        others = LoadProcess(loads.fill, going.url, 6.5, 11)
        for item in range(4):
            _write_at_last(client, f"h{item}")
        books = hot.books()
        assert books["answered"]
        assert books["slowest"] < 8
        assert others.books()["slowest"] < 2
        os.kill(stopped.pid, signal.SIGCONT)
        for each in of_the_stopped:
            books = each.books()
            assert books["answered"]
            assert "lost" not in books["refusals"]


@contextlib.contextmanager
def postgres_at(database_url: str) -> Iterator[psycopg.Connection]:
    """A connection of the test's own to the gateways' database."""
    url = make_url(database_url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def _stop_within_a_transaction(pid: int, postgres: psycopg.Connection) -> None:
    """Stop a process at a moment when it has a transaction that does not end by itself."""
    writing = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND backend_xid IS NOT NULL"
    while True:
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.02)
        if postgres.execute(writing).fetchall():
            return
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.003)


def _write_at_last(client: RawClient, key: str) -> None:
    """Write, if need be with the few attempts that every SDK makes. Each is answered within an SDK's patience."""
    for _ in range(3):
        asked = time.monotonic()
        refusal = _refusal(client, "things", key)
        assert time.monotonic() - asked < 8
        if refusal is None:
            return
        assert refusal.may_be_tried_again, refusal
    raise AssertionError(f"{key} stays locked")


def _refusal(client: RawClient, table: str, key: str) -> Refused | None:
    try:
        client.call("PutItem", TableName=table, Item={"p": text(key)})
    except Refused as refusal:
        return refusal
    return None


# The database goes away, or is full


class Gate:
    """A proxy between a gateway and PostgreSQL on a unix socket.

    When it is shut, it closes open connections and accepts no new ones.
    """

    def __init__(self, folder: Path, target: str) -> None:
        self._path = folder / ".s.PGSQL.5432"
        self._target = target
        self._through: list[socket.socket] = []
        self._listener: socket.socket | None = None
        self._lock = threading.Lock()

    def open(self) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._path))
        self._listener.listen()
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def shut(self) -> None:
        self._path.unlink()
        with self._lock:
            self._listener = None
        self.throw_out()

    def throw_out(self) -> None:
        with self._lock:
            through, self._through = self._through, []
        for end in through:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            client, _ = listener.accept()
            server = socket.socket(socket.AF_UNIX)
            with self._lock:
                if listener is not self._listener:  # it was shut before this connection was accepted
                    client.close()
                    continue
                server.connect(self._target)
                self._through += [client, server]
            for ends in ((client, server), (server, client)):
                threading.Thread(target=_copy, args=ends, daemon=True).start()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def gate(database_url: str, tmp_path: Path) -> Gate:
    folder = make_url(database_url).query.get("host")
    if not isinstance(folder, str) or not folder.startswith("/"):
        pytest.skip("the gate stands before the unix socket of a server of our own")
    made = Gate(tmp_path, f"{folder}/.s.PGSQL.{make_url(database_url).port or 5432}")
    made.open()
    return made


def behind(gate_folder: Path, database_url: str) -> str:
    url = make_url(database_url).update_query_dict({"host": str(gate_folder), "port": "5432"})
    return url.render_as_string(hide_password=False)


@pytest.mark.extended
@on_postgresql
def test_without_the_database_clients_get_an_error_and_are_served_again_later(
    serve: Serve, gate: Gate, database_url: str, tmp_path: Path
) -> None:
    server = serve(behind(tmp_path, database_url))
    with RawClient(server.url) as client:
        client.create_table("things")
        client.call("PutItem", TableName="things", Item={"p": text("before")})
        gate.shut()
        for operation, given in (
            ("PutItem", {"Item": {"p": text("meanwhile")}}),
            ("GetItem", {"Key": {"p": text("before")}}),
            ("Scan", {}),
            ("DescribeTable", {}),
        ):
            asked = time.monotonic()
            with pytest.raises(Refused) as refusal:
                client.call(operation, TableName="things", **given)
            assert refusal.value.status in (500, 503)
            assert refusal.value.code in ("ServiceUnavailableException", "InternalServerError")
            assert time.monotonic() - asked < 7
        assert requests.get(f"{server.url}/healthz").status_code == 200
        assert requests.get(f"{server.url}/readyz").status_code == 503
        gate.open()
        assert [item["p"]["S"] for item in client.scan("things")] == ["before"]
        client.call("PutItem", TableName="things", Item={"p": text("after")})
        assert requests.get(f"{server.url}/readyz").status_code == 200


@on_postgresql
def test_a_request_does_not_notice_that_the_database_connections_have_died(
    serve: Serve, gate: Gate, database_url: str, tmp_path: Path
) -> None:
    server = serve(behind(tmp_path, database_url))
    with RawClient(server.url) as client:
        client.create_table("things")
        client.call("PutItem", TableName="things", Item={"p": text("a")})
        for operation, given in (
            ("GetItem", {"Key": {"p": text("a")}}),
            ("Scan", {}),
            ("PutItem", {"Item": {"p": text("b")}}),
            ("TransactGetItems", {}),
            ("CreateTable", {}),
        ):
            gate.throw_out()
            if operation == "TransactGetItems":
                client.call(
                    operation, TransactItems=[{"Get": {"TableName": "things", "Key": {"p": text("a")}}}]
                )
            elif operation == "CreateTable":
                client.create_table("more")
            else:
                client.call(operation, TableName="things", **given)


@on_sqlite
def test_with_a_full_disk_clients_get_an_error_and_are_served_again_later(
    begin: Begin, database_url: str
) -> None:
    """A limit on the file size, set from outside, simulates the full disk."""
    server = begin(database_url)
    with RawClient(server.url) as client:
        client.create_table("things")
        client.call("PutItem", TableName="things", Item={"p": text("before")})
        unlimited = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (1_500_000, unlimited[1]))
        kept = []
        refusals = []
        for number_of_item in range(12):
            key = f"big{number_of_item}"
            try:
                client.call("PutItem", TableName="things", Item={"p": text(key), "x": text("x" * 300_000)})
                kept.append(key)
            except Refused as refusal:
                refusals.append(refusal)
        assert kept
        assert refusals
        assert all(refusal.status in (500, 503) and refusal.may_be_tried_again for refusal in refusals)
        assert client.call("GetItem", TableName="things", Key={"p": text("before")})["Item"]
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, unlimited)
        client.call("PutItem", TableName="things", Item={"p": text("after")})
        assert {item["p"]["S"] for item in client.scan("things")} == {"before", "after", *kept}


@pytest.mark.extended
@on_sqlite
def test_a_database_that_another_program_has_locked_stops_no_reader(
    serve: Serve, database_url: str, tmp_path: Path
) -> None:
    server = serve(database_url)
    with RawClient(server.url) as client, sqlite3.connect(tmp_path / "test.sqlite") as other:
        client.create_table("things")
        client.call("PutItem", TableName="things", Item={"p": text("a")})
        other.execute("BEGIN IMMEDIATE")
        refusals: list[Refused | None] = []
        second = RawClient(server.url)
        writer = threading.Thread(target=lambda: refusals.append(_refusal(second, "things", "locked")))
        writer.start()
        slowest = 0.0
        while writer.is_alive():
            asked = time.monotonic()
            assert client.call("GetItem", TableName="things", Key={"p": text("a")})["Item"]
            slowest = max(slowest, time.monotonic() - asked)
        other.execute("ROLLBACK")
        assert [refusal and refusal.status for refusal in refusals] == [503]
        second.close()
        assert slowest < 2
        client.call("PutItem", TableName="things", Item={"p": text("b")})


# Keys


@on_postgresql
def test_keys_of_maximal_length_that_cannot_be_compressed(serve: Serve, database_url: str) -> None:
    """PostgreSQL rejects an index tuple over 2,704 bytes.

    A key of a table can have 3,072 bytes, and an index entry refers from one such key to another
    (docs/protocols/dynamodb.md rule 23).
    """

    def binary(size: int, last: int) -> dict[str, str]:
        data = random.Random(size).randbytes(size - 1) + bytes([last])
        return {"B": base64.b64encode(data).decode()}

    keys = {"p": 2048, "s": 1024, "ip": 2048, "is": 1024, "ls": 1024}
    items = [{name: binary(size, last) for name, size in keys.items()} for last in (0, 255, 7, 128)]

    def schema(hash_name: str, range_name: str) -> list[dict[str, str]]:
        return [
            {"AttributeName": hash_name, "KeyType": "HASH"},
            {"AttributeName": range_name, "KeyType": "RANGE"},
        ]

    everything = {"ProjectionType": "ALL"}
    with RawClient(serve(database_url).url) as client:
        client.call(
            "CreateTable",
            TableName="long",
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "B"} for name in keys],
            KeySchema=schema("p", "s"),
            GlobalSecondaryIndexes=[
                {"IndexName": "global", "KeySchema": schema("ip", "is"), "Projection": everything}
            ],
            LocalSecondaryIndexes=[
                {"IndexName": "local", "KeySchema": schema("p", "ls"), "Projection": everything}
            ],
        )
        for item in items:
            client.call("PutItem", TableName="long", Item=item)
        for index in ("global", "local", None):
            named = {} if index is None else {"IndexName": index}
            found = client.scan("long", Limit=2, **named)
            assert sorted(map(str, found)) == sorted(map(str, items))
        for item in items:
            query = client.call(
                "Query",
                TableName="long",
                IndexName="global",
                KeyConditionExpression="ip = :p AND #s >= :s",
                ExpressionAttributeNames={"#s": "is"},
                ExpressionAttributeValues={":p": item["ip"], ":s": item["is"]},
            )
            assert query["Items"] == [item]
            assert client.call("DeleteItem", TableName="long", Key={"p": item["p"], "s": item["s"]}) == {}
        assert client.scan("long", IndexName="global") == client.scan("long") == []
