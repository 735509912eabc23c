"""The example of docs/contribute/adding-a-dialect.md over a socket, through both entries, on each database, beside
another dialect.

It is mounted in front of Azure Table and uses its accounts, so each reads the other's writes.
"""

from __future__ import annotations

import ast
import itertools
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import requests
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableServiceClient

from docs.examples import key_value_dialect as key_value
from tablegate.gateway.app import mount
from tablegate.gateway.application import Application
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.dialects.adapter import dialects
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.model.errors import Busy, DatabaseFailed, PartitionLocked, TableBusy
from tablegate.gateway.security.credentials import DEV_AZURE_ACCOUNT, DEV_AZURE_KEY, Credentials
from tablegate.gateway.wiring import connect, open_store
from tests.support.running import ENTRIES, ROOT, Running, start_app, start_plain
from tests.support.waiting import PATIENCE_S

BODY_MAX_BYTES = 1 << 20


class Client:
    """A client of the dialect, and the gateway behind it."""

    def __init__(self, gateway: Gateway, running: Running, stem: str) -> None:
        self.gateway, self.url = gateway, running.url
        self._names = (f"{stem}{number}" for number in itertools.count())

    def send(self, method: str, path: str, **more: Any) -> requests.Response:
        more = {"auth": (DEV_AZURE_ACCOUNT, DEV_AZURE_KEY), **more}
        return requests.request(method, f"{self.url}/kv/{path}", timeout=PATIENCE_S, **more)

    def put(self, path: str, document: object, **headers: str) -> requests.Response:
        return self.send("PUT", path, json=document, headers=headers)

    def new_table(self) -> str:
        name = next(self._names)
        answer = self.send("PUT", name)
        assert (answer.status_code, answer.json()) == (201, {"table": name})
        return name


@pytest.fixture(scope="module")
def adapter() -> Iterator[str]:
    """The name of an adapter with the example as `detection.py` and `dialect.py`, and without other files."""
    package = ModuleType("tablegate.adapters.key_value")
    package.__path__ = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, package.__name__, package)
        for part in ("detection", "dialect"):
            patch.setitem(sys.modules, f"{package.__name__}.{part}", key_value)
        yield "key_value"


@pytest.fixture(scope="module", params=ENTRIES)
def client(request: pytest.FixtureRequest, adapter: str, shared_database_url: str) -> Iterator[Client]:
    settings = load(
        {
            "database": shared_database_url,
            "port": 0,
            "max_body_bytes": BODY_MAX_BYTES,
            "dialects": [adapter, "azuretable"],
        },
        {},
    )
    opened = open_store(settings, connect(settings))
    clock = opened.clock
    gateway = Gateway(opened.engine, Credentials(settings), settings, clock.now_ms, clock.now_ms)
    app = mount(Application(gateway, dialects(gateway)))
    running = start_app(app) if request.param == "server" else start_plain(app)
    yield Client(gateway, running, request.param)
    running.stop()
    opened.close()


def error_of(answer: requests.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]


def test_an_object_is_put_read_and_deleted(client: Client) -> None:
    table = client.new_table()
    document = {"name": "Nina Simone", "born": 1933, "height": 1.64, "alive": False, "heir": None}
    answer = client.put(f"{table}/nina", document)
    assert (answer.status_code, answer.content) == (204, b"")
    found = client.send("GET", f"{table}/nina")
    assert (found.status_code, found.json()) == (200, document)
    assert found.headers["ETag"] == answer.headers["ETag"]
    assert client.send("DELETE", f"{table}/nina").status_code == 204
    assert error_of(client.send("GET", f"{table}/nina")) == (404, "there is no object under this key")


def test_a_key_may_have_any_characters(client: Client) -> None:
    table = client.new_table()
    for at, key in enumerate(("a/b", "%25", "%C3%A9", "%00", "a%2Fc", "..%2Fx")):
        assert client.put(f"{table}/{key}", {"at": at}).status_code == 204
    for at, key in enumerate(("a%2Fb", "%25", "%c3%a9", "%00", "a/c", "..%2fx")):
        assert client.send("GET", f"{table}/{key}").json() == {"at": at}


