"""`tablegate record`, `replay` and `shadow` as users run them: exit codes, and one clear line for each error."""

from __future__ import annotations

import asyncio
import builtins
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import requests
import zstandard
from click.testing import CliRunner

from tablegate.gateway.__main__ import main
from tablegate.gateway.http.messages import Reply, Request
from tablegate.transfer.traffic import proxies
from tablegate.transfer.traffic.services import KEY, BadCredentials, credentials_of
from tablegate.transfer.traffic.traces import RecordedRequest, TraceWriter
from tests.support.across import Across
from tests.support.raw_client import SIGNED_IN_FORM
from tests.support.running import ROOT, Running, free_port
from tests.support.waiting import PATIENCE_S
from tests.transfer.traffic.proxies import recorder


def tablegate(*arguments: object, code: int) -> str:
    """Run a command. Returns its output with errors."""
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    assert "Traceback" not in done.output
    return done.output


@pytest.fixture
def trace(tmp_path: Path, sqlite_server: Running) -> Path:
    """A table and an item."""
    path = tmp_path / "trace.jsonl.zst"
    with recorder(sqlite_server.url, path) as run:
        table = Across(run.url).dynamodb.create("pk:S", name="things")
        table.put_item(Item={"pk": "a"})
        table.get_item(Key={"pk": "a"})
    return path


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("127.0.0.1:8000", "not a service URL"),
        ("ftp://127.0.0.1", "not a service URL"),
        ("http://", "not a service URL"),
        ("http://[::1", "not a service URL"),
        ("http://127.0.0.1:99999", "not a service URL"),
        ("http://somebody:secret@127.0.0.1", "the URL contains credentials"),
        ("http://127.0.0.1:8000/devstoreaccount1", "remove the path"),
        ("http://127.0.0.1:8000/?x=1", "remove the path"),
    ],
)
def test_a_wrong_url_is_reported(tmp_path: Path, trace: Path, url: str, words: str) -> None:
    good = "http://127.0.0.1:1"
    told = [
        tablegate("record", "--upstream", url, "--to", tmp_path / "new", code=1),
        tablegate("replay", trace, "--against", url, code=2),
        tablegate("shadow", "--primary", url, "--secondary", good, "--writes", "both", code=2),
        tablegate("shadow", "--primary", good, "--secondary", url, "--writes", "both", code=2),
    ]
    for output in told:
        assert words in output
        assert "secret" not in output
        assert output.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_a_trace_is_not_written_over(trace: Path, tmp_path: Path) -> None:
    before = trace.read_bytes()
    told = tablegate("record", "--upstream", "http://127.0.0.1:1", "--to", trace, code=1)
    assert "exists already" in told
    assert trace.read_bytes() == before
    told = tablegate("record", "--upstream", "http://127.0.0.1:1", "--to", tmp_path / "no" / "t", code=1)
    assert "No such file or directory" in told


def test_a_port_in_use_is_reported(tmp_path: Path, sqlite_server: Running) -> None:
    told = tablegate(
        "record", "--upstream", "http://127.0.0.1:1", "--to", tmp_path / "t", "--port", sqlite_server.port, code=1
    )  # fmt: skip
    assert f"cannot listen on 127.0.0.1:{sqlite_server.port}" in told


def test_a_full_disk_is_reported_at_the_start() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    script = "from tablegate.transfer.traffic.traces import TraceWriter; import os; os.O_EXCL = 0; from pathlib import Path; "
    script += "TraceWriter(Path('/dev/full'), 'http://h')"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert "No space left on device" in done.stderr


def test_the_exit_status_of_replay_follows_from_its_findings(trace: Path, postgres_server: Running) -> None:
    equal = tablegate("replay", trace, "--against", postgres_server.url, code=0)
    assert equal.startswith("3 exchanges compared, 0 diverged\n")
    assert equal.endswith("\nequal\n")
    # The table is there now.
    told = tablegate(
        "replay", trace, "--against", postgres_server.url, "--format", "json", "--speed", 1000, code=1
    )
    [found] = json.loads(told)["divergences"]
    assert (found["operation"], found["what"], found["recorded"]) == ("CreateTable", "status", "200")
    assert found["live"] == "400 ResourceInUseException"
    short = tablegate("replay", trace, "--against", postgres_server.url, "--limit", 0, code=1)
    assert "and 1 more divergences" in short


