"""Several processes on one SQLite file: one writes, all read, and clients cannot distinguish them."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import signing
from tablegate.adapters.tablestore.wire.plainbuffer import WireCell, WireRow, encode_row
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.values.values import Kind, Value
from tests.support.raw_client import RawClient, Refused
from tests.support.running import ROOT, Process
from tests.support.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.extended

CONNECTIONS = 24  # that all of them meet the same one of three processes has a chance of 3 in 3 ** 24


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Process]:
    process = Process(tmp_path, "--workers", "3")
    process.wait_until_ready()
    yield process
    if process.is_running:
        process.kill()


@pytest.fixture
def clients(server: Process) -> Iterator[list[RawClient]]:
    made = [RawClient(server.url) for _ in range(CONNECTIONS)]
    yield made
    for client in made:
        client.close()


def test_a_write_is_seen_on_every_connection_as_soon_as_it_is_answered(clients: list[RawClient]) -> None:
    clients[0].create_table("things")
    key = {"p": {"S": "x"}}
    for number, writer in enumerate(clients):
        writer.call("PutItem", TableName="things", Item={**key, "n": {"N": str(number)}})
        for reader in clients:
            assert reader.call("GetItem", TableName="things", Key=key)["Item"]["n"] == {"N": str(number)}
            assert len(reader.scan("things")) == 1


def test_tables_that_change_are_known_to_all_at_once(clients: list[RawClient]) -> None:
    for at in range(3):
        one, other = clients[at], clients[-at - 1]
        one.create_table("things")
        for client in clients:
            client.call("PutItem", TableName="things", Item={"p": {"S": "x"}})
            assert client.scan("things") == [{"p": {"S": "x"}}]
        other.call("DeleteTable", TableName="things")
        for client in clients:
            with pytest.raises(Refused, match="ResourceNotFound"):
                client.call("GetItem", TableName="things", Key={"p": {"S": "x"}})


def test_the_refusal_of_a_write_reaches_its_client(clients: list[RawClient]) -> None:
    clients[0].create_table("things")
    for client in clients:
        client.call("PutItem", TableName="things", Item={"p": {"S": "x"}})
        with pytest.raises(Refused, match="ConditionalCheckFailed"):
            client.call(
                "PutItem", TableName="things", Item={"p": {"S": "x"}}, ConditionExpression="attribute_not_exists(p)"
            )  # fmt: skip


def test_all_dialects_write_through_every_worker(server: Process) -> None:
    port = int(server.url.rpartition(":")[2])
    clients = [signing.Client(port) for _ in range(CONNECTIONS)]
    created, _ = clients[0].send(signing.azure(port, "POST", "/Tables", b'{"TableName":"people"}'))
    assert created in (201, 204)
    columns = [messages.PrimaryKeySchema(name="pk", type=messages.STRING)]
    table = messages.CreateTableRequest(
        table_meta=messages.TableMeta(table_name="rows", primary_key=columns),
        reserved_throughput=messages.ReservedThroughput(capacity_unit=messages.CapacityUnit(read=0, write=0)),
        table_options=messages.TableOptions(time_to_live=-1, max_versions=1),
    )
    assert clients[0].send(signing.tablestore(port, "CreateTable", table.SerializeToString()))[0] == 200
    for number, (writer, reader) in enumerate(zip(clients, reversed(clients), strict=True)):
        entity = {"PartitionKey": "p", "RowKey": str(number), "Text": "x"}
        inserted, _ = writer.send(signing.azure(port, "POST", "/people", json.dumps(entity).encode()))
        assert inserted in (201, 204)
        status, found = reader.send(
            signing.azure(port, "GET", f"/people(PartitionKey='p',RowKey='{number}')")
        )
        assert status == 200
        assert json.loads(found)["Text"] == "x"
        wire = encode_row(WireRow((WireCell("pk", Value(Kind.TEXT, str(number))),), ()))
        put = messages.PutRowRequest(
            table_name="rows", row=wire, condition=messages.Condition(row_existence=messages.IGNORE)
        )
        assert writer.send(signing.tablestore(port, "PutRow", put.SerializeToString()))[0] == 200
        get = messages.GetRowRequest(table_name="rows", primary_key=wire, max_versions=1)
        status, answer = reader.send(signing.tablestore(port, "GetRow", get.SerializeToString()))
        assert status == 200, answer
        assert messages.GetRowResponse.FromString(answer).row
    for client in clients:
        client.close()


def test_a_caller_has_the_same_identity_in_every_process(tmp_path: Path) -> None:
    """The process that writes checks signatures and namespaces as the others do.

    A key id has the tables of its account, and none with another secret.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    migrate = [sys.executable, "-m", "tablegate", "migrate"]
    subprocess.run(migrate, cwd=tmp_path, check=True, env=environment)
    for access_id, place in (("AK1", "111111111111"), (signing.AWS_KEY_ID, "333333333333")):
        command = [
            sys.executable,
            "-m",
            "tablegate",
            "credentials",
            "add",
            access_id,
            "--all",
            "--place",
            place,
            "--secret-file",
            "-",
        ]
        subprocess.run(
            command, cwd=tmp_path, check=True, env=environment, input=signing.AWS_SECRET, text=True
        )
    process = Process(tmp_path, "--workers", "2", "--auth", "strict", "--namespaces", "separate")
    process.wait_until_ready()
    port = int(process.url.rpartition(":")[2])
    try:
        clients = [signing.Client(port) for _ in range(CONNECTIONS)]
        schema = [{"AttributeName": "p", "KeyType": "HASH"}]
        attributes = [{"AttributeName": "p", "AttributeType": "S"}]
        table = {"TableName": "things", "KeySchema": schema, "AttributeDefinitions": attributes}
        body = json.dumps({**table, "BillingMode": "PAY_PER_REQUEST"}).encode()
        status, answer = clients[0].send(signing.dynamodb(port, "CreateTable", body))
        assert status == 200, answer
        assert b":333333333333:table/things" in answer
        put = json.dumps({"TableName": "things", "Item": {"p": {"S": "x"}}}).encode()
        for client in clients:
            good = signing.dynamodb(port, "PutItem", put)
            assert client.send(good)[0] == 200
            forged = good.replace(good.partition(b"Signature=")[2][:64], b"0" * 64)
            status, answer = client.send(forged)
            assert (status, b"InvalidSignatureException" in answer) == (400, True)
            # The key of another account with the same secret has a valid signature but no such table.
            status, answer = client.send(good.replace(b"Credential=tablegate/", b"Credential=AK1/"))
            assert (status, b"ResourceNotFoundException" in answer) == (400, True)
            client.close()
    finally:
        process.kill()


