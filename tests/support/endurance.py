"""A mixed load of three SDKs on one server, checked by a model, and samples of what the server uses.

Each worker is the only writer of its keys. So it knows which values a key may have: one after an answer, two after a
request without an answer. A read of anything else is an error.
"""

from __future__ import annotations

import random
import statistics
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import boto3
import tablestore as ots
import urllib3
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import (
    HttpResponseError,
    ResourceNotFoundError,
    ServiceRequestError,
    ServiceResponseError,
)
from azure.data.tables import TableServiceClient
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

KEYS = 40
"""Number of keys of each worker: the tables do not grow."""
PAD = "x" * 200


class NoAnswer(Exception):
    """The request may or may not have been carried out."""


class Sdk:
    """One SDK with one table of rows (key, n). Raises NoAnswer."""

    def create(self) -> None:
        raise NotImplementedError

    def put(self, key: str, value: int) -> None:
        raise NotImplementedError

    def get(self, key: str) -> int | None:
        raise NotImplementedError

    def delete(self, key: str) -> None:
        raise NotImplementedError

    def rows(self) -> dict[str, int]:
        raise NotImplementedError


def dynamodb_client(url: str, access_id: str, secret: str) -> Any:
    """A boto3 client that sends each request once."""
    once = Config(retries={"total_max_attempts": 1}, read_timeout=60, max_pool_connections=10)
    return boto3.client("dynamodb", endpoint_url=url, region_name="us-east-1", aws_access_key_id=access_id,
                        aws_secret_access_key=secret, config=once)  # fmt: skip


class DynamoDB(Sdk):
    TABLE = "mixed"

    def __init__(self, url: str, access_id: str, secret: str) -> None:
        self.client = dynamodb_client(url, access_id, secret)

    def create(self) -> None:
        self.client.create_table(
            TableName=self.TABLE, BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "p", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}],
        )  # fmt: skip

    def call(self, operation: str, **given: Any) -> Any:
        try:
            return getattr(self.client, operation)(**given)
        except BotoCoreError as error:
            raise NoAnswer from error
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] >= 500:
                raise NoAnswer from error
            raise

    def put(self, key: str, value: int) -> None:
        item = {"p": {"S": key}, "n": {"N": str(value)}, "i": {"S": f"i{value % 5}"}, "x": {"S": PAD}}
        self.call("put_item", TableName=self.TABLE, Item=item)

    def get(self, key: str) -> int | None:
        found = self.call("get_item", TableName=self.TABLE, Key={"p": {"S": key}}, ConsistentRead=True)
        return int(found["Item"]["n"]["N"]) if "Item" in found else None

    def delete(self, key: str) -> None:
        self.call("delete_item", TableName=self.TABLE, Key={"p": {"S": key}})

    def rows(self, table: str = TABLE, **more: Any) -> dict[str, int]:
        found: dict[str, int] = {}
        start: dict[str, Any] = {}
        while True:
            page = self.call("scan", TableName=table, **more, **start)
            found |= {item["p"]["S"]: int(item["n"]["N"]) for item in page["Items"]}
            if "LastEvaluatedKey" not in page:
                return found
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


class AzureTable(Sdk):
    def __init__(self, url: str, account: str, key: str) -> None:
        credential = AzureNamedKeyCredential(account, key)
        service = TableServiceClient(f"{url}/{account}", credential=credential, retry_total=0)
        self.service, self.table = service, service.get_table_client("mixedazure")

    def create(self) -> None:
        self.service.create_table("mixedazure")

    def _call(self, act: Callable[[], Any]) -> Any:
        try:
            return act()
        except (ServiceRequestError, ServiceResponseError) as error:
            raise NoAnswer from error
        except HttpResponseError as error:
            if (error.status_code or 0) >= 500:
                raise NoAnswer from error
            raise

    def put(self, key: str, value: int) -> None:
        entity = {"PartitionKey": "p", "RowKey": key, "n": value, "x": PAD}
        self._call(lambda: self.table.upsert_entity(entity, "replace"))

    def get(self, key: str) -> int | None:
        try:
            return int(self._call(lambda: self.table.get_entity("p", key))["n"])
        except ResourceNotFoundError:
            return None

    def delete(self, key: str) -> None:
        self._call(lambda: self.table.delete_entity("p", key))

    def rows(self) -> dict[str, int]:
        return {each["RowKey"]: each["n"] for each in self._call(lambda: [*self.table.list_entities()])}


