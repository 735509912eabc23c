"""A server is killed while it writes changes to a Kinesis data stream. A reader sees each change at least once, and
those of an item in order.

The stream is kinesalite's, from npm.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from tests.support.foreign_servers import foreign_server
from tests.support.running import Process, free_port
from tests.support.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.clients

SECONDS = float(os.environ.get("TABLEGATE_TEST_SOAK_SECONDS", "1"))
REGION = "us-east-1"
KEYS = 5
ARN = f"arn:aws:kinesis:{REGION}:000000000000:stream/changes"
_CONFIG = Config(retries={"total_max_attempts": 1}, connect_timeout=PATIENCE_S, read_timeout=PATIENCE_S)


def client(service: str, url: str) -> Any:
    session = boto3.Session("anybody", "any secret", region_name=REGION)
    return session.client(service, endpoint_url=url, config=_CONFIG)


@pytest.fixture
def kinesis(tmp_path: Path) -> Iterator[str]:
    with foreign_server("kinesalite", tmp_path) as url:
        made = client("kinesis", url)
        made.create_stream(StreamName="changes", ShardCount=3)
        made.get_waiter("stream_exists").wait(StreamName="changes", WaiterConfig={"Delay": 1})
        yield url


class Writer(threading.Thread):
    """A client that writes increasing numbers to its own keys. Unacknowledged writes may have happened."""

    def __init__(self, url: str, done: threading.Event) -> None:
        super().__init__()
        self._url = url
        self._done = done
        self.acknowledged: list[int] = []

    def run(self) -> None:
        table = client("dynamodb", self._url)
        for number in range(100_000):
            if self._done.is_set():
                return
            item = {"pk": {"S": f"k{number % KEYS}"}, "n": {"N": str(number)}}
            try:
                table.put_item(TableName="orders", Item=item)
                self.acknowledged.append(number)
            except (BotoCoreError, ClientError):
                time.sleep(0.05)


def records(url: str) -> list[tuple[str, int]]:
    """Everything that is in the stream: (key, number), shard by shard."""
    kinesis = client("kinesis", url)
    found = []
    for shard in kinesis.describe_stream(StreamName="changes")["StreamDescription"]["Shards"]:
        iterator = kinesis.get_shard_iterator(
            StreamName="changes", ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        while True:
            page = kinesis.get_records(ShardIterator=iterator, Limit=10_000)
            for record in page["Records"]:
                told = json.loads(record["Data"])["dynamodb"]["NewImage"]
                found.append((told["pk"]["S"], int(told["n"]["N"])))
            iterator = page["NextShardIterator"]
            if not page["Records"]:
                break
    return found


def in_order(numbers: list[int]) -> bool:
    """True if the numbers increase, except for repetitions from an earlier number on."""
    known: list[int] = []
    place = -1
    for number in numbers:
        if place + 1 < len(known) and known[place + 1] == number:
            place += 1
        elif number in known:
            place = known.index(number)
        else:
            if known and (number < known[-1] or place != len(known) - 1):
                return False
            known.append(number)
            place = len(known) - 1
    return True


def test_repeated_changes_are_in_order_and_skipped_ones_are_not() -> None:
    assert in_order([1, 2, 3]) and in_order([1, 2, 1, 2, 3]) and in_order([])
    assert not in_order([2, 1]) and not in_order([1, 2, 1, 3])


@pytest.mark.parametrize("ending", ["disable", "delete"])
def test_changes_acknowledged_before_the_end_are_delivered(
    tmp_path: Path, database_url: str, kinesis: str, ending: str
) -> None:
    """Before Disable or DeleteTable, even if the server is killed right after it."""
    flags = ("--database", database_url, "--dialects", "dynamodb", "--kinesis-endpoint-url", kinesis)
    secret = {"TABLEGATE_KINESIS_ACCESS_KEY_ID": "any", "TABLEGATE_KINESIS_SECRET_ACCESS_KEY": "any"}
    port = str(free_port())

    def begin() -> Process:
        process = Process(tmp_path, *flags, "--port", port, environment=secret)
        process.wait_until_ready()
        return process

    server = begin()
    tables = client("dynamodb", f"http://127.0.0.1:{port}")
    tables.create_table(
        TableName="orders",
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    tables.enable_kinesis_streaming_destination(TableName="orders", StreamArn=ARN)
    for number in range(20):
        tables.put_item(TableName="orders", Item={"pk": {"S": f"k{number % KEYS}"}, "n": {"N": str(number)}})
    if ending == "disable":
        tables.disable_kinesis_streaming_destination(TableName="orders", StreamArn=ARN)
        tables.put_item(TableName="orders", Item={"pk": {"S": "k0"}, "n": {"N": "99"}})
    else:
        tables.delete_table(TableName="orders")
    server.kill()
    server = begin()
    wait_until(lambda: len({number for _, number in records(kinesis)}) >= 20)
    assert {number for _, number in records(kinesis)} == set(range(20))

    def is_disabled() -> bool:
        answer = tables.describe_kinesis_streaming_destination(TableName="orders")
        [destination] = answer["KinesisDataStreamDestinations"]
        return bool(destination["DestinationStatus"] == "DISABLED")

    if ending == "disable":
        wait_until(is_disabled)
    server.terminate()


@pytest.mark.soak
def test_each_change_arrives_and_those_of_an_item_in_order(
    tmp_path: Path, database_url: str, kinesis: str
) -> None:
    chosen = random.Random(1)
    port = str(free_port())
    flags = ("--database", database_url, "--dialects", "dynamodb", "--kinesis-endpoint-url", kinesis)
    secret = {"TABLEGATE_KINESIS_ACCESS_KEY_ID": "any", "TABLEGATE_KINESIS_SECRET_ACCESS_KEY": "any"}

    def begin() -> Process:
        process = Process(tmp_path, *flags, "--port", port, environment=secret)
        process.wait_until_ready()
        return process

    server = begin()
    url = f"http://127.0.0.1:{port}"
    tables = client("dynamodb", url)
    tables.create_table(
        TableName="orders",
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    tables.enable_kinesis_streaming_destination(TableName="orders", StreamArn=ARN)
    done = threading.Event()
    writer = Writer(url, done)
    writer.start()
    until = time.monotonic() + SECONDS
    kills = 0
    while kills < 2 or time.monotonic() < until:
        enough = len(writer.acknowledged) + chosen.randint(10, 60)
        wait_until(lambda enough=enough: len(writer.acknowledged) >= enough or not writer.is_alive())  # type: ignore[misc]
        server.kill()
        kills += 1
        server = begin()
    done.set()
    writer.join()
    wanted = set(writer.acknowledged)
    wait_until(lambda: wanted <= {number for _, number in records(kinesis)})
    server.terminate()
    found = records(kinesis)
    assert len(wanted) >= 20
    for key in range(KEYS):
        numbers = [number for each, number in found if each == f"k{key}"]
        assert in_order(numbers), numbers
