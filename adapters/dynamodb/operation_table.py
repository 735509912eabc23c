"""The operation table: X-Amz-Target -> the handler that answers it, and whether the server's tick enters it.

An operation that is not here is answered with UnknownOperationException.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from adapters.dynamodb.operations import batches, items, queries, streams, transactions
from adapters.dynamodb.partiql import statements
from adapters.dynamodb.tables import account, backups, features, recovery, tables, tags, time_to_live
from adapters.dynamodb.wire.calls import Answer, Call, OneCommand
from gateway.model.commands import Exchange


class Operation(NamedTuple):
    """One operation of the API. `hot`: quick enough for the server's tick; others go through Flask, on their own. `parts`: of an
    operation that one command is enough for; its handler is made of them."""

    handler: Callable[[Call], Exchange[Answer]]
    hot: bool = True
    parts: OneCommand[Any, Any] | None = None


_DYNAMODB = "DynamoDB_20120810."
_STREAMS = "DynamoDBStreams_20120810."

_Handlers = Mapping[str, Callable[[Call], Exchange[Answer]]]

# Rows and items: so quick that the server's tick handles many at once.
_SINGLE: Mapping[str, OneCommand[Any, Any]] = {
    "GetItem": items.GET_ITEM,
    "PutItem": items.PUT_ITEM,
    "UpdateItem": items.UPDATE_ITEM,
    "DeleteItem": items.DELETE_ITEM,
    "Query": queries.QUERY,
    "Scan": queries.SCAN,
}
_DATA: _Handlers = {
    "BatchGetItem": batches.batch_get_item,
    "BatchWriteItem": batches.batch_write_item,
    "TransactGetItems": transactions.transact_get_items,
    "TransactWriteItems": transactions.transact_write_items,
    "ExecuteStatement": statements.execute_statement,
    "BatchExecuteStatement": statements.batch_execute_statement,
    "ExecuteTransaction": statements.execute_transaction,
}
_STREAM_READS: _Handlers = {
    "ListStreams": streams.list_streams,
    "DescribeStream": streams.describe_stream,
    "GetShardIterator": streams.get_shard_iterator,
    "GetRecords": streams.get_records,
}
# The control plane: through Flask, each on its own.
_CONTROL: _Handlers = {
    "CreateTable": tables.create_table,
    "DescribeTable": tables.describe_table,
    "ListTables": tables.list_tables,
    "UpdateTable": tables.update_table,
    "DeleteTable": tables.delete_table,
    "TagResource": tags.tag_resource,
    "UntagResource": tags.untag_resource,
    "ListTagsOfResource": tags.list_tags,
    "UpdateTimeToLive": time_to_live.update_time_to_live,
    "DescribeTimeToLive": time_to_live.describe_time_to_live,
    "DescribeLimits": account.describe_limits,
    "DescribeEndpoints": account.describe_endpoints,
    "DescribeContinuousBackups": recovery.describe_continuous_backups,
    "UpdateContinuousBackups": recovery.update_continuous_backups,
    "RestoreTableToPointInTime": recovery.restore_to_point_in_time,
    "CreateBackup": backups.create_backup,
    "DescribeBackup": backups.describe_backup,
    "ListBackups": backups.list_backups,
    "DeleteBackup": backups.delete_backup,
    "RestoreTableFromBackup": backups.restore_from_backup,
    "ListExports": features.list_exports,
    "ListImports": features.list_imports,
    "ListContributorInsights": features.list_contributor_insights,
    "ListGlobalTables": features.list_global_tables,
    "DescribeGlobalTable": features.describe_global_table,
    "DescribeContributorInsights": features.describe_contributor_insights,
    "DescribeKinesisStreamingDestination": features.describe_kinesis_destination,
    "DescribeTableReplicaAutoScaling": features.describe_replica_auto_scaling,
    "GetResourcePolicy": features.get_resource_policy,
}

OPERATIONS: Mapping[str, Operation] = {
    **{_DYNAMODB + name: Operation(parts.exchange, hot=True, parts=parts) for name, parts in _SINGLE.items()},
    **{_DYNAMODB + name: Operation(handler, hot=True) for name, handler in _DATA.items()},
    **{_STREAMS + name: Operation(handler, hot=True) for name, handler in _STREAM_READS.items()},
    **{_DYNAMODB + name: Operation(handler, hot=False) for name, handler in _CONTROL.items()},
}
READING = frozenset({"BatchGetItem", "GetItem", "Query", "Scan", "TransactGetItems"})
"""Operations that do nothing but read items."""