def test_replay_ends_with_status_2_if_it_cannot_compare(
    trace: Path, tmp_path: Path, sqlite_server: Running
) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    assert "cannot be reached" in tablegate("replay", trace, "--against", nowhere, code=2)
    foreign = tmp_path / "foreign"
    foreign.write_bytes(b"hello")
    assert "is no trace" in tablegate("replay", foreign, "--against", sqlite_server.url, code=2)
    assert "No such file" in tablegate("replay", tmp_path / "absent", "--against", sqlite_server.url, code=2)
    bare = tmp_path / "bare"
    with recorder(sqlite_server.url, bare, bodies=False) as run:
        Across(run.url).dynamodb.client.list_tables()
    assert "without bodies" in tablegate("replay", bare, "--against", sqlite_server.url, code=2)
    empty = tmp_path / "empty"
    TraceWriter(empty, "http://h").close()
    assert "could not tell" in tablegate("replay", empty, "--against", sqlite_server.url, code=2)


def test_replay_reports_a_truncated_trace(trace: Path, tmp_path: Path, postgres_server: Running) -> None:
    raw = trace.read_bytes()
    cut = tmp_path / "cut"
    # One more frame. Only its beginning was written.
    cut.write_bytes(raw + zstandard.compress(os.urandom(5_000).hex().encode())[:1_000])
    told = tablegate("replay", cut, "--against", postgres_server.url, code=0)
    assert "ends in an incomplete frame" in told


