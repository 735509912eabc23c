"""Conversion of protobuf filters and column conditions to predicates.

Both have one language, except that only filters of reads may have a pagination. Features without an equivalent in
predicates are desugared. "Pass if missing" is an Or with a test of the column, and a typed comparison also tests the
kind of its constant. Parsed filters are cached by their bytes, since clients repeat them. Source:
docs/protocols/table-store.md section 2.5 and 4.4.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from tablegate.adapters.tablestore.values import SHOWN_KINDS, check_attribute
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import invalid
from tablegate.adapters.tablestore.wire.names import check_column_name
from tablegate.adapters.tablestore.wire.parsing import MessageT, parse
from tablegate.adapters.tablestore.wire.plainbuffer import PlainBufferError, decode_value
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.expressions.predicates import (
    ALWAYS,
    TEXT_MAX_BYTES,
    And,
    AnyVersion,
    Attribute,
    BadPattern,
    Compare,
    Comparison,
    ExtractedValue,
    HasKind,
    Literal,
    Not,
    Operand,
    Or,
    Pattern,
    Predicate,
    patterns_of,
    reach_bytes,
    with_reach,
)
from tablegate.gateway.model.values.values import Kind, Value


class Pagination(NamedTuple):
    """The returned columns of a row, sorted by name: an offset and a limit."""

    offset: int
    limit: int


class ReadFilter(NamedTuple):
    """The filter of a read: a predicate on rows, and a pagination of their columns."""

    predicate: Predicate
    pagination: Pagination | None


NO_FILTER = ReadFilter(ALWAYS, None)

_COMPARISONS = {
    messages.CT_EQUAL: Comparison.EQ,
    messages.CT_NOT_EQUAL: Comparison.NE,
    messages.CT_GREATER_THAN: Comparison.GT,
    messages.CT_GREATER_EQUAL: Comparison.GE,
    messages.CT_LESS_THAN: Comparison.LT,
    messages.CT_LESS_EQUAL: Comparison.LE,
}

_CASTS = {
    messages.VT_INTEGER: Kind.INT64,
    messages.VT_DOUBLE: Kind.DOUBLE,
    messages.VT_STRING: Kind.TEXT,
    messages.VT_BLOB: Kind.BYTES,
}


def parse_filter(data: bytes) -> ReadFilter:
    """Parse the filter of a read. Empty bytes mean none. Raises ServiceError."""
    return _read_filter(data, True) if data else NO_FILTER


def parse_condition(data: bytes) -> Predicate:
    """Parse the column condition of a write. Empty bytes mean none. Raises ServiceError."""
    return _read_filter(data, False).predicate if data else ALWAYS


def _read_filter(data: bytes, may_paginate: bool) -> ReadFilter:
    return (_parse_cached if len(data) <= _CACHED_BYTES else _parse)(data, may_paginate)


_CACHED_BYTES = 4096


def _parse(data: bytes, may_paginate: bool) -> ReadFilter:
    top = _read(messages.Filter, data)
    _count(top, [0], 0)
    if top.type == messages.FT_COLUMN_PAGINATION:
        if not may_paginate:
            raise invalid("ColumnPaginationFilter is not supported in condition.")
        return ReadFilter(ALWAYS, _pagination(top.filter))
    if top.type == messages.FT_COMPOSITE_COLUMN_VALUE:
        composite = _read(messages.CompositeColumnValueFilter, top.filter)
        if may_paginate and composite.combinator == messages.LO_AND and len(composite.sub_filters) > 1:
            return _with_pagination(composite)
    return ReadFilter(_limit_patterns(_predicate(top)), None)


def _limit_patterns(predicate: Predicate) -> Predicate:
    """Limit the searched text of all patterns together, which bounds their time."""
    reach = reach_bytes(sum(pattern.steps for pattern in patterns_of(predicate)))
    return predicate if reach >= TEXT_MAX_BYTES else with_reach(predicate, reach)


_parse_cached = lru_cache(maxsize=1024)(_parse)


def _with_pagination(composite: messages.CompositeColumnValueFilter) -> ReadFilter:
    """Parse an AND. One part may be a pagination. It applies to the columns of the rows that pass the other
    parts."""
    pagination = None
    parts = []
    for part in composite.sub_filters:
        if part.type == messages.FT_COLUMN_PAGINATION and pagination is None:
            pagination = _pagination(part.filter)
        else:
            parts.append(_predicate(part))
    return ReadFilter(_limit_patterns(And(tuple(parts)) if len(parts) > 1 else parts[0]), pagination)


def _count(node: messages.Filter, nodes: list[int], depth: int) -> None:
    """Refuse a filter that is too large before any other validation.

    Source: aliyun-tablestore-java-sdk, model/UnifiedFilterRestrictionAndParamCheckingTest.
    """
    nodes[0] += 1
    if nodes[0] > limits.FILTER_NODES_MAX or depth > limits.FILTER_NODES_MAX:
        raise invalid(f"The count of filter exceeds the max: {limits.FILTER_NODES_MAX}.")
    if node.type == messages.FT_COMPOSITE_COLUMN_VALUE:
        for part in _read(messages.CompositeColumnValueFilter, node.filter).sub_filters:
            _count(part, nodes, depth + 1)


def _pattern(rule: messages.ValueTransferRule) -> Pattern:
    shortened = rule.regex[:100]
    if len(rule.regex.encode()) > limits.REGEX_MAX_BYTES:
        raise invalid(f"The length of regex: '{shortened}' exceeds the max: {limits.REGEX_MAX_BYTES}.")
    try:
        return Pattern(rule.regex)
    except BadPattern as error:
        raise invalid(f"Invalid regex: '{shortened}' ({str(error)[:100]}).") from None


def _predicate(node: messages.Filter) -> Predicate:
    if node.type == messages.FT_SINGLE_COLUMN_VALUE:
        return _single(_read(messages.SingleColumnValueFilter, node.filter))
    if node.type == messages.FT_COMPOSITE_COLUMN_VALUE:
        return _composite(_read(messages.CompositeColumnValueFilter, node.filter))
    raise invalid("ColumnPaginationFilter can not be combined with other filters.")


def _composite(composite: messages.CompositeColumnValueFilter) -> Predicate:
    count = len(composite.sub_filters)
    if composite.combinator == messages.LO_NOT:
        if count != 1:
            raise invalid("Invalid NOT operator: the number of sub-filters must be 1.")
        return Not(_predicate(composite.sub_filters[0]))
    if count < 2:
        raise invalid("Invalid AND/OR operator: the number of sub-filters must be more than 1.")
    parts = tuple(_predicate(part) for part in composite.sub_filters)
    return And(parts) if composite.combinator == messages.LO_AND else Or(parts)


def _single(node: messages.SingleColumnValueFilter) -> Predicate:
    check_column_name(node.column_name)
    column: Operand = (
        Attribute((node.column_name,)) if node.latest_version_only else AnyVersion(node.column_name)
    )
    if node.HasField("value_trans_rule"):
        column = _extract(column, node.value_trans_rule)
    exists = HasKind(column, SHOWN_KINDS)
    if node.comparator == messages.CT_EXIST:
        return exists
    if node.comparator == messages.CT_NOT_EXIST:
        return Not(exists)
    compare = _compare(column, _COMPARISONS[node.comparator], _constant(node))
    if node.filter_if_missing:
        return And((exists, compare))
    return Or((Not(exists), compare))


def _compare(column: Operand, comparison: Comparison, constant: Value) -> Predicate:
    """Return a typed comparison: INTEGER 1 and DOUBLE 1.0 differ, and for values of different kinds only NE is true."""
    compare = Compare(column, comparison, Literal(constant))
    if constant.kind not in (Kind.INT64, Kind.DOUBLE):
        return compare
    if isinstance(column, ExtractedValue) and column.kind is constant.kind:
        return compare  # the extracted value has that kind, and each evaluation is a search
    same_kind = HasKind(column, frozenset({constant.kind}))
    if comparison is Comparison.NE:
        return Or((Not(same_kind), compare))
    return And((same_kind, compare))


def _extract(column: Operand, rule: messages.ValueTransferRule) -> Operand:
    cast = rule.cast_type if rule.HasField("cast_type") else messages.VT_STRING
    if cast not in _CASTS:
        raise invalid("The cast type of value transfer rule is invalid.")
    assert isinstance(column, Attribute | AnyVersion)
    return ExtractedValue(column, _pattern(rule), _CASTS[cast])


def _constant(node: messages.SingleColumnValueFilter) -> Value:
    try:
        value = decode_value(node.column_value)
    except PlainBufferError as error:
        raise invalid(f"Invalid column value of filter: {error}.") from None
    if not isinstance(value, Value):
        raise invalid("Invalid column value of filter.")
    check_attribute(node.column_name, value)
    return value


def _pagination(data: bytes) -> Pagination:
    node = _read(messages.ColumnPaginationFilter, data)
    if node.offset < 0:
        raise invalid("The offset of ColumnPaginationFilter must be greater than or equal to 0.")
    if node.limit <= 0:
        raise invalid("The limit of ColumnPaginationFilter must be greater than 0.")
    return Pagination(node.offset, node.limit)


def _read(kind: type[MessageT], data: bytes) -> MessageT:
    return parse(kind, data, "filter")
