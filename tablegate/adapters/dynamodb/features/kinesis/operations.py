"""Kinesis streaming destinations: Enable, Disable, Update and DescribeKinesisStreamingDestination.

A destination is stored in its table's properties and as a follower of the table's changes
(gateway/engine/streams/following.py). producer.py delivers to it. States and texts: ack-api-quirks (live service,
October 2026) and LocalStack's snapshots. Shapes: botocore 1.44.5.

EnableKinesisStreamingDestination asks Kinesis for the stream, and answers ENABLING in any case. If Kinesis has no such
stream, the destination becomes ENABLE_FAILED. If Kinesis does not answer, changes wait until it accepts them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tablegate.adapters.dynamodb import DIALECT
from tablegate.adapters.dynamodb.call import Answer, CallContext
from tablegate.adapters.dynamodb.features.kinesis.stored_destinations import (
    MILLISECOND,
    NO_PERMISSION,
    STREAM,
    find_destination,
)
from tablegate.adapters.dynamodb.operation import Operation, by_name
from tablegate.adapters.dynamodb.tables.properties import TableProperties
from tablegate.adapters.dynamodb.tables.table_definitions import table_id
from tablegate.adapters.dynamodb.tables.tables import find_table
from tablegate.adapters.dynamodb.validation.shapes import (
    TABLE_NAME,
    Members,
    Structure,
    Text,
    one_of,
    requests_of,
)
from tablegate.adapters.dynamodb.wire import error_texts
from tablegate.adapters.dynamodb.wire.errors import validation
from tablegate.gateway.model.authorization.permissions import Permission, Purpose
from tablegate.gateway.model.commands.stream_commands import Follow, ListFollowers, Unfollow
from tablegate.gateway.model.commands.table_commands import AlterTable
from tablegate.gateway.model.tables.tables import State, Table

# Handlers


KIND = "kinesis"
"""The kind of these followers. Their target is the ARN of the stream."""
_NOT_VALID = "Table is not in a valid state to enable Kinesis Streaming Destination: "
_ELSEWHERE = "The kinesis Arn used to enable kinesis replication belongs to a stream which is not in {}"
_PRECISION = "ApproximateCreationDateTimePrecision"


async def describe_destination(call: CallContext) -> Answer:
    """DescribeKinesisStreamingDestination: the live destination of a table, and former and failed ones.

    Raises TableMissing.
    """
    table = await find_table(call)
    statuses = await _statuses(call, table)
    descriptions = []
    for destination in TableProperties.of(table).kinesis:
        description = {"StreamArn": destination["arn"], "DestinationStatus": statuses[destination["arn"]]}
        if description["DestinationStatus"] == "ENABLE_FAILED":
            description["DestinationStatusDescription"] = destination["failure"]
        if destination["precision"] is not None:
            description[_PRECISION] = destination["precision"]
        descriptions.append(description)
    return {"TableName": table.name, "KinesisDataStreamDestinations": descriptions}


async def enable_destination(call: CallContext) -> Answer:
    """EnableKinesisStreamingDestination: deliver all later changes to a stream. Raises ServiceError, TableMissing."""
    arguments = call.input
    arn = arguments["StreamArn"]
    requested = arguments.get("EnableKinesisStreamingConfiguration", {})
    table = await find_table(call)
    statuses = await _statuses(call, table)
    if any(status in _LIVE for status in statuses.values()):
        text = (
            "EnableKinesisStreamingDestination must be DISABLED or ENABLE_FAILED to perform ENABLE operation."
        )
        raise validation(_NOT_VALID + text)
    failure = _failure(call, arn)
    entry = {
        "arn": arn,
        "on": True,
        "failure": failure,
        "precision": requested.get(_PRECISION),
        "updating": False,
        "changed_at_ms": call.gateway.now_ms(),
    }
    document = _with_destination(table, entry)
    if failure is None:
        await Follow(table, KIND, arn, document)
    else:
        await AlterTable(DIALECT, table, properties=document, instant=True)
    return {
        "TableName": table.name,
        "StreamArn": arn,
        "DestinationStatus": "ENABLING",
        "EnableKinesisStreamingConfiguration": requested,
    }


def _failure(call: CallContext, arn: str) -> str | None:
    """Return the reason why a stream cannot be a destination, or None."""
    match = STREAM.fullmatch(arn)
    if match is None:
        return _ELSEWHERE.format("Active state") if ":firehose:" in arn else NO_PERMISSION
    if match["region"] != call.caller.region:
        return _ELSEWHERE.format("the current region")
    if match["account"] != call.caller.account and not call.gateway.credentials.is_dev:
        return _ELSEWHERE.format("Active state")
    if not call.gateway.settings.kinesis_endpoint_url:
        return f"{NO_PERMISSION}: this server has no Kinesis (--kinesis-endpoint-url)"
    # The producer needs boto3.
    from tablegate.adapters.dynamodb.features.kinesis.producer import Producer

    return Producer(call.gateway.settings).failure_of(arn)


async def disable_destination(call: CallContext) -> Answer:
    """DisableKinesisStreamingDestination: deliver the changes written so far, then stop.

    Raises ServiceError, TableMissing.
    """
    arguments = call.input
    arn = arguments["StreamArn"]
    if arguments.get("EnableKinesisStreamingConfiguration"):
        raise validation("Stream cannot be disabled using EnableKinesisStreamingConfiguration parameters")
    table = await find_table(call)
    destination = find_destination(table, arn)
    status = (await _statuses(call, table)).get(arn)
    if destination is None or status not in ("ACTIVE", "DISABLING"):
        text = "KinesisStreamingDestination must be ACTIVE to perform DISABLE operation."
        raise validation(_NOT_VALID + text)
    if status == "ACTIVE":
        disabled = {**destination, "on": False, "changed_at_ms": call.gateway.now_ms()}
        await Unfollow(table, KIND, arn, _with_destination(table, disabled))
    return {"TableName": table.name, "StreamArn": arn, "DestinationStatus": "DISABLING"}


async def update_destination(call: CallContext) -> Answer:
    """UpdateKinesisStreamingDestination: change the precision of times. Raises ServiceError, TableMissing."""
    arguments = call.input
    arn = arguments["StreamArn"]
    requested = arguments.get("UpdateKinesisStreamingConfiguration", {})
    if not requested:
        text = (
            "Streaming destination cannot be updated with given parameters: "
            "UpdateKinesisStreamingConfiguration cannot be null or contain only null values"
        )
        raise validation(text)
    table = await find_table(call)
    destination = find_destination(table, arn)
    if destination is None:
        text = f"No streaming destination with streamArn: {arn} found for table with tableName: {table.name}"
        raise validation(_NOT_VALID + text)
    if (await _statuses(call, table))[arn] != "ACTIVE":
        text = "Kinesis streaming is not in ACTIVE state. Updates are only allowed in ACTIVE state."
        raise validation(f"{_NOT_VALID}{text} TableName: {table.name}, kdsArn: {arn}")
    precision = requested[_PRECISION]
    if precision == (destination["precision"] or MILLISECOND):
        text = f"Precision is already set to the desired value of {precision} for tableId: {table_id(table)}, kdsArn: {arn}"
        raise validation(f"{error_texts.INVALID_REQUEST}{text}")
    updated = {
        **destination,
        "precision": precision,
        "updating": True,
        "changed_at_ms": call.gateway.now_ms(),
    }
    await AlterTable(DIALECT, table, properties=_with_destination(table, updated), instant=True)
    return {
        "TableName": table.name,
        "StreamArn": arn,
        "DestinationStatus": "UPDATING",
        "UpdateKinesisStreamingConfiguration": requested,
    }


_LISTED = 50
"""Maximum number of stored destinations. All but the newest are DISABLED or ENABLE_FAILED."""
_LIVE = ("ENABLING", "ACTIVE", "UPDATING", "DISABLING")


async def _statuses(call: CallContext, table: Table) -> dict[str, str]:
    """Return the state of each destination, by the ARN of its stream."""
    destinations = TableProperties.of(table).kinesis
    followed_arns: list[str] = []
    if any(not destination["on"] for destination in destinations):
        followed_arns = await ListFollowers(table, KIND)
    return {
        destination["arn"]: _status(call, table, destination, destination["arn"] in followed_arns)
        for destination in destinations
    }


def _status(call: CallContext, table: Table, destination: Mapping[str, Any], has_follower: bool) -> str:
    """Return the state of a destination. `has_follower`: it still has a follower.

    A destination is DISABLED if its table was reset and has no follower any more.
    """
    delay_ms = call.gateway.settings.table_creation_delay * 1000
    is_settled = call.gateway.now_ms() >= destination["changed_at_ms"] + delay_ms
    if not destination["on"]:
        return "DISABLED" if is_settled and not has_follower else "DISABLING"
    if destination["failure"] is not None:
        return "ENABLE_FAILED" if is_settled else "ENABLING"
    if not table.rules.followed:
        # UPDATING: ack-api-quirks, TABLE-235 and TABLE-236.
        return "UPDATING" if table.state is State.DELETING else "DISABLED"
    if is_settled:
        return "ACTIVE"
    return "UPDATING" if destination["updating"] else "ENABLING"


def _with_destination(table: Table, entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the properties of a table after adding or replacing a destination.

    A new destination comes first. Beyond the maximum, the oldest are dropped.
    """
    properties = TableProperties.of(table)
    existing = {destination["arn"]: destination for destination in properties.kinesis}
    destinations = (
        existing | {entry["arn"]: entry} if entry["arn"] in existing else {entry["arn"]: entry, **existing}
    )
    return replace(properties, kinesis=list(destinations.values())[:_LISTED]).document()