def test_conditions(client: Client) -> None:
    path = f"{client.new_table()}/a"
    first = client.put(path, {"at": 1}, **{"If-None-Match": "*"}).headers["ETag"]
    refused = (412, "the object is not as the condition says")
    assert error_of(client.put(path, {"at": 2}, **{"If-None-Match": "*"})) == refused
    second = client.put(path, {"at": 2}, **{"If-Match": first})
    assert second.status_code == 204
    for stale in (first, "1", '"x"', "*"):
        assert error_of(client.put(path, {"at": 3}, **{"If-Match": stale})) == refused
        assert error_of(client.send("DELETE", path, headers={"If-Match": stale})) == refused
    assert client.send("GET", path).json() == {"at": 2}
    assert client.send("DELETE", path, headers={"If-Match": second.headers["ETag"]}).status_code == 204


def test_values_of_another_dialect_are_shown_exactly(client: Client) -> None:
    table = client.new_table()
    credential = AzureNamedKeyCredential(DEV_AZURE_ACCOUNT, DEV_AZURE_KEY)
    with TableServiceClient(f"{client.url}/{DEV_AZURE_ACCOUNT}", credential=credential) as service:
        azure = service.get_table_client(table)
        client.put(f"{table}/a", {"text": "x", "count": 1 << 40, "half": 0.5})
        entity = azure.get_entity("a", "")
        assert (entity["text"], entity["count"].value, entity["half"]) == ("x", 1 << 40, 0.5)
        azure.upsert_entity(
            {"PartitionKey": "b", "RowKey": "", "count": 7, "raw": b"\x00", "inf": float("inf")}
        )
    assert client.send("GET", f"{table}/b").json() == {
        "count": {"I32": "7"},
        "raw": {"B": "AA=="},
        "inf": {"D": "inf"},
    }


def test_a_table_of_two_key_columns_has_no_place_here(client: Client) -> None:
    credential = AzureNamedKeyCredential(DEV_AZURE_ACCOUNT, DEV_AZURE_KEY)
    table = client.new_table() + "pairs"
    with TableServiceClient(f"{client.url}/{DEV_AZURE_ACCOUNT}", credential=credential) as service:
        service.create_table(table)
    assert error_of(client.send("GET", f"{table}/a")) == (400, "the table's key is not one text")


BODY = 'the body is a JSON object without members "" and key'
MEMBER = "a member is a text, a number of 64 bits, a boolean or null"


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "text"),
    [
        ("PUT", "{}/a", b"", 400, BODY),
        ("PUT", "{}/a", b"[]", 400, BODY),
        ("PUT", "{}/a", b'{"": 1}', 400, BODY),
        ("PUT", "{}/a", b'{"key": "b"}', 400, BODY),
        ("PUT", "{}/a", b'{"a": [1]}', 400, MEMBER),
        ("PUT", "{}/a", b'{"a": {}}', 400, MEMBER),
        ("PUT", "{}/a", b'{"a": 9223372036854775808}', 400, MEMBER),
        ("GET", "{}/", b"", 400, "a key has 1 to 1024 bytes"),
        ("GET", "{}/%FF", b"", 400, "the path is not UTF-8"),
        ("PUT", "x", b"", 400, "a table's name has 3 to 255 of A-Z, a-z, 0-9, '_', '.' and '-'"),
        ("PUT", "{}", b"", 409, "there is such a table already"),
        ("GET", "{}", b"", 405, "there are PUT /kv/TABLE and PUT, GET and DELETE /kv/TABLE/KEY"),
        ("POST", "{}/a", b"", 405, "there are PUT /kv/TABLE and PUT, GET and DELETE /kv/TABLE/KEY"),
        ("GET", "nobody/a", b"", 404, "there is no such table"),
        ("GET", "%00/a", b"", 404, "there is no such table"),
        ("GET", "%2e%2e/a", b"", 404, "there is no such table"),
        ("PUT", "", b"", 400, "a table's name has 3 to 255 of A-Z, a-z, 0-9, '_', '.' and '-'"),
        ("PUT", "{}/a", b" " * (BODY_MAX_BYTES + 1), 413, "the body is too long"),
    ],
)
def test_refusals(client: Client, method: str, path: str, body: bytes, status: int, text: str) -> None:
    table = client.new_table() if "{}" in path else ""
    assert error_of(client.send(method, path.format(table), data=body)) == (status, text)


