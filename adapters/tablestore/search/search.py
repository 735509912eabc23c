"""Search: a page of the rows that match a query."""

from __future__ import annotations

import dataclasses
import math

from google.protobuf.message import Message

from tablegate.adapters.tablestore.rows import selections
from tablegate.adapters.tablestore.rows.selections import RowSelection
from tablegate.adapters.tablestore.search import tokens
from tablegate.adapters.tablestore.search.aggregation_results import aggregations_message, groups_message
from tablegate.adapters.tablestore.search.aggregations import inner_of
from tablegate.adapters.tablestore.search.fields import field_of
from tablegate.adapters.tablestore.search.hits import HitParser, hit_message
from tablegate.adapters.tablestore.search.queries import query_of
from tablegate.adapters.tablestore.search.search_indexes import (
    described_schema,
    directed,
    find_indexed_table,
    find_search_index,
)
from tablegate.adapters.tablestore.search.sorts import sorters_of
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.call_context import CallContext, TableOrIndex
from tablegate.adapters.tablestore.wire.errors import invalid
from tablegate.adapters.tablestore.wire.parsing import parse
from tablegate.adapters.tablestore.wire.plainbuffer import HEADER
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.gateway.exchanges import one
from tablegate.gateway.model.commands.commands import Exchange
from tablegate.gateway.model.commands.search_commands import SearchPosition, SearchRows
from tablegate.gateway.model.search.hits import Details
from tablegate.gateway.model.search.queries import Nearest
from tablegate.gateway.model.search.schema import FieldType, SearchField, SearchIndex
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import Row

_NOT_COUNTED = -1
_SCORE_FUNCTIONS = (messages.FUNCTION_SCORE_QUERY, messages.FUNCTIONS_SCORE_QUERY)
_COLLAPSED = frozenset({FieldType.LONG, FieldType.DOUBLE, FieldType.KEYWORD})


def search(call: CallContext) -> Exchange[Message]:
    """Search: rows that match a query, in an order. Raises ServiceError."""
    message = call.message
    request = parse(messages.SearchQuery, message.search_query, "the search query")
    table: Table = yield from find_indexed_table(call, message.table_name)
    named = yield from find_search_index(table, message.index_name)
    index = yield from directed(table, named, request.token)
    selection = selection_of(message.columns_to_get, table, index)
    command = _command_of(request, table, index, selection, timeout_ms_of(message))
    page = yield from one(command)
    target = TableOrIndex.of_table(table)
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
    sort = _sort_of(request, index)
    # The Java SDK's TestMetaService expects a token after each full page, also after the last one.
    may_continue = page.has_more or len(page.rows) == command.limit
    if may_continue and page.last is not None and sort.sorter and command.collapse is None:
        answer.next_token = tokens.encode(index.id, sort.SerializeToString(), *page.last)
    return answer


def _command_of(
    request: messages.SearchQuery,
    table: Table,
    index: SearchIndex,
    selection: RowSelection,
    timeout_ms: int,
) -> SearchRows:
    if request.HasField("filter"):
        raise invalid("filter is not supported.")
    has_token = bool(request.token)
    if has_token and request.HasField("collapse"):
        raise invalid("The collapse can not be set with a token.")
    if has_token and request.offset:
        raise invalid("The offset can not be set with a token.")
    limit = request.limit if request.HasField("limit") else limits.SEARCH_LIMIT_DEFAULT
    _check_page(request.offset, limit, selection, index)
    hit_parser = HitParser(index)
    query = query_of(request.query, index.schema, hit_parser.inner_hits)
    if isinstance(
        query, Nearest
    ):  # "KNN vector query" of the documentation: the limit replaces a lower top_k
        query = dataclasses.replace(query, limit=max(query.limit, limit))
    return SearchRows(
        table,
        index,
        query,
        sorters_of(_sort_of(request, index), index.schema),
        _position_of(request.token, index)[1] if has_token else None,
        request.offset,
        limit,
        counts=request.get_total_count or request.track_total_count > 0,
        aggregated=inner_of(request.aggs, request.group_bys, index.schema),
        highlight=hit_parser.highlight(request.highlight),
        collapse=_collapse_of(request.collapse, index) if request.HasField("collapse") else None,
        visible_attributes=selection if selection.columns else None,
        timeout_ms=timeout_ms,
    )


