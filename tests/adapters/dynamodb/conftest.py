"""DynamoDB in front of a real engine on SQLite in memory, without a server: requests in, replies out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import flask
import orjson
import pytest
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotoCredentials

from tablegate.adapters.dynamodb.entry import create
from tablegate.gateway.app import application_of
from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.dialect import Dialect, Gateway
from tablegate.gateway.engine.engine import Engine, EngineOptions
from tablegate.gateway.http import Reply, Request
from tablegate.gateway.security.credentials import Credential, Credentials, Scheme
from tablegate.gateway.store.opening.migrating import migrate
from tablegate.gateway.store.store import Store
from tablegate.gateway.wiring import backup_files_of, connect
from tests.support.databases import with_database
from tests.support.running import ENTRY, call_plainly, plain_app

JSON_1_0 = "application/x-amz-json-1.0"
STORED = Credential(Scheme.AWS, "AKIDEXAMPLE", ("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",))


class Clock:
    """Milliseconds since 1970; stands still until a test moves it."""

    def __init__(self) -> None:
        self.ms = 1_700_000_000_123

    def __call__(self) -> int:
        return self.ms


@dataclass
class Service:
    """The dialect of one application, and the few things that tests say to it often."""

    dialect: Dialect
    gateway: Gateway
    clock: Clock
    app: flask.Flask | None = None
    """What requests go through, if not straight to the dialect."""
    last: Reply = field(default_factory=lambda: Reply(0, ()))

    def send(self, method: str = "POST", target: str = "/", body: bytes = b"", **headers: str) -> Reply:
        """The reply to any request. Header names with underscores for dashes."""
        named = {name.replace("_", "-").lower(): value for name, value in headers.items()}
        pairs = tuple({"host": "localhost:8000", **named}.items())
        request = Request(method, target, pairs, body)
        self.last = self.dialect.serve(request) if self.app is None else call_plainly(self.app, request)
        return self.last

    def call(
        self, operation: str, given: Any = None, prefix: str = "DynamoDB_20120810", **headers: str
    ) -> Any:
        """The decoded answer to an operation, signed in form only (auth is dev)."""
        body = orjson.dumps({} if given is None else given)
        headers = {"content_type": JSON_1_0, "x_amz_target": f"{prefix}.{operation}", **signed(), **headers}
        reply = self.send(body=body, **headers)
        return orjson.loads(reply.body) if reply.body else None

    def error(self, operation: str, given: Any = None, **headers: str) -> tuple[str, str]:
        """(short code, text) of the error that an operation must end in."""
        answer = self.call(operation, given, **headers)
        assert self.last.status >= 400, answer
        return answer["__type"].partition("#")[2], answer.get("message", answer.get("Message", ""))

    def header(self, name: str) -> str | None:
        """A header of the last reply."""
        return {known.lower(): value for known, value in self.last.headers}.get(name)

    def table(self, name: str = "orders", **more: Any) -> dict[str, Any]:
        """A table on demand with key `pk`, as CreateTable described it."""
        given = {
            "TableName": name,
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "BillingMode": "PAY_PER_REQUEST",
            **more,
        }
        if more.get("BillingMode", "") is None:
            del given["BillingMode"]
        answer = self.call("CreateTable", given)
        assert self.last.status == 200, answer
        return answer["TableDescription"]

    def described(self, name: str = "orders") -> dict[str, Any]:
        """DescribeTable's Table."""
        answer = self.call("DescribeTable", {"TableName": name})
        assert self.last.status == 200, answer
        return answer["Table"]

    def update(self, name: str = "orders", **more: Any) -> dict[str, Any]:
        """UpdateTable's TableDescription."""
        answer = self.call("UpdateTable", {"TableName": name, **more})
        assert self.last.status == 200, answer
        return answer["TableDescription"]


def signed(access_id: str = "anybody", region: str = "us-east-1") -> dict[str, str]:
    """Headers of a request that is signed in form."""
    scope = f"{access_id}/20231114/{region}/dynamodb/aws4_request"
    return {
        "authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host;x-amz-date, Signature=0000",
        "x_amz_date": "20231114T221320Z",
    }


def sign(
    request: Request,
    credential: Credential = STORED,
    query: bool = False,
    token: str | None = None,
    signer: type[SigV4Auth] = SigV4Auth,
) -> Request:
    """The request as botocore signs it, at the time the system's clock shows."""
    host = request.header("host")
    known = {name: value for name, value in request.headers if name != "host"}
    url = f"http://{host}{request.target}"
    made = AWSRequest(method=request.method, url=url, data=request.body, headers=known)
    keys = BotoCredentials(credential.access_id, credential.secrets[0], token)
    (SigV4QueryAuth if query else signer)(keys, "dynamodb", "eu-central-1").add_auth(made)
    prepared = made.prepare()
    headers = [("host", host)]
    headers += [
        (name.lower(), value if isinstance(value, str) else value.decode())
        for name, value in prepared.headers.items()
    ]
    target = prepared.url.removeprefix(f"http://{host}")
    return Request(request.method, target or "/", tuple(headers), request.body)


def serving(settings: Settings, clock: Clock, *stored: Credential) -> Iterator[Service]:
    """A service with these settings; gone when the generator is closed."""
    with with_database(settings) as settings:
        database = connect(settings)
        migrate(database)
        options = EngineOptions(control_plane_delay_ms=round(settings.control_plane_delay * 1000))
        store = Store(database)
        store.backup_files = backup_files_of(settings)
        engine = Engine(store, options, lambda: clock.ms * 1_000_000)
        gateway = Gateway(engine, Credentials(settings, stored), settings, clock, clock)
        if ENTRY == "wsgi":
            app = plain_app(gateway, create)
            [dialect] = application_of(app).dialects
            yield Service(dialect, gateway, clock, app)
        else:
            yield Service(create(gateway), gateway, clock)
        engine.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def service(clock: Clock) -> Iterator[Service]:
    """Auth dev, texts of 2026, no delays."""
    yield from serving(Settings(database="sqlite://", memory=True), clock)


@pytest.fixture
def classic(clock: Clock) -> Iterator[Service]:
    """The same with classic texts."""
    yield from serving(Settings(database="sqlite://", memory=True, message_style="classic"), clock)


@pytest.fixture
def delayed(clock: Clock) -> Iterator[Service]:
    """A control plane that takes ten seconds."""
    yield from serving(Settings(database="sqlite://", memory=True, control_plane_delay=10.0), clock)
