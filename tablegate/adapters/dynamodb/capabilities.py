"""The capabilities of this dialect, which common modules do not import: their operations and extensions.

A capability is removed by deleting its folder in features/ and its lines here.
"""

from __future__ import annotations

from collections.abc import Mapping

from tablegate.adapters.dynamodb.features.global_tables import replica_settings
from tablegate.adapters.dynamodb.features.insights import contributors
from tablegate.adapters.dynamodb.features.vectors import vector_indexes
from tablegate.adapters.dynamodb.tables.table_extensions import EXTENSIONS, KEY_COUNTERS

STREAMS = ("ListStreams", "DescribeStream", "GetShardIterator", "GetRecords")
OPERATION_GROUPS: Mapping[str, tuple[str, ...]] = {
    "tablegate.adapters.dynamodb.features.streams.operations": STREAMS,
    "tablegate.adapters.dynamodb.features.partiql.operations": (
        "ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction",
    ),
    "tablegate.adapters.dynamodb.features.vectors.operations": ("SearchVectors",),
    "tablegate.adapters.dynamodb.features.backups.operations": (
        "DescribeContinuousBackups", "UpdateContinuousBackups", "RestoreTableToPointInTime", "CreateBackup",
        "DescribeBackup", "ListBackups", "DeleteBackup", "RestoreTableFromBackup",
    ),
    "tablegate.adapters.dynamodb.features.global_tables.operations": (
        "ListGlobalTables", "DescribeGlobalTable", "DescribeGlobalTableSettings", "CreateGlobalTable",
        "UpdateGlobalTable", "UpdateGlobalTableSettings", "DescribeTableReplicaAutoScaling",
        "UpdateTableReplicaAutoScaling", "UpdateTable", "DeleteTable", "UpdateTimeToLive",
    ),
    "tablegate.adapters.dynamodb.features.exports_imports.operations": (
        "ExportTableToPointInTime", "DescribeExport", "ListExports", "ImportTable", "DescribeImport", "ListImports",
        "StartBulkPutItems", "DescribeBulkOperation", "ListBulkOperations", "CancelBulkOperation",
    ),
    "tablegate.adapters.dynamodb.features.kinesis.operations": (
        "DescribeKinesisStreamingDestination", "EnableKinesisStreamingDestination",
        "DisableKinesisStreamingDestination", "UpdateKinesisStreamingDestination",
    ),
    "tablegate.adapters.dynamodb.features.insights.operations": (
        "ListContributorInsights", "DescribeContributorInsights", "UpdateContributorInsights",
    ),
}  # fmt: skip
"""Module -> the names of its operations. They replace common operations of the same names."""

EXTENSIONS += [vector_indexes.EXTENSION, replica_settings.EXTENSION]
KEY_COUNTERS += [contributors]
