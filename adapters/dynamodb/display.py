"""Rows in the form of this dialect, for the console (gateway/console)."""

from __future__ import annotations

from typing import Any

import orjson

from tablegate.adapters.dynamodb.operations.items import put_write
from tablegate.adapters.dynamodb.values.composites import render
from tablegate.adapters.dynamodb.values.values import is_too_large, item_of
from tablegate.adapters.dynamodb.wire.errors import ServiceError
from tablegate.gateway.model.commands.writes import Write
from tablegate.gateway.model.errors import BadKey, KeyTooLong
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.rows import Row

FORM = "DynamoDB JSON"


def shown_row(table: Table, row: Row) -> Any:
    """Return an item as a JSON document with typed values."""
    return orjson.loads(render(table.key_schema, row))


def put_of(table: Table, document: Any) -> Write:
    """Return the write that puts an item, given as a JSON document with typed values. Raises ValueError."""
    if not isinstance(document, dict):
        raise ValueError("the item is not a JSON object")
    try:
        item = item_of(document)
        if is_too_large(item.size_bytes):
            raise ValueError("the item is larger than 400 KB")
        return put_write(table, item, None)
    except ServiceError as refusal:
        raise ValueError(refusal.message) from None
    except (BadKey, KeyTooLong):
        raise ValueError("a key attribute is missing, of a wrong type or too long") from None


def snippet(table: Table, url: str) -> str:
    """Return a few lines of SDK code that read the table."""
    return f"""import boto3

dynamodb = boto3.resource("dynamodb", endpoint_url={url!r})
table = dynamodb.Table({table.name!r})
for item in table.scan(Limit=10)["Items"]:
    print(item)
"""