@pytest.mark.parametrize("victim", [0, 1], ids=["the one that writes", "one that reads"])
def test_a_process_that_is_killed_is_replaced(server: Process, clients: list[RawClient], victim: int) -> None:
    clients[0].create_table("things")
    clients[1].call("PutItem", TableName="things", Item={"p": {"S": "kept"}})
    before = server.workers()
    os.kill(before[victim], signal.SIGKILL)
    server.wait_for_error("is being restarted")
    for number in range(CONNECTIONS):
        with RawClient(server.url) as client:

            def is_put(client: RawClient = client, number: int = number) -> bool:
                try:
                    client.call("PutItem", TableName="things", Item={"p": {"S": str(number)}})
                except Refused as refusal:
                    assert refusal.may_be_tried_again
                    return False
                return True

            wait_until(is_put)  # it may be met before the new one of those that read has opened the database
            assert {"p": {"S": "kept"}} in client.scan("things")
    assert len(set(server.workers()) & set(before)) == 2


def test_the_socket_is_for_its_owner_alone_and_gone_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(tempfile.mkdtemp(prefix="tablegate-test-", dir="/tmp"))
    monkeypatch.setenv("TMPDIR", str(folder))
    process = Process(tmp_path, "--workers", "2")
    process.wait_until_ready()
    [path] = folder.glob("tablegate-relay-*/writer")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert process.terminate() == (0, "")
    assert list(folder.iterdir()) == []
    folder.rmdir()


def test_a_folder_name_too_long_for_a_socket_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    code, errors = Process(tmp_path, "--workers", "2").end()
    assert code == 1
    assert errors.startswith("Error: cannot make a socket in ")


def test_requests_are_counted_once_each(server: Process, clients: list[RawClient]) -> None:
    clients[0].create_table("things")
    for client in clients:
        client.call("PutItem", TableName="things", Item={"p": {"S": "x"}})
        client.call("GetItem", TableName="things", Key={"p": {"S": "x"}})
    wanted = {f'operation="{name}",status="200"}} {CONNECTIONS}.0' for name in ("PutItem", "GetItem")}

    def lines() -> set[str]:
        with urllib.request.urlopen(f"{server.url}/metrics", timeout=PATIENCE_S) as reply:
            told = reply.read().decode()
        return {
            line.partition(",")[2]
            for line in told.splitlines()
            if line.startswith("tablegate_requests_total")
        }

    wait_until(lambda: wanted <= lines(), lines)


def test_the_log_does_not_grow_without_end(server: Process, clients: list[RawClient], tmp_path: Path) -> None:
    """Readers that always have a snapshot open could keep the log from ever being begun anew."""
    clients[0].create_table("things")
    text = "x" * 100_000
    for number in range(40):
        for client in clients:
            client.call("PutItem", TableName="things", Item={"p": {"S": str(number % 8)}, "t": {"S": text}})
            client.call("GetItem", TableName="things", Key={"p": {"S": str(number % 8)}})
    assert (tmp_path / "tablegate.sqlite-wal").stat().st_size < 80 << 20
    assert server.terminate() == (0, "")
    with sqlite3.connect(tmp_path / "tablegate.sqlite") as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
