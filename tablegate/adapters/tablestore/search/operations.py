"""The operations on search indexes."""

from __future__ import annotations

from collections.abc import Mapping

from tablegate.adapters.tablestore import DIALECT
from tablegate.adapters.tablestore.operation import Operation
from tablegate.adapters.tablestore.search import parallel_scans, search_index_updates, search_indexes
from tablegate.adapters.tablestore.search.search import search
from tablegate.adapters.tablestore.search.search_code import search_code
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.gateway.features.search.index_search import CODES
from tablegate.gateway.model.authorization.permissions import Channel, Permission, Purpose

_P = Permission
OPERATIONS: Mapping[str, Operation] = {
    "CreateSearchIndex": Operation(
        messages.CreateSearchIndexRequest, search_indexes.create_search_index,
        Purpose((_P.CREATE_INDEX,), Channel.SEARCH_INDEX),
    ),
    "UpdateSearchIndex": Operation(
        messages.UpdateSearchIndexRequest, search_index_updates.update_search_index,
        Purpose((_P.CREATE_INDEX,), Channel.SEARCH_INDEX),
    ),
    "DescribeSearchIndex": Operation(
        messages.DescribeSearchIndexRequest, search_indexes.describe_search_index,
        Purpose((_P.DESCRIBE,), Channel.SEARCH_INDEX), may_block=True,
    ),
    "ListSearchIndex": Operation(
        messages.ListSearchIndexRequest, search_indexes.list_search_index, Purpose((_P.LIST_FEATURES,)),
    ),
    "DeleteSearchIndex": Operation(
        messages.DeleteSearchIndexRequest, search_indexes.delete_search_index,
        Purpose((_P.DROP_INDEX,), Channel.SEARCH_INDEX),
    ),
    "Search": Operation(messages.SearchRequest, search, Purpose((_P.SCAN,), Channel.SEARCH_INDEX), may_block=True),
    "ComputeSplits": Operation(
        messages.ComputeSplitsRequest, parallel_scans.compute_splits, Purpose((_P.SCAN,), Channel.SEARCH_INDEX),
    ),
    "ParallelScan": Operation(
        messages.ParallelScanRequest, parallel_scans.parallel_scan, Purpose((_P.SCAN,), Channel.SEARCH_INDEX),
        may_block=True,
    ),
}  # fmt: skip

CODES[DIALECT] = search_code  # The console imports all operations.
