"""The operation table: each operation with its handler and the permissions that it needs.

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
from tablegate.gateway.model.authorization.permissions import Channel, Permission, Purpose


class Operation(NamedTuple):
    """One operation of the API.

    `purpose`: the permissions that a caller needs. `may_block`: it may wait for something other than the database, so
    the server runs it on a thread.
    """

    handler: Handler
    purpose: Purpose
    may_block: bool


def _operation(
    handler: Handler,
    *permissions: Permission,
    channel: Channel = Channel.SINGLE,
    also: tuple[Permission, ...] = (),
    may_block: bool = False,
) -> Operation:
    return Operation(handler, Purpose(permissions, channel, also), may_block)


_P, _C = Permission, Channel
_WRITES = (_P.PUT, _P.UPDATE, _P.DELETE, _P.CHECK)
_STATEMENTS = (_P.QUERY, _P.SCAN, _P.READ, *_WRITES)
DATA: Mapping[str, Operation] = {
    "GetItem": _operation(items.get_item, _P.READ),
    "PutItem": _operation(items.put_item, _P.PUT),
    "UpdateItem": _operation(items.update_item, _P.UPDATE),
    "DeleteItem": _operation(items.delete_item, _P.DELETE),
    "Query": _operation(queries.query, _P.QUERY),
    "Scan": _operation(queries.scan, _P.SCAN),
    "SearchVectors": _operation(vectors.search_vectors, _P.SEARCH),
    "BatchGetItem": _operation(batches.batch_get_item, _P.READ, channel=_C.BATCH),
    "BatchWriteItem": _operation(batches.batch_write_item, _P.PUT, _P.DELETE, channel=_C.BATCH),
    "TransactGetItems": _operation(transactions.transact_get_items, _P.READ, channel=_C.TRANSACTION),
    "TransactWriteItems": _operation(transactions.transact_write_items, *_WRITES, channel=_C.TRANSACTION),
    "ExecuteStatement": _operation(statements.execute_statement, *_STATEMENTS, channel=_C.STATEMENT),
    "BatchExecuteStatement": _operation(statements.batch_execute_statement, *_STATEMENTS, channel=_C.STATEMENT),
    "ExecuteTransaction": _operation(statement_transactions.execute_transaction, *_STATEMENTS, channel=_C.STATEMENT_TRANSACTION),
}  # fmt: skip
_STREAM_READS: Mapping[str, Operation] = {
    "ListStreams": _operation(streams.list_streams, _P.LIST_STREAMS),
    "DescribeStream": _operation(streams.describe_stream, _P.DESCRIBE_STREAM),
    "GetShardIterator": _operation(streams.get_shard_iterator, _P.POSITION_STREAM),
    "GetRecords": _operation(streams.get_records, _P.READ_STREAM),
}
# Those that may block count the size of a table or backup first, where quotas of bytes are set (security/gate.py).
_CONTROL: Mapping[str, Operation] = {
    "CreateTable": _operation(tables.create_table, _P.CREATE),
    "DescribeTable": _operation(tables.describe_table, _P.DESCRIBE),
    "ListTables": _operation(tables.list_tables, _P.LIST),
    "UpdateTable": _operation(replicas.update_table, _P.ALTER),
    "DeleteTable": _operation(replicas.delete_table, _P.DROP),
    "TagResource": _operation(tags.tag_resource, _P.TAG),
    "UntagResource": _operation(tags.untag_resource, _P.UNTAG),
    "ListTagsOfResource": _operation(tags.list_tags, _P.READ_TAGS),
    "UpdateTimeToLive": _operation(replicas.update_time_to_live, _P.ALTER_EXPIRY),
    "DescribeTimeToLive": _operation(time_to_live.describe_time_to_live, _P.DESCRIBE_EXPIRY),
    "DescribeLimits": _operation(account.describe_limits, _P.READ_ACCOUNT),
    "DescribeEndpoints": _operation(account.describe_endpoints, _P.READ_ACCOUNT),
    "DescribeContinuousBackups": _operation(recovery.describe_continuous_backups, _P.DESCRIBE_FEATURES),
    "UpdateContinuousBackups": _operation(recovery.update_continuous_backups, _P.ALTER_RECOVERY),
    "RestoreTableToPointInTime": _operation(recovery.restore_to_point_in_time, _P.RESTORE_MOMENT, may_block=True),
    "CreateBackup": _operation(backups.create_backup, _P.CREATE_BACKUP, may_block=True),
    "DescribeBackup": _operation(backups.describe_backup, _P.DESCRIBE_BACKUP),
    "ListBackups": _operation(backups.list_backups, _P.LIST_BACKUPS),
    "DeleteBackup": _operation(backups.delete_backup, _P.DELETE_BACKUP),
    "RestoreTableFromBackup": _operation(backups.restore_from_backup, _P.RESTORE_BACKUP, may_block=True),
    "ExportTableToPointInTime": _operation(export_api.export_table, _P.EXPORT),
    "DescribeExport": _operation(export_api.describe_export, _P.DESCRIBE_JOB),
    "ListExports": _operation(export_api.list_exports, _P.LIST_JOBS),
    "ImportTable": _operation(import_api.import_table, _P.IMPORT, may_block=True),
    "DescribeImport": _operation(import_api.describe_import, _P.DESCRIBE_JOB),
    "ListImports": _operation(import_api.list_imports, _P.LIST_JOBS),
    "StartBulkPutItems": _operation(bulk_put_api.start_bulk_put_items, _P.LOAD, may_block=True),
    "DescribeBulkOperation": _operation(bulk_put_api.describe_bulk_operation, _P.DESCRIBE_JOB),
    "ListBulkOperations": _operation(bulk_put_api.list_bulk_operations, _P.LIST_JOBS),
    "CancelBulkOperation": _operation(bulk_put_api.cancel_bulk_operation, _P.CANCEL_JOB),
    "ListContributorInsights": _operation(contributor_insights.list_contributor_insights, _P.LIST_FEATURES),
    "DescribeContributorInsights": _operation(contributor_insights.describe_contributor_insights, _P.DESCRIBE_FEATURES),
    "UpdateContributorInsights": _operation(contributor_insights.update_contributor_insights, _P.ALTER_INSIGHTS),
    "ListGlobalTables": _operation(global_tables.list_global_tables, _P.LIST_FEATURES),
    "DescribeGlobalTable": _operation(global_tables.describe_global_table, _P.DESCRIBE_FEATURES),
    "DescribeGlobalTableSettings": _operation(global_tables.refuse_settings, _P.DESCRIBE_FEATURES),
    "CreateGlobalTable": _operation(global_tables.create_global_table, _P.ALTER_FEATURES),
    "UpdateGlobalTable": _operation(global_tables.update_global_table, _P.ALTER_FEATURES),
    "UpdateGlobalTableSettings": _operation(global_tables.refuse_settings, _P.ALTER_FEATURES),
    "DescribeKinesisStreamingDestination": _operation(destinations.describe_destination, _P.DESCRIBE_FEATURES),
    "EnableKinesisStreamingDestination": _operation(
        destinations.enable_destination, _P.ALTER_DELIVERIES, also=(_P.READ_STREAM,), may_block=True
    ),
    "DisableKinesisStreamingDestination": _operation(destinations.disable_destination, _P.ALTER_DELIVERIES),
    "UpdateKinesisStreamingDestination": _operation(destinations.update_destination, _P.ALTER_DELIVERIES),
    "DescribeTableReplicaAutoScaling": _operation(replica_auto_scaling.describe_replica_auto_scaling, _P.DESCRIBE_FEATURES),
    "UpdateTableReplicaAutoScaling": _operation(replica_auto_scaling.update_replica_auto_scaling, _P.ALTER_FEATURES),
    "GetResourcePolicy": _operation(resource_policies.get_resource_policy, _P.READ_POLICY),
    "PutResourcePolicy": _operation(resource_policies.put_resource_policy, _P.WRITE_POLICY),
    "DeleteResourcePolicy": _operation(resource_policies.delete_resource_policy, _P.REMOVE_POLICY),
}  # fmt: skip

OPERATIONS: Mapping[str, Operation] = {**DATA, **_STREAM_READS, **_CONTROL}
NAMES: Mapping[str, str] = {
    f"DynamoDB{'Streams' if name in _STREAM_READS else ''}_20120810.{name}": name for name in OPERATIONS
}
"""X-Amz-Target -> name of the operation."""

_BESIDES_TABLES = {"Tags": _P.TAG, "ResourcePolicy": _P.WRITE_POLICY}


def purpose_of(name: str, body: Any) -> Purpose:
    """Return the purpose of a request. That of a CreateTable depends on its body: it may also set tags and a policy."""
    purpose = OPERATIONS[name].purpose
    if name != "CreateTable" or not isinstance(body, dict):
        return purpose
    return purpose._replace(
        also=tuple(_BESIDES_TABLES[member] for member in _BESIDES_TABLES if body.get(member))
    )
