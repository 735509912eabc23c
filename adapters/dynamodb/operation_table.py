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
from gateway.model.permissions import UNKNOWN_PURPOSE, Permission, Purpose, Way


class Operation(NamedTuple):
    """One operation of the API. `hot`: quick enough for the server's tick; others go through Flask, on their own. `parts`: of an
    operation that one command is enough for; its handler is made of them. `purpose`: what a
    caller must be allowed to do."""

    handler: Callable[[Call], Exchange[Answer]]
    hot: bool = True
    parts: OneCommand[Any, Any] | None = None
    purpose: Purpose = UNKNOWN_PURPOSE


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

_P, _WRITES = Permission, (Permission.PUT, Permission.UPDATE, Permission.DELETE, Permission.CHECK)
_STATEMENTS = (_P.QUERY, _P.SCAN, _P.READ, *_WRITES)

PURPOSES: Mapping[str, Purpose] = {
    "GetItem": Purpose((_P.READ,)),
    "PutItem": Purpose((_P.PUT,)),
    "UpdateItem": Purpose((_P.UPDATE,)),
    "DeleteItem": Purpose((_P.DELETE,)),
    "Query": Purpose((_P.QUERY,)),
    "Scan": Purpose((_P.SCAN,)),
    "BatchGetItem": Purpose((_P.READ,), Way.BATCH),
    "BatchWriteItem": Purpose((_P.PUT, _P.DELETE), Way.BATCH),
    "TransactGetItems": Purpose((_P.READ,), Way.TRANSACTION),
    "TransactWriteItems": Purpose(_WRITES, Way.TRANSACTION),
    "ExecuteStatement": Purpose(_STATEMENTS, Way.STATEMENT),
    "BatchExecuteStatement": Purpose(_STATEMENTS, Way.STATEMENT),
    "ExecuteTransaction": Purpose(_STATEMENTS, Way.STATEMENT_TRANSACTION),
    "ListStreams": Purpose((_P.LIST_STREAMS,)),
    "DescribeStream": Purpose((_P.DESCRIBE_STREAM,)),
    "GetShardIterator": Purpose((_P.POSITION_STREAM,)),
    "GetRecords": Purpose((_P.READ_STREAM,)),
    "CreateTable": Purpose((_P.CREATE,)),
    "DescribeTable": Purpose((_P.DESCRIBE,)),
    "ListTables": Purpose((_P.LIST,)),
    "UpdateTable": Purpose((_P.ALTER,)),
    "DeleteTable": Purpose((_P.DROP,)),
    "TagResource": Purpose((_P.TAG,)),
    "UntagResource": Purpose((_P.UNTAG,)),
    "ListTagsOfResource": Purpose((_P.READ_TAGS,)),
    "UpdateTimeToLive": Purpose((_P.ALTER_EXPIRY,)),
    "DescribeTimeToLive": Purpose((_P.DESCRIBE_EXPIRY,)),
    "DescribeLimits": Purpose((_P.READ_ACCOUNT,)),
    "DescribeEndpoints": Purpose((_P.READ_ACCOUNT,)),
    "DescribeContinuousBackups": Purpose((_P.DESCRIBE_FEATURES,)),
    "UpdateContinuousBackups": Purpose((_P.ALTER_RECOVERY,)),
    "RestoreTableToPointInTime": Purpose((_P.RESTORE_MOMENT,)),
    "CreateBackup": Purpose((_P.CREATE_BACKUP,)),
    "DescribeBackup": Purpose((_P.DESCRIBE_BACKUP,)),
    "ListBackups": Purpose((_P.LIST_BACKUPS,)),
    "DeleteBackup": Purpose((_P.DELETE_BACKUP,)),
    "RestoreTableFromBackup": Purpose((_P.RESTORE_BACKUP,)),
    "ListExports": Purpose((_P.LIST_FEATURES,)),
    "ListImports": Purpose((_P.LIST_FEATURES,)),
    "ListContributorInsights": Purpose((_P.LIST_FEATURES,)),
    "ListGlobalTables": Purpose((_P.LIST_FEATURES,)),
    "DescribeGlobalTable": Purpose((_P.DESCRIBE_FEATURES,)),
    "DescribeContributorInsights": Purpose((_P.DESCRIBE_FEATURES,)),
    "DescribeKinesisStreamingDestination": Purpose((_P.DESCRIBE_FEATURES,)),
    "DescribeTableReplicaAutoScaling": Purpose((_P.DESCRIBE_FEATURES,)),
    "GetResourcePolicy": Purpose((_P.READ_POLICY,)),
}
"""Operation -> what it is for. Who has not everything may not use one that is not here."""


def purpose_of(purpose: Purpose, body: Any) -> Purpose:
    """The purpose of one request: a new table may come with tags, and with a policy of its own."""
    if purpose.permissions != (_P.CREATE,) or not isinstance(body, dict):
        return purpose
    also = [permission for member, permission in _OF_NEW_TABLES.items() if body.get(member)]
    return purpose._replace(also=tuple(also))


_OF_NEW_TABLES = {"Tags": _P.TAG, "ResourcePolicy": _P.WRITE_POLICY}


def _operations(handlers: _Handlers, prefix: str = _DYNAMODB, hot: bool = True) -> dict[str, Operation]:
    return {
        prefix + name: Operation(handler, hot, purpose=PURPOSES.get(name, UNKNOWN_PURPOSE))
        for name, handler in handlers.items()
    }


OPERATIONS: Mapping[str, Operation] = {
    **{
        _DYNAMODB + name: Operation(parts.exchange, hot=True, parts=parts, purpose=PURPOSES[name])
        for name, parts in _SINGLE.items()
    },
    **_operations(_DATA),
    **_operations(_STREAM_READS, _STREAMS),
    **_operations(_CONTROL, hot=False),
}
READING = frozenset({"BatchGetItem", "GetItem", "Query", "Scan", "TransactGetItems"})
"""Operations that do nothing but read items."""
