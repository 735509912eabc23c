"""Rows and searches in the form of this dialect, for the console (gateway/console)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from tablegate.adapters.dynamodb import DIALECT
from tablegate.adapters.dynamodb.operations.items import put_write
from tablegate.adapters.dynamodb.request_code import TYPE_NAMES, request_code, statement_of
from tablegate.adapters.dynamodb.statement_pages import run_statement
from tablegate.adapters.dynamodb.values.composites import render
from tablegate.adapters.dynamodb.values.values import is_too_large, item_of, render_values, view
from tablegate.adapters.dynamodb.wire.errors import ServiceError
from tablegate.gateway.adapter import RowDisplay
from tablegate.gateway.model.commands.writes import Write
from tablegate.gateway.model.errors import BadKey, KeyTooLong
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import Value

# Rows


def is_own(table: Table) -> bool:
    """Return True if this dialect created the table."""
    return DIALECT in table.properties


def shown_row(table: Table, row: Row) -> Any:
    """Return an item as a JSON document with typed values."""
    return orjson.loads(render(table.key_schema, row))


def document_of(table: Table, values: Mapping[str, Value]) -> Any:
    """Return attributes as a JSON document with typed values."""
    return render_values(values)


def values_of(table: Table, document: Any) -> dict[str, Value]:
    """Return the attributes of a JSON document with typed values. Raises ValueError."""
    if not isinstance(document, dict):
        raise ValueError("the item is not a JSON object")
    try:
        return item_of(document).contents.latest
    except ServiceError as refusal:
        raise ValueError(refusal.message) from None


def write_of(table: Table, values: Mapping[str, Value], old: Row | None, now_ms: int) -> Write:
    """Return the write that puts an item with these attributes. Raises ValueError."""
    try:
        item = item_of(render_values(values))
        if is_too_large(item.size_bytes):
            raise ValueError("the item is larger than 400 KB")
        return put_write(table, item, None)
    except ServiceError as refusal:
        raise ValueError(refusal.message) from None
    except (BadKey, KeyTooLong):
        raise ValueError("a key attribute is missing, of a wrong type or too long") from None


DISPLAY = RowDisplay(
    "DynamoDB JSON", TYPE_NAMES, view, is_own, shown_row, document_of, values_of, write_of, request_code,
    statement_of, run_statement,
)  # fmt: skip
