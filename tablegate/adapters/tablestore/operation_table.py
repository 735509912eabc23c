"""The operation table: the operations that are always imported, and the modules of all others.

Any other operation is answered with OTSParameterInvalid.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from tablegate.adapters.tablestore.operation import Operation
from tablegate.adapters.tablestore.rows import batch_reads, batch_writes, ranges, rows, transactions
from tablegate.adapters.tablestore.tables import indexes, splits, tables
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.authorization.permissions import Channel, Permission, Purpose
from tablegate.gateway.operation_table import OperationTable

_P = Permission
_WRITES = (_P.PUT, _P.UPDATE, _P.DELETE)
_COMMON: Mapping[str, Operation] = {
    "CreateTable": Operation(messages.CreateTableRequest, tables.create_table, Purpose((_P.CREATE,))),
    "ListTable": Operation(messages.ListTableRequest, tables.list_table, Purpose((_P.LIST,))),
    "DescribeTable": Operation(messages.DescribeTableRequest, tables.describe_table, Purpose((_P.DESCRIBE,))),
    "UpdateTable": Operation(messages.UpdateTableRequest, tables.update_table, Purpose((_P.ALTER,))),
    "DeleteTable": Operation(messages.DeleteTableRequest, tables.delete_table, Purpose((_P.DROP,))),
    "AddDefinedColumn": Operation(
        messages.AddDefinedColumnRequest, tables.add_defined_column, Purpose((_P.ADD_COLUMNS,))
    ),
    "DeleteDefinedColumn": Operation(
        messages.DeleteDefinedColumnRequest, tables.delete_defined_column, Purpose((_P.DROP_COLUMNS,))
    ),
    "ComputeSplitPointsBySize": Operation(
        messages.ComputeSplitPointsBySizeRequest, splits.compute_split_points_by_size, Purpose((_P.SPLIT,))
    ),
    "CreateIndex": Operation(messages.CreateIndexRequest, indexes.create_index, Purpose((_P.CREATE_INDEX,))),
    "DropIndex": Operation(messages.DropIndexRequest, indexes.drop_index, Purpose((_P.DROP_INDEX,))),
    "ListTimeseriesTable": Operation(
        messages.ListTimeseriesTableRequest, indexes.list_timeseries_table, Purpose((_P.LIST_FEATURES,))
    ),
    "StartLocalTransaction": Operation(
        messages.StartLocalTransactionRequest, transactions.start_local_transaction, Purpose((_P.BEGIN,))
    ),
    "CommitTransaction": Operation(
        messages.CommitTransactionRequest, transactions.commit_transaction, Purpose((_P.COMMIT,))
    ),
    "AbortTransaction": Operation(
        messages.AbortTransactionRequest, transactions.abort_transaction, Purpose((_P.ABORT,))
    ),
    "GetRow": Operation(messages.GetRowRequest, rows.get_row, Purpose((_P.READ,))),
    "PutRow": Operation(messages.PutRowRequest, rows.put_row, Purpose((_P.PUT,))),
    "UpdateRow": Operation(messages.UpdateRowRequest, rows.update_row, Purpose((_P.UPDATE,))),
    "DeleteRow": Operation(messages.DeleteRowRequest, rows.delete_row, Purpose((_P.DELETE,))),
    "BatchGetRow": Operation(
        messages.BatchGetRowRequest, batch_reads.batch_get_row, Purpose((_P.READ,), Channel.BATCH)
    ),
    "BatchWriteRow": Operation(
        messages.BatchWriteRowRequest, batch_writes.batch_write_row, Purpose(_WRITES, Channel.BATCH)
    ),
    "GetRange": Operation(messages.GetRangeRequest, ranges.get_range, Purpose((_P.QUERY, _P.SCAN))),
    "BulkImport": Operation(
        messages.BulkImportRequest, batch_writes.bulk_import, Purpose(_WRITES, Channel.BATCH)
    ),
    "BulkExport": Operation(
        messages.BulkExportRequest, ranges.bulk_export, Purpose((_P.QUERY, _P.SCAN), Channel.BATCH)
    ),
}
_GROUPS: Mapping[str, tuple[str, ...]] = {
    "search.operations": (
        "CreateSearchIndex",
        "UpdateSearchIndex",
        "DescribeSearchIndex",
        "ListSearchIndex",
        "DeleteSearchIndex",
        "Search",
        "ComputeSplits",
        "ParallelScan",
    ),
    "sql.operations": ("SQLQuery",),
    "streams.operations": (
        "ListStream",
        "DescribeStream",
        "GetShardIterator",
        "GetStreamRecord",
    ),
    "tunnels.operations": (
        "tunnel/create",
        "tunnel/delete",
        "tunnel/list",
        "tunnel/describe",
        "tunnel/getrpo",
        "tunnel/connect",
        "tunnel/heartbeat",
        "tunnel/shutdown",
        "tunnel/getcheckpoint",
        "tunnel/checkpoint",
        "tunnel/readrecords",
    ),
}
"""Module -> the names of its operations."""

OPERATIONS = OperationTable(
    _COMMON, {f"tablegate.adapters.tablestore.{module}": names for module, names in _GROUPS.items()}
)


@lru_cache(maxsize=256)
def operation_name(path: str) -> str:
    """Return the last part of the path, or the last two for the tunnel service."""
    parts = path.strip("/").split("/")
    return "/".join(parts[-2:]) if parts[-2:-1] == ["tunnel"] else parts[-1]
