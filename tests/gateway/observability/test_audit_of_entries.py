"""The audit log of entries other than the wire protocols: control API, console, command line, jobs, WSGI servers."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import requests
from click.testing import CliRunner

from tablegate.gateway.__main__ import main
from tablegate.gateway.app import application_of, create_app
from tablegate.gateway.command_line.database import COMMANDS_WITH_OWN_RECORDS, READING_COMMANDS
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.http.messages import Request
from tablegate.gateway.model.authorization.quotas import Quota
from tablegate.gateway.observability import audit
from tablegate.gateway.observability.audit import AuditScope, AuditTrail, KeyForm
from tablegate.gateway.store.migrating import migrate
from tablegate.gateway.wiring import connect, open_store
from tests.adapters.azuretable.batch_requests import batch_of, insert_part
from tests.adapters.azuretable.client import AzureRequests
from tests.adapters.dynamodb.client import JSON_1_0, DynamoDBService, signed
from tests.adapters.dynamodb.features.exports_imports import test_import_api
from tests.adapters.dynamodb.features.exports_imports.conftest import Exporter
from tests.gateway.observability.test_audit import PRECIOUS, lines, served
from tests.support.audit_lines import Gathering
from tests.support.clock import Clock
from tests.support.object_places import FolderPlace
from tests.support.running import Process, call_plainly
from tests.support.waiting import PATIENCE_S

CREATED = {
    "TableName": "music", "BillingMode": "PAY_PER_REQUEST",
    "KeySchema": [{"AttributeName": "artist", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "artist", "AttributeType": "S"}],
}  # fmt: skip
PATIENT = ("--slow-request-ms", "600000")
SIGNED = {"content_type": JSON_1_0, **signed()}
FORM = ("time", "event", "who", "from", "dialect", "operation", "tables", "result", "request_id")


def brief(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return the lines without time, address and id."""
    for line in found:
        assert tuple(line)[: len(FORM)] == FORM, line
    return [
        (
            line["event"],
            line["who"],
            line["dialect"],
            line["operation"],
            tuple(line["tables"]),
            line["result"],
        )
        for line in found
    ]


# The control API and the console


def test_calls_of_the_control_api_are_on_record(tmp_path: Path) -> None:
    """Those that read are, as anywhere, with --audit-requests."""
    headers = {"Authorization": "Bearer the token"}
    with served(tmp_path, "--admin-token", "the token", *PATIENT) as (url, owner):
        owner.dynamodb(url).create_table(**CREATED)
        for method, path, body in (
            ("POST", "snapshots", {"name": "before"}),
            ("GET", "snapshots", None),
            ("PUT", "clock", {"frozen": True}),
            ("POST", "faults", {"error": "throttling", "count": 1}),
            ("DELETE", "faults", None),
            ("POST", "seed", {"files": []}),
            ("POST", "snapshots/before/load", None),
            ("POST", "reset", {"mode": "rows", "tables": ["music"]}),
            ("DELETE", "snapshots/before", None),
        ):
            answer = requests.request(
                method, f"{url}/_tablegate/{path}", json=body, headers=headers, timeout=PATIENCE_S
            )
            assert answer.status_code == 200, answer.text
        answer = requests.post(
            f"{url}/_tablegate/reset", headers={"Authorization": "Bearer no"}, timeout=PATIENCE_S
        )
        assert answer.status_code == 403
    told = brief([line for line in lines(tmp_path / "audit.jsonl") if line["dialect"] == "gateway"])
    changes = [
        ("POST", "snapshots"), ("PUT", "clock"), ("POST", "faults"), ("DELETE", "faults"), ("POST", "seed"),
        ("POST", "snapshots/before/load"), ("POST", "reset"), ("DELETE", "snapshots/before"),
    ]  # fmt: skip
    assert told == [
        *(
            (
                "definition", "administrator", "gateway", f"{method} /_tablegate/{path}",
                ("music",) if path == "reset" else (), 200,
            )
            for method, path in changes
        ),
        ("refusal", "", "gateway", "POST /_tablegate/reset", (), 403),
    ]  # fmt: skip


