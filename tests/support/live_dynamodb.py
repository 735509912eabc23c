"""boto3 against a live server, and helpers that tests of DynamoDB share.

boto3 has two special settings. It does not validate parameters, because the tests check the server's validation. It
does not retry, because an error at the first attempt is an error.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import boto3
import pytest
import requests
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.support.waiting import PATIENCE_S

REGION = "eu-central-1"
ONCE = Config(parameter_validation=False, retries={"total_max_attempts": 1}, max_pool_connections=32)


@dataclass(frozen=True)
class Index:
    """A secondary index. Keys are "name:T", as for tables. A global index with `units` has provisioned throughput."""

    name: str
    partition: str
    sort: str = ""
    local: bool = False
    projection: str = "ALL"
    included: Sequence[str] = ()
    units: tuple[int, int] | None = None

    def wire(self) -> dict[str, Any]:
        """Its part of CreateTable."""
        projection: dict[str, Any] = {"ProjectionType": self.projection}
        if self.included:
            projection["NonKeyAttributes"] = list(self.included)
        keys = [self.partition, self.sort] if self.sort else [self.partition]
        made = {"IndexName": self.name, "KeySchema": key_schema(*keys), "Projection": projection}
        if self.units is not None:
            made["ProvisionedThroughput"] = throughput(*self.units)
        return made


def key_schema(*keys: str) -> list[dict[str, str]]:
    """KeySchema of "name:T" texts: the first is HASH, the second RANGE."""
    roles = ("HASH", "RANGE")
    return [
        {"AttributeName": key.partition(":")[0], "KeyType": role}
        for key, role in zip(keys, roles, strict=False)
    ]


def definitions(keys: Sequence[str]) -> list[dict[str, str]]:
    """AttributeDefinitions of "name:T" texts, each name once."""
    types = dict(key.split(":") for key in keys)
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in types.items()]


def throughput(read: int, write: int) -> dict[str, int]:
    return {"ReadCapacityUnits": read, "WriteCapacityUnits": write}


@cache
def _session(access_id: str, secret: str) -> boto3.Session:
    """Return a session. It is cached, because its creation takes longer than ten requests."""
    return boto3.Session(access_id, secret, region_name=REGION)


@dataclass
class Live:
    """A live server, seen by boto3. `client` has wire values ({"S": ...}), tables have Python's."""

    url: str
    config: Config = ONCE
    credentials: tuple[str, str] = ("anybody", "any secret")
    """Access key ID and secret access key."""
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def session(self) -> boto3.Session:
        return _session(*self.credentials)

    @cached_property
    def client(self) -> Any:
        return self.session.client("dynamodb", endpoint_url=self.url, config=self.config)

    @cached_property
    def resource(self) -> Any:
        return self.session.resource("dynamodb", endpoint_url=self.url, config=self.config)

    def create(
        self,
        *keys: str,
        name: str = "",
        indexes: Sequence[Index] = (),
        units: tuple[int, int] | None = None,
        **more: Any,
    ) -> Any:
        """Create a table resource with a unique name: `create("AnimalType:S", "Name:S")`.

        On demand unless `units` is given.
        """
        every = [*keys, *(key for index in indexes for key in (index.partition, index.sort) if key)]
        asked: dict[str, Any] = {
            "TableName": name or f"table-{next(self._numbers)}",
            "KeySchema": key_schema(*keys),
            "AttributeDefinitions": definitions(every),
            "BillingMode": "PAY_PER_REQUEST",
            **more,
        }
        if units is not None:
            asked |= {"BillingMode": "PROVISIONED", "ProvisionedThroughput": throughput(*units)}
        for member, local in (("LocalSecondaryIndexes", True), ("GlobalSecondaryIndexes", False)):
            listed = [index.wire() for index in indexes if index.local is local]
            if listed:
                asked[member] = listed
        return self.resource.create_table(**asked)

    def headers(self, operation: str) -> dict[str, str]:
        """The headers of a request that is signed in form, as `auth = dev` takes it."""
        scope = f"anybody/20240101/{REGION}/dynamodb/aws4_request"
        return {
            "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Target": f"DynamoDB_20120810.{operation}",
            "X-Amz-Date": "20240101T000000Z",
            "Authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host;x-amz-date, Signature=0",
        }

    def send(self, operation: str, body: Any) -> tuple[int, Any]:
        """Send any JSON document, also one that boto3 rejects. Returns (HTTP status, decoded answer)."""
        content = json.dumps(body).encode()
        reply = requests.post(self.url, content, headers=self.headers(operation), timeout=PATIENCE_S)
        return reply.status_code, reply.json()

    def consumed(self, table: str, index: str = "", kind: str = "write") -> float:
        """Units in /metrics so far."""
        labels = f'dialect="dynamodb",index="{index}",kind="{kind}",table="{table}"'
        for line in requests.get(f"{self.url}/metrics", timeout=PATIENCE_S).text.splitlines():
            if line.startswith(f"tablegate_consumed_capacity_total{{{labels}}}"):
                return float(line.rpartition(" ")[2])
        return 0.0


@contextlib.contextmanager
def refused(code: str = "ValidationException", words: str = "") -> Iterator[Any]:
    """Assert that the block raises this error with these words in its text. Yields pytest's ExceptionInfo."""
    with pytest.raises(ClientError) as caught:
        yield caught
    error = caught.value.response["Error"]
    assert error["Code"] == code, error
    assert words in error.get("Message", ""), error


def reasons(caught: Any) -> list[str]:
    """The codes of the cancellation reasons of a transaction that `refused` has caught."""
    return [reason["Code"] for reason in caught.value.response["CancellationReasons"]]


def sized(size_bytes: int, **key: str) -> dict[str, str]:
    """Return an item of strings that is billed as exactly this size in bytes: a key, and padding in `pad`."""
    used = sum(len(name) + len(value.encode()) for name, value in key.items())
    return {**key, "pad": "x" * (size_bytes - used - len("pad"))}


def pages(operation: Any, **asked: Any) -> Iterator[Mapping[str, Any]]:
    """All pages of a Query or Scan."""
    while True:
        page = operation(**asked)
        yield page
        if "LastEvaluatedKey" not in page:
            return
        asked["ExclusiveStartKey"] = page["LastEvaluatedKey"]
