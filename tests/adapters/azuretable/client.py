"""The Table service in this process: requests signed as the SDKs sign them, and decoded answers."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from email.utils import formatdate
from typing import Any

from tablegate.adapters.azuretable.dialect import AzureTable
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.security.credentials import DEV_AZURE_ACCOUNT, DEV_CREDENTIALS, Credential, Scheme
from tests.support.clock import Clock
from tests.support.service import Service

ACCOUNT = DEV_AZURE_ACCOUNT
DEV_KEY = next(item for item in DEV_CREDENTIALS if item.scheme is Scheme.AZURE).secrets[0]
KEY = base64.b64decode(DEV_KEY)
OTHER = Credential(
    Scheme.AZURE,
    "otheraccount",
    (base64.b64encode(b"first key").decode(), base64.b64encode(b"second key").decode()),
)
HOST = "127.0.0.1:10002"


def sign(
    key: bytes,
    method: str,
    target: str,
    headers: Mapping[str, str],
    account: str = ACCOUNT,
    lite: bool = False,
) -> str:
    """The Authorization header of a request, computed from the published rule and nothing of the gateway's."""
    path, _, query = target.partition("?")
    resource = f"/{account}{path}"
    for part in query.split("&"):
        name, _, value = part.partition("=")
        if name == "comp":
            resource += f"?comp={value}"
    date = headers.get("x-ms-date") or headers.get("Date", "")
    if lite:
        text, scheme = f"{date}\n{resource}", "SharedKeyLite"
    else:
        parts = [method, headers.get("Content-MD5", ""), headers.get("Content-Type", ""), date, resource]
        text, scheme = "\n".join(parts), "SharedKey"
    digest = hmac.new(key, text.encode(), hashlib.sha256).digest()
    return f"{scheme} {account}:{base64.b64encode(digest).decode()}"


class AzureRequests:
    """Signed requests of the dev account, at the time of a clock."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        base: str = f"/{ACCOUNT}",
    ) -> Request:
        """A signed request. `body`: bytes, or a JSON document."""
        sent = {"Host": HOST, "x-ms-date": self.now, "x-ms-version": "2019-02-02", **(headers or {})}
        content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        if content and "Content-Type" not in sent:
            sent["Content-Type"] = "application/json"
        target = base + path
        if "Authorization" not in sent and "sig=" not in target:
            sent["Authorization"] = sign(KEY, method, target, sent)
        named = tuple((name.lower(), value) for name, value in sent.items() if value != "")
        return Request(method, target, named, content)

    @property
    def now(self) -> str:
        return formatdate(self.clock.ns // 1_000_000_000, usegmt=True)


class AzureTableService(Service, AzureRequests):
    """The calls that tests of the Table service make often."""

    kind = AzureTable

    def send(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """The reply to a signed request."""
        return self.handle(self.request(method, path, body, headers))

    def create(self, table: str = "people") -> str:
        assert self.send("POST", "/Tables", {"TableName": table}).status == 201
        return table

    def insert(self, table: str, partition_key: str, row_key: str, **properties: Any) -> Reply:
        entity = {"PartitionKey": partition_key, "RowKey": row_key, **properties}
        return self.send("POST", f"/{table}", entity)

    def get(
        self, table: str, partition_key: str, row_key: str, level: str = "minimalmetadata"
    ) -> dict[str, Any]:
        path = f"/{table}(PartitionKey='{partition_key}',RowKey='{row_key}')"
        reply = self.send("GET", path, headers={"Accept": f"application/json;odata={level}"})
        assert reply.status == 200, reply
        return json.loads(reply.body)

    def query(self, table: str, **options: str) -> list[dict[str, Any]]:
        """All entities that a query finds, page after page."""
        found: list[dict[str, Any]] = []
        while True:
            reply = self.send("GET", f"/{table}(){query_string(options)}")
            assert reply.status == 200, reply
            found += json.loads(reply.body)["value"]
            sent = dict(reply.headers)
            token = sent.get("x-ms-continuation-NextPartitionKey")
            if token is None:
                return found
            options = {
                **options,
                "NextPartitionKey": token,
                "NextRowKey": sent["x-ms-continuation-NextRowKey"],
            }


def query_string(options: Mapping[str, str]) -> str:
    from urllib.parse import quote

    text = "&".join(
        f"{name if name[0].isupper() else '$' + name}={quote(value)}" for name, value in options.items()
    )
    return f"?{text}" if text else ""


def code_of(reply: Reply) -> tuple[int, str]:
    """Status and error code of a refusal, which body and header must agree on."""
    code = dict(reply.headers).get("x-ms-error-code", "")
    assert code.encode() in reply.body, reply
    return reply.status, code
