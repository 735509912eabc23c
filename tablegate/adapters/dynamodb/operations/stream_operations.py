"""The operations on streams."""

from __future__ import annotations

from tablegate.adapters.dynamodb.operation import Operation, by_name
from tablegate.adapters.dynamodb.operations import streams
from tablegate.adapters.dynamodb.validation.rules import resource_rules
from tablegate.adapters.dynamodb.validation.schemas.stream_schemas import STREAM_REQUESTS
from tablegate.gateway.model.authorization.permissions import Permission, Purpose

# Operations


_P = Permission
OPERATIONS = by_name(
    Operation("ListStreams", streams.list_streams, STREAM_REQUESTS, Purpose((_P.LIST_STREAMS,))),
    Operation("DescribeStream", streams.describe_stream, STREAM_REQUESTS, Purpose((_P.DESCRIBE_STREAM,))),
    Operation(
        "GetShardIterator", streams.get_shard_iterator, STREAM_REQUESTS, Purpose((_P.POSITION_STREAM,)),
        rule=resource_rules.get_shard_iterator,
    ),
    Operation("GetRecords", streams.get_records, STREAM_REQUESTS, Purpose((_P.READ_STREAM,))),
)  # fmt: skip
