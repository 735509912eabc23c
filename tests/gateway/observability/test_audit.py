"""The audit log: its contents for requests of real SDKs, what it never contains, and its destinations.

No request waits for it.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import boto3
import pytest
import requests
import tablestore as ots
from azure.core.exceptions import HttpResponseError
from botocore.exceptions import ClientError
from click.testing import CliRunner

from tablegate.adapters.azuretable import request_info as azuretable
from tablegate.adapters.dynamodb.dialect import DynamoDB
from tablegate.adapters.tablestore.dialect import TableStore
from tablegate.gateway.__main__ import main
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.dialects.dialect import Dialect
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.model.request_info import RequestInfo, RequestKind
from tablegate.gateway.observability import audit, audit_sinks, metrics, prometheus
from tablegate.gateway.observability.audit import AuditScope, AuditSink, AuditTrail, KeyForm
from tablegate.gateway.observability.audit_sinks import DatabaseSink, FileSink
from tablegate.gateway.security.credentials import Credential
from tablegate.gateway.security.grant_store import ALL, WrittenGrant
from tablegate.gateway.store.sql.databases import Database
from tablegate.gateway.store.store import Store
from tablegate.gateway.wiring import connect, open_store
from tests.support.live_dynamodb import ONCE
from tests.support.running import Process
from tests.support.waiting import PATIENCE_S
from tests.transfer.traffic.strict import REGION, Owner

SECRET_KEY = "what seals the secrets of this test"
PRECIOUS = "precious-attribute-value"
ON_ITS_OWN = RequestInfo()


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@contextlib.contextmanager
def served(
    folder: Path,
    *flags: str,
    others: Sequence[tuple[Credential, WrittenGrant]] = (),
    has_tablestore: bool = True,
) -> Iterator[tuple[str, Owner]]:
    """A strict server with a log in `audit.jsonl`, a caller with each kind of key, and callers with one grant each."""
    owner = Owner()
    database = f"sqlite:///{folder}/tablegate.sqlite"
    settings = load({"database": database, "secret_key": SECRET_KEY}, {})
    assert CliRunner().invoke(main, ["migrate", "--database", database]).exit_code == 0
    opened = open_store(settings, connect(settings))
    for credential in owner.credentials() if has_tablestore else owner.credentials()[:2]:
        opened.credential_store.add(credential, [ALL])
    for credential, granted in others:
        opened.credential_store.add(credential, [granted])
    opened.close()
    server = Process(
        folder,
        "--auth",
        "strict",
        "--secret-key",
        SECRET_KEY,
        "--audit",
        "audit.jsonl",
        "--slow-request-ms",
        "3600000",
        *flags,
    )
    server.wait_until_ready()
    try:
        yield server.url, owner
    finally:
        code, errors = server.terminate()
        assert (code, errors) == (0, "")


def use_everything(url: str, owner: Owner) -> None:
    """A table, some writes and reads and a refusal, in each dialect."""
    aws = owner.dynamodb(url)
    aws.create_table(
        TableName="music", BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "artist", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "artist", "AttributeType": "S"}],
    )  # fmt: skip
    aws.put_item(TableName="music", Item={"artist": {"S": "nina"}, "song": {"S": PRECIOUS}})
    aws.get_item(TableName="music", Key={"artist": {"S": "nina"}})
    aws.execute_statement(Statement=f"INSERT INTO music VALUE {{'artist': 'abbey', 'song': '{PRECIOUS}'}}")
    aws.execute_statement(Statement="SELECT * FROM \"music\" WHERE artist = 'abbey'")
    aws.transact_write_items(
        TransactItems=[
            {"Put": {"TableName": "music", "Item": {"artist": {"S": "etta"}, "song": {"S": PRECIOUS}}}}
        ]
    )
    aws.batch_write_item(RequestItems={"music": [{"DeleteRequest": {"Key": {"artist": {"S": "etta"}}}}]})
    with pytest.raises(ClientError):
        owner.dynamodb(url, secret="a wrong secret").list_tables()
    azure = owner.azure(url)
    people = azure.create_table("people")
    people.create_entity({"PartitionKey": "jazz", "RowKey": "nina", "Born": PRECIOUS})
    people.submit_transaction(
        [("upsert", {"PartitionKey": "jazz", "RowKey": name, "Born": PRECIOUS}) for name in ("etta", "abbey")]
    )
    people.get_entity("jazz", "nina")
    with pytest.raises(HttpResponseError):
        owner.with_shared_access(
            url, owner.shared_access("people").replace("sig=", "sig=A")
        ).get_table_client("people").get_entity("jazz", "nina")
    store = owner.tablestore(url)
    store.create_table(
        ots.TableMeta("songs", [("artist", "STRING"), ("number", "INTEGER")]),
        ots.TableOptions(), ots.ReservedThroughput(ots.CapacityUnit(0, 0)),
    )  # fmt: skip
    store.put_row("songs", ots.Row([("artist", "nina"), ("number", 1)], [("title", PRECIOUS)]))
    store.get_row("songs", [("artist", "nina"), ("number", 1)])
    impostor = ots.OTSClient(url, "ots-owner", "a wrong secret", "here", retry_policy=ots.NoRetryPolicy())
    with pytest.raises(ots.OTSServiceError):
        impostor.list_table()


def told(found: list[dict[str, Any]], event: str) -> set[tuple[Any, ...]]:
    return {
        (line["dialect"], line["operation"], *line["tables"], line["who"])
        for line in found
        if line["event"] == event
    }


DEFINITIONS = {
    ("dynamodb", "CreateTable", "music", "aws-owner"),
    ("azuretable", "POST TableSet", "people", "owner"),
    ("tablestore", "CreateTable", "songs", "ots-owner"),
}
WRITES = {
    ("dynamodb", "PutItem", "music", "aws-owner"),
    ("dynamodb", "ExecuteStatement", "music", "aws-owner"),
    ("dynamodb", "TransactWriteItems", "music", "aws-owner"),
    ("dynamodb", "BatchWriteItem", "music", "aws-owner"),
    ("azuretable", "POST EntitySet", "people", "owner"),
    ("azuretable", "POST Batch", "people", "owner"),
    ("tablestore", "PutRow", "songs", "ots-owner"),
}
READS = {
    ("dynamodb", "GetItem", "music", "aws-owner"),
    ("dynamodb", "ExecuteStatement", "music", "aws-owner"),
    ("azuretable", "GET Entity", "people", "owner"),
    ("tablestore", "GetRow", "songs", "ots-owner"),
}
REFUSALS = {
    ("dynamodb", "ListTables", "aws-owner"),
    ("azuretable", "GET Entity", "people", "owner"),
    ("tablestore", "ListTable", "ots-owner"),
}


def test_definitions_and_refusals_are_on_record_and_nothing_else(tmp_path: Path) -> None:
    with served(tmp_path) as (url, owner):
        use_everything(url, owner)
    found = lines(tmp_path / "audit.jsonl")
    assert {line["event"] for line in found} == {"definition", "refusal"}
    assert told(found, "definition") == DEFINITIONS
    assert told(found, "refusal") == REFUSALS
    codes = {line["dialect"]: line["result"] for line in found if line["event"] == "refusal"}
    assert codes == {
        "dynamodb": "InvalidSignatureException", "azuretable": "AuthenticationFailed", "tablestore": "OTSAuthFailed",
    }  # fmt: skip
    for line in found:
        assert line["from"] == "127.0.0.1"
        assert len(line["request_id"]) == 52
        assert (
            abs(
                time.time()
                - time.mktime(time.strptime(line["time"][:19], "%Y-%m-%dT%H:%M:%S"))
                + time.timezone
            )
            < 120
        )


@pytest.mark.parametrize("flag", ["--audit-writes", "--audit-requests"])
def test_writes_or_all_requests_by_a_setting_and_neither_secrets_nor_data(tmp_path: Path, flag: str) -> None:
    with served(tmp_path, flag) as (url, owner):
        use_everything(url, owner)
    found = lines(tmp_path / "audit.jsonl")
    assert told(found, "write") == WRITES
    assert told(found, "definition") == DEFINITIONS
    assert told(found, "refusal") == REFUSALS
    assert (told(found, "request") >= READS) is (flag == "--audit-requests")
    text = (tmp_path / "audit.jsonl").read_text()
    for secret in (PRECIOUS, *owner.secrets.values(), owner.azure_key, owner.token, "sig="):
        assert secret not in text
    # Keys appear as digests: equal keys are equal, and none can be read.
    assert "nina" not in text
    keys = [json.dumps(line["keys"]) for line in found if line["operation"] in ("PutItem", "GetItem")]
    assert len(set(keys)) == 1
    [[digest]] = {tuple(line["keys"]) for line in found if line["operation"] == "PutItem"}
    assert len(digest) == 16


def test_plain_keys_by_a_setting(tmp_path: Path) -> None:
    with served(tmp_path, "--audit-writes", "--audit-keys", "plain") as (url, owner):
        use_everything(url, owner)
    keys = {line["operation"]: line.get("keys") for line in lines(tmp_path / "audit.jsonl")}
    assert keys["PutItem"] == [{"artist": {"S": "nina"}}]
    assert keys["BatchWriteItem"] == [{"artist": {"S": "etta"}}]
    assert keys["TransactWriteItems"] == [{"artist": {"S": "etta"}}]
    assert keys["POST EntitySet"] == [{"PartitionKey": "jazz", "RowKey": "nina"}]
    assert keys["POST Batch"] == [{"PartitionKey": "jazz", "RowKey": name} for name in ("etta", "abbey")]
    assert keys["PutRow"] == [{"artist": "nina", "number": 1}]
    assert keys["ExecuteStatement"] is None
    assert PRECIOUS not in (tmp_path / "audit.jsonl").read_text()


def test_the_control_api_and_credentials_are_on_record(tmp_path: Path) -> None:
    with served(tmp_path) as (url, _):
        assert requests.get(f"{url}/_tablegate/clock", timeout=PATIENCE_S).status_code == 403
        flags = ["--database", f"sqlite:///{tmp_path}/tablegate.sqlite", "--secret-key", SECRET_KEY,
                 "--audit", str(tmp_path / "audit.jsonl")]  # fmt: skip
        for words in (["add", "KEY", "--place", "123456789012"], ["rotate", "KEY"], ["remove", "KEY"]):
            done = CliRunner().invoke(main, ["credentials", *words, *flags])
            assert done.exit_code == 0, done.output
    found = lines(tmp_path / "audit.jsonl")
    [refusal] = [line for line in found if line["event"] == "refusal"]
    assert refusal["operation"] == "GET /_tablegate/clock"  # issue 23: in the form of the dialects' own
    assert refusal["dialect"] == "gateway"
    changes = [(line["event"], line["access_id"]) for line in found if line["event"].startswith("credential")]
    assert changes == [
        ("credential added", "KEY"),
        ("credential changed", "KEY"),
        ("credential removed", "KEY"),
    ]
    assert all(line["who"].startswith("user ") for line in found if line["event"].startswith("credential"))


def test_lines_can_go_to_standard_output(tmp_path: Path) -> None:
    server = Process(tmp_path, "--audit", "-", "--audit-writes", "--dialects", "dynamodb")
    server.wait_until_ready()
    client = boto3.client("dynamodb", REGION, endpoint_url=server.url, config=ONCE, aws_access_key_id="someone",
                          aws_secret_access_key="x")  # fmt: skip
    client.create_table(
        TableName="music", BillingMode="PAY_PER_REQUEST", KeySchema=[{"AttributeName": "a", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "a", "AttributeType": "S"}],
    )  # fmt: skip
    assert server._process.stdout is not None
    line = json.loads(server._process.stdout.readline())
    assert (line["event"], line["tables"], line["who"]) == ("definition", ["music"], "someone")
    server.kill()


# Kinds


def test_every_operation_has_a_kind() -> None:
    """Operations that neither read nor write items count as definitions. A new operation is therefore recorded."""
    definitions = _definitions(DynamoDB)
    assert {"CreateTable", "UpdateTable", "DeleteTable", "TagResource", "UntagResource", "UpdateTimeToLive",
            "CreateBackup", "DeleteBackup", "RestoreTableToPointInTime"} <= definitions  # fmt: skip
    assert not [name for name in definitions if name.startswith(("Get", "List", "Describe", "Put", "Delete"))
                and name not in ("DeleteTable", "DeleteBackup", "PutResourcePolicy", "DeleteResourcePolicy")]  # fmt: skip
    assert _definitions(TableStore) >= {
        "CreateTable", "UpdateTable", "DeleteTable", "CreateIndex", "DropIndex", "AddDefinedColumn", "DeleteDefinedColumn",
    }  # fmt: skip
    assert azuretable.KINDS["PUT EntitySet"] is RequestKind.DEFINITION


def _definitions(dialect: type[Dialect]) -> set[str]:
    return {name for name in dialect.operations if dialect.kind_of(name) is RequestKind.DEFINITION}


# Names


def _facts_of(request: Request, reply: Reply, operation: str) -> RequestInfo:
    return azuretable.read(RequestInfo(operation, azuretable.KINDS[operation]), request, reply, "")


def test_a_refused_request_is_recorded_with_its_address_only() -> None:
    request = Request("POST", "/account/people", (), b'{"PartitionKey": "jazz", "RowKey": "nina"}')
    refused = Reply(403, (("x-ms-error-code", "AuthenticationFailed"),))
    operation = "POST EntitySet"
    assert _facts_of(request, refused, operation) == RequestInfo(
        operation, RequestKind.WRITE, "account", ["people"], (), "AuthenticationFailed", True
    )
    key = {"PartitionKey": "jazz", "RowKey": "nina"}
    assert _facts_of(request, Reply(201, ()), operation) == RequestInfo(
        operation, RequestKind.WRITE, "account", ["people"], [("people", key)]
    )


def test_an_unreadable_batch_is_recorded_as_its_operation() -> None:
    request = Request(
        "POST", "/account/$batch", (("content-type", "multipart/mixed"),), b"nothing of the kind"
    )
    answer = Reply(400, (("x-ms-error-code", "InvalidInput"),))
    assert _facts_of(request, answer, "POST Batch") == RequestInfo(
        "POST Batch", RequestKind.WRITE, "account", [], [], "InvalidInput"
    )


# The trail


class Gathering(AuditSink):
    """Keeps lines, once it may."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.may_go_on = threading.Event()

    def write(self, lines: Sequence[bytes]) -> None:
        self.may_go_on.wait()
        self.lines += lines


