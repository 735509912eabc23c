"""Inputs of the operations on destinations in Kinesis, as data (botocore 1.44.5 service-2.json)."""

from __future__ import annotations

from tablegate.adapters.dynamodb.validation.schemas.schema_parts import (
    TABLE_NAME,
    Members,
    one_of,
    requests_of,
)
from tablegate.adapters.dynamodb.validation.schemas.schema_types import Structure, Text

# Inputs


_BY_TABLE: Members = {"TableName": TABLE_NAME}
_STREAM: Members = {**_BY_TABLE, "StreamArn": Text(minimum=37, maximum=1024)}
_PRECISION: Members = {"ApproximateCreationDateTimePrecision": one_of("MILLISECOND", "MICROSECOND")}
_ENABLING: Members = {
    "EnableKinesisStreamingConfiguration": Structure("EnableKinesisStreamingConfiguration", _PRECISION)
}
_UPDATING: Members = {
    "UpdateKinesisStreamingConfiguration": Structure("UpdateKinesisStreamingConfiguration", _PRECISION)
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
