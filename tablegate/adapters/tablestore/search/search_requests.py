"""Search requests: the command, columns and positions that they ask for."""

from __future__ import annotations

import dataclasses

from tablegate.adapters.tablestore.rows import selections
from tablegate.adapters.tablestore.rows.selections import RowSelection
from tablegate.adapters.tablestore.search import tokens
from tablegate.adapters.tablestore.search.aggregations import inner_of
from tablegate.adapters.tablestore.search.fields import field_of
from tablegate.adapters.tablestore.search.hits import HitParser
from tablegate.adapters.tablestore.search.queries import post_filter_of, query_of
from tablegate.adapters.tablestore.search.search_indexes import (
    described_schema,
)
from tablegate.adapters.tablestore.search.sorts import sorters_of
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import invalid
from tablegate.adapters.tablestore.wire.parsing import parse
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.gateway.features.search.queries import Nearest, with_post_filter
from tablegate.gateway.features.search.schema import FieldType, SearchField, SearchIndex
from tablegate.gateway.features.search.search_commands import SearchPosition, SearchRows
from tablegate.gateway.model.tables.tables import Table

_SCORE_FUNCTIONS = (messages.FUNCTION_SCORE_QUERY, messages.FUNCTIONS_SCORE_QUERY)
_COLLAPSED = frozenset({FieldType.LONG, FieldType.DOUBLE, FieldType.KEYWORD})


def command_of(
    request: messages.SearchQuery,
    table: Table,
    index: SearchIndex,
    selection: RowSelection,
    timeout_ms: int,
) -> SearchRows:
    """Return the command of a request. Raises ServiceError."""
    has_token = bool(request.token)
    if has_token and request.HasField("collapse"):
        raise invalid("The collapse can not be set with a token.")
    if has_token and request.offset:
        raise invalid("The offset can not be set with a token.")
    limit = request.limit if request.HasField("limit") else limits.SEARCH_LIMIT_DEFAULT
    _check_page(request.offset, limit, _is_in_index(selection, table, index))
    hit_parser = HitParser(index)
    query = query_of(request.query, index.schema, hit_parser.inner_hits)
    if isinstance(query, Nearest):
        # "KNN vector query" of the documentation: the limit replaces a lower top_k.
        query = dataclasses.replace(query, limit=max(query.limit, limit))
    if request.HasField("filter"):
        query = with_post_filter(query, post_filter_of(request.filter.query, index.schema))
    return SearchRows(
        table,
        index,
        query,
        sorters_of(sort_of(request, index), index.schema),
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


def _is_in_index(selection: RowSelection, table: Table, index: SearchIndex) -> bool:
    """Return True if an index has all selected columns. Every index has the primary key."""
    selected = selection.columns
    return bool(selected) and selected <= _indexed_columns(index).union(table.key_schema.names)


def _check_page(offset: int, limit: int, is_in_index: bool) -> None:
    most = limits.SEARCH_INDEXED_ROWS_MAX if is_in_index else limits.SEARCH_ROWS_MAX
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


def sort_of(request: messages.SearchQuery, index: SearchIndex) -> messages.Sort:
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
