"""A gateway with `--auth strict` in this process, its three dialects, and callers with grants. It uses no sockets.

`Strict.engine_commands` holds the types of all commands that reached the engine, so that a test can compare the work of
requests.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.utils import formatdate
from typing import Any, NamedTuple

from google.protobuf.message import Message

from tablegate.adapters.azuretable import dialect as azuretable
from tablegate.adapters.dynamodb import dialect as dynamodb
from tablegate.adapters.dynamodb.wire.auth import authorization as dynamodb_signature
from tablegate.adapters.tablestore import dialect as tablestore
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.dialects.coroutines import drive
from tablegate.gateway.dialects.dialect import Dialect, Gateway
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.security.credentials import Credential, Scheme
from tablegate.gateway.security.grant_store import ALL, WrittenGrant, policy_of, written_of
from tablegate.gateway.wiring import connect, open_store, wire
from tests.adapters.azuretable.client import sign
from tests.adapters.tablestore.client import answer_type, signed

NOW_MS = 1_700_000_000_000
_AWS_DATE = "20231114T221320Z"
_KEY = base64.b64encode(b"the key of every account").decode()
FULL, LIMITED = "full", "limited"


class Told(NamedTuple):
    """The reply to a request: status, error code and error text. `body` is the decoded answer."""

    status: int
    code: str
    text: str
    body: Any

    @property
    def error(self) -> tuple[int, str, str]:
        return self.status, self.code, self.text


class Strict:
    """The gateway. Each caller has one credential in each dialect, with the same grants. `is_ticked`: requests take the entry of
    the server's tick instead of Flask's."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.is_ticked = False
        self.engine_commands: list[str] = []
        self._dialects: dict[str, Dialect] = {
            "dynamodb": dynamodb.DynamoDB(gateway),
            "azuretable": azuretable.AzureTable(gateway),
            "tablestore": tablestore.TableStore(gateway),
        }
        self._grants: dict[str, list[Any]] = {FULL: [ALL]}
        self.grant(LIMITED)
        plain = gateway.engine.run

        def run(commands: Any, *more: Any, **named: Any) -> Any:
            self.engine_commands += [type(command).__name__ for command in commands]
            return plain(commands, *more, **named)

        object.__setattr__(gateway.engine, "run", run)

    def grant(self, caller: str, *grants: Any) -> None:
        """Replace the grants of a caller: short forms, or documents of IAM or RAM."""
        self._grants[caller] = [
            each if isinstance(each, WrittenGrant) else written_of(each) for each in grants
        ]
        self.gateway.credentials.replace(
            [self._credential(name, scheme) for name in self._grants for scheme in Scheme]
        )

    def _credential(self, name: str, scheme: Scheme) -> Credential:
        secret = _KEY if scheme is Scheme.AZURE else "secret"
        made = Credential(scheme, name, (secret,))
        if ALL in self._grants[name]:
            return made
        statements = [
            each for grant in self._grants[name] for each in policy_of(grant, made.identity).statements
        ]
        return Credential(
            scheme, name, (secret,), policy=type(policy_of(ALL, made.identity))(tuple(statements))
        )

    # Requests

    def dynamodb(self, caller: str, operation: str, **given: Any) -> Told:
        """The reply to an operation of DynamoDB or of its streams."""
        reply = self._serve("dynamodb", dynamodb_request(caller, operation, given))
        answer = json.loads(reply.body or b"{}")
        code = answer.get("__type", "").rpartition("#")[2]
        return Told(reply.status, code, answer.get("message", answer.get("Message", "")), answer)

    def ok(self, operation: str, caller: str = FULL, **given: Any) -> Any:
        """The answer to an operation of DynamoDB, which succeeds."""
        told = self.dynamodb(caller, operation, **given)
        assert told.status == 200, told
        return told.body

    def azure(
        self, caller: str, method: str, path: str, body: Any = b"", headers: Mapping[str, str] | None = None
    ) -> Told:
        """The reply to a request to an account. `body`: bytes, or a JSON document."""
        reply = self._serve("azuretable", azure_request(caller, method, path, body, headers))
        code = dict(reply.headers).get("x-ms-error-code", "")
        return Told(reply.status, code, _azure_text(reply), reply.body)

    def tablestore(self, caller: str, operation: str, message: Message) -> Told:
        """The reply to an operation of Table Store."""
        reply = self._serve("tablestore", tablestore_request(caller, operation, message))
        if reply.status == 200:
            return Told(200, "", "", answer_type(operation).FromString(reply.body))
        error = messages.Error.FromString(reply.body)
        return Told(reply.status, error.code, error.message, None)

    def _serve(self, name: str, request: Request) -> Reply:
        dialect = self._dialects[name]
        if not self.is_ticked:
            return dialect.serve(request)
        try:
            return _ticked(dialect, request)
        finally:
            self.gateway.memory.release(request)  # as server.py does


