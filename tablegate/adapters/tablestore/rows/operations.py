"""The operations on rows and local transactions."""

from __future__ import annotations

from collections.abc import Mapping

from tablegate.adapters.tablestore.operation_table import Operation
from tablegate.adapters.tablestore.rows import batches, ranges, rows, transactions
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.authorization.permissions import Channel, Permission, Purpose

_P = Permission
_WRITES = (_P.PUT, _P.UPDATE, _P.DELETE)
OPERATIONS: Mapping[str, Operation] = {
    "StartLocalTransaction": Operation(
        messages.StartLocalTransactionRequest, transactions.start_local_transaction, Purpose((_P.BEGIN,)),
    ),
    "CommitTransaction": Operation(
        messages.CommitTransactionRequest, transactions.commit_transaction, Purpose((_P.COMMIT,)),
    ),
    "AbortTransaction": Operation(messages.AbortTransactionRequest, transactions.abort_transaction, Purpose((_P.ABORT,))),
    "GetRow": Operation(messages.GetRowRequest, rows.get_row, Purpose((_P.READ,))),
    "PutRow": Operation(messages.PutRowRequest, rows.put_row, Purpose((_P.PUT,))),
    "UpdateRow": Operation(messages.UpdateRowRequest, rows.update_row, Purpose((_P.UPDATE,))),
    "DeleteRow": Operation(messages.DeleteRowRequest, rows.delete_row, Purpose((_P.DELETE,))),
    "BatchGetRow": Operation(messages.BatchGetRowRequest, batches.batch_get_row, Purpose((_P.READ,), Channel.BATCH)),
    "BatchWriteRow": Operation(
        messages.BatchWriteRowRequest, batches.batch_write_row, Purpose(_WRITES, Channel.BATCH),
    ),
    "GetRange": Operation(messages.GetRangeRequest, ranges.get_range, Purpose((_P.QUERY, _P.SCAN))),
    "BulkImport": Operation(messages.BulkImportRequest, batches.bulk_import, Purpose(_WRITES, Channel.BATCH)),
    "BulkExport": Operation(messages.BulkExportRequest, ranges.bulk_export, Purpose((_P.QUERY, _P.SCAN), Channel.BATCH)),
}  # fmt: skip
