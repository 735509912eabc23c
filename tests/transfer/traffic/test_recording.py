"""Requests that a recorder passes on, the data that it records, and the data that it never records."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
import requests
import tablestore as ots
import zstandard
from azure.core.exceptions import HttpResponseError
from botocore.exceptions import ClientError

from tablegate.gateway.http.messages import Reply, Request
from tablegate.transfer.errors import TransferError
from tablegate.transfer.traffic import recording
from tablegate.transfer.traffic.traces import AnswerEvent, BadTrace, RequestEvent, TraceReader, TraceWriter
from tests.support.across import Across
from tests.support.raw_client import SIGNED_IN_FORM
from tests.support.running import ROOT, Running, free_port
from tests.support.waiting import PATIENCE_S, wait_until
from tests.transfer.traffic.proxies import faulty, recorder, replayed
from tests.transfer.traffic.strict import Owner, strict_server


def write(owner: Owner, url: str) -> None:
    """A table and a row in each dialect, a shared access signature, and a batch."""
    dynamodb = owner.dynamodb(url)
    dynamodb.create_table(
        TableName="things",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    dynamodb.put_item(TableName="things", Item={"pk": {"S": "a"}})
    azure = owner.azure(url)
    people = azure.create_table("people")
    people.submit_transaction([("create", {"PartitionKey": "p", "RowKey": "r"})])
    token = owner.shared_access("people")
    assert owner.with_shared_access(url, token).get_table_client("people").get_entity("p", "r")
    tablestore = owner.tablestore(url)
    meta = ots.TableMeta("rows", [("pk", "STRING")])
    tablestore.create_table(meta, ots.TableOptions(), ots.ReservedThroughput(ots.CapacityUnit(0, 0)))
    row = ots.Row([("pk", "a")], [("n", 1)])
    tablestore.put_row("rows", row, ots.Condition(ots.RowExistenceExpectation.IGNORE))


def everything_in(path: Path) -> bytes:
    """The trace as it is, and unfolded."""
    raw = path.read_bytes()
    with zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True) as reader:
        return raw + reader.read()


def test_no_secret_is_in_a_trace_and_signatures_stay_right(tmp_path: Path, sqlite_template: Path) -> None:
    owner, path = Owner(), tmp_path / "trace.jsonl.zst"
    proofs: set[str] = {*owner.secrets.values(), owner.token, owner.azure_key}
    names = ("authorization", "x-amz-security-token", "x-ots-signature", "x-ots-signaturev4")

    def spy(request: Request, reply: Reply) -> Reply:
        given = [request.header(name) for name in names]
        found = [re.split(r"[ :=,]+(?=[^=,]*$)", value)[-1] for value in given if value] + given
        found += re.findall(r"sig=([^&\s]+)", request.target)
        proofs.update(unquote(value) for value in found if len(value) > 15)
        answered = [value for name, value in reply.headers if name.lower() == "authorization"]
        proofs.update(value.rpartition(":")[2] for value in answered)
        return reply

    with (
        strict_server(tmp_path, sqlite_template, owner) as server,
        faulty(server.url, spy) as spied,
        recorder(spied.url, path) as run,
    ):
        write(owner, run.url)
        # The service shows in its error what it would have signed, token included.
        with pytest.raises(ClientError) as caught:
            owner.dynamodb(run.url, secret="not the secret").list_tables()
        assert owner.token in str(caught.value)
    assert run.error is None
    assert len(proofs) > 12
    text = everything_in(path)
    for proof in proofs:
        for form in (proof, quote(proof), quote(proof, safe=""), json.dumps(proof)[1:-1]):
            assert form.encode() not in text, form
    assert b"aws-owner/" not in text
    assert b"ots-owner" not in text
    events = list(TraceReader(path))
    statuses = [event.reply.status for event in events if isinstance(event, AnswerEvent) and event.reply]
    assert sum(status >= 400 for status in statuses) == 1
    assert len(run.said) == 2 and "rejects a signature" in run.said[0]


def test_a_compressed_request_goes_on_as_it_came(tmp_path: Path, sqlite_server: Running) -> None:
    """DynamoDB takes gzip, and signatures cover the compressed bytes."""
    path, seen = tmp_path / "trace.jsonl.zst", []
    body = gzip.compress(json.dumps({"TableName": "absent", "Key": {"pk": {"S": "a"}}}).encode())
    headers = {**SIGNED_IN_FORM, "X-Amz-Target": "DynamoDB_20120810.GetItem", "Content-Encoding": "gzip"}

    def spy(request: Request, reply: Reply) -> Reply:
        seen.append(request.body)
        return reply

    with faulty(sqlite_server.url, spy) as spied, recorder(spied.url, path) as run:
        reply = requests.post(run.url, body, headers=headers, timeout=PATIENCE_S)
    assert reply.json()["__type"].endswith("#ResourceNotFoundException")
    assert seen == [body]
    report = replayed(path, sqlite_server.url)
    assert report.exit_status == 0, report.as_text(10)


def test_aws_requests_are_signed_anew_where_credentials_are_given(
    tmp_path: Path, sqlite_template: Path
) -> None:
    """The client can have any keys. The service accepts only those of the recorder."""
    owner, path = Owner(), tmp_path / "trace.jsonl.zst"
    seen: list[str] = []

    def spy(request: Request, reply: Reply) -> Reply:
        seen.append(request.header("host"))
        return reply

    with (
        strict_server(tmp_path, sqlite_template, owner) as server,
        faulty(server.url, spy) as spied,
        recorder(spied.url, path, keys=owner.keys()) as run,
    ):
        assert Owner().dynamodb(run.url).list_tables()["TableNames"] == []
    assert seen == [spied.url.removeprefix("http://")]
    assert not [line for line in run.said if "rejects" in line]


def test_secrets_of_a_batch_and_of_a_query_are_left_out() -> None:
    inner = (
        b"GET http://h/a/T?sv=1&sig=c2VjcmV0c2ln%3D&x=1 HTTP/1.1\r\nAuthorization: SharedKey a:c2VjcmV0a2V5"
    )
    body = b"--b\r\n\r\n" + inner + b"\r\n\r\n--b--"
    request = Request(
        "POST",
        "/a/$batch?sig=dGhlIHNpZ25hdHVyZQ%3D%3D&sv=2019-02-02",
        (("cookie", "session=1234567890"), ("content-type", "multipart/mixed; boundary=b")),
        body,
    )
    kept = recording.without_secrets(request)
    assert kept.target == "/a/$batch?sv=2019-02-02"
    assert [name for name, _ in kept.headers] == ["content-type"]
    assert b"&x=1" in kept.body
    for secret in (b"c2VjcmV0c2ln", b"c2VjcmV0a2V5"):
        assert secret not in kept.body
    told = Reply(
        403,
        [("x-ms-error-code", "dGhlIHNpZ25hdHVyZQ==")],
        b"The MAC dGhlIHNpZ25hdHVyZQ== is wrong, of a:c2VjcmV0a2V5",
    )
    status, headers, text = recording.answer_without_secrets(request, told, recording.secrets_of(request))
    assert (status, headers) == (403, [("x-ms-error-code", "(left out)")])
    assert text == b"The MAC (left out) is wrong, of (left out)"


@pytest.mark.parametrize(
    ("target", "content_type"),
    [
        ("/", "application/x-www-form-urlencoded; charset=utf-8"),
        ("/account?restype=service&comp=userDelegation%4bey", "application/xml"),
    ],
)
def test_exchanges_of_tokens_for_keys_are_recorded_without_bodies(target: str, content_type: str) -> None:
    headers = (("content-type", content_type),)
    request = Request("POST", target, headers, b"Action=GetSessionToken&WebIdentityToken=a.b.c")
    assert recording.without_secrets(request).body == b"(left out)"
    told = Reply(200, [], b"<SecretAccessKey>a secret</SecretAccessKey>")
    assert recording.answer_without_secrets(request, told, []) == Reply(200, [], b"(left out)")


def test_secrets_of_a_target_are_left_out_in_each_spelling() -> None:
    """gateway/configuration/secrets.py decides. Keys and filters are data."""
    link = "https%3A%2F%2Fh%2Fc%3Fsv%3D1%26sig%3DdGhlIHNpZw"
    for sent, kept in (
        ("/T?%73ig=dGhlIHNpZw&sv=1", "/T?sv=1"),
        ("/T?SIG=dGhlIHNpZw", "/T"),
        ("/T?code=dGhlIHNpZw&state=dGhlIHNpZw&x=1", "/T?x=1"),
        ("/?Action=A&WebIdentityToken=dGhlIHNpZw", "/?Action=A"),
        (f"/T?next={link}&x=1", "/T?next=https%3A%2F%2Fh%2Fc%3Fsv%3D1%26sig%3D***&x=1"),
        ("/T%3Fsig%3DdGhlIHNpZw", "/T%3Fsig%3D***"),
        ("http://user:dGhlIHNpZw@h/T?x=1", "http://***@h/T?x=1"),
        (f"/T(PartitionKey='{link}',RowKey='')", f"/T(PartitionKey='{link}',RowKey='')"),
        (f"/T()?$filter=a%20eq%20'{link}'&sig=dGhlIHNpZw", f"/T()?$filter=a%20eq%20'{link}'"),
    ):
        assert recording.without_secrets(Request("GET", sent, (), b"")).target == kept
    request = Request("GET", "/?Action=AssumeRoleWithWebIdentity&WebIdentityToken=a.b.c", (), b"")
    told = Reply(
        200, [("location", "https://h/?code=dGhlIHNpZw&x=1")], b"<SecretAccessKey>a</SecretAccessKey>"
    )
    assert recording.answer_without_secrets(request, told, []) == Reply(
        200, [("location", "https://h/?x=1")], b"(left out)"
    )


def test_each_header_of_a_batch_with_a_credential_is_left_out() -> None:
    head = b"GET /T?%73ig=c2VjcmV0c2ln HTTP/1.1\r\nX-Amz-Security-Token: c2VjcmV0a2V5\r\nCookie: c2VjcmV0Y28\r\nAccept: x"
    request = Request(
        "POST", "/$batch", (("content-type", "multipart/mixed; boundary=b"),), b"--b\r\n\r\n" + head
    )
    kept = recording.without_secrets(request).body
    assert b"c2VjcmV0" not in kept
    assert kept.startswith(b"--b\r\n\r\nGET /T?%73ig=(left%20out) HTTP/1.1\r\n") and kept.endswith(
        b"\r\nAccept: x"
    )


def test_a_name_that_signs_is_no_secret_of_the_data() -> None:
    """An access id is often a word that tables hold as well."""
    authorization = "OTS tablegate:c2lnbmF0dXJl"
    request = Request(
        "POST",
        "/PutRow",
        (("authorization", authorization), ("x-ots-accesskeyid", "tablegate")),
        b"tablegate",
    )
    assert recording.without_secrets(request).body == b"tablegate"


def test_signatures_in_item_data_are_kept() -> None:
    """A table may hold links that are signed: a trace that changed them could not be sent again."""
    body = b'{"Item": {"link": {"S": "https://h/c?sv=1&sig=c2VjcmV0c2ln"}}}'
    assert recording.without_secrets(Request("POST", "/", (), body)).body == body


@pytest.fixture
def nowhere() -> str:
    return f"http://127.0.0.1:{free_port()}"


def test_an_unreachable_service_is_reported_in_each_dialect(tmp_path: Path, nowhere: str) -> None:
    path = tmp_path / "trace.jsonl.zst"
    with recorder(nowhere, path) as run:
        across = Across(run.url)
        with pytest.raises(ClientError) as of_aws:
            across.dynamodb.client.list_tables()
        with pytest.raises(HttpResponseError) as of_azure:
            list(across.azure.service.list_tables())
        with pytest.raises(ots.OTSServiceError) as of_ots:
            across.tablestore.list_table()
        plain = requests.get(f"{run.url}/healthz", timeout=PATIENCE_S)
    assert of_aws.value.response["ResponseMetadata"]["HTTPStatusCode"] == 502
    assert of_aws.value.response["Error"]["Code"] == "ServiceUnavailableException"
    assert (of_azure.value.status_code, of_azure.value.error_code) == (502, "ServerBusy")  # type: ignore[attr-defined]
    assert (of_ots.value.http_status, of_ots.value.code) == (502, "OTSServerBusy")
    assert plain.status_code == 502 and "cannot be reached" in plain.text
    events = list(TraceReader(path))
    assert [event.failure != "" for event in events if isinstance(event, AnswerEvent)] == [True] * 4


def put(url: str, number: int) -> requests.Response:
    body = json.dumps({"TableName": "absent", "Item": {"pk": {"S": str(number)}}})
    headers = {**SIGNED_IN_FORM, "X-Amz-Target": "DynamoDB_20120810.PutItem"}
    return requests.post(url, body, headers=headers, timeout=PATIENCE_S)


def readable(path: Path) -> list[Any]:
    try:
        return list(TraceReader(path))
    except (BadTrace, OSError):
        return []


def test_a_killed_recorder_leaves_a_readable_trace(tmp_path: Path, sqlite_server: Running) -> None:
    path = tmp_path / "trace.jsonl.zst"
    command = [
        sys.executable,
        "-m",
        "tablegate",
        "record",
        "--upstream",
        sqlite_server.url,
        "--to",
        str(path),
    ]
    with subprocess.Popen(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        for number in range(20):
            assert put(url, number).status_code == 400
        wait_until(lambda: len(readable(path)) >= 40)
        for number in range(20, 25):
            put(url, number)
        process.send_signal(signal.SIGKILL)
    events = list(TraceReader(path))
    assert len(events) >= 40
    bodies = [event.request.body for event in events if isinstance(event, RequestEvent)]
    assert [json.loads(body)["Item"]["pk"]["S"] for body in bodies] == [str(n) for n in range(len(bodies))]


def written(path: Path, count: int = 9) -> list[Any]:
    trace = TraceWriter(path, "http://127.0.0.1:1")
    for number in range(count):
        trace.failure(number, f"text {number}")
        if number % 3 == 2:
            trace.flush()
    trace.close()
    return list(TraceReader(path))


def test_a_trace_that_is_cut_anywhere_is_read_up_to_there(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    events = written(whole)
    raw = whole.read_bytes()
    seen = set()
    for length in range(len(raw)):
        cut.write_bytes(raw[:length])
        try:
            reader = TraceReader(cut)
        except BadTrace:
            continue
        found = list(reader)
        assert found == events[: len(found)]
        assert reader.is_cut or len(found) in (0, 3, 6), length
        seen.add(len(found))
    assert {0, 3, 6} <= seen
    assert list(TraceReader(whole)) == events


def test_a_file_that_is_no_trace_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content, words in (
        (b"", "not compressed"),
        (b'{"format": "tablegate-trace"}\n', "not compressed"),
        (zstandard.compress(b"{}\n"), "is no trace"),
        (zstandard.compress(b"text\n"), "line 1"),
        (zstandard.compress(b'{"format":"tablegate-trace","version":2}\n'), "version 2"),
        (zstandard.compress(b'{"format":"tablegate-trace","version":1}\n{"event":"dance"}\n'), "line 2"),
        (zstandard.compress(b'{"format":"tablegate-trace","version":1}\n') + b"what follows", "damaged"),
    ):
        path.write_bytes(content)
        with pytest.raises(BadTrace, match=words):
            list(TraceReader(path))
    with pytest.raises(BadTrace, match="No such file"):
        TraceReader(tmp_path / "absent")


def test_a_full_disk_ends_the_trace_and_not_the_answers(
    tmp_path: Path, sqlite_server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "trace.jsonl.zst"
    real_flush = TraceWriter.flush

    def flush(trace: TraceWriter) -> None:
        if trace._pending and path.exists() and b'"request"' in b"".join(trace._pending):
            trace._pending = []
            raise OSError(28, "No space left on device")
        real_flush(trace)

    monkeypatch.setattr(TraceWriter, "flush", flush)
    with recorder(sqlite_server.url, path) as run:
        assert put(run.url, 1).status_code == 400
        wait_until(lambda: run.said)
        assert put(run.url, 2).status_code == 400
    assert "No space left on device" in run.said[0]
    assert isinstance(run.error, TransferError) and "is incomplete" in str(run.error)
    assert list(TraceReader(path)) == []


def test_a_frame_that_does_not_fit_is_taken_back(tmp_path: Path) -> None:
    """The kernel's limit of the file size simulates a full disk: half a frame is written, and then no more."""
    path = tmp_path / "trace.jsonl.zst"
    script = f"""
import resource, signal
from pathlib import Path
from tablegate.transfer.traffic.traces import TraceReader, TraceWriter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path = Path({str(path)!r})
trace = TraceWriter(path, "http://127.0.0.1:1")
trace.failure(1, "kept")
trace.flush()
resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 20,) * 2)
trace.failure(2, "lost" * 100 + str(list(range(200))))
try:
    trace.flush()
except OSError as error:
    print(error.strerror)
reader = TraceReader(path)
print([event.failure for event in reader], reader.is_cut)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "File too large\n['kept'] False\n"


def test_bodies_may_be_left_out(tmp_path: Path, sqlite_server: Running) -> None:
    path = tmp_path / "trace.jsonl.zst"
    with recorder(sqlite_server.url, path, bodies=False) as run:
        put(run.url, 12345)
    assert b"12345" not in everything_in(path)
    assert not TraceReader(path).has_bodies
    assert path.stat().st_mode & 0o077 == 0
