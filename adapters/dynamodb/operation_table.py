"""The operation table: X-Amz-Target -> handler.

An operation that is absent is answered with UnknownOperationException.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tablegate.adapters.dynamodb.capacity import contributor_insights
from tablegate.adapters.dynamodb.jobs import bulk_put_api, export_api, import_api
from tablegate.adapters.dynamodb.kinesis import destinations
from tablegate.adapters.dynamodb.operations import batches, items, queries, streams, transactions, vectors
from tablegate.adapters.dynamodb.partiql import statement_transactions, statements
from tablegate.adapters.dynamodb.tables import (
    account,
    backups,
    global_tables,
    recovery,
    replica_auto_scaling,
    replicas,
    resource_policies,
    tables,
    tags,
    time_to_live,
)
from tablegate.adapters.dynamodb.wire.call_context import Handler
from tablegate.gateway.model.authorization.permissions import UNKNOWN_PURPOSE, Channel, Permission, Purpose


class Operation(NamedTuple):
    """One operation of the API.

    `purpose`: the permissions that a caller needs. `may_block`: it may wait for something other than the database, so
    the server runs it on a thread.
    """

    handler: Handler
    purpose: Purpose = UNKNOWN_PURPOSE
    may_block: bool = False


_DYNAMODB = "DynamoDB_20120810."
_STREAMS = "DynamoDBStreams_20120810."

_Handlers = Mapping[str, Handler]

DATA: _Handlers = {
    "GetItem": items.get_item,
    "PutItem": items.put_item,
    "UpdateItem": items.update_item,
    "DeleteItem": items.delete_item,
    "Query": queries.query,
    "Scan": queries.scan,
    "SearchVectors": vectors.search_vectors,
    "BatchGetItem": batches.batch_get_item,
    "BatchWriteItem": batches.batch_write_item,
    "TransactGetItems": transactions.transact_get_items,
    "TransactWriteItems": transactions.transact_write_items,
    "ExecuteStatement": statements.execute_statement,
    "BatchExecuteStatement": statements.batch_execute_statement,
    "ExecuteTransaction": statement_transactions.execute_transaction,
}
_STREAM_READS: _Handlers = {
    "ListStreams": streams.list_streams,
    "DescribeStream": streams.describe_stream,
    "GetShardIterator": streams.get_shard_iterator,
    "GetRecords": streams.get_records,
}
_CONTROL: _Handlers = {
    "CreateTable": tables.create_table,
    "DescribeTable": tables.describe_table,
    "ListTables": tables.list_tables,
    "UpdateTable": replicas.update_table,
    "DeleteTable": replicas.delete_table,
    "TagResource": tags.tag_resource,
    "UntagResource": tags.untag_resource,
    "ListTagsOfResource": tags.list_tags,
    "UpdateTimeToLive": replicas.update_time_to_live,
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
    "ExportTableToPointInTime": export_api.export_table,
    "DescribeExport": export_api.describe_export,
    "ListExports": export_api.list_exports,
    "ImportTable": import_api.import_table,
    "DescribeImport": import_api.describe_import,
    "ListImports": import_api.list_imports,
    "StartBulkPutItems": bulk_put_api.start_bulk_put_items,
    "DescribeBulkOperation": bulk_put_api.describe_bulk_operation,
    "ListBulkOperations": bulk_put_api.list_bulk_operations,
    "CancelBulkOperation": bulk_put_api.cancel_bulk_operation,
    "ListContributorInsights": contributor_insights.list_contributor_insights,
    "DescribeContributorInsights": contributor_insights.describe_contributor_insights,
    "UpdateContributorInsights": contributor_insights.update_contributor_insights,
    "ListGlobalTables": global_tables.list_global_tables,
    "DescribeGlobalTable": global_tables.describe_global_table,
    "DescribeGlobalTableSettings": global_tables.refuse_settings,
    "CreateGlobalTable": global_tables.create_global_table,
    "UpdateGlobalTable": global_tables.update_global_table,
    "UpdateGlobalTableSettings": global_tables.refuse_settings,
    "DescribeKinesisStreamingDestination": destinations.describe_destination,
    "EnableKinesisStreamingDestination": destinations.enable_destination,
    "DisableKinesisStreamingDestination": destinations.disable_destination,
    "UpdateKinesisStreamingDestination": destinations.update_destination,
    "DescribeTableReplicaAutoScaling": replica_auto_scaling.describe_replica_auto_scaling,
    "UpdateTableReplicaAutoScaling": replica_auto_scaling.update_replica_auto_scaling,
    "GetResourcePolicy": resource_policies.get_resource_policy,
    "PutResourcePolicy": resource_policies.put_resource_policy,
    "DeleteResourcePolicy": resource_policies.delete_resource_policy,
}

_P, _WRITES = Permission, (Permission.PUT, Permission.UPDATE, Permission.DELETE, Permission.CHECK)
_STATEMENTS = (_P.QUERY, _P.SCAN, _P.READ, *_WRITES)

OF_NEW_TABLES = Purpose((_P.CREATE,))

PURPOSES: Mapping[str, Purpose] = {
    "GetItem": Purpose((_P.READ,)),
    "PutItem": Purpose((_P.PUT,)),
    "UpdateItem": Purpose((_P.UPDATE,)),
    "DeleteItem": Purpose((_P.DELETE,)),
    "Query": Purpose((_P.QUERY,)),
    "Scan": Purpose((_P.SCAN,)),
    "SearchVectors": Purpose((_P.SEARCH,)),
    "BatchGetItem": Purpose((_P.READ,), Channel.BATCH),
    "BatchWriteItem": Purpose((_P.PUT, _P.DELETE), Channel.BATCH),
    "TransactGetItems": Purpose((_P.READ,), Channel.TRANSACTION),
    "TransactWriteItems": Purpose(_WRITES, Channel.TRANSACTION),
    "ExecuteStatement": Purpose(_STATEMENTS, Channel.STATEMENT),
    "BatchExecuteStatement": Purpose(_STATEMENTS, Channel.STATEMENT),
    "ExecuteTransaction": Purpose(_STATEMENTS, Channel.STATEMENT_TRANSACTION),
    "ListStreams": Purpose((_P.LIST_STREAMS,)),
    "DescribeStream": Purpose((_P.DESCRIBE_STREAM,)),
    "GetShardIterator": Purpose((_P.POSITION_STREAM,)),
    "GetRecords": Purpose((_P.READ_STREAM,)),
    "CreateTable": OF_NEW_TABLES,
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
    "ExportTableToPointInTime": Purpose((_P.EXPORT,)),
    "ImportTable": Purpose((_P.IMPORT,)),
    "StartBulkPutItems": Purpose((_P.LOAD,)),
    "CancelBulkOperation": Purpose((_P.CANCEL_JOB,)),
    "DescribeExport": Purpose((_P.DESCRIBE_JOB,)),
    "DescribeImport": Purpose((_P.DESCRIBE_JOB,)),
    "DescribeBulkOperation": Purpose((_P.DESCRIBE_JOB,)),
    "ListExports": Purpose((_P.LIST_JOBS,)),
    "ListImports": Purpose((_P.LIST_JOBS,)),
    "ListBulkOperations": Purpose((_P.LIST_JOBS,)),
    "ListContributorInsights": Purpose((_P.LIST_FEATURES,)),
    "ListGlobalTables": Purpose((_P.LIST_FEATURES,)),
    "DescribeGlobalTable": Purpose((_P.DESCRIBE_FEATURES,)),
    "DescribeContributorInsights": Purpose((_P.DESCRIBE_FEATURES,)),
    "DescribeKinesisStreamingDestination": Purpose((_P.DESCRIBE_FEATURES,)),
    "DescribeTableReplicaAutoScaling": Purpose((_P.DESCRIBE_FEATURES,)),
    "DescribeGlobalTableSettings": Purpose((_P.DESCRIBE_FEATURES,)),
    "UpdateContributorInsights": Purpose((_P.ALTER_INSIGHTS,)),
    "EnableKinesisStreamingDestination": Purpose((_P.ALTER_DELIVERIES,), also=(_P.READ_STREAM,)),
    "DisableKinesisStreamingDestination": Purpose((_P.ALTER_DELIVERIES,)),
    "UpdateKinesisStreamingDestination": Purpose((_P.ALTER_DELIVERIES,)),
    "UpdateTableReplicaAutoScaling": Purpose((_P.ALTER_FEATURES,)),
    "CreateGlobalTable": Purpose((_P.ALTER_FEATURES,)),
    "UpdateGlobalTable": Purpose((_P.ALTER_FEATURES,)),
    "UpdateGlobalTableSettings": Purpose((_P.ALTER_FEATURES,)),
    "GetResourcePolicy": Purpose((_P.READ_POLICY,)),
    "PutResourcePolicy": Purpose((_P.WRITE_POLICY,)),
    "DeleteResourcePolicy": Purpose((_P.REMOVE_POLICY,)),
}
"""Operation -> its purpose. Restricted callers may not use an operation that is absent."""


def purpose_of(purpose: Purpose, body: Mapping[str, Any]) -> Purpose:
    """Return the purpose of a CreateTable, which may also set tags and a policy."""
    also = [permission for member, permission in _BESIDES_TABLES.items() if body.get(member)]
    return purpose._replace(also=tuple(also))


_BESIDES_TABLES = {"Tags": _P.TAG, "ResourcePolicy": _P.WRITE_POLICY}


# The size of a table or backup is counted first where quotas of bytes are set (security/gate.py).
_BLOCKING = frozenset(
    {
        "CreateBackup",
        "ImportTable",
        "RestoreTableFromBackup",
        "RestoreTableToPointInTime",
        "StartBulkPutItems",
    }
)


def _operations(handlers: _Handlers, prefix: str = _DYNAMODB) -> dict[str, Operation]:
    return {
        prefix + name: Operation(handler, PURPOSES.get(name, UNKNOWN_PURPOSE), name in _BLOCKING)
        for name, handler in handlers.items()
    }


OPERATIONS: Mapping[str, Operation] = {
    **_operations(DATA),
    **_operations(_STREAM_READS, _STREAMS),
    **_operations(_CONTROL),
}
READING = frozenset({"BatchGetItem", "GetItem", "Query", "Scan", "TransactGetItems"})
"""Operations that only read items."""