class Reader:
    """A dialect of one operation."""

    name = "reader"
    refusal_statuses = frozenset({403})
    refused_part_marks: ClassVar[dict[str, bytes]] = {}

    @staticmethod
    def kind_of(operation: str) -> RequestKind:
        return RequestKind.READ

    @staticmethod
    def request_info(request: Request, reply: Reply) -> RequestInfo:
        return ON_ITS_OWN


def _lost() -> float:
    metrics.count_noted()
    return float(prometheus._AUDIT_LOST._value.get())


def _request(body: bytes = b"") -> Request:
    return Request("POST", "/", (), body)


def test_requests_do_not_wait_for_the_log_and_lost_records_are_counted() -> None:
    sink = Gathering()
    trail = AuditTrail(sink, KeyForm(False, ""), AuditScope(writes=True, requests=True))
    trail.start()
    before = _lost()
    for _ in range(audit.MAX_EVENTS + 1000):
        trail.record_request(_request(), Reply(200, ()), Reader, "Read")
    sink.may_go_on.set()
    trail.close()
    lost = _lost() - before
    # The thread had taken up to 256 of them when it was held up.
    assert 1000 - 256 <= lost <= 1000
    assert len(sink.lines) == audit.MAX_EVENTS + 1000 - lost


def test_bodies_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "MAX_BODY_BYTES", 10_000)
    sink = Gathering()
    trail = AuditTrail(sink, KeyForm(False, ""), AuditScope(writes=True, requests=True))
    before = _lost()
    for _ in range(11):
        trail.record_request(_request(b"x" * 1000), Reply(200, ()), Reader, "Read")
    assert _lost() - before == 1
    sink.may_go_on.set()
    trail.start()
    trail.close()
    assert len(sink.lines) == 10


