"""`tablegate jobs`: which jobs run, and cancelling one under a running server, whatever it is reading."""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from tablegate.gateway.__main__ import main
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.features.jobs.job_commands import StartJob
from tablegate.gateway.store.migrating import migrate
from tablegate.gateway.wiring import connect, open_store
from tests.support.object_places import BUCKET, FolderPlace
from tests.support.raw_client import RawClient
from tests.support.running import Process
from tests.support.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.extended

_ATTEMPTS = 3  # of 30 s each; adapters/dynamodb/features/exports_imports/s3_store.py
KEY = {
    "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}


def tablegate(folder: Path, *arguments: str, code: int = 0) -> str:
    with contextlib.chdir(folder):
        done = CliRunner().invoke(main, arguments)
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.output


def test_jobs_are_listed_and_cancelled(tmp_path: Path) -> None:
    settings = load({"database": f"sqlite:///{tmp_path}/tablegate.sqlite"}, {})
    database = connect(settings)
    migrate(database)
    opened = open_store(settings, database)
    assert tablegate(tmp_path, "jobs", "list") == ""
    [one] = opened.engine.run([StartJob("kind", "aws/1/r", "orders", {}, "IN_PROGRESS", 9)])
    [other] = opened.engine.run([StartJob("other", "aws/1/r", "orders", {}, "", 9)])
    opened.close()
    lines = tablegate(tmp_path, "jobs", "list").splitlines()
    assert [line.split("\t")[:4] for line in lines] == [
        [str(one.id), "kind", "aws/1/r", "orders"],
        [str(other.id), "other", "aws/1/r", "orders"],
    ]
    assert "is being cancelled" in tablegate(tmp_path, "jobs", "cancel", str(one.id))
    [first, second] = map(json.loads, tablegate(tmp_path, "jobs", "list", "--json").splitlines())
    assert (first["id"], first["state"], second["state"]) == (one.id, "cancelling", "running")
    assert "no running job 99" in tablegate(tmp_path, "jobs", "cancel", "99", code=1)
    tablegate(tmp_path, "jobs", "cancel", "orders", code=2)


def test_an_import_of_newlines_under_a_running_server(tmp_path: Path) -> None:
    """The import continues after a kill.

    A server that executes it stops on request. The import is cancelled before its end.
    """
    place = FolderPlace(tmp_path / "exports")
    place.put("in/1.gz", gzip.compress(b"\n" * (32 << 20), 1) * 16)

    def begin() -> Process:
        process = Process(tmp_path, "--dialects", "dynamodb", "--s3-folder", str(tmp_path / "exports"))
        process.wait_until_ready()
        return process

    server = begin()
    try:
        with RawClient(server.url) as client:
            arn = client.call(
                "ImportTable",
                S3BucketSource={"S3Bucket": BUCKET, "S3KeyPrefix": "in/"},
                InputFormat="DYNAMODB_JSON",
                InputCompressionType="GZIP",
                TableCreationParameters={"TableName": "things", **KEY},
            )["ImportTableDescription"]["ImportArn"]
            wait_until(lambda: client.call("ListTables")["TableNames"] == ["things"])
        server.kill()
        server = begin()
        assert server.terminate()[0] == 0
        server = begin()
        with RawClient(server.url) as client:
            shown = client.call("DescribeImport", ImportArn=arn)["ImportTableDescription"]
            assert shown["ImportStatus"] == "IN_PROGRESS"
            [line] = tablegate(tmp_path, "jobs", "list").splitlines()
            tablegate(tmp_path, "jobs", "cancel", line.split("\t")[0])

            def has_ended() -> bool:
                told = client.call("DescribeImport", ImportArn=arn)["ImportTableDescription"]
                return bool(told["ImportStatus"] == "CANCELLED")

            wait_until(has_ended)
            client.call("DeleteTable", TableName="things")
    finally:
        if server.is_running:
            server.kill()


class Silent:
    """A server that takes connections and reads what is sent there, and never answers."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._taken: list[socket.socket] = []
        self.first = threading.Event()
        """Set once something was sent to it."""
        self.closed: list[socket.socket] = []
        """Connections that clients have closed."""
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._taken.append(self._listening.accept()[0])
                threading.Thread(target=self._read, args=(self._taken[-1],), daemon=True).start()

    def _read(self, taken: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while taken.recv(1 << 16):
                self.first.set()
            self.closed.append(taken)

    def close(self) -> None:
        for each in (self._listening, *self._taken):
            each.close()


def test_jobs_at_a_store_of_objects_that_does_not_answer_are_cancelled(tmp_path: Path) -> None:
    """They end before the server has given its first request up, and do not hold each other up."""
    silent = Silent()
    keys = ("--s3-access-key-id", "a", "--s3-secret-access-key", "b")
    process = Process(tmp_path, "--dialects", "dynamodb", "--s3-endpoint-url", silent.url, *keys)
    process.wait_until_ready()
    try:
        with RawClient(process.url) as client:
            arns = [
                client.call(
                    "ImportTable",
                    S3BucketSource={"S3Bucket": BUCKET},
                    InputFormat="DYNAMODB_JSON",
                    TableCreationParameters={"TableName": f"things{number}", **KEY},
                )["ImportTableDescription"]["ImportArn"]
                for number in range(2)
            ]
            assert silent.first.wait(PATIENCE_S)
            lines = tablegate(tmp_path, "jobs", "list").splitlines()
            assert len(lines) == 2
            for line in reversed(lines):
                tablegate(tmp_path, "jobs", "cancel", line.split("\t")[0])

            def have_ended() -> bool:
                told = [client.call("DescribeImport", ImportArn=arn) for arn in arns]
                return {each["ImportTableDescription"]["ImportStatus"] for each in told} == {"CANCELLED"}

            wait_until(have_ended)
            assert len(silent.closed) < _ATTEMPTS
        assert process.terminate()[0] == 0
    finally:
        if process.is_running:
            process.kill()
        silent.close()
