"""Search requests: the command, columns and positions that they ask for, and the messages of hits.

Sources: the HighlightParameter and InnerHits pages of the service, and the classes of the Java SDK.
"""

from __future__ import annotations

import dataclasses
import re

from tablegate.adapters.tablestore.features.search import request_values
from tablegate.adapters.tablestore.features.search.aggregations import inner_of
from tablegate.adapters.tablestore.features.search.index_schemas import all_fields
from tablegate.adapters.tablestore.features.search.queries import post_filter_of, query_of
from tablegate.adapters.tablestore.features.search.request_values import field_of
from tablegate.adapters.tablestore.features.search.search_indexes import described_schema
from tablegate.adapters.tablestore.features.search.sorts import sorters_of
from tablegate.adapters.tablestore.rows import selections
from tablegate.adapters.tablestore.rows.selections import RowSelection
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import invalid
from tablegate.adapters.tablestore.wire.parsing import parse
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.gateway.features.search.hits import Details, Highlight, HighlightedField
from tablegate.gateway.features.search.queries import InnerHits, Nearest, with_post_filter
from tablegate.gateway.features.search.ranking import FieldSort, KeySort, ScoreSort, Sorter
from tablegate.gateway.features.search.schema import FieldType, SearchField, SearchIndex
from tablegate.gateway.features.search.search_commands import SearchPosition, SearchRows
from tablegate.gateway.model.tables.tables import Table

_TAG = re.compile(r"""[<>"'/a-zA-Z0-9]*""")
# The default order of inner hits, which the service does not document.
_BY_SCORE = (ScoreSort(),)


class HitParser:
    """Parses the highlights and inner hits of a request for an index."""

    def __init__(self, index: SearchIndex) -> None:
        self._schema = index.schema
        fields = all_fields(described_schema(index).field_schemas)
        self._highlighted = {".".join(path) for path, field in fields if field.enable_highlighting}

    def highlight(self, message: messages.Highlight) -> Highlight:
        """Return the highlight of a message. Raises ServiceError."""
        parameters = message.highlight_parameters
        if len(parameters) > limits.HIGHLIGHTED_FIELDS_MAX:
            raise invalid(
                f"The number of highlight parameters exceeds the limit: {limits.HIGHLIGHTED_FIELDS_MAX}."
            )
        is_html = message.highlight_encoder == messages.HTML_MODE
        return Highlight(tuple(self._field(each) for each in parameters), is_html)

    def _field(self, parameter: messages.HighlightParameter) -> HighlightedField:
        name = parameter.field_name
        field = field_of(self._schema, name)
        if name not in self._highlighted or field.analyzer is None:
            raise invalid(f"highlighting is not supported for field[{name}]")
        number, size = limits.FRAGMENTS_DEFAULT, limits.FRAGMENT_SIZE_DEFAULT
        if parameter.HasField("number_of_fragments"):
            number = parameter.number_of_fragments
        if parameter.HasField("fragment_size"):
            size = parameter.fragment_size
        for value, title, most in (
            (number, "number of fragments", limits.FRAGMENTS_MAX),
            (size, "fragment size", limits.FRAGMENT_SIZE_MAX),
        ):
            if not 1 <= value <= most:
                raise invalid(f"The {title} must be in range: [1, {most}].")
        tags = [
            parameter.pre_tag if parameter.HasField("pre_tag") else "<em>",
            parameter.post_tag if parameter.HasField("post_tag") else "</em>",
        ]
        if any(len(tag) > limits.TAG_MAX_CHARACTERS or not _TAG.fullmatch(tag) for tag in tags):
            raise invalid(
                f"A tag must have at most {limits.TAG_MAX_CHARACTERS} characters of < > \" ' / and letters and digits."
            )
        by_score = parameter.fragments_order == messages.SCORE
        return HighlightedField(field, tags[0], tags[1], number, size, by_score)

    def inner_hits(self, message: messages.InnerHits, path: SearchField) -> InnerHits:
        """Return the inner hits of a query on a NESTED field. Raises ServiceError."""
        limit = message.limit if message.HasField("limit") else limits.INNER_HITS_DEFAULT
        if message.offset < 0 or limit < 0 or message.offset + limit > limits.INNER_HITS_MAX:
            raise invalid(
                f"The offset and limit of inner hits must be in range: [0, {limits.INNER_HITS_MAX}]."
            )
        sorters = tuple(_inside(sorter, path) for sorter in sorters_of(message.sort, self._schema))
        highlight = self.highlight(message.highlight) if message.HasField("highlight") else None
        return InnerHits(sorters or _BY_SCORE, message.offset, limit, highlight)


def _inside(sorter: Sorter, path: SearchField) -> Sorter:
    """Return a sorter of the objects of a NESTED field, in which the path to the field is omitted."""
    if isinstance(sorter, KeySort | ScoreSort):
        return sorter
    outer = (*path.ancestors, path.name)
    if sorter.field.ancestors[: len(outer)] != outer:
        raise invalid(f"The field '{sorter.field.name}' is not inside '{path.name}'.")
    inner = sorter.field.ancestors[len(outer) :]
    sorter = dataclasses.replace(sorter, field=dataclasses.replace(sorter.field, ancestors=inner))
    if isinstance(sorter, FieldSort) and sorter.other is not None:
        sorter = dataclasses.replace(sorter, other=dataclasses.replace(sorter.other, ancestors=inner))
    return sorter


def hit_message(score: float, details: Details, place: int | None = None) -> messages.SearchHit:
    """Return the message of a result. `place`: of an object in its NESTED field."""
    return messages.SearchHit(
        score=score,
        highlight_result=messages.HighlightResult(
            highlight_fields=[
                messages.HighlightField(field_name=name, field_fragments=fragments)
                for name, fragments in details.fragments.items()
            ]
        ),
        search_inner_hits=[
            messages.SearchInnerHit(
                path=path, search_hits=[hit_message(hit.score, hit.details, hit.place) for hit in hits]
            )
            for path, hits in details.inner
        ],
        nested_doc_offset=place,
    )


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
        index_id, sort, *parts = request_values.decode_token(token)
        position = request_values.position_of(parts)
        sort_bytes = bytes.fromhex(sort)
    except (ValueError, TypeError):
        raise invalid("Invalid next token.") from None
    if index_id != index.id:
        raise invalid("Invalid next token.")
    return parse(messages.Sort, sort_bytes, "the next token"), position