# Inputs


_BY_TABLE: Members = {"TableName": TABLE_NAME}
_STREAM: Members = {**_BY_TABLE, "StreamArn": Text(minimum=37, maximum=1024)}
_CONFIGURATION: Members = {"ApproximateCreationDateTimePrecision": one_of("MILLISECOND", "MICROSECOND")}
_ENABLING: Members = {
    "EnableKinesisStreamingConfiguration": Structure("EnableKinesisStreamingConfiguration", _CONFIGURATION)
}
_UPDATING: Members = {
    "UpdateKinesisStreamingConfiguration": Structure("UpdateKinesisStreamingConfiguration", _CONFIGURATION)
}
_REQUIRED = ("TableName", "StreamArn")
KINESIS_REQUESTS = requests_of(
    {
        "DescribeKinesisStreamingDestination": (_BY_TABLE, ("TableName",)),
        "EnableKinesisStreamingDestination": ({**_STREAM, **_ENABLING}, _REQUIRED),
        # No minimum length: ack-api-quirks, TABLE-302.
        "DisableKinesisStreamingDestination": (
            {**_STREAM, "StreamArn": Text(maximum=1024), **_ENABLING},
            _REQUIRED,
        ),
        "UpdateKinesisStreamingDestination": ({**_STREAM, **_UPDATING}, _REQUIRED),
    }
)


# Operations


_P = Permission
OPERATIONS = by_name(
    Operation(
        "DescribeKinesisStreamingDestination", describe_destination, KINESIS_REQUESTS,
        Purpose((_P.DESCRIBE_FEATURES,)),
    ),
    Operation(
        "EnableKinesisStreamingDestination", enable_destination, KINESIS_REQUESTS,
        Purpose((_P.ALTER_DELIVERIES,), also=(_P.READ_STREAM,)), may_block=True,
    ),
    Operation(
        "DisableKinesisStreamingDestination", disable_destination, KINESIS_REQUESTS,
        Purpose((_P.ALTER_DELIVERIES,)),
    ),
    Operation(
        "UpdateKinesisStreamingDestination", update_destination, KINESIS_REQUESTS,
        Purpose((_P.ALTER_DELIVERIES,)),
    ),
)  # fmt: skip