class TableStore(Sdk):
    ANYWAY = ots.Condition(ots.RowExistenceExpectation.IGNORE)

    def __init__(self, url: str, access_id: str, secret: str) -> None:
        self.client = ots.OTSClient(
            url, access_id, secret, "mixed", retry_policy=ots.NoRetryPolicy(), logger_name="mixed"
        )

    def create(self) -> None:
        throughput = ots.ReservedThroughput(ots.CapacityUnit(0, 0))
        self.client.create_table(
            ots.TableMeta("mixed_ots", [("p", "STRING")]), ots.TableOptions(), throughput
        )

    def _call(self, act: Callable[[], Any]) -> Any:
        try:
            return act()
        except ots.OTSServiceError as error:
            if error.get_http_status() >= 500:
                raise NoAnswer from error
            raise
        except (ots.OTSClientError, urllib3.exceptions.HTTPError) as error:
            raise NoAnswer from error

    def put(self, key: str, value: int) -> None:
        row = ots.Row([("p", key)], [("n", value), ("x", PAD)])
        self._call(lambda: self.client.put_row("mixed_ots", row, self.ANYWAY))

    def get(self, key: str) -> int | None:
        _, row, _ = self._call(lambda: self.client.get_row("mixed_ots", [("p", key)], max_version=1))
        return None if row is None else _number(row)

    def delete(self, key: str) -> None:
        row = ots.Row([("p", key)])
        self._call(lambda: self.client.delete_row("mixed_ots", row, self.ANYWAY))

    def rows(self) -> dict[str, int]:
        found: dict[str, int] = {}
        start: Any = [("p", ots.INF_MIN)]
        while start is not None:
            asked = (ots.Direction.FORWARD, start, [("p", ots.INF_MAX)])
            _, start, rows, _ = self._call(
                lambda asked=asked: self.client.get_range("mixed_ots", *asked, max_version=1)
            )
            found |= {row.primary_key[0][1]: _number(row) for row in rows}
        return found


def _number(row: Any) -> int:
    return int({column[0]: column[1] for column in row.attribute_columns}["n"])


class Worker(threading.Thread):
    """A thread that writes and reads its own keys until it is stopped.

    `pause` is held while a request is sent: who holds all of them knows what every key may have.
    """

    def __init__(self, sdk: Sdk, name: str) -> None:
        super().__init__(daemon=True)
        self.sdk = sdk
        self.prefix = f"{name}-"
        self.possible: dict[str, set[int | None]] = {f"{name}-{at:03}": {None} for at in range(KEYS)}
        self.pause = threading.Lock()
        self.seconds: list[float] = []
        """Durations of the answered requests since the last sample."""
        self.answered = self.unanswered = 0
        self.error: Exception | None = None
        self._stopping = threading.Event()
        self._chance = random.Random(name)

    def run(self) -> None:
        try:
            while not self._stopping.is_set():
                with self.pause:
                    self._step()
        except Exception as error:
            self.error = error

    def request_stop(self) -> None:
        self._stopping.set()

    def _step(self) -> None:
        key = self._chance.choice([*self.possible])
        draw = self._chance.random()
        began = time.monotonic()
        try:
            if draw < 0.5:
                self.read(key)
            elif draw < 0.9:
                self.write(key, self._chance.randrange(1_000_000))
            else:
                # Azure answers 404 if the entity is not there, so that is looked up first.
                if self.sdk.get(key) is not None:
                    self.write(key, None)
        except NoAnswer:
            self.unanswered += 1
            self._stopping.wait(0.05)
        else:
            self.answered += 1
            self.seconds.append(time.monotonic() - began)

    def write(self, key: str, value: int | None) -> None:
        """Put a key, or delete it if the value is None."""
        before = self.possible[key]
        self.possible[key] = before | {value}
        if value is None:
            self.sdk.delete(key)
        else:
            self.sdk.put(key, value)
        self.possible[key] = {value}

    def read(self, key: str) -> int | None:
        """Read a key, compare it with the model, and return its value."""
        found = self.sdk.get(key)
        assert found in self.possible[key], f"{key} is {found}, and not one of {self.possible[key]}"
        self.possible[key] = {found}
        return found

    def expected(self) -> dict[str, int]:
        """Return the rows that are there, after one read of each key whose value is not known. `pause` must be held."""
        values = {
            key: self.read(key) if len(each) > 1 else next(iter(each)) for key, each in self.possible.items()
        }
        return {key: value for key, value in values.items() if value is not None}

    def check_all(self) -> dict[str, int]:
        """Compare all of the worker's rows with the model and return them. `pause` must be held."""
        expected = self.expected()
        found = {key: value for key, value in self.sdk.rows().items() if key.startswith(self.prefix)}
        assert found == expected
        return expected


class Sample(NamedTuple):
    """The resources of the server at one moment, and the median and the 99th percentile of the time of requests before it."""

    at_s: float
    memory_mb: float
    descriptors: int
    disk_mb: float
    median_ms: float
    slowest_ms: float
    requests: int


def percentiles_ms(seconds: list[float]) -> tuple[float, float]:
    """(median, 99th percentile)"""
    if len(seconds) < 2:
        return 0.0, 0.0
    return statistics.median(seconds) * 1000, statistics.quantiles(seconds, n=100)[98] * 1000


GROWTH: Mapping[str, tuple[float, float]] = {
    "memory_mb": (1.25, 10), "descriptors": (1.25, 10), "disk_mb": (1.25, 8), "median_ms": (2, 5),
}  # fmt: skip
"""Factor and summand: the median of the last third may exceed that of the middle third by them."""


def growths(samples: list[Sample]) -> dict[str, tuple[float, float]]:
    """(median of the middle third, median of the last third) of what has grown beyond its bound."""
    third = len(samples) // 3
    found = {}
    for name, (factor, summand) in GROWTH.items():
        middle = statistics.median(getattr(each, name) for each in samples[third : 2 * third])
        last = statistics.median(getattr(each, name) for each in samples[2 * third :])
        if last > middle * factor + summand:
            found[name] = (middle, last)
    return found
