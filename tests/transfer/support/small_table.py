"""A small table for tests of endpoints, and what two rows must share to be the same. Without hypothesis, for processes that must
start fast."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import orjson

from tablegate.gateway.model.commands.table_commands import NewIndex
from tablegate.gateway.model.tables.indexes import IndexProjection
from tablegate.gateway.model.tables.tables import ExpiryRule, Rules, StreamRule
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, Value
from tablegate.transfer.endpoints.endpoint import Definition, Endpoint, Service

PAIR = KeySchema((KeyColumn("pk", Kind.TEXT),), (KeyColumn("sk", Kind.DECIMAL),))

FOUR = KeySchema(
    (KeyColumn("c1", Kind.TEXT),),
    (
        KeyColumn("c2", Kind.INT64, auto_increment=True),
        KeyColumn("c3", Kind.BYTES),
        KeyColumn("c4", Kind.TEXT),
    ),
)

DEFINITION = Definition(
    name="Music.table-1",
    service=Service.DYNAMODB,
    key_schema=PAIR,
    indexes=(
        NewIndex("by_n", KeySchema((KeyColumn("n", Kind.DECIMAL),)), IndexProjection.INCLUDE, ("a", "b"), properties={"x": 1}),
        NewIndex("local", KeySchema((KeyColumn("pk", Kind.TEXT),), (KeyColumn("l", Kind.BYTES),)),
        IndexProjection.ALL, local=True),
    ),
    rules=Rules(
        expiry=ExpiryRule(attribute="ttl"),
        stream=StreamRule("2026", True, "NEW_IMAGE", 86_400_000, 17, {"p": [1]}, 3, ((0, 0), (1, 128))),
        max_versions=3,
        stamped=True,
    ),
    properties={"dynamodb": {"mode": "on-demand"}},
    rows=12,
)  # fmt: skip


def simple_row(number: int, extra: str = "") -> Row:
    """A small row of PAIR."""
    values = {
        "pk": Value(Kind.TEXT, f"p{number % 7}"),
        "sk": Value(Kind.DECIMAL, Decimal(number)),
        "text": Value(Kind.TEXT, f"row {number}{extra}"),
    }
    return Row(PAIR.key(values).position, Contents.of_values(values), number)


def exactly(row: Row) -> tuple[Any, ...]:
    """All there is of a row. Attributes have no order."""
    kinds = None if row.kinds is None else orjson.loads(row.kinds)
    return row.position, orjson.loads(row.body), kinds, row.modified_at, row.expires_at_ms, row.size_bytes


def of_values(row: Row) -> tuple[Any, ...]:
    """Key and latest values."""
    return exactly(row)[:2]


def scanned(endpoint: Endpoint, wanted: int = 3) -> list[Row]:
    """All rows of an end of a transfer."""
    return [
        row for segment in endpoint.segments(wanted) for page in endpoint.scan(segment) for row in page.rows
    ]


def written(endpoint: Endpoint, definition: Definition, *batches: list[Row]) -> None:
    """Make a whole file of batches of rows."""
    endpoint.create(definition)
    for batch in batches:
        assert endpoint.write(batch) == []
    endpoint.finish()
    endpoint.close()
