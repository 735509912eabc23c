"""DynamoDB in this process: requests as SDKs make them, and decoded answers."""

from __future__ import annotations

from typing import Any

import orjson
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotoCredentials

from tablegate.adapters.dynamodb.dialect import DynamoDB
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.security.credentials import Credential, Scheme
from tests.support.service import Service

JSON_1_0 = "application/x-amz-json-1.0"
STORED = Credential(Scheme.AWS, "AKIDEXAMPLE", ("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",))


class DynamoDBService(Service):
    """The calls that tests of DynamoDB make often."""

    kind = DynamoDB

    def send(self, method: str = "POST", target: str = "/", body: bytes = b"", **headers: str) -> Reply:
        """The reply to any request. Header names with underscores for dashes."""
        named = {name.replace("_", "-").lower(): value for name, value in headers.items()}
        pairs = tuple({"host": "localhost:8000", **named}.items())
        return self.handle(Request(method, target, pairs, body))

    def post(self, operation: str, body: bytes, prefix: str = "DynamoDB_20120810", **headers: str) -> Reply:
        """The reply to an operation with any body, signed in form only (auth is dev)."""
        headers = {"content_type": JSON_1_0, "x_amz_target": f"{prefix}.{operation}", **signed(), **headers}
        return self.send(body=body, **headers)

    def call(
        self, operation: str, given: Any = None, prefix: str = "DynamoDB_20120810", **headers: str
    ) -> Any:
        """The decoded answer to an operation."""
        reply = self.post(operation, orjson.dumps({} if given is None else given), prefix, **headers)
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