def test_sign_ins_writes_and_refusals_of_the_console_are_on_record(tmp_path: Path) -> None:
    flags = (
        "--admin-token",
        "the token",
        "--console-writes",
        "--audit-writes",
        "--audit-keys",
        "plain",
        *PATIENT,
    )
    with served(tmp_path, *flags) as (url, owner):
        owner.dynamodb(url).create_table(**CREATED)
        console, session = f"{url}/_tablegate/console", requests.Session()
        for secret, status in (("a wrong secret", 403), ("the token", 200)):
            form = {"access_id": "administrator", "secret": secret}
            assert session.post(f"{console}/sign-in", data=form, timeout=PATIENCE_S).status_code == status
        of = {"namespace": "shared", "name": "music"}
        row = json.dumps({"artist": {"S": "nina"}, "song": {"S": PRECIOUS}})
        page = session.post(f"{console}/row/put", data={**of, "row": row}, timeout=PATIENCE_S).text
        [place] = re.findall(r'name="at" value="([^"]+)"', page)
        session.post(f"{console}/row/delete", data={**of, "at": place}, timeout=PATIENCE_S)
        session.get(f"{console}/rows", params=of, timeout=PATIENCE_S)
        foreign = {"Origin": "http://evil.example"}
        session.post(f"{console}/row/put", data={**of, "row": row}, headers=foreign, timeout=PATIENCE_S)
    found = [line for line in lines(tmp_path / "audit.jsonl") if line["dialect"] == "gateway"]
    who, where = "administrator", "POST /_tablegate/console/"
    assert brief(found) == [
        ("refusal", who, "gateway", f"{where}sign-in", (), 403),
        ("sign-in", who, "gateway", f"{where}sign-in", (), 303),
        ("write", who, "gateway", f"{where}row/put", ("music",), 303),
        ("write", who, "gateway", f"{where}row/delete", ("music",), 303),
        ("refusal", "", "gateway", f"{where}row/put", (), 403),
    ]
    assert [line["keys"] for line in found if line["event"] == "write"] == [[{"artist": "nina"}]] * 2
    text = (tmp_path / "audit.jsonl").read_text()
    assert PRECIOUS not in text and "the token" not in text and "a wrong secret" not in text


def test_bulk_changes_and_statements_of_the_console_are_on_record(tmp_path: Path) -> None:
    flags = ("--admin-token", "the token", "--console-writes", "--audit-requests", "--audit-keys", "plain")
    with served(tmp_path, *flags) as (url, owner):
        client = owner.dynamodb(url)
        for name in ("music", "other"):
            client.create_table(**{**CREATED, "TableName": name})
        for artist in ("nina", "etta"):
            client.put_item(TableName="music", Item={"artist": {"S": artist}, "song": {"S": PRECIOUS}})
        console, session = f"{url}/_tablegate/console", requests.Session()
        session.post(
            f"{console}/sign-in",
            data={"access_id": "administrator", "secret": "the token"},
            timeout=PATIENCE_S,
        )
        of = {"namespace": "shared", "name": "music"}
        search = {"attribute": "song", "value": PRECIOUS, "change": "delete"}
        assert (
            "2 rows deleted"
            in session.post(f"{console}/rows/bulk", data={**of, **search}, timeout=PATIENCE_S).text
        )
        for statement in ("SELECT * FROM other", "SELECT * FROM absent"):
            session.get(f"{console}/statement", params={**of, "statement": statement}, timeout=PATIENCE_S)
    found = [line for line in lines(tmp_path / "audit.jsonl") if line["dialect"] == "gateway"]
    where = "/_tablegate/console/"
    assert brief(found)[-3:] == [
        ("write", "administrator", "gateway", f"POST {where}rows/bulk", ("music",), 200),
        ("request", "administrator", "gateway", f"GET {where}statement", ("music", "other"), 200),
        ("request", "administrator", "gateway", f"GET {where}statement", ("music", "absent"), 404),
    ]
    assert sorted(key["artist"] for key in found[-3]["keys"]) == ["etta", "nina"]


# The command line


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[str]:
    """The names of all commands, those of groups that are commands themselves included."""
    for name in group.list_commands(click.Context(group)):
        found = group.get_command(click.Context(group), name)
        assert found is not None
        here = (*path, name)
        if not isinstance(found, click.Group) or found.invoke_without_command:
            yield " ".join(here)
        if isinstance(found, click.Group):
            yield from commands(found, here)


BESIDE = {
    "serve", "dynamodb-local", "azurite", "azurite-table", "healthcheck", "wait", "lint", "copy", "verify", "diff",
    "signature", "record", "replay", "shadow", "config", "completion",
    "mcp",
}  # fmt: skip
"""Commands that open no database of a server: they serve, or speak to servers, or have databases of their own."""
CHANGES: dict[str, list[str]] = {
    "migrate": [],
    "tables keep-history": ["music", "--days", "3"],
    "tables create-backup": ["music"],
    "tables restore": ["music", "again"],
    "tables delete-backup": [],  # which one is known by then
    "streams reshard": ["music", "--shards", "2"],
    "tables recount": ["music"],
    "sweep": [],
    "vacuum": [],
}
NOT_RUN_HERE = {"distribute", "undistribute", "restore-point", "jobs cancel"}
"""Changes that need a cluster, or a job under way."""


