"""Search: a page of the rows that match a query."""

from __future__ import annotations

import math

from google.protobuf.message import Message

from tablegate.adapters.tablestore.search import tokens
from tablegate.adapters.tablestore.search.aggregation_results import aggregations_message, groups_message
from tablegate.adapters.tablestore.search.hits import hit_message
from tablegate.adapters.tablestore.search.search_indexes import (
    directed,
    find_indexed_table,
    find_search_index,
)
from tablegate.adapters.tablestore.search.search_requests import (
    command_of,
    selection_of,
    sort_of,
    timeout_ms_of,
)
from tablegate.adapters.tablestore.wire.call_context import CallContext, TableOrIndex
from tablegate.adapters.tablestore.wire.parsing import parse
from tablegate.adapters.tablestore.wire.plainbuffer import HEADER
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.gateway.features.search.hits import Details
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
        answer.next_token = tokens.encode(index.id, sort.SerializeToString(), *page.last)
    return answer
