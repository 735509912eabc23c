"""With auth `strict` no body is decoded before its sender is authenticated. Calls of decoders are counted.

Requests go through both entries, the gateway's own server and a plain WSGI server. For signed requests, and for all requests
with auth `dev`, the order of errors is the service's.
"""

from __future__ import annotations

import base64
import gzip
import http.client
import json
import time
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email.utils import formatdate
from typing import Any
from xml.etree import ElementTree

import orjson
import pytest

from tablegate.adapters.azuretable.dialect import AzureTable
from tablegate.adapters.azuretable.wire import multipart
from tablegate.adapters.dynamodb.dialect import DynamoDB
from tablegate.adapters.dynamodb.wire import auth
from tablegate.adapters.dynamodb.wire.auth import authorization
from tablegate.adapters.tablestore import dialect as tablestore
from tablegate.adapters.tablestore.dialect import TableStore
from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.engine.engine import EngineOptions
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.security.credentials import (
    DEV_AZURE_ACCOUNT,
    DEV_AZURE_KEY,
    Credential,
    Credentials,
    Scheme,
)
from tablegate.gateway.store.migrating import migrate
from tablegate.gateway.store.store import Store
from tablegate.gateway.wiring import connect
from tests.adapters.azuretable.client import sign
from tests.adapters.tablestore.client import signed
from tests.support.running import ENTRIES, EVERY_DIALECT, Running, plain_app, start_app, start_plain
from tests.support.waiting import PATIENCE_S

KEY = "tablegate"
AWS = Credential(Scheme.AWS, "AKIDEXAMPLE", ("a secret",))
KNOWN = (
    AWS,
    Credential(Scheme.AZURE, DEV_AZURE_ACCOUNT, (DEV_AZURE_KEY,)),
    Credential(Scheme.TABLESTORE, KEY, (KEY,), "inst"),
)
BOMB = b"[" + b"{}," * 1_000_000 + b"{}]"
SECRETS = {"aws": AWS.secrets[0], "azure": DEV_AZURE_KEY, "tablestore": KEY}


def gateway_of(auth: str) -> Gateway:
    settings = load({"memory": True, "port": 0, "auth": auth}, {})
    database = connect(settings)
    migrate(database)
    engine = new_engine(Store(database), EngineOptions(sweep_period_s=0), time.time_ns)

    def now_ms() -> int:
        return time.time_ns() // 1_000_000

    return Gateway(engine, Credentials(settings, KNOWN if auth == "strict" else ()), settings, now_ms, now_ms)


Ask = Callable[..., Reply]


@pytest.fixture
def gateways() -> dict[str, Gateway]:
    """The gateways of a test, by their auth."""
    return {}


