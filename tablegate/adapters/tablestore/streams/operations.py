"""The operations on streams."""

from __future__ import annotations

from collections.abc import Mapping

from tablegate.adapters.tablestore.operation import Operation
from tablegate.adapters.tablestore.streams import streams
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.authorization.permissions import Permission, Purpose

_P = Permission
OPERATIONS: Mapping[str, Operation] = {
    "ListStream": Operation(messages.ListStreamRequest, streams.list_stream, Purpose((_P.LIST_STREAMS,))),
    "DescribeStream": Operation(messages.DescribeStreamRequest, streams.describe_stream, Purpose((_P.DESCRIBE_STREAM,))),
    "GetShardIterator": Operation(
        messages.GetShardIteratorRequest, streams.get_shard_iterator, Purpose((_P.POSITION_STREAM,)),
    ),
    "GetStreamRecord": Operation(messages.GetStreamRecordRequest, streams.get_stream_record, Purpose((_P.READ_STREAM,))),
}  # fmt: skip