def test_replay_reports_wrong_credentials(tmp_path: Path, sqlite_server: Running) -> None:
    """A service that rejects the credentials has not diverged, because its real answer is unknown."""
    path = tmp_path / "trace"
    request = Request("GET", "/devstoreaccount1/Tables", (("host", "h"), ("x-ms-version", "2019-02-02")), b"")
    trace = TraceWriter(path, "http://h")
    trace.request(RecordedRequest(1, 1, 0.0, "azuretable", "GET TableSet", KEY), request)
    trace.answer(1, Reply(200, [("content-type", "application/json")], b'{"value": []}'))
    trace.close()
    credentials = tmp_path / "credentials.toml"
    credentials.write_text('[azure]\naccount = "devstoreaccount1"\nkey = "bm90IHRoZSBrZXk="\n')
    told = tablegate("replay", path, "--against", sqlite_server.url, "--credentials", credentials, code=2)
    assert "1 not compared: the other service rejects the signature" in told


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[aws", "is not a TOML file"),
        ('[gcp]\nkey = "x"', "unknown section"),
        ('[aws]\naccess_id = "hidden-value"', "needs access_id and secret"),
        ('[aws]\naccess_id = "hidden-value"\nsecret = 1', "needs access_id and secret"),
        ('aws = "hidden-value"', "unknown section"),
    ],
)
def test_a_wrong_file_of_credentials_is_reported_and_not_shown(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "credentials.toml"
    path.write_text(text)
    with pytest.raises(BadCredentials, match=words) as caught:
        credentials_of(path, {})
    assert "hidden-value" not in str(caught.value)


def test_credentials_come_from_the_file_then_the_environment_then_dev(tmp_path: Path) -> None:
    path = tmp_path / "credentials.toml"
    path.write_text('[aws]\naccess_id = "file"\nsecret = "s"\n')
    environment = {
        "AWS_ACCESS_KEY_ID": "environment", "AWS_SECRET_ACCESS_KEY": "s",
        "AZURE_STORAGE_ACCOUNT": "environment", "AZURE_STORAGE_KEY": "s",
    }  # fmt: skip
    found = credentials_of(path, environment)
    assert {scheme: key.name for scheme, key in found.items()} == {
        "aws": "file", "azure": "environment", "tablestore": "tablegate",
    }  # fmt: skip
    assert "'s'" not in repr(found)


def test_a_service_is_not_its_own_shadow() -> None:
    url = "http://127.0.0.1:1"
    told = tablegate("shadow", "--primary", url, "--secondary", url, "--writes", "both", code=2)
    assert "are the same service" in told
    told = tablegate(
        "shadow", "--primary", url, "--secondary", url, "--writes", "both", "--compare", "lots", code=2
    )
    assert "such as 5%" in told


def test_a_missing_library_names_its_extra(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("tablegate.transfer.traffic.replaying"):
            raise ModuleNotFoundError(name="zstandard")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    told = tablegate("replay", trace, "--against", "http://127.0.0.1:1", code=2)
    assert (
        told
        == "Error: Python package zstandard is missing. Install it with: pip install 'tablegate[traffic]'\n"
    )


def test_a_shadow_as_a_process(tmp_path: Path, sqlite_server: Running, postgres_server: Running) -> None:
    """The first lines are the URLs. SIGTERM ends it with a report."""
    command = [
        "shadow",
        "--primary",
        sqlite_server.url,
        "--secondary",
        postgres_server.url,
        "--writes",
        "both",
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "tablegate", *command, "--compare", "100%"], cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        url, metrics = (process.stdout.readline().strip() for _ in range(2))
        assert Across(url).dynamodb.client.list_tables()["TableNames"] == []
        assert "tablegate_shadow_compared" in requests.get(metrics, timeout=PATIENCE_S).text
        process.send_signal(signal.SIGTERM)
        printed, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors
    assert printed.startswith("1 exchanges compared, 0 diverged") and printed.endswith("equal\n")


def test_a_request_that_is_not_http_is_refused(tmp_path: Path, sqlite_server: Running) -> None:
    async def ask(url: str) -> bytes:
        host, port = url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")
        answer = await reader.read(12)
        writer.close()
        return answer

    with recorder(sqlite_server.url, tmp_path / "trace") as run:
        assert asyncio.run(ask(run.url)) == b"HTTP/1.0 400"
        table = Across(run.url).dynamodb.client.list_tables()
    assert table["TableNames"] == []


@pytest.mark.parametrize(
    "target", [b"/\xff\xfe", b"/acc/T(PartitionKey='%FF',RowKey='", b"/%", b"http://h/x?sig=%ZZ"]
)
def test_any_path_gets_an_answer(tmp_path: Path, sqlite_server: Running, target: bytes) -> None:
    async def ask(url: str) -> bytes:
        host, port = url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\nx-ms-version: 2019-02-02\r\n\r\n")
        line = await reader.readline()
        writer.close()
        return line

    with recorder(sqlite_server.url, tmp_path / "trace") as run:
        assert int(asyncio.run(ask(run.url)).split(b" ")[1]) in (400, 401, 403, 404, 502)
    assert not list(run.said[:-1]), run.said


def test_a_page_whose_name_points_here_is_kept_out(tmp_path: Path, sqlite_server: Running) -> None:
    """The service cannot detect this, because it receives its own name in Host."""
    with recorder(sqlite_server.url, tmp_path / "trace") as run:
        headers = {"Host": "evil.example", "x-ms-version": "2019-02-02"}
        reply = requests.get(f"{run.url}/devstoreaccount1/Tables", headers=headers, timeout=PATIENCE_S)
    assert reply.status_code == 403
    assert "--allowed-host" in reply.text


def test_a_body_that_is_too_long_is_refused_in_the_dialects_words(
    tmp_path: Path, sqlite_server: Running
) -> None:
    headers = {**SIGNED_IN_FORM, "X-Amz-Target": "DynamoDB_20120810.PutItem"}
    with recorder(sqlite_server.url, tmp_path / "trace") as run:
        reply = requests.post(
            run.url, b"x" * (proxies.BODY_MAX_BYTES + 1), headers=headers, timeout=PATIENCE_S
        )
    assert reply.status_code == 413
    assert reply.json()["__type"].endswith("#RequestEntityTooLarge")