@pytest.fixture(params=ENTRIES)
def ask(request: pytest.FixtureRequest, gateways: dict[str, Gateway]) -> Iterator[Ask]:
    """Send a request to a server with this `auth`. The server starts at first use."""
    running: dict[str, Running] = {}

    def ask(made: Request, auth: str = "strict") -> Reply:
        if auth not in running:
            gateways[auth] = gateway_of(auth)
            app = plain_app(gateways[auth], *EVERY_DIALECT)
            running[auth] = start_app(app) if request.param == "server" else start_plain(app)
        connection = http.client.HTTPConnection("127.0.0.1", running[auth].port, timeout=PATIENCE_S)
        connection.request(made.method, made.target, made.body, dict(made.headers))
        answer = connection.getresponse()
        reply = Reply(answer.status, answer.getheaders(), answer.read())
        connection.close()
        return reply

    yield ask
    for each in running.values():
        each.stop()
    for gateway in gateways.values():
        gateway.engine.close()


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the names of the body decoders that are called."""
    seen: list[str] = []

    def watch(holder: Any, name: str) -> None:
        real = getattr(holder, name)

        def called(*given: Any, **named: Any) -> Any:
            seen.append(name)
            return real(*given, **named)

        monkeypatch.setattr(holder, name, called)

    for holder, name in (
        (zlib, "decompressobj"),
        (orjson, "loads"),
        (json.JSONDecoder, "decode"),
        (ElementTree, "fromstring"),
        (multipart, "parse"),
        (tablestore, "parse"),
    ):
        watch(holder, name)
    return seen


# Requests. `secret` signs them. They are unsigned if it is None.


def of_dynamodb(secret: str | None, body: bytes = b"", key: str = AWS.access_id, **more: str) -> Request:
    headers = {
        "host": "localhost",
        "content-type": "application/x-amz-json-1.0",
        "x-amz-date": f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}",
        "x-amz-target": "DynamoDB_20120810.PutItem",
        "content-encoding": "gzip",
        **{name.replace("_", "-"): value for name, value in more.items()},
    }
    request = Request("POST", "/", tuple(headers.items()), body or gzip.compress(BOMB))
    if secret is None:
        return request
    made = authorization(request, key, secret, "us-east-1")
    return Request("POST", "/", (*request.headers, ("authorization", made)), request.body)


def of_azure(secret: str | None, method: str, path: str, kind: str, body: bytes) -> Request:
    target = f"/{DEV_AZURE_ACCOUNT}{path}"
    headers = {
        "host": "localhost",
        "x-ms-date": formatdate(usegmt=True),
        "x-ms-version": "2019-02-02",
        "Content-Type": kind,
    }
    if secret is not None:
        headers["Authorization"] = sign(base64.b64decode(secret), method, target, headers)
    return Request(method, target, tuple(headers.items()), body)


def of_table_store(secret: str | None, **more: str) -> Request:
    body = zlib.compress(BOMB)
    compressed = {"x_ots_request_compress_type": "deflate", "x_ots_request_compress_size": str(len(BOMB))}
    headers = signed("PutRow", body, time.time_ns() // 1_000_000, secret or KEY, **compressed, **more)
    if secret is None:
        headers = tuple(header for header in headers if header[0] != "x-ots-signature")
    return Request("POST", "/PutRow", (("host", "localhost"), *headers), body)


ENTITY = b'{"PartitionKey":"a","RowKey":"b","TableName":"people"}'
BATCH = b"--b\r\nContent-Type: application/http\r\n\r\nGET /x HTTP/1.1\r\n\r\n\r\n--b--\r\n"
KINDS: dict[str, Callable[[str | None], Request]] = {
    "aws: PutItem": of_dynamodb,
    "aws: DescribeLimits": lambda secret: of_dynamodb(
        secret, x_amz_target="DynamoDB_20120810.DescribeLimits"
    ),
    "azure: an entity": lambda secret: of_azure(secret, "POST", "/people", "application/json", ENTITY),
    "azure: a table": lambda secret: of_azure(secret, "POST", "/Tables", "application/json", ENTITY),
    "azure: a batch": lambda secret: of_azure(
        secret, "POST", "/$batch", "multipart/mixed; boundary=b", BATCH
    ),
    "azure: policies": lambda secret: of_azure(secret, "PUT", "/people?comp=acl", "application/xml", b"<a/>"),
    "tablestore: PutRow": of_table_store,
}
OF_OTHERS = {
    "aws": "another secret",
    "azure": base64.b64encode(b"another key").decode(),
    "tablestore": "another",
}


@pytest.mark.parametrize("credential", ["none", "of a wrong secret"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_body_is_decoded_without_a_credential(
    ask: Ask, decoded: list[str], kind: str, credential: str
) -> None:
    ask(of_dynamodb(AWS.secrets[0], b"{}", content_encoding=""))  # what a server's first request loads
    decoded.clear()
    secret = None if credential == "none" else OF_OTHERS[kind.partition(":")[0]]
    reply = ask(KINDS[kind](secret))
    assert reply.status in (400, 401, 403), reply
    assert decoded == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_body_is_decoded_with_a_valid_credential(ask: Ask, decoded: list[str], kind: str) -> None:
    ask(KINDS["azure: a table"](SECRETS["azure"]))  # in which the entity is
    decoded.clear()
    ask(KINDS[kind](SECRETS[kind.partition(":")[0]]))
    assert decoded != []


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"key": "AKIDUNKNOWN"}, "UnrecognizedClientException"),
        ({"x_amz_date": "20200101T000000Z"}, "InvalidSignatureException"),
        ({"secret": None}, "MissingAuthenticationTokenException"),
    ],
)
def test_a_head_without_valid_credentials_ends_the_request(
    ask: Ask, decoded: list[str], monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any], code: str
) -> None:
    """Not even the digest of the body is made."""
    hashed: list[int] = []
    real = auth.hashlib.sha256
    request = of_dynamodb(**{"secret": AWS.secrets[0], **changed})
    ask(of_dynamodb(AWS.secrets[0], b"{}", content_encoding=""))
    decoded.clear()
    monkeypatch.setattr(
        auth.hashlib,
        "sha256",
        lambda data=b"", **named: hashed.append(len(data)) or real(data, **named),
    )
    reply = ask(request)
    assert (decoded, [size for size in hashed if size == len(request.body)]) == ([], [])
    assert (reply.status, json.loads(reply.body)["__type"].partition("#")[2]) == (400, code)


@pytest.mark.parametrize(
    ("auth", "secret", "code"),
    [
        # The service reads the JSON first (dynalite, captured). Test suites of emulators run with auth dev.
        ("dev", None, "SerializationException"),
        # If credentials are required, they are checked first.
        ("strict", None, "MissingAuthenticationTokenException"),
        ("strict", "another secret", "InvalidSignatureException"),
        # For a signed request the order is the service's: JSON, then the target.
        ("strict", AWS.secrets[0], "SerializationException"),
    ],
)
def test_broken_json_beside_other_faults(ask: Ask, auth: str, secret: str | None, code: str) -> None:
    request = of_dynamodb(secret, b"{", content_encoding="", x_amz_target="DynamoDB_20120810.Nothing")
    reply = ask(request, auth)
    assert (reply.status, json.loads(reply.body)["__type"].partition("#")[2]) == (400, code)


@pytest.mark.parametrize("auth", ["dev", "strict"])
@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("garbage", b"{}"),
        ("gzip", b"{}"),
        ("gzip", b"junk"),
        ("deflate", b"{}"),
        ("gzip", gzip.compress(b"{}", mtime=0)[:-1]),
    ],
)
def test_a_coding_that_does_not_decode_is_answered_as_by_the_service(
    ask: Ask, auth: str, coding: str, body: bytes
) -> None:
    """test/alternator/test_compressed_request.py, which was run on AWS: an InternalServerError."""
    reply = ask(of_dynamodb(AWS.secrets[0], body, content_encoding=coding), auth)
    assert (reply.status, json.loads(reply.body)["__type"].partition("#")[2]) == (
        500,
        "InternalServerError",
    )


# Long bodies


def test_a_long_body_is_not_received_without_a_credential(
    ask: Ask, gateways: dict[str, Gateway], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The head ends it, unless all has come in one piece: nothing of the body is counted, and no handler is called."""
    ask(of_dynamodb(AWS.secrets[0], b"{}", content_encoding=""))
    dialects = {DynamoDB: of_dynamodb, AzureTable: KINDS["azure: an entity"], TableStore: of_table_store}
    for dialect in dialects:
        monkeypatch.setattr(dialect, "handle", None)
    for made in dialects.values():
        request = made(None)
        long = Request(request.method, request.target, request.headers, bytes(3_000_000))
        assert ask(long).status in (400, 401)
    assert gateways["strict"].memory.received_bytes == 0


