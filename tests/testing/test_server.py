"""`tablegate.testing.Server`: a process that starts on demand and ends with its parent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any

import boto3
import pytest

from tablegate.testing import ControlError, Server, ServerFailed
from tablegate.testing.process_server import ProcessServer
from tests.support.waiting import PATIENCE_S, wait_until

TABLE = {
    "TableName": "things",
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
}


@pytest.fixture(scope="module")
def server() -> Any:
    with Server() as running:
        yield running


def test_the_three_sdks_find_the_server(server: Server) -> None:
    server.control.reset()
    server.dynamodb_client().create_table(**TABLE)
    server.dynamodb().Table("things").put_item(Item={"id": "1", "n": 1})
    [entity] = server.azure_tables().get_table_client("things").list_entities()
    assert (entity["PartitionKey"], entity["n"]) == ("1", 1)
    assert server.tablestore_client().list_table() == [
        "things"
    ] or server.tablestore_client().list_table() == ("things",)


def test_the_control_client_has_each_operation(server: Server, tmp_path: Path) -> None:
    control, client = server.control, server.dynamodb_client()
    control.reset()
    client.create_table(**TABLE)
    control.save("before")
    control.record()
    with control.fault(error="throttling", operation="PutItem", count=1):
        client.put_item(TableName="things", Item={"id": {"S": "1"}})
        assert [fault["met"] for fault in control.faults()] == [1]
    assert control.faults() == []
    assert [line["status"] for line in control.requests(operation="PutItem")] == [400, 200]
    with pytest.raises(ControlError, match=r"400: operation: .* has no PutItme. Similar ones: PutItem"):
        control.requests(operation="PutItme")
    with pytest.raises(ControlError, match=r"400: operation: .* has no PutItme. Similar ones: PutItem"):
        control.add_fault(error="throttling", operation="PutItme")
    control.forget_requests()
    assert control.requests() == []
    assert control.reset(keep_tables=True) == 1
    assert client.scan(TableName="things")["Count"] == 0
    assert control.load("before")["tables"] == 1
    assert [*control.snapshots()] == ["before"]
    control.forget("before")
    assert control.clock()["frozen"] is False
    assert control.freeze()["frozen"] is True
    assert control.unfreeze()["frozen"] is False
    with pytest.raises(ControlError, match="404: there is no snapshot before"):
        control.load("before")
    control.close()
    assert control.clock()["frozen"] is False


def test_a_decorated_function_runs_in_the_environment_of_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of somebody else")
    monkeypatch.delenv("AWS_ENDPOINT_URL_DYNAMODB", raising=False)
    server = Server()

    @server
    def work() -> int:
        assert "AWS_SESSION_TOKEN" not in os.environ
        boto3.client("dynamodb").create_table(**TABLE)
        return len(server.dynamodb_client().list_tables()["TableNames"])

    assert work() == 1
    assert os.environ["AWS_SESSION_TOKEN"] == "of somebody else"
    assert "AWS_ENDPOINT_URL_DYNAMODB" not in os.environ
    assert server.pid is None


def test_each_test_of_a_test_case_begins_empty() -> None:
    server = Server()

    @server
    class Things(unittest.TestCase):
        def test_one(self) -> None:
            boto3.client("dynamodb").create_table(**TABLE)

        def test_two(self) -> None:
            boto3.client("dynamodb").create_table(**TABLE)

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Things).run(result)
    assert (result.testsRun, result.failures, result.errors) == (2, [], [])
    assert server.pid is None


def test_strict_takes_its_keys_and_no_others() -> None:
    with Server(auth="strict") as server:
        server.dynamodb_client().create_table(**TABLE)
        assert [table.name for table in server.azure_tables().list_tables()] == ["things"]
        stranger = boto3.Session("other", "other", region_name="us-east-1")
        with pytest.raises(Exception, match="UnrecognizedClientException"):
            stranger.client("dynamodb", endpoint_url=server.url).list_tables()


@pytest.mark.extended
@pytest.mark.parametrize("beginning", ["seed", "start_from"])
def test_a_database_of_an_earlier_run_begins_as_the_first_time(tmp_path: Path, beginning: str) -> None:
    """Strict servers read its credentials, and rows of the earlier run are gone (docs/test/pytest.md, the ini file)."""
    folder = tmp_path / "seed"
    folder.mkdir()
    (folder / "things.json").write_text(json.dumps(TABLE))
    (folder / "things.jsonl").write_text(json.dumps({"id": {"S": "of the seed"}}))
    settings = {"database": f"sqlite:///{tmp_path}/kept.sqlite", "auth": "strict", "seed": folder}
    if beginning == "start_from":
        settings["start_from"] = tmp_path / "beginning.tgz"
        with Server(seed=settings.pop("seed")) as server:
            server.control.save("beginning")
            server.control.export("beginning", settings["start_from"])
    for _ in range(2):
        run = ProcessServer()
        things = run.begin(settings).dynamodb().Table("things")
        assert [item["id"] for item in things.scan()["Items"]] == ["of the seed"]
        things.put_item(Item={"id": "of a test"})
        run.stop()


def test_a_file_that_a_database_cannot_start_from_is_named(tmp_path: Path) -> None:
    file = tmp_path / "no.tgz"
    with pytest.raises(ServerFailed, match=r"start_from: .*No such file.*no\.tgz"):
        ProcessServer().begin({"database": f"sqlite:///{tmp_path}/kept.sqlite", "start_from": file})
    file.write_bytes(b"no archive")
    with pytest.raises(ServerFailed, match="start_from: 400: "):
        ProcessServer().begin({"database": f"sqlite:///{tmp_path}/kept.sqlite", "start_from": file})


def test_a_server_that_cannot_start_reports_the_reason() -> None:
    with pytest.raises(ServerFailed, match="No such option"):
        Server(no_such_setting=1).start()


_PARENT = """
import sys, time
from tablegate.testing import Server
server = Server().start()
print(server.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.extended
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_server_never_outlives_its_parent(number: signal.Signals) -> None:
    parent = subprocess.Popen([sys.executable, "-c", _PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert _is_there(pid)
    parent.send_signal(number)
    parent.communicate(timeout=PATIENCE_S)
    wait_until(lambda: not _is_there(pid))


def _is_there(pid: int) -> bool:
    try:
        return "zombie" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