def test_every_command_of_the_command_line_is_classified() -> None:
    assert (
        set(commands(main))
        == READING_COMMANDS | COMMANDS_WITH_OWN_RECORDS | BESIDE | NOT_RUN_HERE | CHANGES.keys()
    )


def make_music(database: str) -> None:
    """The table `music` with a stream in a database that is migrated."""
    stream = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    body = json.dumps({**CREATED, "StreamSpecification": stream}).encode()
    named = {"x_amz_target": "DynamoDB_20120810.CreateTable", "host": "h", **SIGNED}
    headers = tuple((name.replace("_", "-"), value) for name, value in named.items())
    app = create_app(load({"database": database}, {}))
    assert call_plainly(app, Request("POST", "/", headers, body)).status == 200


def test_every_command_that_changes_something_is_on_record(tmp_path: Path) -> None:
    path, database = tmp_path / "audit.jsonl", f"sqlite:///{tmp_path}/tablegate.sqlite"
    flags = ["--database", database, "--audit", str(path)]

    def run(*words: str, code: int = 0) -> str:
        done = CliRunner().invoke(main, [*words, *flags])
        assert done.exit_code == code, (words, done.output)
        return done.stdout if code == 0 else done.output

    run("migrate")
    make_music(database)
    for command, words in CHANGES.items():
        if command == "tables delete-backup":
            run("sweep")
            words = [run("tables", "list-backups").split("\t")[0]]
        run(*command.split(), *words)
    run("tables", "keep-history", "absent", "--days", "3", code=1)
    told = brief(lines(path))
    assert {each[3] for each in told} == CHANGES.keys()
    assert ("definition", told[0][1], "gateway", "tables keep-history", ("music",), "done") in told
    assert ("definition", told[0][1], "gateway", "tables restore", ("music", "again"), "done") in told
    assert told[0][1].startswith("user ")


# Jobs and WSGI


@pytest.fixture
def trail() -> Iterator[Gathering]:
    """The audit records of this process. They are complete after `audit.stop`."""
    sink = Gathering()
    audit.start(AuditTrail(sink, KeyForm(True, ""), AuditScope(writes=True, requests=False)))
    yield sink
    audit.stop()


def test_the_end_of_a_job_is_on_record_under_the_name_of_its_caller(tmp_path: Path, trail: Gathering) -> None:
    place = FolderPlace(tmp_path / "exports")
    with DynamoDBService.opened(Clock(), **place.settings) as service:
        exporter = Exporter(service, place, lambda: service)
        place.put("in/1.json", test_import_api.line("a"))
        assert test_import_api.imported(exporter)["ImportStatus"] == "COMPLETED"
        audit.stop()
    [ended] = [line for line in trail.lines if line["from"] == "background"]
    assert brief([ended]) == [
        ("definition", "anybody", "dynamodb", "dynamodb-import", ("orders",), "COMPLETED")
    ]


def test_requests_of_a_wsgi_server_are_on_record(trail: Gathering) -> None:
    settings = load({"memory": True, "admin_token": "the token"}, {})
    database = connect(settings)
    migrate(database)
    app = create_app(settings, open_store(settings, database))

    def ask(path: str, body: Any, **named: str) -> int:
        headers = {"host": "localhost", **named}
        pairs = tuple((name.replace("_", "-"), value) for name, value in headers.items())
        return call_plainly(app, Request("POST", path, pairs, json.dumps(body).encode())).status

    assert ask("/", CREATED, x_amz_target="DynamoDB_20120810.CreateTable", **SIGNED) == 200
    item = {"TableName": "music", "Item": {"artist": {"S": "nina"}}}
    assert ask("/", item, x_amz_target="DynamoDB_20120810.PutItem", **SIGNED) == 200
    assert ask("/_tablegate/reset", {}, authorization="Bearer the token") == 200
    assert ask("/_tablegate/reset", {}, authorization="Bearer no") == 403
    # Refused in front of Flask: a page of another origin.
    foreign = {**SIGNED, "origin": "http://evil.example"}
    assert ask("/", item, x_amz_target="DynamoDB_20120810.PutItem", **foreign) == 400
    audit.stop()
    assert brief(trail.lines) == [
        ("definition", "anybody", "dynamodb", "CreateTable", ("music",), 200),
        ("write", "anybody", "dynamodb", "PutItem", ("music",), 200),
        ("definition", "administrator", "gateway", "POST /_tablegate/reset", (), 200),
        ("refusal", "", "gateway", "POST /_tablegate/reset", (), 403),
        ("refusal", "anybody", "dynamodb", "PutItem", (), "AccessDeniedException"),
    ]


