"""A DynamoDB client of a few lines: one connection, no second try behind the test's back.

Standard library only, so that a client process starts in a moment.
"""

from __future__ import annotations

import http.client
import json
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from tests.support.waiting import PATIENCE_S

SIGNED_IN_FORM = {
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Date": "20231114T221320Z",
    "Authorization": "AWS4-HMAC-SHA256 Credential=anybody/20231114/us-east-1/dynamodb/aws4_request, "
    "SignedHeaders=host;x-amz-date, Signature=0000",
}
Answer = dict[str, Any]


class Refused(Exception):
    """An error reply: `code` as SDKs show it."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self.answer: Answer = json.loads(body) if body else {}
        self.code = self.answer.get("__type", "").partition("#")[2]
        super().__init__(status, self.code, body[:500])

    @property
    def may_be_tried_again(self) -> bool:
        """True if every SDK retries the request automatically."""
        return self.status >= 500 or self.code == "TransactionConflictException"


class Lost(Exception):
    """No whole reply: the connection broke or timed out. The request may or may not have been carried out."""


class RawClient:
    """`call("GetItem", TableName=...)` gives the decoded answer. Raises Refused, Lost."""

    def __init__(self, url: str, timeout_seconds: float = PATIENCE_S) -> None:
        parts = urlsplit(url)
        self.connection = http.client.HTTPConnection(
            parts.hostname or "", parts.port, timeout=timeout_seconds
        )

    def __enter__(self) -> RawClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.connection.close()

    def call(self, operation: str, **given: Any) -> Answer:
        status, body = self.post(f"DynamoDB_20120810.{operation}", json.dumps(given).encode())
        if status != 200:
            raise Refused(status, body)
        answer: Answer = json.loads(body)
        return answer

    def post(self, target: str, body: bytes, **headers: str) -> tuple[int, bytes]:
        """(status, body) of the reply to any body. Header names with underscores for dashes."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            self.connection.request("POST", "/", body, {**SIGNED_IN_FORM, "X-Amz-Target": target, **named})
            reply = self.connection.getresponse()
            return reply.status, reply.read()
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            raise Lost(repr(error)) from error

    def start(self, operation: str, **given: Any) -> None:
        """Send a request. `finish` returns its answer. The caller can wait on `connection` in between."""
        headers = {**SIGNED_IN_FORM, "X-Amz-Target": f"DynamoDB_20120810.{operation}"}
        self.connection.request("POST", "/", json.dumps(given).encode(), headers)

    def finish(self) -> Answer:
        reply = self.connection.getresponse()
        body = reply.read()
        if reply.status != 200:
            raise Refused(reply.status, body)
        answer: Answer = json.loads(body)
        return answer

    def create_table(self, name: str, **more: Any) -> None:
        """A table with the key (p S), or (p S, s N) if `sort` is given."""
        sort = more.pop("sort", False)
        indexed = more.pop("indexed", "")
        attributes = {"p": "S"} | ({"s": "N"} if sort else {}) | ({indexed: "S"} if indexed else {})
        self.call(
            "CreateTable",
            TableName=name,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[
                {"AttributeName": each, "AttributeType": kind} for each, kind in attributes.items()
            ],
            KeySchema=[{"AttributeName": "p", "KeyType": "HASH"}]
            + ([{"AttributeName": "s", "KeyType": "RANGE"}] if sort else []),
            **more,
        )

    def scan(self, table: str, **more: Any) -> list[Answer]:
        """All items of a table, page by page."""
        items: list[Answer] = []
        start: dict[str, Any] = {}
        while True:
            page = self.call("Scan", TableName=table, ConsistentRead="IndexName" not in more, **more, **start)
            items += page["Items"]
            if "LastEvaluatedKey" not in page:
                return items
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