def test_the_largest_values_are_accepted_and_larger_ones_refused(client: Client) -> None:
    table = client.new_table()
    assert client.put(f"{table}/a", {"at": (1 << 63) - 1, "low": -(1 << 63)}).status_code == 204
    assert client.put(f"{table}/{'k' * 1024}", {}).status_code == 204
    assert client.put(f"{table}/{'k' * 1025}", {}).status_code == 400
    # The key column's name and value count: 3 + 1 bytes, and the member's name 1.
    assert client.put(f"{table}/a", {"a": "x" * (400 * 1024 - 5)}).status_code == 204
    assert error_of(client.put(f"{table}/a", {"a": "x" * (400 * 1024 - 4)})) == (
        413,
        "an object has at most 409600 bytes",
    )


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Basic"},
        {"Authorization": "Basic !"},
        {"Authorization": "Basic /w=="},
        {"Authorization": "Basic bm9ib2R5Og=="},  # nobody, with an empty key
        {"Authorization": "Basic ZGV2c3RvcmVhY2NvdW50MTo="},  # devstoreaccount1, with an empty key
        {"Authorization": "Bearer x"},
    ],
)
def test_a_caller_without_valid_credentials(client: Client, headers: dict[str, str]) -> None:
    answer = client.send("PUT", "sometable", auth=None, headers=headers)
    assert error_of(answer) == (401, "an account and its key are wanted")
    assert answer.headers["WWW-Authenticate"] == "Basic"


@pytest.mark.parametrize(
    ("outcome", "status", "text"),
    [
        (Busy(), 503, "try again"),
        (TableBusy("a", "creating"), 409, "the table is being made, changed or deleted"),
        (PartitionLocked(), 409, "the object belongs to an open transaction"),
        (DatabaseFailed(), 500, "internal error"),
        (ValueError(), 500, "internal error"),
    ],
)
def test_trouble_in_the_gateway_is_worded_here(
    client: Client, outcome: Exception, status: int, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"{client.new_table()}/a"
    client.put(path, {})

    def run(commands: list[Any], nowait: bool = False) -> list[Any]:
        if isinstance(outcome, ValueError):
            raise outcome
        return [outcome for _ in commands]

    monkeypatch.setattr(client.gateway.engine, "run", run)
    assert error_of(client.put(path, {})) == (status, text)


def test_a_page_from_elsewhere_is_refused_in_this_dialects_words(client: Client) -> None:
    answer = client.send("PUT", "sometable", headers={"Origin": "https://elsewhere.example"})
    assert error_of(answer) == (403, "a browser's page from elsewhere may not do this")


def test_other_requests_are_the_other_dialects(client: Client) -> None:
    answer = requests.get(f"{client.url}/{DEV_AZURE_ACCOUNT}/Tables", timeout=PATIENCE_S)
    assert answer.status_code == 401
    assert answer.json()["odata.error"]["code"] == "NoAuthenticationInformation"


def test_the_console_shows_its_rows_in_the_form_of_another_dialect(client: Client) -> None:
    table = client.new_table()
    client.put(f"{table}/nina", {"born": 1933})
    page = requests.get(
        f"{client.url}/_tablegate/console/rows",
        {"namespace": "shared", "name": table},
        timeout=PATIENCE_S,
    )
    assert page.status_code == 200
    assert "1933" in page.text


def test_a_table_is_listed_as_this_dialect_calls_it(client: Client) -> None:
    name = client.new_table()
    page = requests.get(
        f"{client.url}/_tablegate/console/table",
        {"namespace": "shared", "name": name},
        timeout=PATIENCE_S,
    )
    assert page.status_code == 200
    assert all(text in page.text for text in ("key_value", f"/kv/{name}"))


def test_the_example_is_small() -> None:
    """Lines of code: without imports, comments, docstrings and empty lines."""
    text = (ROOT / "docs" / "examples" / "key_value_dialect.py").read_text()
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_docstring or isinstance(node, ast.Import | ast.ImportFrom):
            left_out.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = [line.strip() for at, line in enumerate(text.splitlines(), 1) if at not in left_out]
    assert len([line for line in lines if line and not line.startswith("#")]) <= 115
