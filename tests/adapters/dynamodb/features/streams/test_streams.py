"""Contents of stream records. tests/gateway/engine/streams/test_streaming.py tests that they are complete and in order.

Sources: the developer guide's sample records, LocalStack's snapshots of the service (October 2025), and the sample of
DescribeStream in the API reference.
"""

from __future__ import annotations

from typing import Any

import pytest

from tablegate.gateway.model.commands.stream_commands import Reshard
from tablegate.gateway.model.commands.table_commands import FindTable
from tests.adapters.dynamodb.client import DynamoDBService

STREAMS = "DynamoDBStreams_20120810"


def records(service: DynamoDBService, arn: str) -> list[dict[str, Any]]:
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
def test_the_size_of_a_record_is_that_of_its_keys_and_the_images_it_shows(
    service: DynamoDBService, shows: str, sizes: list[int]
):
    stream = {"StreamEnabled": True, "StreamViewType": shows}
    arn = service.table(StreamSpecification=stream)["LatestStreamArn"]
    key = {"pk": {"S": "Fred"}}
    service.call("PutItem", {"TableName": "orders", "Item": key})
    service.call("PutItem", {"TableName": "orders", "Item": {**key, "name": {"S": "Fred"}, "n": {"N": "42"}}})
    service.call("DeleteItem", {"TableName": "orders", "Key": key})
    assert [record["SizeBytes"] for record in records(service, arn)] == sizes


def test_a_child_shard_starts_at_a_greater_number_than_its_parent_ended_with(service: DynamoDBService):
    stream = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    arn = service.table(StreamSpecification=stream)["LatestStreamArn"]
    for count in (2, 3, 1):
        for name in ("Fred", "Barney", "Wilma"):
            item = {"pk": {"S": name}, "n": {"N": str(count)}}
            service.call("PutItem", {"TableName": "orders", "Item": item})
        [table] = service.gateway.engine.run([FindTable("shared", "orders")])
        service.gateway.engine.run([Reshard(table, count)])
    shards = service.call("DescribeStream", {"StreamArn": arn}, prefix=STREAMS)["StreamDescription"]["Shards"]
    ranges = {shard["ShardId"]: shard["SequenceNumberRange"] for shard in shards}
    numbers: dict[str, list[int]] = {}
    filled: set[str] = set()
    for shard in shards:
        within = ranges[shard["ShardId"]]
        given = {"StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        start = service.call("GetShardIterator", given, prefix=STREAMS)["ShardIterator"]
        for record in service.call("GetRecords", {"ShardIterator": start}, prefix=STREAMS)["Records"]:
            number = int(record["dynamodb"]["SequenceNumber"])
            numbers.setdefault(record["dynamodb"]["Keys"]["pk"]["S"], []).append(number)
            assert int(within["StartingSequenceNumber"]) <= number <= int(within["EndingSequenceNumber"])
            filled.add(shard["ShardId"])
    assert all(len(own) == 3 and own == sorted(set(own)) for own in numbers.values())
    children = [shard for shard in shards if shard.get("ParentShardId") in filled]
    assert children
    for shard in children:
        ended = ranges[shard["ParentShardId"]]["EndingSequenceNumber"]
        assert int(ranges[shard["ShardId"]]["StartingSequenceNumber"]) > int(ended)


@pytest.mark.parametrize("kind", ["AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"])
@pytest.mark.parametrize(
    ("number", "status"),
    [(10**20 - 1, 400), (10**20, 200), (10**20 + 2**62 - 1, 200), (10**20 + 2**62, 400), (10**40 - 1, 400)],
)
def test_a_sequence_number_has_62_bits(service: DynamoDBService, kind: str, number: int, status: int) -> None:
    """Greater ones were an internal error: the model of the service allows 40 digits."""
    stream = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    arn = service.table(StreamSpecification=stream)["LatestStreamArn"]
    described = service.call("DescribeStream", {"StreamArn": arn}, prefix=STREAMS)["StreamDescription"]
    given = {"StreamArn": arn, "ShardId": described["Shards"][0]["ShardId"], "ShardIteratorType": kind}
    answer = service.call("GetShardIterator", {**given, "SequenceNumber": f"{number:021}"}, prefix=STREAMS)
    assert service.last.status == status
    if status == 200:
        service.call("GetRecords", {"ShardIterator": answer["ShardIterator"]}, prefix=STREAMS)
        assert service.last.status in (200, 400)  # a number before the first record has been trimmed


@pytest.mark.parametrize(("at", "number"), [(1e308, 0), (2**63, 0), (0, 1), (-1e308, 1)])
def test_any_number_is_a_time(service: DynamoDBService, at: float, number: int) -> None:
    """Numbers beyond the times of the database were an internal error."""
    stream = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    arn = service.table(StreamSpecification=stream)["LatestStreamArn"]
    service.call("PutItem", {"TableName": "orders", "Item": {"pk": {"S": "Fred"}}})
    described = service.call("DescribeStream", {"StreamArn": arn}, prefix=STREAMS)["StreamDescription"]
    given = {"StreamArn": arn, "ShardId": described["Shards"][0]["ShardId"]}
    given |= {"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": at}
    start = service.call("GetShardIterator", given, prefix=STREAMS)["ShardIterator"]
    assert len(service.call("GetRecords", {"ShardIterator": start}, prefix=STREAMS)["Records"]) == number