def dynamodb_request(
    caller: str, operation: str, given: Mapping[str, Any], secret: str = "secret", token: str = ""
) -> Request:
    """An operation of DynamoDB or of its streams. `caller`: "" leaves the request unsigned. `token`: of a session."""
    streams = operation in ("ListStreams", "DescribeStream", "GetShardIterator", "GetRecords")
    prefix = "DynamoDBStreams" if streams else "DynamoDB"
    raw = json.dumps(given).encode()
    headers: tuple[tuple[str, str], ...] = (
        ("host", "h"),
        ("content-type", "application/x-amz-json-1.0"),
        ("x-amz-date", _AWS_DATE),
        ("x-amz-target", f"{prefix}_20120810.{operation}"),
    )
    if token:
        headers = (*headers, ("x-amz-security-token", token))
    if caller:
        proof = dynamodb_signature(Request("POST", "/", headers, raw), caller, secret, "us-east-1")
        headers = (*headers, ("authorization", proof))
    return Request("POST", "/", headers, raw)


def azure_request(
    caller: str,
    method: str,
    path: str,
    body: Any = b"",
    headers: Mapping[str, str] | None = None,
    key: str | None = _KEY,
) -> Request:
    """Send a request to an account. `body` is bytes or a JSON document. The request is unsigned if `key` is None."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    date = formatdate(NOW_MS // 1000, usegmt=True)
    sent = {"Host": "h", "x-ms-date": date, "x-ms-version": "2019-02-02", **(headers or {})}
    if content and "Content-Type" not in sent:
        sent["Content-Type"] = "application/json"
    target = f"/{caller}{path}"
    if key is not None:
        sent["Authorization"] = sign(base64.b64decode(key), method, target, sent, caller)
    named = tuple((name.lower(), value) for name, value in sent.items())
    return Request(method, target, named, content)


def tablestore_request(
    caller: str, operation: str, message: Message, secret: str = "secret", token: str = ""
) -> Request:
    """An operation of Table Store. `caller`: "" leaves the request without a key. `token`: of a session."""
    body = message.SerializeToString()
    headers = signed(operation, body, NOW_MS, secret, x_ots_accesskeyid=caller, x_ots_ststoken=token)
    return Request("POST", f"/{operation}", (("host", "h"), *headers), body)


def _ticked(dialect: Dialect, request: Request) -> Reply:
    """The reply to a request as server/tick.py makes it, alone."""
    reply = drive(lambda: dialect.handle(request), lambda commands: dialect._run(request, commands))
    authorization = request.authorization
    return (
        reply
        if authorization is None or authorization.is_checked
        else dialect.finalize_authorization(request, reply)
    )


def _azure_text(reply: Reply) -> str:
    """The text of an Azure error, without what differs from request to request."""
    if reply.status < 400:
        return ""
    if reply.body.startswith(b"<"):
        return reply.body.decode().partition("\nRequestId:")[0]
    document = json.loads(reply.body or b'{"odata.error": {"message": {"value": ""}}}')
    return str(document["odata.error"]["message"]["value"]).partition("\nRequestId:")[0]


@contextmanager
def strict(database_url: str, **settings: Any) -> Iterator[Strict]:
    """A gateway on a migrated, empty database."""
    given = {"auth": "strict", "secret_key": "a secret key that is long", **settings}
    made = load({"database": database_url, **given}, {})
    opened = open_store(made, connect(made))
    gateway = wire(made, opened).gateway
    object.__setattr__(gateway, "real_now_ms", lambda: NOW_MS)
    try:
        yield Strict(gateway)
    finally:
        opened.close()