def _collapse_of(collapse: messages.Collapse, index: SearchIndex) -> SearchField:
    field = field_of(index.schema, collapse.field_name)
    if field.type not in _COLLAPSED or field.is_array or field.ancestors:
        raise invalid(f"The field '{field.name}' can not be collapsed by.")
    return field


def timeout_ms_of(request: messages.SearchRequest | messages.ParallelScanRequest) -> int:
    """Return the time that a search may take. Clients send 0 or -1 for none of their own."""
    if request.timeout_ms <= 0:
        return limits.SEARCH_TIMEOUT_MS
    return min(request.timeout_ms, limits.SEARCH_TIMEOUT_MS)


def _check_page(offset: int, limit: int, selection: RowSelection, index: SearchIndex) -> None:
    is_indexed = bool(selection.columns) and selection.columns <= _indexed_columns(index)
    most = limits.SEARCH_INDEXED_ROWS_MAX if is_indexed else limits.SEARCH_ROWS_MAX
    if not 0 <= limit <= most:
        raise invalid(f"The limit of a search must be in range: [0, {most}].")
    if offset < 0 or offset + limit > limits.SEARCH_RESULTS_MAX:
        raise invalid(f"The offset and limit of a search must be in range: [0, {limits.SEARCH_RESULTS_MAX}].")


def selection_of(requested: messages.ColumnsToGet, table: Table, index: SearchIndex) -> RowSelection:
    """Return the columns of a reply. The primary key is always included. Raises ServiceError."""
    key_names = frozenset(table.key_schema.names)
    if requested.return_type == messages.RETURN_ALL and requested.HasField("return_type"):
        return selections.everything()
    if requested.return_type == messages.RETURN_SPECIFIED:
        return selections.everything(selections.columns_of(requested.column_names) | key_names)
    if requested.return_type == messages.RETURN_ALL_FROM_INDEX:
        return selections.everything(_indexed_columns(index) | key_names)
    return selections.everything(key_names)


def _indexed_columns(index: SearchIndex) -> frozenset[str]:
    return frozenset(field.source for field in index.schema.fields if field.is_stored)


# Tokens


def _sort_of(request: messages.SearchQuery, index: SearchIndex) -> messages.Sort:
    """Return the sort of a request: of its token, its own, or that of the index."""
    if request.token:
        sort = _position_of(request.token, index)[0]
        if request.HasField("sort") and request.sort != sort:
            raise invalid("The sort can not be changed with a token.")
        return sort
    if request.sort.sorter:
        return request.sort
    of_index = described_schema(index).index_sort
    kind = request.query.type
    # search.test.js of the Node SDK: without an order of the index, functions of scores decide.
    if kind == messages.KNN_VECTOR_QUERY or (kind in _SCORE_FUNCTIONS and not of_index.sorter):
        return messages.Sort(sorter=[messages.Sorter(score_sort=messages.ScoreSort())])
    return of_index


def _position_of(token: bytes, index: SearchIndex) -> tuple[messages.Sort, SearchPosition]:
    """Return the sort and the position of a token. Raises ServiceError for a token of another index."""
    try:
        index_id, sort, *parts = tokens.decode(token)
        position = tokens.position_of(parts)
        sort_bytes = bytes.fromhex(sort)
    except (ValueError, TypeError):
        raise invalid("Invalid next token.") from None
    if index_id != index.id:
        raise invalid("Invalid next token.")
    return parse(messages.Sort, sort_bytes, "the next token"), position
