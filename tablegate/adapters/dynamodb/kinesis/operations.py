"""The operations on destinations in Kinesis."""

from __future__ import annotations

from tablegate.adapters.dynamodb.kinesis import destinations
from tablegate.adapters.dynamodb.operation import Operation, by_name
from tablegate.adapters.dynamodb.validation.schemas.kinesis_schemas import KINESIS_REQUESTS
from tablegate.gateway.model.authorization.permissions import Permission, Purpose

# Operations


_P = Permission
OPERATIONS = by_name(
    Operation(
        "DescribeKinesisStreamingDestination", destinations.describe_destination, KINESIS_REQUESTS,
        Purpose((_P.DESCRIBE_FEATURES,)),
    ),
    Operation(
        "EnableKinesisStreamingDestination", destinations.enable_destination, KINESIS_REQUESTS,
        Purpose((_P.ALTER_DELIVERIES,), also=(_P.READ_STREAM,)), may_block=True,
    ),
    Operation(
        "DisableKinesisStreamingDestination", destinations.disable_destination, KINESIS_REQUESTS,
        Purpose((_P.ALTER_DELIVERIES,)),
    ),
    Operation(
        "UpdateKinesisStreamingDestination", destinations.update_destination, KINESIS_REQUESTS,
        Purpose((_P.ALTER_DELIVERIES,)),
    ),
)  # fmt: skip
