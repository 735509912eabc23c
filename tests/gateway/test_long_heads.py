"""Long request lines and headers: the services' longest are accepted, and longer ones refused in the dialect's format."""

from __future__ import annotations

import http.client
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tablegate.adapters.azuretable.wire import limits
from tablegate.gateway.configuration.settings import SETTINGS
from tablegate.gateway.security.credentials import DEV_AZURE_ACCOUNT
from tests.support.live_azure import LiveAzure
from tests.support.running import Running, start
from tests.support.waiting import PATIENCE_S

LINE_MAX_BYTES = int(SETTINGS["max_request_line_bytes"].default)  # type: ignore[call-overload]
HEADERS_MAX_BYTES = int(SETTINGS["max_header_bytes"].default)  # type: ignore[call-overload]
DYNAMODB = {"X-Amz-Target": "DynamoDB_20120810.ListTables", "Authorization": "AWS4-HMAC-SHA256 Credential=a"}
TABLE_STORE = {"x-ots-apiversion": "2015-12-31", "x-ots-instancename": "inst"}


@pytest.fixture(scope="module")
def running(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    path = shutil.copy(sqlite_template, tmp_path_factory.mktemp("heads") / "test.sqlite")
    started = start(f"sqlite:///{path}")
    yield started
    started.stop()


@pytest.fixture(scope="module")
def azure(running: Running) -> LiveAzure:
    return LiveAzure(running.url)


def ask(running: Running, target: str, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=PATIENCE_S)
    try:
        connection.request("GET" if target.startswith("/dev") else "POST", target, headers=headers)
        reply = connection.getresponse()
        return reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read()
    finally:
        connection.close()


def test_filter_of_a_hundred_pairs_of_keys_is_answered(azure: LiveAzure) -> None:
    """Source: Azure/Azurite issue 1745, whose long filter Azure accepts. Orleans' UnregisterMany makes such filters."""
    table = azure.new_table()
    key = "user/somerandomuser_6d71d83c8083415a835943b18b9d6d99"
    for number in range(2):
        table.create_entity(
            {"PartitionKey": "p", "RowKey": quote(f"{key}{number}", safe=""), "ActivationId": "id" * 16}
        )
    pairs = (
        f"((RowKey eq '{quote(f'{key}{number}', safe='')}') and (ActivationId eq '{'id' * 16}'))"
        for number in range(100)
    )
    text = f"(PartitionKey eq 'p') and ({' or '.join(pairs)})"
    assert len(quote(text)) > 17_008
    assert len([*table.query_entities(text)]) == 2


def test_filter_of_the_longest_length_is_read(azure: LiveAzure) -> None:
    table = azure.new_table()
    padding = limits.FILTER_MAX_CHARACTERS - len("a eq ''")
    assert [*table.query_entities(f"a eq '{' ' * padding}'")] == []


@pytest.mark.parametrize("character", ["я", "漢", "'", "%"])
def test_keys_of_one_kibibyte_are_addressed(azure: LiveAzure, character: str) -> None:
    """A key has 512 UTF-16 units, each with up to nine bytes in an address. Source: "Understanding the Table service
    data model"."""
    table = azure.new_table()
    key = character * limits.KEY_MAX_UNITS
    table.upsert_entity({"PartitionKey": key, "RowKey": key, "a": 1})
    assert table.get_entity(key, key)["a"] == 1
    table.submit_transaction([("upsert", {"PartitionKey": key, "RowKey": key, "a": 2})])
    assert table.get_entity(key, key)["a"] == 2
    table.delete_entity(key, key)


LONG_QUERY = "?$filter=" + "x" * LINE_MAX_BYTES
LONG_PATH = "/" + "x" * (16 << 10)
LONG_HEADER = {"X-Long": "x" * (16 << 10)}
MANY_HEADERS = {f"X-{number}": "x" * 10_000 for number in range(HEADERS_MAX_BYTES // 10_000 + 1)}


@pytest.mark.parametrize(
    ("target", "headers", "code"),
    [
        (f"/{DEV_AZURE_ACCOUNT}/people(){LONG_QUERY}", {}, "InvalidUri"),
        (f"/{DEV_AZURE_ACCOUNT}{LONG_PATH}", {}, "InvalidUri"),
        (f"/{DEV_AZURE_ACCOUNT}/people()", LONG_HEADER, "InvalidHeaderValue"),
        (f"/{DEV_AZURE_ACCOUNT}/people()", MANY_HEADERS, "InvalidHeaderValue"),
        (f"/devices(){LONG_QUERY}", {"Host": "acme.table.core.windows.net"}, "InvalidUri"),
    ],
)
def test_azure_table_refuses_a_long_head_as_odata(
    running: Running, target: str, headers: dict[str, str], code: str
) -> None:
    status, named, body = ask(running, target, headers)
    assert (status, named["x-ms-error-code"]) == (400, code)
    assert named["content-type"].startswith("application/json;odata=minimalmetadata")
    error = json.loads(body)["odata.error"]
    assert error["code"] == code
    assert "exceeds" in error["message"]["value"]


@pytest.mark.parametrize(("target", "headers"), [("/" + LONG_QUERY, {}), (LONG_PATH, {}), ("/", LONG_HEADER)])
def test_dynamodb_refuses_a_long_head_as_json(running: Running, target: str, headers: dict[str, str]) -> None:
    status, named, body = ask(running, target, DYNAMODB | headers)
    assert (status, named["content-type"]) == (400, "application/json")
    assert json.loads(body)["__type"].endswith("#ValidationException")
    assert named["x-amzn-requestid"]


@pytest.mark.parametrize(
    ("target", "headers"), [("/ListTable" + LONG_QUERY, {}), (LONG_PATH, {}), ("/ListTable", LONG_HEADER)]
)
def test_table_store_refuses_a_long_head_as_protobuf(
    running: Running, target: str, headers: dict[str, str]
) -> None:
    status, named, body = ask(running, target, TABLE_STORE | headers)
    assert status == 400
    assert b"OTSParameterInvalid" in body
    assert b"exceeds" in body
    assert named["x-ots-requestid"]


def test_request_without_a_dialect_is_refused_as_text(running: Running) -> None:
    status, _, body = ask(running, "/_x" + LONG_QUERY, {})
    assert (status, body) == (400, f"The size of the request line exceeds {LINE_MAX_BYTES} bytes.\n".encode())
