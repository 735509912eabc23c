"""The operation table: name -> message type, handler and purpose.

Any other operation is answered with OTSParameterInvalid.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from google.protobuf.message import Message

from tablegate.adapters.tablestore.rows import batch_reads, batch_writes, ranges, rows, transactions
from tablegate.adapters.tablestore.search import parallel_scans, search, search_index_updates, search_indexes
from tablegate.adapters.tablestore.streams import streams
from tablegate.adapters.tablestore.tables import indexes, splits, tables
from tablegate.adapters.tablestore.tunnels import clients, tunnels
from tablegate.adapters.tablestore.wire.call_context import CallContext, Handler
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as search_messages
from tablegate.adapters.tablestore.wire.protocol import sql_pb2, tunnel_pb2
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.authorization.permissions import UNKNOWN_PURPOSE, Channel, Permission, Purpose


class Operation(NamedTuple):
    """An operation of the API. The handler returns the message of the reply.

    `purpose`: the needed permissions. `may_block`: it may take long, so the server runs it on a thread.
    """

    request: type[Message]
    handler: Handler
    purpose: Purpose = UNKNOWN_PURPOSE
    may_block: bool = False


async def _sql_query(call: CallContext) -> Message:
    # Imported here, since few servers get SQL and its modules take a megabyte (docs/architecture.md section 11).
    from tablegate.adapters.tablestore.sql import statements

    return await statements.sql_query(call)


_P = Permission
_WRITES = (_P.PUT, _P.UPDATE, _P.DELETE)

_DEFINING_TUNNELS = Purpose((_P.ALTER_DELIVERIES,), Channel.TUNNEL)
_DESCRIBING_TUNNELS = Purpose((_P.DESCRIBE_STREAM,), Channel.TUNNEL)
_READING_TUNNELS = Purpose((_P.READ_STREAM, _P.SCAN), Channel.TUNNEL)
SEARCH_OPERATIONS: Mapping[str, Operation] = {
    "CreateSearchIndex": Operation(
        search_messages.CreateSearchIndexRequest,
        search_indexes.create_search_index,
        Purpose((_P.CREATE_INDEX,), Channel.SEARCH_INDEX),
    ),
    "UpdateSearchIndex": Operation(
        search_messages.UpdateSearchIndexRequest,
        search_index_updates.update_search_index,
        Purpose((_P.CREATE_INDEX,), Channel.SEARCH_INDEX),
    ),
    "DescribeSearchIndex": Operation(
        search_messages.DescribeSearchIndexRequest,
        search_indexes.describe_search_index,
        Purpose((_P.DESCRIBE,), Channel.SEARCH_INDEX),
        may_block=True,
    ),
    "ListSearchIndex": Operation(
        search_messages.ListSearchIndexRequest, search_indexes.list_search_index, Purpose((_P.LIST_FEATURES,))
    ),
    "DeleteSearchIndex": Operation(
        search_messages.DeleteSearchIndexRequest,
        search_indexes.delete_search_index,
        Purpose((_P.DROP_INDEX,), Channel.SEARCH_INDEX),
    ),
    "Search": Operation(
        search_messages.SearchRequest,
        search.search,
        Purpose((_P.SCAN,), Channel.SEARCH_INDEX),
        may_block=True,
    ),
    "ComputeSplits": Operation(
        search_messages.ComputeSplitsRequest,
        parallel_scans.compute_splits,
        Purpose((_P.SCAN,), Channel.SEARCH_INDEX),
    ),
    "ParallelScan": Operation(
        search_messages.ParallelScanRequest,
        parallel_scans.parallel_scan,
        Purpose((_P.SCAN,), Channel.SEARCH_INDEX),
        may_block=True,
    ),
}

OPERATIONS: Mapping[str, Operation] = {
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
    **SEARCH_OPERATIONS,
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
    "ListStream": Operation(messages.ListStreamRequest, streams.list_stream, Purpose((_P.LIST_STREAMS,))),
    "DescribeStream": Operation(
        messages.DescribeStreamRequest, streams.describe_stream, Purpose((_P.DESCRIBE_STREAM,))
    ),
    "GetShardIterator": Operation(
        messages.GetShardIteratorRequest, streams.get_shard_iterator, Purpose((_P.POSITION_STREAM,))
    ),
    "GetStreamRecord": Operation(
        messages.GetStreamRecordRequest, streams.get_stream_record, Purpose((_P.READ_STREAM,))
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
    "SQLQuery": Operation(
        sql_pb2.SQLQueryRequest,
        _sql_query,
        Purpose((_P.SCAN, _P.QUERY, _P.ALTER), Channel.STATEMENT),
        may_block=True,
    ),
    "tunnel/create": Operation(tunnel_pb2.CreateTunnelRequest, tunnels.create_tunnel, _DEFINING_TUNNELS),
    "tunnel/delete": Operation(tunnel_pb2.DeleteTunnelRequest, tunnels.delete_tunnel, _DEFINING_TUNNELS),
    "tunnel/list": Operation(tunnel_pb2.ListTunnelRequest, tunnels.list_tunnel, _DESCRIBING_TUNNELS),
    "tunnel/describe": Operation(
        tunnel_pb2.DescribeTunnelRequest, tunnels.describe_tunnel, _DESCRIBING_TUNNELS
    ),
    "tunnel/getrpo": Operation(tunnel_pb2.GetRpoRequest, tunnels.get_rpo, _DESCRIBING_TUNNELS),
    "tunnel/connect": Operation(tunnel_pb2.ConnectRequest, clients.connect, _READING_TUNNELS),
    "tunnel/heartbeat": Operation(tunnel_pb2.HeartbeatRequest, clients.heartbeat, _READING_TUNNELS),
    "tunnel/shutdown": Operation(tunnel_pb2.ShutdownRequest, clients.shutdown, _READING_TUNNELS),
    "tunnel/getcheckpoint": Operation(
        tunnel_pb2.GetCheckpointRequest, clients.get_checkpoint, _READING_TUNNELS
    ),
    "tunnel/checkpoint": Operation(tunnel_pb2.CheckpointRequest, clients.checkpoint, _READING_TUNNELS),
    "tunnel/readrecords": Operation(tunnel_pb2.ReadRecordsRequest, clients.read_records, _READING_TUNNELS),
}


@lru_cache(maxsize=256)
def operation_name(path: str) -> str:
    """Return the last part of the path, or the last two for the tunnel service."""
    parts = path.strip("/").split("/")
    return "/".join(parts[-2:]) if parts[-2:-1] == ["tunnel"] else parts[-1]
