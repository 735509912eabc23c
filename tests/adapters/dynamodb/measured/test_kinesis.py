"""Findings of table-policy-kinesis-autoscaling.md about Kinesis streaming destinations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tablegate.adapters.dynamodb.features.kinesis.producer import Producer
from tests.adapters.dynamodb.client import DynamoDBService
from tests.support.clock import Clock

ARN = "arn:aws:kinesis:us-east-1:000000000000:stream/changes"
OTHER = "arn:aws:kinesis:us-east-1:000000000000:stream/others"
NOT_VALID = "Table is not in a valid state to enable Kinesis Streaming Destination: "
LIVE = f"{NOT_VALID}EnableKinesisStreamingDestination must be DISABLED or ENABLE_FAILED to perform ENABLE operation."
IDLE = f"{NOT_VALID}KinesisStreamingDestination must be ACTIVE to perform DISABLE operation."
NO_PERMISSION = "User does not have a permission to use kinesis stream"
ELSEWHERE = "The kinesis Arn used to enable kinesis replication belongs to a stream which is not in {}"
PRECISION = "ApproximateCreationDateTimePrecision"
MICRO = {PRECISION: "MICROSECOND"}
INVALID = "ValidationException"


class Kinesis:
    """A replacement of boto3's client that accepts every record."""

    def __init__(self) -> None:
        self.taken: list[str] = []

    def describe_stream_summary(self, StreamName: str) -> dict[str, Any]:  # noqa: N803
        return {"StreamDescriptionSummary": {"StreamStatus": "ACTIVE"}}

    def put_records(self, StreamName: str, Records: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        for record in Records:
            told = json.loads(record["Data"])
            self.taken.append(told["dynamodb"]["Keys"]["pk"]["S"])
        return {"FailedRecordCount": 0, "Records": [{} for _ in Records]}


@pytest.fixture
def kinesis(monkeypatch) -> Kinesis:
    made = Kinesis()
    monkeypatch.setattr(Producer, "_client", lambda self, region: made)
    return made


@pytest.fixture
def streaming(clock: Clock, kinesis: Kinesis) -> Iterator[DynamoDBService]:
    """A control plane that takes ten seconds, and a Kinesis."""
    url = "http://127.0.0.1:1"
    with DynamoDBService.opened(clock, kinesis_endpoint_url=url, table_creation_delay=10.0) as service:
        service.table()
        clock.ms += 10_000
        yield service


def ask(service: DynamoDBService, operation: str, arn: str = ARN, **more: Any) -> dict[str, Any]:
    answer = service.call(
        f"{operation}KinesisStreamingDestination", {"TableName": "orders", "StreamArn": arn, **more}
    )
    assert service.last.status == 200, answer
    return answer


def refused(service: DynamoDBService, operation: str, arn: str = ARN, **more: Any) -> tuple[str, str]:
    given = {"TableName": "orders", "StreamArn": arn, **more}
    return service.error(f"{operation}KinesisStreamingDestination", given)


def update(**more: Any) -> dict[str, Any]:
    return {"UpdateKinesisStreamingConfiguration": {**MICRO, **more}}


def not_active(arn: str = ARN) -> tuple[str, str]:
    text = "Kinesis streaming is not in ACTIVE state. Updates are only allowed in ACTIVE state."
    return INVALID, f"{NOT_VALID}{text} TableName: orders, kdsArn: {arn}"


def listed(service: DynamoDBService) -> list[dict[str, Any]]:
    answer = service.call("DescribeKinesisStreamingDestination", {"TableName": "orders"})
    assert set(answer) == {"TableName", "KinesisDataStreamDestinations"}
    return answer["KinesisDataStreamDestinations"]


def states(service: DynamoDBService) -> list[tuple[str, str]]:
    return [(each["StreamArn"], each["DestinationStatus"]) for each in listed(service)]


def put(service: DynamoDBService, *keys: str) -> None:
    for key in keys:
        service.call("PutItem", {"TableName": "orders", "Item": {"pk": {"S": key}}})
        assert service.last.status == 200


def deliver(service: DynamoDBService) -> None:
    while service.gateway.engine.background.batch_of("kinesis"):
        pass


def settle(service: DynamoDBService) -> None:
    service.clock.ms += 10_000
    deliver(service)


def test_a_destination_becomes_active_and_is_the_only_live_one(streaming):
    """TABLE-299"""
    assert listed(streaming) == []
    assert ask(streaming, "Enable") == {
        "TableName": "orders",
        "StreamArn": ARN,
        "DestinationStatus": "ENABLING",
        "EnableKinesisStreamingConfiguration": {},
    }
    assert listed(streaming) == [{"StreamArn": ARN, "DestinationStatus": "ENABLING"}]
    assert streaming.described()["TableStatus"] == "ACTIVE"
    assert refused(streaming, "Update", **update()) == not_active()
    assert refused(streaming, "Disable") == (INVALID, IDLE)
    for _ in range(2):
        assert refused(streaming, "Enable") == (INVALID, LIVE)
        assert refused(streaming, "Enable", OTHER) == (INVALID, LIVE)
        settle(streaming)
    assert refused(streaming, "Enable", EnableKinesisStreamingConfiguration=MICRO) == (INVALID, LIVE)
    assert listed(streaming) == [{"StreamArn": ARN, "DestinationStatus": "ACTIVE"}]
    assert "inesis" not in json.dumps(streaming.described())


def test_the_precision_is_absent_until_it_is_set(streaming):
    """TABLE-300, TABLE-460 (an absent one is MILLISECOND)"""
    table_id = streaming.described()["TableId"]
    ask(streaming, "Enable")
    settle(streaming)
    for given in ({}, {"UpdateKinesisStreamingConfiguration": {}}):
        assert refused(streaming, "Update", **given) == (
            INVALID,
            (
                "Streaming destination cannot be updated with given parameters: "
                "UpdateKinesisStreamingConfiguration cannot be null or contain only null values"
            ),
        )
    already = f"Invalid Request: Precision is already set to the desired value of {{}} for tableId: {table_id}, kdsArn: {ARN}"
    found = refused(streaming, "Update", **update(**{PRECISION: "MILLISECOND"}))
    assert found == (INVALID, already.format("MILLISECOND"))
    answer = ask(streaming, "Update", **update())
    assert answer["DestinationStatus"] == "UPDATING"
    assert answer["UpdateKinesisStreamingConfiguration"] == MICRO
    assert listed(streaming) == [{"StreamArn": ARN, "DestinationStatus": "UPDATING", **MICRO}]
    assert refused(streaming, "Update", **update()) == not_active()
    assert refused(streaming, "Disable") == (INVALID, IDLE)
    assert refused(streaming, "Enable") == (INVALID, LIVE)
    settle(streaming)
    assert refused(streaming, "Update", **update()) == (INVALID, already.format("MICROSECOND"))
    ask(streaming, "Disable")
    settle(streaming)
    ask(streaming, "Enable")
    assert PRECISION not in listed(streaming)[0]


def test_a_disabled_destination_stays_listed_and_is_enabled_again(streaming):
    """TABLE-301, TABLE-304 (an Enable while DISABLING is refused)"""
    ask(streaming, "Enable")
    settle(streaming)
    text = "Stream cannot be disabled using EnableKinesisStreamingConfiguration parameters"
    assert refused(streaming, "Disable", EnableKinesisStreamingConfiguration=MICRO) == (INVALID, text)
    for _ in range(2):
        assert ask(streaming, "Disable")["DestinationStatus"] == "DISABLING"
    assert refused(streaming, "Update", **update()) == not_active()
    assert refused(streaming, "Enable") == (INVALID, LIVE)
    settle(streaming)
    assert states(streaming) == [(ARN, "DISABLED")]
    assert refused(streaming, "Update", **update()) == not_active()
    assert refused(streaming, "Disable") == (INVALID, IDLE)
    ask(streaming, "Enable")
    settle(streaming)
    assert states(streaming) == [(ARN, "ACTIVE")]


@pytest.mark.parametrize("arn", [OTHER, OTHER + "-that-is-nowhere", "not-an-arn"])
def test_a_destination_that_was_never_enabled_is_not_disabled(streaming, arn):
    """TABLE-302"""
    ask(streaming, "Enable")
    settle(streaming)
    assert refused(streaming, "Disable", arn) == (INVALID, IDLE)
    if arn.startswith("arn:"):
        text = f"{NOT_VALID}No streaming destination with streamArn: {arn} found for table with tableName: orders"
        assert refused(streaming, "Update", arn, **update()) == (INVALID, text)


def test_streams_of_clients_and_destinations_are_independent(streaming, kinesis):
    """TABLE-303"""
    ask(streaming, "Enable")
    settle(streaming)
    assert not {"StreamSpecification", "LatestStreamArn"} & set(streaming.described())
    for specification in ({"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}, {"StreamEnabled": False}):
        streaming.update(StreamSpecification=specification)
        settle(streaming)
        assert states(streaming) == [(ARN, "ACTIVE")]
        put(streaming, json.dumps(specification))
    deliver(streaming)
    assert len(kinesis.taken) == 2
    assert "StreamSpecification" not in streaming.described()
    assert "LatestStreamArn" in streaming.described()


BAD = "arn:aws:dynamodb:us-east-1:000000000000:table/orders-"


def test_failed_entries_accumulate_newest_first(streaming):
    """TABLE-268"""
    for arn, number in ((BAD + "1", 1), (BAD + "1", 1), (BAD + "2", 2)):
        assert ask(streaming, "Enable", arn)["DestinationStatus"] == "ENABLING"
        settle(streaming)
        assert len(listed(streaming)) == number
    failed = [(BAD + "2", "ENABLE_FAILED"), (BAD + "1", "ENABLE_FAILED")]
    assert states(streaming) == failed
    assert refused(streaming, "Update", BAD + "1", **update()) == not_active(BAD + "1")
    assert refused(streaming, "Disable", BAD + "1") == (INVALID, IDLE)
    ask(streaming, "Enable")
    settle(streaming)
    assert states(streaming) == [(ARN, "ACTIVE"), *failed]
    for arn in (BAD + "3", OTHER):
        assert refused(streaming, "Enable", arn) == (INVALID, LIVE)
    ask(streaming, "Disable")
    for arn in (BAD + "3", ARN):
        assert refused(streaming, "Enable", arn) == (INVALID, LIVE)


@pytest.mark.parametrize(
    ("arn", "words"),
    [
        (BAD + "1", NO_PERMISSION),
        (ARN.replace("us-east-1", "us-west-2"), ELSEWHERE.format("the current region")),
        (ARN + "/consumer/reader:1700000000", NO_PERMISSION),
        ("arn:aws:firehose:us-east-1:000000000000:deliverystream/d", ELSEWHERE.format("Active state")),
    ],
)
def test_a_stream_is_validated_after_the_answer(streaming, arn, words):
    """TABLE-318"""
    assert ask(streaming, "Enable", arn)["DestinationStatus"] == "ENABLING"
    settle(streaming)
    [entry] = listed(streaming)
    assert entry["DestinationStatus"] == "ENABLE_FAILED"
    assert entry["DestinationStatusDescription"] == words


def test_a_destination_whose_stream_fails_stays_active(streaming, kinesis):
    """TABLE-319"""
    ask(streaming, "Enable")
    settle(streaming)
    kinesis.put_records = lambda **given: 1 / 0
    put(streaming, "a")
    with pytest.raises(Exception, match="division by zero"):
        deliver(streaming)
    assert listed(streaming) == [{"StreamArn": ARN, "DestinationStatus": "ACTIVE"}]
    assert ask(streaming, "Update", **update())["DestinationStatus"] == "UPDATING"


def test_changes_written_before_disable_are_delivered(streaming, kinesis):
    """TABLE-301: DISABLING lasts until the last of it has been taken."""
    ask(streaming, "Enable")
    streaming.clock.ms += 10_000
    put(streaming, *"abc")
    ask(streaming, "Disable")
    put(streaming, "d")
    streaming.clock.ms += 10_000
    assert states(streaming) == [(ARN, "DISABLING")]
    assert refused(streaming, "Enable") == (INVALID, LIVE)
    deliver(streaming)
    assert states(streaming) == [(ARN, "DISABLED")]
    assert kinesis.taken == [*"abc"]
    ask(streaming, "Enable")
    put(streaming, "e")
    deliver(streaming)
    assert kinesis.taken == [*"abce"]


@pytest.mark.parametrize("is_settled", [True, False])
def test_a_table_with_a_destination_is_deleted(streaming, kinesis, is_settled):
    """TABLE-235 (ACTIVE or ENABLING), TABLE-236, TABLE-271"""
    ask(streaming, "Enable")
    if is_settled:
        settle(streaming)
    put(streaming, *"abc")
    streaming.call("DeleteTable", {"TableName": "orders"})
    assert streaming.described()["TableStatus"] == "DELETING"
    assert states(streaming) == [(ARN, "UPDATING")]
    assert refused(streaming, "Enable") == (INVALID, LIVE)
    assert refused(streaming, "Enable", OTHER) == (INVALID, LIVE)
    assert refused(streaming, "Disable") == (INVALID, IDLE)
    settle(streaming)
    assert kinesis.taken == [*"abc"]
    missing = ("ResourceNotFoundException", "Requested resource not found: Table: orders not found")
    given = {"TableName": "orders"}
    assert streaming.error("DescribeKinesisStreamingDestination", given) == missing
    streaming.table()
    assert listed(streaming) == []


def test_a_destination_is_enabled_while_the_table_is_updated(streaming):
    """TABLE-234, TABLE-460"""
    streaming.update(TableClass="STANDARD_INFREQUENT_ACCESS")
    assert streaming.described()["TableStatus"] == "UPDATING"
    ask(streaming, "Enable")
    assert streaming.described()["TableStatus"] == "UPDATING"
    assert refused(streaming, "Update", **update()) == not_active()
    assert refused(streaming, "Disable") == (INVALID, IDLE)
    settle(streaming)
    assert states(streaming) == [(ARN, "ACTIVE")]
