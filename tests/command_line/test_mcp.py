"""`tablegate mcp` with the official client over standard input and output."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tablegate.testing import Server
from tests.support.running import ROOT
from tests.support.waiting import PATIENCE_S

if TYPE_CHECKING:  # takes 2 s, in each process of the tests
    from mcp import Client, StdioServerParameters

TABLE = {
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [
        {"AttributeName": "id", "AttributeType": "S"},
        {"AttributeName": "line", "AttributeType": "N"},
    ],
    "KeySchema": [
        {"AttributeName": "id", "KeyType": "HASH"},
        {"AttributeName": "line", "KeyType": "RANGE"},
    ],
}
MAY_LIST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "dynamodb:ListTables", "Resource": "*"}],
}
KEYS = {
    "credentials": [
        {"scheme": "aws", "access_id": "tablegate", "secret": "tablegate", "grants": "all"},
        {
            "scheme": "aws", "access_id": "ASSISTANT", "secret": "own",
            "grants": [{"read": ["orders"]}, {"query": ["orders"]}, MAY_LIST],
        },
    ]
}  # fmt: skip


def parameters(url: str, *flags: str, key: str = "ASSISTANT", secret: str = "own") -> StdioServerParameters:
    from mcp import StdioServerParameters

    environment = {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret, "PYTHONPATH": str(ROOT)}
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "tablegate", "mcp", "--url", url, *flags],
        env={**os.environ, **environment},
    )


def talk(server: StdioServerParameters, conversation: Callable[[Client], Awaitable[Any]]) -> Any:
    from mcp import Client

    async def run() -> Any:
        async with Client(server) as client:
            return await conversation(client)

    return asyncio.run(run())


def call(server: StdioServerParameters, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """Call tools and return their structured answers, or the texts of their errors."""

    async def conversation(client: Client) -> list[Any]:
        answers = [await client.call_tool(tool, arguments) for tool, arguments in calls]
        return [
            each.content[0].text if each.is_error else each.structured_content  # type: ignore[union-attr]
            for each in answers
        ]

    found: list[Any] = talk(server, conversation)
    return found


@pytest.fixture
def audit_file(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


@pytest.fixture
def server(audit_file: Path) -> Iterator[Server]:
    credentials = audit_file.with_name("credentials.json")
    credentials.write_text(json.dumps(KEYS))
    with Server(
        auth="strict", credentials_file=credentials, audit=audit_file, audit_requests=True, audit_writes=True
    ) as running:
        for name in ("orders", "secrets"):
            running.dynamodb_client().create_table(TableName=name, **TABLE)
        for line in range(3):
            running.dynamodb_client().put_item(
                TableName="orders", Item={"id": {"S": "1"}, "line": {"N": str(line)}, "raw": {"B": b"\x00"}}
            )
        yield running


@pytest.mark.extended
def test_the_tools(server: Server) -> None:
    async def names(client: Client) -> dict[str, bool | None]:
        tools = (await client.list_tools()).tools
        return {tool.name: tool.annotations and tool.annotations.read_only_hint for tool in tools}

    reads = dict.fromkeys(("list_tables", "describe_table", "query", "get"), True)
    assert talk(parameters(server.url), names) == reads
    assert talk(parameters(server.url, "--writes"), names) == {**reads, "put": False, "delete": False}


def test_an_assistant_reads_what_its_key_may_read(server: Server) -> None:
    key = {"id": {"S": "1"}, "line": {"N": "1"}}
    last = {**key, "line": {"N": "2"}}
    options = {"ExpressionAttributeNames": {"#l": "line"}, "ScanIndexForward": False, "Limit": 1}
    query = {
        "table": "orders",
        "key_condition": "id = :id AND #l > :l",
        "values": {":id": {"S": "1"}, ":l": {"N": "0"}},
    }
    tables, described, first, rest, got, absent = call(
        parameters(server.url),
        ("list_tables", {}),
        ("describe_table", {"table": "orders"}),
        ("query", {**query, "options": options}),
        ("query", {**query, "options": {**options, "Limit": 25, "ExclusiveStartKey": last}}),
        ("get", {"table": "orders", "key": key}),
        ("get", {"table": "orders", "key": {**key, "id": {"S": "none"}}}),
    )
    assert "orders" in tables["TableNames"]
    assert described["KeySchema"] == TABLE["KeySchema"]
    assert first["Items"] == [{**last, "raw": {"B": "AA=="}}]
    assert first["LastEvaluatedKey"] == last
    assert [item["line"]["N"] for item in rest["Items"]] == ["1"]
    assert got["Item"] == {**key, "raw": {"B": "AA=="}}
    assert "Item" not in absent


@pytest.mark.extended
def test_the_key_decides_and_the_audit_names_key_and_channel(server: Server, audit_file: Path) -> None:
    key = {"id": {"S": "1"}, "line": {"N": "1"}}
    read, *writes = call(
        parameters(server.url, "--writes"),
        ("get", {"table": "secrets", "key": key}),
        ("put", {"table": "orders", "item": key}),
        ("delete", {"table": "orders", "key": key}),
        ("query", {"table": "orders", "key_condition": "id = :v", "values": {":v": {"S": "1"}}}),
    )
    assert "AccessDeniedException" in read
    assert "arn:aws:dynamodb:us-east-1:000000000000:table/secrets" in read
    assert ["AccessDeniedException" in each for each in writes] == [True, True, False]
    new = {"id": {"S": "new"}, "line": {"N": "1"}}
    put, deleted = call(
        parameters(server.url, "--writes", key="tablegate", secret="tablegate"),
        ("put", {"table": "orders", "item": new}),
        ("delete", {"table": "orders", "key": new}),
    )
    assert (put, deleted["Attributes"]) == ({}, new)
    [unknown] = call(parameters(server.url, key="OTHER"), ("list_tables", {}))
    assert "UnrecognizedClientException" in unknown
    server.stop()  # writes the last lines
    lines = [json.loads(line) for line in audit_file.read_text().splitlines()]
    by_channel = [
        (each["who"], each["operation"], each["event"]) for each in lines if each.get("channel") == "mcp"
    ]
    for expected in (
        ("ASSISTANT", "Query", "request"),
        ("ASSISTANT", "GetItem", "refusal"),
        ("ASSISTANT", "PutItem", "refusal"),
        ("tablegate", "PutItem", "write"),
        ("tablegate", "DeleteItem", "write"),
    ):
        assert expected in by_channel
    others = [each for each in lines if each.get("operation") == "CreateTable"]
    assert others
    assert not any("channel" in each for each in others)


@pytest.mark.extended
def test_errors_are_answers() -> None:
    wrong = {"table": "none", "key_condition": "id == 1", "values": {":v": {"S": "1"}}}
    with Server() as running:
        url = running.url
        absent, invalid, untyped, unknown = call(
            parameters(url),
            ("describe_table", {"table": "none"}),
            ("query", wrong),
            ("get", {"table": 1}),
            ("query", {**wrong, "options": {"Limits": 1}}),
        )
    assert "ResourceNotFoundException" in absent
    assert "ValidationException" in invalid
    assert "validation error" in untyped
    assert "options.Limits" in unknown
    [lost] = call(parameters(url), ("list_tables", {}))
    assert f"No DynamoDB API answers at {url}" in lost


@pytest.mark.extended
def test_a_wrong_command_line_is_explained(tmp_path: Path) -> None:
    def failed(*flags: str, **environment: str) -> str:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        done = subprocess.run(
            [sys.executable, "-m", "tablegate", "mcp", *flags],
            env={**clean, "PYTHONPATH": str(ROOT), **environment},
            capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert (done.returncode in (1, 2), done.stdout) == (True, "")
        return done.stderr

    assert failed() == (
        "Error: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set to the key of the assistant.\n"
    )
    key = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    assert "must begin with http:// or https://" in failed("--url", "localhost:8000", **key)
    (tmp_path / "mcp.py").write_text("raise ModuleNotFoundError('no', name='mcp')\n")
    missing = failed(**key, PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}")
    assert missing == "Error: Python package mcp is missing. Install it with: pip install 'tablegate[mcp]'\n"