def test_a_failing_sink_loses_only_the_lines_of_that_write() -> None:
    class Failing(Gathering):
        fails = True

        def write(self, lines: Sequence[bytes]) -> None:
            if self.fails:
                raise OSError(28, "No space left on device")
            super().write(lines)

    sink = Failing()
    sink.may_go_on.set()
    trail = AuditTrail(sink, KeyForm(False, ""), AuditScope(False, False))
    before = _lost()
    trail.add({"event": "one"})
    trail._write_batch()
    sink.fails = False
    trail.add({"event": "two"})
    trail._write_batch()
    assert _lost() - before == 1
    assert [json.loads(line) for line in sink.lines] == [{"event": "two"}]


def test_an_unreadable_request_is_recorded() -> None:
    class Broken(Reader):
        @staticmethod
        def request_info(request: Request, reply: Reply) -> RequestInfo:
            raise ValueError("no JSON")

    sink = Gathering()
    sink.may_go_on.set()
    trail = AuditTrail(sink, KeyForm(False, ""), AuditScope(False, True))
    trail.record_request(_request(), Reply(400, ()), Broken, "Read")
    trail._write_batch()
    assert json.loads(sink.lines[0])["result"] == 400


def test_an_event_that_cannot_be_encoded_does_not_end_the_log() -> None:
    sink = Gathering()
    sink.may_go_on.set()
    trail = AuditTrail(sink, KeyForm(False, ""), AuditScope(False, False))
    before = _lost()
    trail.start()
    trail.add({1: "no name"})  # type: ignore[dict-item]
    trail.add({"event": "two"})
    trail.close()
    assert _lost() - before == 1
    assert [json.loads(line) for line in sink.lines] == [{"event": "two"}]


