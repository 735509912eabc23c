"""Inputs of the operations on streams, as data."""

from __future__ import annotations

from tablegate.adapters.dynamodb.validation.schemas.schema_parts import (
    INTEGER_FROM_1,
    NAME_OR_ARN,
    Shapes,
    one_of,
    requests_of,
)
from tablegate.adapters.dynamodb.validation.schemas.schema_types import Number, Structure, Text

# Inputs


_STREAM_ARN = Text(minimum=37, maximum=1024)
_SHARD_ID = Text(minimum=28, maximum=65)
_POSITION = one_of("TRIM_HORIZON", "LATEST", "AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER", "AT_TIMESTAMP")
_SHAPES: Shapes = {
    "ListStreams": (
        {"TableName": NAME_OR_ARN, "Limit": INTEGER_FROM_1, "ExclusiveStartStreamArn": _STREAM_ARN},
        (),
    ),
    "DescribeStream": (
        {
            "StreamArn": _STREAM_ARN,
            "Limit": INTEGER_FROM_1,
            "ExclusiveStartShardId": _SHARD_ID,
            "ShardFilter": Structure("ShardFilter", {"Type": one_of("CHILD_SHARDS"), "ShardId": _SHARD_ID}),
        },
        ("StreamArn",),
    ),
    "GetShardIterator": (
        {
            "StreamArn": _STREAM_ARN,
            "ShardId": _SHARD_ID,
            "ShardIteratorType": _POSITION,
            "SequenceNumber": Text(minimum=21, maximum=40),
            "Timestamp": Number("Double"),
        },
        ("StreamArn", "ShardId", "ShardIteratorType"),
    ),
    "GetRecords": (
        {"ShardIterator": Text(minimum=1, maximum=2048), "Limit": INTEGER_FROM_1},
        ("ShardIterator",),
    ),
}
STREAM_REQUESTS = requests_of(_SHAPES)
"""The inputs of these operations."""
