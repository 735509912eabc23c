"""The operation table: name -> the message a request must be, and the handler that answers it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from google.protobuf.message import Message

from adapters.tablestore.rows import batches, ranges, rows, transactions
from adapters.tablestore.streams import streams
from adapters.tablestore.tables import indexes, splits, tables
from adapters.tablestore.wire.calls import Call
from adapters.tablestore.wire.protocol import table_store_pb2 as messages
from gateway.model.commands import Exchange


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the API. The message that `handle` returns is the body of the answer."""

    name: str
    request: type[Message]
    handle: Callable[[Call], Exchange[Message]]


def _table(
    *operations: tuple[str, type[Message], Callable[[Call], Exchange[Message]]],
) -> Mapping[str, Operation]:
    return {name: Operation(name, request, handle) for name, request, handle in operations}


OPERATIONS = _table(
    ("CreateTable", messages.CreateTableRequest, tables.create_table),
    ("ListTable", messages.ListTableRequest, tables.list_table),
    ("DescribeTable", messages.DescribeTableRequest, tables.describe_table),
    ("UpdateTable", messages.UpdateTableRequest, tables.update_table),
    ("DeleteTable", messages.DeleteTableRequest, tables.delete_table),
    ("AddDefinedColumn", messages.AddDefinedColumnRequest, tables.add_defined_column),
    ("DeleteDefinedColumn", messages.DeleteDefinedColumnRequest, tables.delete_defined_column),
    (
        "ComputeSplitPointsBySize",
        messages.ComputeSplitPointsBySizeRequest,
        splits.compute_split_points_by_size,
    ),
    ("CreateIndex", messages.CreateIndexRequest, indexes.create_index),
    ("DropIndex", messages.DropIndexRequest, indexes.drop_index),
    ("ListSearchIndex", messages.ListSearchIndexRequest, indexes.list_search_index),
    ("ListTimeseriesTable", messages.ListTimeseriesTableRequest, indexes.list_timeseries_table),
    (
        "StartLocalTransaction",
        messages.StartLocalTransactionRequest,
        transactions.start_local_transaction,
    ),
    ("CommitTransaction", messages.CommitTransactionRequest, transactions.commit_transaction),
    ("AbortTransaction", messages.AbortTransactionRequest, transactions.abort_transaction),
    ("ListStream", messages.ListStreamRequest, streams.list_stream),
    ("DescribeStream", messages.DescribeStreamRequest, streams.describe_stream),
    ("GetShardIterator", messages.GetShardIteratorRequest, streams.get_shard_iterator),
    ("GetStreamRecord", messages.GetStreamRecordRequest, streams.get_stream_record),
    ("GetRow", messages.GetRowRequest, rows.get_row),
    ("PutRow", messages.PutRowRequest, rows.put_row),
    ("UpdateRow", messages.UpdateRowRequest, rows.update_row),
    ("DeleteRow", messages.DeleteRowRequest, rows.delete_row),
    ("BatchGetRow", messages.BatchGetRowRequest, batches.batch_get_row),
    ("BatchWriteRow", messages.BatchWriteRowRequest, batches.batch_write_row),
    ("GetRange", messages.GetRangeRequest, ranges.get_range),
    ("BulkImport", messages.BulkImportRequest, batches.bulk_import),
    ("BulkExport", messages.BulkExportRequest, ranges.bulk_export),
)
