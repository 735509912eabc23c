"""Filters as clients serialize them."""

from __future__ import annotations

from typing import Any

from tablegate.adapters.tablestore.wire.plainbuffer import encode_value
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tests.adapters.tablestore.client import datum


def single(
    name: str,
    comparator: int,
    value: Any = 0,
    if_missing: bool = True,
    latest_only: bool = True,
    rule: Any = None,
) -> bytes:
    """Return a comparison of a column. `if_missing` is the result for a row without it."""
    part = messages.SingleColumnValueFilter(
        comparator=comparator,  # type: ignore[arg-type]
        column_name=name,
        column_value=encode_value(datum(value)),
        filter_if_missing=not if_missing,
        latest_version_only=latest_only,
    )
    if rule is not None:
        part.value_trans_rule.CopyFrom(rule)
    return _filter(messages.FT_SINGLE_COLUMN_VALUE, part)


def composite(combinator: int, *parts: bytes) -> bytes:
    """A combination of other filters."""
    made = messages.CompositeColumnValueFilter(
        combinator=combinator,  # type: ignore[arg-type]
        sub_filters=[messages.Filter.FromString(part) for part in parts],
    )
    return _filter(messages.FT_COMPOSITE_COLUMN_VALUE, made)


def pagination(offset: int, limit: int) -> bytes:
    """A page of columns."""
    return _filter(messages.FT_COLUMN_PAGINATION, messages.ColumnPaginationFilter(offset=offset, limit=limit))


def _filter(kind: int, part: Any) -> bytes:
    return messages.Filter(type=kind, filter=part.SerializeToString()).SerializeToString()  # type: ignore[arg-type]
