"""Commands with --url: a running server runs them on its own database, whatever the folder of the command."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import boto3
import pytest
import requests
from click.testing import CliRunner

from tablegate.gateway.__main__ import main
from tests.conftest import Serve
from tests.support.running import Process, Running
from tests.support.waiting import PATIENCE_S

TOKEN = "the token of the administrator"
Command = Callable[..., str]


@pytest.fixture
def server(serve: Serve, database_url: str) -> Running:
    return serve(
        database_url, auth="strict", admin_token=TOKEN, secret_key="a key that is long enough",
        credentials_period=0.05,
    )  # fmt: skip


@pytest.fixture
def command(server: Running, tmp_path: Path) -> Command:
    """Run a command with --url in an empty folder. Returns its standard output, or its errors if it fails."""
    folder = tmp_path / "another folder"
    folder.mkdir()

    def run(*words: str, code: int = 0, token: str = TOKEN, url: str = server.url) -> str:
        with contextlib.chdir(folder):
            done = CliRunner().invoke(main, [*words, "--url", url], env={"TABLEGATE_ADMIN_TOKEN": token})
        assert done.exit_code == code, done.output
        assert [*folder.iterdir()] == []
        return done.stdout if code == 0 else done.stderr

    return run


def until_tables(client: boto3.client, expected: object) -> None:
    """Wait until a key may list tables, or gets an error of this code."""
    seen: object = None
    while seen != expected:
        try:
            seen = client.list_tables()["TableNames"]
        except client.exceptions.ClientError as error:
            seen = error.response["Error"]["Code"]


def test_a_key_that_is_added_works(command: Command, server: Running) -> None:
    scheme, access_id, secret = command("credentials", "add", "KEY", "--all").strip().split("\t")
    assert (scheme, access_id) == ("aws", "KEY")
    client = boto3.client(
        "dynamodb", endpoint_url=server.url, region_name="us-east-1", aws_access_key_id="KEY",
        aws_secret_access_key=secret.removeprefix("secret="),
    )  # fmt: skip
    # Listing reads the database, and the server still notices that it has changed.
    assert command("credentials", "list") == "aws\tKEY\n"
    until_tables(client, [])
    assert "secret" not in command("credentials", "bind", "KEY", "--place", "123456789012")
    rotated = command("credentials", "rotate", "KEY")
    assert rotated.startswith("aws\tKEY\tplace=123456789012\tsecret=")
    until_tables(client, "InvalidSignatureException")
    assert command("credentials", "remove", "KEY") == "removed aws KEY\n"
    assert command("credentials", "list") == ""


def test_grants_and_quotas(command: Command) -> None:
    command("credentials", "add", "KEY")
    grant_id = command("grants", "add", "KEY", "--read-only", "orders").strip()
    role_id = command("grants", "add", "role/a", "--all").strip()
    listed = command("grants", "list", "KEY")
    assert listed.startswith(f"{grant_id}\taws/KEY\tshort\t")
    assert role_id not in listed
    assert command("grants", "remove", grant_id) == f"removed {grant_id}\n"
    assert "there is no grant" in command("grants", "remove", grant_id, code=1)
    assert command("quotas", "set", "KEY", "--requests", "5") == 'aws/KEY\t{"requests":5.0}\n'
    assert command("quotas", "list") == 'aws/KEY\t{"requests":5.0}\n'
    assert command("quotas", "remove", "KEY") == "removed aws/KEY\n"
    assert "has no quota" in command("quotas", "remove", "KEY", code=1)


def test_tables_and_sweep(command: Command, server: Running) -> None:
    secret = command("credentials", "add", "KEY", "--all").strip().rpartition("secret=")[2]
    client = boto3.client(
        "dynamodb", endpoint_url=server.url, region_name="us-east-1", aws_access_key_id="KEY",
        aws_secret_access_key=secret,
    )  # fmt: skip
    until_tables(client, [])
    client.create_table(
        TableName="orders", BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
    )  # fmt: skip
    told = command("tables")
    assert told.startswith("orders\n")
    assert "  dynamodb\torders\t" in told
    expiry = {"Enabled": True, "AttributeName": "ttl"}
    client.update_time_to_live(TableName="orders", TimeToLiveSpecification=expiry)
    client.put_item(TableName="orders", Item={"id": {"S": "1"}, "ttl": {"N": "1700000000"}})
    assert command("sweep") == "all expired rows are deleted\n"
    assert client.scan(TableName="orders")["Count"] == 0


def test_history_backups_and_restores(command: Command, server: Running) -> None:
    secret = command("credentials", "add", "KEY", "--all").strip().rpartition("secret=")[2]
    client = boto3.client(
        "dynamodb", endpoint_url=server.url, region_name="us-east-1", aws_access_key_id="KEY",
        aws_secret_access_key=secret,
    )  # fmt: skip
    until_tables(client, [])
    client.create_table(
        TableName="orders", BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
    )  # fmt: skip
    client.put_item(TableName="orders", Item={"id": {"S": "1"}})
    [namespace] = re.findall(r"namespace (\S+), ", command("tables"))

    def on_tables(*words: str, code: int = 0) -> str:
        return command("tables", *words, "--namespace", namespace, code=code)

    assert on_tables("keep-history", "orders", "--days", "3") == "orders: 3 days\n"
    assert on_tables("keep-history", "orders", "--off") == "orders: no history is kept\n"
    assert "No history of orders" in on_tables("restore", "orders", "past", "--at", "2020-01-01", code=1)
    backup = on_tables("create-backup", "orders", "--name", "first").split()[0]
    while "\tavailable\t1 rows\tfirst" not in (listed := on_tables("list-backups", "orders")):
        assert listed.startswith(f"{backup}\torders\t")
    assert on_tables("restore", "orders", "again", "--backup", backup) == "again is being restored\n"
    while client.describe_table(TableName="again")["Table"]["TableStatus"] != "ACTIVE":
        pass
    assert client.scan(TableName="again")["Count"] == 1
    assert on_tables("recount", "again").startswith("again: 1 rows, ")
    assert "exists already" in on_tables("restore", "orders", "again", "--backup", backup, code=1)
    while "in use" in (told := delete_backup(on_tables, backup)):
        pass
    assert told == f"{backup} is deleted\n"
    assert on_tables("list-backups") == ""
    assert f"There is no backup {backup}" in on_tables("delete-backup", backup, code=1)
    missing = on_tables("recount", "absent", code=1)
    assert "There is no table absent in this namespace" in missing and "--namespace" in missing


def delete_backup(on_tables: Command, backup: str) -> str:
    """Delete a backup. Return the error if a restore still uses it."""
    try:
        return on_tables("delete-backup", backup)
    except AssertionError as error:
        return str(error)


@pytest.mark.parametrize(
    ("method", "path", "document", "text"),
    [
        ("PUT", "/tables/history", {}, "table is missing"),
        ("PUT", "/tables/history", {"table": "t", "days": 36}, "days must be from 1 to 35"),
        ("PUT", "/tables/history", {"table": "t", "days": 0}, "days must be from 1 to 35"),
        ("POST", "/tables/restore", {"table": "t"}, "target is missing"),
        ("POST", "/tables/restore", {"table": "t", "target": "x" * 256}, "at most 255 characters"),
        ("POST", "/tables/restore", {"table": "t", "target": "u", "at": "soon"}, "at: soon is not a time"),
        (
            "POST",
            "/tables/restore",
            {"table": "t", "target": "u", "at": "", "backup": ""},
            "either at or backup",
        ),
        ("POST", "/tables/recount", {"table": "t\0"}, "NUL"),
        ("POST", "/backups", {"table": "t", "namespace": "retained/1"}, "is reserved"),
        ("DELETE", "/backups", {"id": 1}, "id has the wrong type"),
    ],
)
def test_wrong_documents_are_refused(
    server: Running, method: str, path: str, document: dict[str, object], text: str
) -> None:
    url, headers = f"{server.url}/_tablegate{path}", {"Authorization": f"Bearer {TOKEN}"}
    reply = requests.request(method, url, json=document, headers=headers, timeout=PATIENCE_S)
    assert (reply.status_code, reply.json()["error"]) == (400, "BadRequest")
    assert text in reply.json()["message"]


def test_errors_are_one_line(command: Command, server: Running) -> None:
    assert "requires the administrator's token" in command("credentials", "list", code=1, token="wrong")
    assert "requires the administrator's token" in command("tables", code=1, token="")
    assert "Cannot reach the server http://127.0.0.1:1" in command("tables", code=1, url="http://127.0.0.1:1")
    for url in ("127.0.0.1:8000", "ftp://a", "http://", "http://a:99999", "http://["):
        assert "is not the address of a server" in command("tables", code=2, url=url)
    assert "3 to 24" in command("credentials", "add", "UPPER", "--scheme", "azure", code=1)


def test_in_dev_accounts_need_the_token_too(serve: Serve, database_url: str) -> None:
    """Stored credentials stay when the server is restarted with auth strict."""
    server = serve(database_url, admin_token=TOKEN)
    for path in ("credentials", "grants", "quotas", "%63redentials"):
        address = f"{server.url}/_tablegate/{path}"
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            assert requests.get(address, headers=headers, timeout=PATIENCE_S).status_code == 403
        answer = requests.get(address, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=PATIENCE_S)
        assert answer.status_code == 200
    assert requests.get(f"{server.url}/_tablegate/tables", timeout=PATIENCE_S).json() == {
        "tables": [],
        "work": [],
    }


BAD = [
    ("POST", "credentials", {}),
    ("POST", "credentials", {"access_id": "A", "scheme": "gcp"}),
    ("POST", "credentials", {"access_id": "A\0"}),
    ("POST", "credentials", {"access_id": "A", "secrets": ["x"] * 2}),
    ("POST", "credentials", {"access_id": "A", "secrets": [5]}),
    ("PUT", "credentials", {"access_id": "A"}),
    ("PUT", "credentials", {"access_id": "A", "key": 1}),
    ("PUT", "credentials", {"access_id": "A", "place": "\0"}),
    ("DELETE", "credentials", {"access_id": "A"}),
    ("POST", "grants", {"key": "A", "form": "all"}),
    ("POST", "grants", {"key": "*"}),
    ("POST", "grants", {"key": "*", "form": "nonsense"}),
    ("POST", "grants", {"key": "*", "form": "short", "document": "{"}),
    ("POST", "grants", {"key": "*", "form": "short", "document": "[" * 100_000}),
    ("POST", "grants", {"key": "*", "form": "short", "document": '{"read": 5}'}),
    ("POST", "grants", {"key": "*", "form": "iam", "document": '{"Statement": 5}'}),
    ("POST", "grants", {"key": "*", "form": "ram", "document": '{"Statement": [5], "Version": "1"}'}),
    ("POST", "grants", {"key": "role/\0", "form": "all"}),
    ("DELETE", "grants", {"id": "none"}),
    ("PUT", "quotas", {"access_id": "A"}),
    ("PUT", "quotas", {"access_id": "A", "requests": 0}),
    ("PUT", "quotas", {"access_id": "A", "bytes": 10**30}),
    ("PUT", "quotas", {"access_id": "A", "bytes": -1}),
    ("PUT", "quotas", {"access_id": "A", "namespace": "b", "bytes": 1}),
    ("PUT", "quotas", {"namespace": "b\0", "bytes": 1}),
]


@pytest.mark.parametrize(("method", "path", "document"), BAD)
def test_bad_documents_are_refused(
    server: Running, method: str, path: str, document: dict[str, object]
) -> None:
    answer = requests.request(
        method, f"{server.url}/_tablegate/{path}", data=json.dumps(document),
        headers={"Authorization": f"Bearer {TOKEN}"}, timeout=PATIENCE_S,
    )  # fmt: skip
    assert answer.status_code == 400, answer.text
    assert answer.json()["message"]


def test_the_audit_names_the_administrator_and_the_address(tmp_path: Path) -> None:
    server = Process(
        tmp_path, "--auth", "strict", "--admin-token", TOKEN, "--audit", str(tmp_path / "audit.jsonl")
    )
    server.wait_until_ready()
    words = ["credentials", "add", "KEY", "--all", "--url", server.url, "--admin-token", TOKEN]
    assert CliRunner().invoke(main, words).exit_code == 0
    assert server.terminate()[0] == 0
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    [added] = [line for line in lines if line["event"] == "credential added"]
    assert (added["who"], added["from"]) == ("administrator", "127.0.0.1")