def test_digests_depend_on_the_secret_key() -> None:
    key = {"artist": {"S": "nina"}, "song": {"N": "1"}}
    again = {"song": {"N": "1"}, "artist": {"S": "nina"}}
    assert KeyForm(False, "a").format(key) == KeyForm(False, "a").format(again)
    assert KeyForm(False, "a").format(key) != KeyForm(False, "b").format(key)
    assert KeyForm(True, "a").format(key) == key


def test_without_a_trail_nothing_is_recorded() -> None:
    audit.record("credential added", access_id="X")  # and nothing happens


# Sinks


def test_a_file_begins_anew_when_it_is_full(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    sink = FileSink(path, 100, 2)
    for number in range(10):
        sink.write([b"%02d" % number + b"x" * 38])
    sink.close()
    # 41 bytes a line: two lines in each file. The newest two of the closed files are kept.
    assert [line[:2] for line in path.read_text().splitlines()] == ["08", "09"]
    assert [line[:2] for line in Path(f"{path}.1").read_text().splitlines()] == ["06", "07"]
    assert [line[:2] for line in Path(f"{path}.2").read_text().splitlines()] == ["04", "05"]
    assert not Path(f"{path}.3").exists()
    assert {each.stat().st_mode & 0o777 for each in tmp_path.iterdir()} == {0o600}


def test_a_file_is_rotated_when_a_line_does_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    sink = FileSink(path, 100, 2)
    sink.write([b"a" * 49, b"b" * 49])  # 50 + 50 bytes
    assert len(path.read_text().splitlines()) == 2
    sink.write([b"c"])
    assert path.read_text() == "c\n"
    sink.write([b"d" * 97])  # 2 + 98
    assert len(path.read_text().splitlines()) == 2
    sink.close()


def test_a_moved_file_is_created_again(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    sink = FileSink(path, 0, 2)
    sink.write([b"one"])
    path.rename(tmp_path / "moved")
    sink.write([b"two"])
    sink.close()
    assert path.read_text() == "two\n"


def _write_many(path: Path, name: int) -> None:
    sink = FileSink(path, 20_000, 1000)
    for number in range(500):
        sink.write([b'{"name": %d, "number": %d, "filling": "%s"}' % (name, number, b"x" * 50)])
    sink.close()


@pytest.mark.extended
def test_several_processes_write_to_one_file_and_lose_no_line(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=_write_many, args=(path, name)) for name in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    files = [each for each in tmp_path.iterdir() if each.suffix != ".lock"]
    assert len(files) > 3
    assert all(each.stat().st_size <= 20_000 for each in files)
    found = [(line["name"], line["number"]) for each in files for line in lines(each)]
    assert sorted(found) == [(name, number) for name in range(2) for number in range(500)]


def test_lines_can_go_to_a_table_of_the_database(database: Database) -> None:
    sink = DatabaseSink(Store(database), days=1.0)
    sink.write([b'{"event": "one"}', b'{"event": "two"}'])
    assert _kept(database) == ['{"event": "one"}', '{"event": "two"}']


def test_old_lines_are_deleted_from_the_database(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = DatabaseSink(Store(database), days=1.0)
    moment = [time.time_ns()]
    monkeypatch.setattr(audit_sinks.time, "time_ns", lambda: moment[0])
    sink.write([b'{"event": "one"}'])
    for seconds, kept in ((86_400, ["one", "two"]), (0.001, ["two", "three"])):
        moment[0] += int(seconds * 1e9)
        sink._next_trimming = 0.0
        sink.write([b'{"event": "%s"}' % kept[-1].encode()])
        assert [json.loads(line)["event"] for line in _kept(database)] == kept


def _kept(database: Database) -> list[str]:
    with database.read() as session:
        return [line for (line,) in session.query("SELECT line FROM audit_events ORDER BY at_ms, id")]
