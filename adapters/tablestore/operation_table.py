"""The operation table: name -> the message a request must be, and the handler that answers it.

An operation that is not here is answered with OTSParameterInvalid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from google.protobuf.message import Message

from adapters.tablestore.rows import batches, ranges, rows, transactions
from adapters.tablestore.streams import streams
from adapters.tablestore.tables import indexes, splits, tables
from adapters.tablestore.wire.calls import Call
from adapters.tablestore.wire.protocol import table_store_pb2 as messages
from gateway.model.commands import Exchange


class Operation(NamedTuple):
    """One operation of the API. The message that its handler returns is the body of the answer."""

    request: type[Message]
    handler: Callable[[Call], Exchange[Message]]


OPERATIONS: Mapping[str, Operation] = {
    "CreateTable": Operation(messages.CreateTableRequest, tables.create_table),
    "ListTable": Operation(messages.ListTableRequest, tables.list_table),
    "DescribeTable": Operation(messages.DescribeTableRequest, tables.describe_table),
    "UpdateTable": Operation(messages.UpdateTableRequest, tables.update_table),
    "DeleteTable": Operation(messages.DeleteTableRequest, tables.delete_table),
    "AddDefinedColumn": Operation(messages.AddDefinedColumnRequest, tables.add_defined_column),
    "DeleteDefinedColumn": Operation(messages.DeleteDefinedColumnRequest, tables.delete_defined_column),
    "ComputeSplitPointsBySize": Operation(
        messages.ComputeSplitPointsBySizeRequest, splits.compute_split_points_by_size
    ),
    "CreateIndex": Operation(messages.CreateIndexRequest, indexes.create_index),
    "DropIndex": Operation(messages.DropIndexRequest, indexes.drop_index),
    "ListSearchIndex": Operation(messages.ListSearchIndexRequest, indexes.list_search_index),
    "ListTimeseriesTable": Operation(messages.ListTimeseriesTableRequest, indexes.list_timeseries_table),
    "StartLocalTransaction": Operation(
        messages.StartLocalTransactionRequest, transactions.start_local_transaction
    ),
    "CommitTransaction": Operation(messages.CommitTransactionRequest, transactions.commit_transaction),
    "AbortTransaction": Operation(messages.AbortTransactionRequest, transactions.abort_transaction),
    "ListStream": Operation(messages.ListStreamRequest, streams.list_stream),
    "DescribeStream": Operation(messages.DescribeStreamRequest, streams.describe_stream),
    "GetShardIterator": Operation(messages.GetShardIteratorRequest, streams.get_shard_iterator),
    "GetStreamRecord": Operation(messages.GetStreamRecordRequest, streams.get_stream_record),
    "GetRow": Operation(messages.GetRowRequest, rows.get_row),
    "PutRow": Operation(messages.PutRowRequest, rows.put_row),
    "UpdateRow": Operation(messages.UpdateRowRequest, rows.update_row),
    "DeleteRow": Operation(messages.DeleteRowRequest, rows.delete_row),
    "BatchGetRow": Operation(messages.BatchGetRowRequest, batches.batch_get_row),
    "BatchWriteRow": Operation(messages.BatchWriteRowRequest, batches.batch_write_row),
    "GetRange": Operation(messages.GetRangeRequest, ranges.get_range),
    "BulkImport": Operation(messages.BulkImportRequest, batches.bulk_import),
    "BulkExport": Operation(messages.BulkExportRequest, ranges.bulk_export),
}
READING = frozenset({"GetRow", "BatchGetRow", "GetRange", "BulkExport"})
"""Operations that do nothing but read rows."""