# Initial tables of a server, and tables that it copies into a database


def test_initial_data_of_a_server_are_recorded(tmp_path: Path) -> None:
    (tmp_path / "seed").mkdir()
    (tmp_path / "seed" / "music.json").write_text(json.dumps(CREATED))
    (tmp_path / "credentials.json").write_text(
        json.dumps([{"scheme": "aws", "access_id": "KEY", "secret": "a secret", "place": "123456789012"}])
    )
    flags = (
        "--seed",
        "seed",
        "--credentials-file",
        "credentials.json",
        "--secret-key",
        "what seals the secrets",
    )
    server = Process(tmp_path, *flags, "--audit", "audit.jsonl")
    server.wait_until_ready()
    server.terminate()
    told = lines(tmp_path / "audit.jsonl")
    assert [line["event"] for line in told] == ["credential added", "definition"]
    assert brief(told[1:])[0][3:] == ("serve --seed", (), "done")


def test_a_copy_into_a_database_is_on_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = f"sqlite:///{tmp_path}/source.sqlite"
    assert CliRunner().invoke(main, ["migrate", "--database", source]).exit_code == 0
    make_music(source)
    monkeypatch.setenv("TABLEGATE_AUDIT", str(tmp_path / "audit.jsonl"))
    target = f"tablegate:sqlite:///{tmp_path}/target.sqlite#music"
    words = ["copy", f"tablegate:{source}#music", target, "--quiet", "--job", str(tmp_path / "copy.job")]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert [each[3:] for each in brief(lines(tmp_path / "audit.jsonl"))] == [("copy", ("music",), "done")]


# Quotas


@contextlib.contextmanager
def limited(**quota: int) -> Iterator[tuple[Any, Gathering]]:
    """An application with a quota on its namespace and a table `music`, and its audit records."""
    settings = load({"memory": True}, {})
    database = connect(settings)
    migrate(database)
    app = create_app(settings, open_store(settings, database))
    quotas = application_of(app).gateway.quotas
    quotas.now = lambda: 1_000.0
    headers = (("host", "h"), ("x-amz-target", "DynamoDB_20120810.CreateTable"), *headers_of(SIGNED))
    assert call_plainly(app, Request("POST", "/", headers, json.dumps(CREATED).encode())).status == 200
    quotas.replace({"namespace/shared": Quota(**quota)})
    sink = Gathering()
    audit.start(AuditTrail(sink, KeyForm(True, ""), AuditScope(writes=True, requests=False)))
    try:
        yield app, sink
    finally:
        audit.stop()


def headers_of(named: dict[str, str]) -> list[tuple[str, str]]:
    return [(name.replace("_", "-"), value) for name, value in named.items()]


def test_a_request_beyond_a_quota_of_tables_is_on_record() -> None:
    """The engine finds that out, in the transaction that would make the table."""
    with limited(tables=1) as (app, sink):
        headers = (("host", "h"), ("x-amz-target", "DynamoDB_20120810.CreateTable"), *headers_of(SIGNED))
        body = json.dumps({**CREATED, "TableName": "more"}).encode()
        assert call_plainly(app, Request("POST", "/", headers, body)).status == 400
        audit.stop()
    [told] = sink.lines
    assert brief([told]) == [
        ("throttled", "anybody", "dynamodb", "CreateTable", ("more",), "LimitExceededException")
    ]
    assert (told["owner"], told["limit"]) == ("namespace/shared", "tables")


def test_a_part_beyond_a_quota_is_on_record_beside_the_request() -> None:
    """A `$batch` is answered 202 whatever becomes of its change set."""
    with limited(write_units=1) as (app, sink):
        clock = Clock()
        clock.ns = time.time_ns()
        service = AzureRequests(clock)
        assert call_plainly(app, service.request("POST", "/Tables", {"TableName": "people"})).status == 201
        for _ in range(3):  # the first is admitted, and what it takes beyond its units is a debt
            batch = batch_of(
                service, [insert_part("people", "a", "1", n=1), insert_part("people", "a", "2", n=1)]
            )
            assert call_plainly(app, batch).status == 202
        audit.stop()
    events = [(line["event"], line.get("limit")) for line in sink.lines]
    assert events[:2] == [("definition", None), ("write", None)]
    assert events[-2:] == [("write", None), ("throttled", "write_units")]
    assert sink.lines[-1]["request_id"] == sink.lines[-2]["request_id"]
