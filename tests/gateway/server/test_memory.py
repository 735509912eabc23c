"""The memory of a server process: at most 60 MB when idle (70 MB on Python 3.13 and later, which need more themselves),
and constant after the first thousands of requests.

The run takes seconds here and a minute with `make soak`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

from benchmarks import signing
from tests.support.running import Process

pytestmark = pytest.mark.extended

SECONDS = float(os.environ.get("TABLEGATE_TEST_SOAK_SECONDS", "1.5"))
IDLE_MB, GROWTH_MB = 60 if sys.version_info < (3, 13) else 70, 12
KEYS = 200


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process in MB of 10^6 bytes."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise AssertionError(pid)


def requests(port: int) -> list[bytes]:
    """Send puts, gets, updates, conditional puts, queries and batches of the same few items, some of them refused."""
    made = []
    for number in range(KEYS):
        key = {"pk": {"S": f"p{number % 10}"}, "sk": {"S": str(number)}}
        item = {**key, "text": {"S": "x" * 500}, "n": {"N": str(number)}}
        one = {"ExpressionAttributeValues": {":v": {"N": "1"}}}
        for operation, members in (
            ("PutItem", {"TableName": "things", "Item": item}),
            ("GetItem", {"TableName": "things", "Key": key}),
            ("UpdateItem", {"TableName": "things", "Key": key, "UpdateExpression": "ADD n :v", **one}),
            ("PutItem", {"TableName": "things", "Item": item, "ConditionExpression": "n < :v", **one}),
            ("Query", {"TableName": "things", "KeyConditionExpression": "pk = :v",
                       "ExpressionAttributeValues": {":v": key["pk"]}}),
            ("BatchWriteItem", {"RequestItems": {"things": [{"PutRequest": {"Item": item}}]}}),
            ("GetItem", {"TableName": "missing", "Key": key}),
        ):  # fmt: skip
            made.append(signing.dynamodb(port, operation, json.dumps(members).encode()))
    return made


@pytest.mark.soak
def test_memory_does_not_grow_with_requests(tmp_path: Path) -> None:
    process = Process(tmp_path)
    process.wait_until_ready()
    try:
        assert resident_mb(process.pid) <= IDLE_MB
        port = int(process.url.rpartition(":")[2])
        client = signing.Client(port)
        attributes = [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")]
        schema = [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]
        table = {"TableName": "things", "KeySchema": schema, "AttributeDefinitions": attributes}
        body = json.dumps({**table, "BillingMode": "PAY_PER_REQUEST"}).encode()
        assert client.send(signing.dynamodb(port, "CreateTable", body))[0] == 200
        asked = requests(port)

        def ask_for(seconds: float) -> int:
            until, number = time.monotonic() + seconds, 0
            while number < len(asked) or time.monotonic() < until:
                client.send(asked[number % len(asked)])
                number += 1
            return number

        ask_for(SECONDS / 3)
        warm = resident_mb(process.pid)
        answered = ask_for(SECONDS)
        grown = resident_mb(process.pid) - warm
        assert grown <= GROWTH_MB, f"{grown:.1f} MB in {answered} requests"
    finally:
        process.kill()
