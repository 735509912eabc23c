"""What records of a stream say of themselves. That they are complete and in order is in tests/engine/test_streaming.py.

Sources: the developer guide's sample records; LocalStack's snapshots of the service (October 2025).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.dynamodb.conftest import Service

STREAMS = "DynamoDBStreams_20120810"


def records(service: Service, arn: str) -> list[dict[str, Any]]:
    """The `dynamodb` member of every record of a stream with one shard."""
    described = service.call("DescribeStream", {"StreamArn": arn}, prefix=STREAMS)["StreamDescription"]
    given = {
        "StreamArn": arn,
        "ShardId": described["Shards"][0]["ShardId"],
        "ShardIteratorType": "TRIM_HORIZON",
    }
    start = service.call("GetShardIterator", given, prefix=STREAMS)["ShardIterator"]
    found = service.call("GetRecords", {"ShardIterator": start}, prefix=STREAMS)["Records"]
    return [record["dynamodb"] for record in found]


@pytest.mark.parametrize(
    ("shows", "sizes"),
    [
        # The keys take 2 + 4 bytes, the old image as much, the new one 8 bytes and, for "42", 1 + 2 more.
        ("KEYS_ONLY", [6, 6, 6]),
        ("NEW_IMAGE", [6 + 6, 6 + 17, 6]),
        ("OLD_IMAGE", [6, 6 + 6, 6 + 17]),
        ("NEW_AND_OLD_IMAGES", [6 + 6, 6 + 17 + 6, 6 + 17]),
    ],
)
def test_a_record_weighs_its_keys_and_the_images_it_shows(service: Service, shows: str, sizes: list[int]):
    stream = {"StreamEnabled": True, "StreamViewType": shows}
    arn = service.table(StreamSpecification=stream)["LatestStreamArn"]
    key = {"pk": {"S": "Fred"}}
    service.call("PutItem", {"TableName": "orders", "Item": key})
    service.call("PutItem", {"TableName": "orders", "Item": {**key, "name": {"S": "Fred"}, "n": {"N": "42"}}})
    service.call("DeleteItem", {"TableName": "orders", "Key": key})
    assert [record["SizeBytes"] for record in records(service, arn)] == sizes
