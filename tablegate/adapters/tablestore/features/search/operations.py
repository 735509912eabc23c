"""Search, ComputeSplits and ParallelScan, and the list of all operations on search indexes.

A parallel scan returns all rows that match a query, without an order. It has one part, which is read in the order of the
primary key. A session has no state: its id and its tokens have the time at which it expires. Source:
search.proto of the Java and Python SDKs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from google.protobuf.message import Message

from tablegate.adapters.tablestore import DIALECT
from tablegate.adapters.tablestore.call import CallContext, TableOrIndex
from tablegate.adapters.tablestore.features.search import request_values, search_indexes
from tablegate.adapters.tablestore.features.search.aggregations import aggregations_message, groups_message
from tablegate.adapters.tablestore.features.search.queries import query_of
from tablegate.adapters.tablestore.features.search.search_code import search_code
from tablegate.adapters.tablestore.features.search.search_indexes import (
    directed,
    find_indexed_table,
    find_search_index,
)
from tablegate.adapters.tablestore.features.search.search_requests import (
    command_of,
    hit_message,
    selection_of,
    sort_of,
    timeout_ms_of,
)
from tablegate.adapters.tablestore.operation_table import Operation
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import ServiceError, invalid
from tablegate.adapters.tablestore.wire.parsing import parse
from tablegate.adapters.tablestore.wire.plainbuffer import HEADER
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.gateway.features.search.hits import Details
from tablegate.gateway.features.search.index_search import CODES
from tablegate.gateway.features.search.schema import SearchIndex
from tablegate.gateway.features.search.search_commands import SearchPosition, SearchRows
from tablegate.gateway.model.authorization.permissions import Channel, Permission, Purpose
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import Row

_NOT_COUNTED = -1


async def search(call: CallContext) -> Message:
    """Search: rows that match a query, in an order. Raises ServiceError."""
    message = call.message
    request = parse(messages.SearchQuery, message.search_query, "the search query")
    table = await find_indexed_table(call, message.table_name)
    named = await find_search_index(table, message.index_name)
    index = await directed(table, named, request.token)
    selection = selection_of(message.columns_to_get, table, index)
    command = command_of(request, table, index, selection, timeout_ms_of(message))
    page = await command
    target = TableOrIndex.of(table)
    cut = selection.cutter(target)

    def row_bytes(row: Row) -> bytes:
        return HEADER + selection.row_bytes(target, cut(row))

    def top_row(position: Position) -> bytes | None:
        row = page.top_rows.get(position)
        return None if row is None else row_bytes(row)

    answer = messages.SearchResponse(
        total_hits=_NOT_COUNTED if page.total is None else page.total,
        rows=[row_bytes(row) for row in page.rows],
        is_all_succeeded=True,
    )
    # SearchHit of the Java SDK: the score is NaN where none was computed.
    scores = page.scores if command.returns_scores else [math.nan] * len(page.rows)
    details = page.details or [Details()] * len(page.rows)
    answer.search_hits.extend(map(hit_message, scores, details))
    aggregations, groups = command.aggregated.aggregations, command.aggregated.groups
    if aggregations:
        found = aggregations_message(aggregations, page.aggregations.aggregations, top_row)
        answer.aggs = found.SerializeToString()
    if groups:
        answer.group_bys = groups_message(groups, page.aggregations.groups, top_row).SerializeToString()
    sort = sort_of(request, index)
    # The Java SDK's TestMetaService expects a token after each full page, also after the last one.
    may_continue = page.has_more or len(page.rows) == command.limit
    if may_continue and page.last is not None and sort.sorter and command.collapse is None:
        answer.next_token = request_values.encode_token(index.id, sort.SerializeToString(), *page.last)
    return answer


_SPLITS = 1
_EXPIRED = ServiceError(
    "OTSSessionExpired",
    "ScanQuery'session is expired, please retry ComputeSplitsRequest and ScanQuery.",
)


async def compute_splits(call: CallContext) -> Message:
    """ComputeSplits: a session of parallel scans. Raises ServiceError."""
    message = call.message
    if not message.search_index_splits_options.index_name:
        raise invalid("[search index splits options] must not be null")
    _, index = await _find(call, message.search_index_splits_options.index_name)
    expires_at_ms = call.now_ms + limits.SCAN_ALIVE_DEFAULT_S * 1000
    return messages.ComputeSplitsResponse(
        session_id=request_values.encode_token(index.id, expires_at_ms), splits_size=_SPLITS
    )


async def parallel_scan(call: CallContext) -> Message:
    """ParallelScan: the next rows of a session. Raises ServiceError."""
    message = call.message
    scan = parse(messages.ScanQuery, message.scan_query, "the scan query")
    table, index = await _find(call, message.index_name)
    _check(scan)
    if message.columns_to_get.return_type == messages.RETURN_ALL and message.columns_to_get.HasField(
        "return_type"
    ):
        raise invalid("The return type of a parallel scan must be RETURN_SPECIFIED or RETURN_ALL_FROM_INDEX.")
    selection = selection_of(message.columns_to_get, table, index)
    command = SearchRows(
        table,
        index,
        query_of(scan.query, index.schema),
        after=_position_of(call, index, scan.token or message.session_id),
        limit=scan.limit if scan.HasField("limit") else limits.SCAN_ROWS_MAX,
        visible_attributes=selection,
        timeout_ms=timeout_ms_of(message),
    )
    page = await command
    target = TableOrIndex.of(table)
    cut = selection.cutter(target)
    answer = messages.ParallelScanResponse(
        rows=[HEADER + selection.row_bytes(target, cut(row)) for row in page.rows]
    )
    if page.last is not None:
        alive_s = scan.alive_time if scan.HasField("alive_time") else limits.SCAN_ALIVE_DEFAULT_S
        answer.next_token = request_values.encode_token(index.id, call.now_ms + alive_s * 1000, *page.last)
    return answer


async def _find(call: CallContext, index_name: str) -> tuple[Table, SearchIndex]:
    table = await find_indexed_table(call, call.message.table_name)
    index = await find_search_index(table, index_name)
    return table, index


def _check(scan: messages.ScanQuery) -> None:
    most = scan.max_parallel if scan.HasField("max_parallel") else _SPLITS
    if not 0 < most <= _SPLITS:
        raise invalid(
            f"[parallel_scan.max_parallel_id] must in (0 ,{_SPLITS}], current max_parallel_id is {most}"
        )
    if not 0 <= scan.current_parallel_id < most:
        raise invalid(
            "[parallel_scan.current_parallel_id] must in [0, max_parallel), "
            f"current max_parallel is {most}, current_parallel_id is {scan.current_parallel_id}"
        )
    if scan.HasField("limit") and not 0 < scan.limit <= limits.SCAN_ROWS_MAX:
        raise invalid(f"The limit of a parallel scan must be in range: [1, {limits.SCAN_ROWS_MAX}].")
    if scan.HasField("alive_time") and not 0 < scan.alive_time <= limits.SCAN_ALIVE_MAX_S:
        raise invalid(f"The alive time of a parallel scan must be in range: [1, {limits.SCAN_ALIVE_MAX_S}].")


def _position_of(call: CallContext, index: SearchIndex, token: bytes) -> SearchPosition | None:
    """Return the position of a token. None for the id of a session. Raises ServiceError."""
    try:
        index_id, expires_at_ms, *parts = request_values.decode_token(token)
        position = request_values.position_of(parts) if parts else None
        is_expired = expires_at_ms < call.now_ms
    except (ValueError, TypeError):
        raise invalid("Invalid session id or token of a parallel scan.") from None
    if index_id != index.id or is_expired:
        raise _EXPIRED
    return position


_P = Permission
OPERATIONS: Mapping[str, Operation] = {
    "CreateSearchIndex": Operation(
        messages.CreateSearchIndexRequest, search_indexes.create_search_index,
        Purpose((_P.CREATE_INDEX,), Channel.SEARCH_INDEX),
    ),
    "UpdateSearchIndex": Operation(
        messages.UpdateSearchIndexRequest, search_indexes.update_search_index,
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
        messages.ComputeSplitsRequest, compute_splits, Purpose((_P.SCAN,), Channel.SEARCH_INDEX),
    ),
    "ParallelScan": Operation(
        messages.ParallelScanRequest, parallel_scan, Purpose((_P.SCAN,), Channel.SEARCH_INDEX),
        may_block=True,
    ),
}  # fmt: skip

CODES[DIALECT] = search_code  # The console imports all operations.