def test_the_body_decides_where_the_head_is_right(ask: Ask) -> None:
    for made, status in ((of_dynamodb, 400), (of_table_store, 403)):
        request = made(SECRETS["aws" if made is of_dynamodb else "tablestore"])
        other = Request(request.method, request.target, request.headers, bytes(100_000))
        assert ask(other).status == status


@pytest.mark.parametrize("kind", KINDS)
def test_the_budget_bounds_decoded_bodies(ask: Ask, gateways: dict[str, Gateway], kind: str) -> None:
    """A request beyond the budget gets 503 in the words of the dialect.

    With memory available, the same request is decoded, and its memory is released.
    """
    scheme = kind.partition(":")[0]
    ask(of_dynamodb(AWS.secrets[0], b"{}", content_encoding=""))
    memory, other = gateways["strict"].memory, Request("POST", "/", (), b"")
    before = memory.receivable_bytes
    request = long_one(kind)
    memory.hold(other, before - len(request.body) - 100)
    reply = ask(request)
    assert (reply.status, BUSY[scheme] in reply.body) == (503, True)
    memory.release(other)
    assert ask(request).status != 503
    assert (memory.received_bytes, memory.receivable_bytes) == (0, before)


BUSY = {"aws": b"ServiceUnavailableException", "azure": b"ServerBusy", "tablestore": b"OTSServerBusy"}


def long_one(kind: str) -> Request:
    """A signed request of a kind, of 8,000 bytes at least where it is not compressed."""
    if kind == "azure: a batch":
        return of_azure(DEV_AZURE_KEY, "POST", "/$batch", "multipart/mixed; boundary=b", BATCH + b" " * 8000)
    if kind == "azure: policies":
        body = b"<SignedIdentifiers>" + b" " * 8000 + b"</SignedIdentifiers>"
        return of_azure(DEV_AZURE_KEY, "PUT", "/people?comp=acl", "application/xml", body)
    if kind.startswith("azure"):
        path = "/people" if kind.endswith("entity") else "/Tables"
        return of_azure(DEV_AZURE_KEY, "POST", path, "application/json", ENTITY + b" " * 8000)
    return KINDS[kind](SECRETS[kind.partition(":")[0]])
