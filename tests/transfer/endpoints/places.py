"""Servers for tests of an endpoint of a cloud's API: tablegate, moto, and servers of other projects.

Each place has a table of its service and rows of every kind of that service. Known differences between a stand-in and
the service are listed here only, with their sources.
"""

from __future__ import annotations

import itertools
import math
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal

from tablegate.gateway.model.tables.tables import Rules
from tablegate.gateway.model.values.keys import Key, KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Cell, Contents, Row
from tablegate.gateway.model.values.values import (
    FALSE,
    NULL,
    SETS,
    TRUE,
    Kind,
    Value,
    decimal,
    decimal_text,
    number_set,
    text,
)
from tablegate.transfer.endpoints.endpoint import Definition, Endpoint, Service

STAMP_MS = 1_700_000_000_000
_NUMBERS = itertools.count()


@dataclass
class Place:
    """`open_table(name, patience in seconds)`. `lacks`: what this server is known not to do."""

    name: str
    service: Service
    open_table: Callable[[str, float], Endpoint]
    lacks: frozenset[str] = frozenset()
    _kept: Endpoint | None = None

    def kept_table(self, definition: Definition) -> Endpoint:
        """One table for all examples of a property."""
        if self._kept is None:
            name = self._new_name()
            self._kept = self.open_table(name, 20)
            self._kept.create(replace(definition, name=name))
        return self._kept

    def _new_name(self) -> str:
        """Return the name of a table that is not there, even if an earlier Place had the same server."""
        return f"{self.name.replace('-', '')}{next(_NUMBERS)}"

    def new_table(self, schema: KeySchema | None = None, rules: Rules | None = None) -> Endpoint:
        """An endpoint of a table that has just been made."""
        name = self._new_name()
        endpoint = self.open_table(name, 20)
        endpoint.create(
            Definition(name, self.service, schema or SCHEMAS[self.service], rules=rules or Rules())
        )
        return endpoint


def bytes_value(data: bytes) -> Value:
    return Value(Kind.BYTES, data)


def int64(data: int) -> Value:
    return Value(Kind.INT64, data)


def double(data: float) -> Value:
    return Value(Kind.DOUBLE, data)


SCHEMAS = {
    Service.DYNAMODB: KeySchema((KeyColumn("pk", Kind.TEXT),), (KeyColumn("n", Kind.DECIMAL),)),
    Service.AZURE_TABLE: KeySchema(
        (KeyColumn("PartitionKey", Kind.TEXT),), (KeyColumn("RowKey", Kind.TEXT),)
    ),
    Service.TABLE_STORE: KeySchema(
        (KeyColumn("a", Kind.TEXT),),
        (KeyColumn("b", Kind.INT64), KeyColumn("c", Kind.BYTES), KeyColumn("d", Kind.TEXT)),
    ),
}

SCALARS: dict[Service, dict[str, Value]] = {
    Service.DYNAMODB: {
        "text": text('é\U0001f600\u0001"\\'),
        "empty": text(""),
        "zero": decimal(0),
        "38 digits": decimal("-12345678901234567890123456789012345678"),
        "38 behind the point": decimal("0.12345678901234567890123456789012345678"),
        "greatest": decimal("9.9999999999999999999999999999999999999E+125"),
        "least": decimal("1E-130"),
        "binary": bytes_value(bytes(range(256))),
        "no binary": bytes_value(b""),
        "yes": TRUE,
        "no": FALSE,
        "null": NULL,
        "texts": Value(Kind.TEXT_SET, frozenset({"b", "a", "é"})),
        "numbers": number_set({Decimal("1.5"), Decimal(-2), Decimal("1E+30")}),
        "binaries": Value(Kind.BYTES_SET, frozenset({b"\xff", b"a"})),
        "no list": Value(Kind.LIST, ()),
        "no map": Value(Kind.MAP, {}),
        "nested": Value(
            Kind.MAP,
            {"list": Value(Kind.LIST, (decimal("0.1"), NULL, Value(Kind.MAP, {"a.b": text("x")})))},
        ),
        "a.b-c:d e": text("a name"),
        "expires": decimal(1_900_000_000),
    },
    Service.AZURE_TABLE: {
        "Text": text('é\U0001f600"\\'),
        "Empty": text(""),
        "Int32": Value(Kind.INT32, -(2**31)),
        "Int64": int64(2**63 - 1),
        "SmallInt64": int64(1),
        "Whole": double(1.0),
        "NegativeZero": double(-0.0),
        "Tiny": double(5e-324),
        "Huge": double(1.7976931348623157e308),
        "NaN": double(math.nan),
        "Infinity": double(math.inf),
        "Negative": double(-math.inf),
        "Yes": TRUE,
        "No": FALSE,
        "SevenDigits": Value(Kind.DATETIME, 637134336001234567),
        "First": Value(Kind.DATETIME, 504911232000000000),  # 1601-01-01
        "Last": Value(Kind.DATETIME, 3155378975999999999),
        "Guid": Value(Kind.GUID, uuid.UUID("12345678-90ab-cdef-1234-567890abcdef")),
        "Binary": bytes_value(bytes(range(256))),
        "NoBinary": bytes_value(b""),
        "Übung": text("a name"),
        "my_x002D_attr": text("a name that stands for another"),
    },
    Service.TABLE_STORE: {
        "text": text('é\U0001f600\u0001"\\'),
        "empty": text(""),
        "greatest": int64(2**63 - 1),
        "least": int64(-(2**63)),
        "whole": double(1.0),
        "negative_zero": double(-0.0),
        "tiny": double(5e-324),
        "nan": double(math.nan),
        "infinity": double(-math.inf),
        "yes": TRUE,
        "no": FALSE,
        "binary": bytes_value(bytes(range(256))),
        "no_binary": bytes_value(b""),
    },
}

KEYS: dict[Service, list[tuple[Value, ...]]] = {
    Service.DYNAMODB: [
        (text("a/\\#?'\"%|& +é\U0001f600"), decimal("-0.5")),
        (text("\u0000\u0001"), decimal("12345678901234567890123456789012345678")),
        (text("x" * 2048), decimal("1E-130")),
    ],
    Service.AZURE_TABLE: [
        (text(""), text("")),
        (text("it's %20 +&=|é\U0001f600"), text("a'b\"c@d:e;f,g(h)")),
        (text("x" * 512), text("")),
    ],
    Service.TABLE_STORE: [
        (text("a/\\#?'\"%|& +é\U0001f600"), int64(-(2**63)), bytes_value(b"\x00\xff"), text("")),
        (text(""), int64(2**63 - 1), bytes_value(b""), text("x" * 1024)),
    ],
}


def row_of(schema: KeySchema, key: tuple[Value, ...], values: dict[str, Value] | None = None) -> Row:
    named = dict(zip(schema.names, key, strict=True))
    return Row(schema.position(key), Contents.of_values({**named, **(values or {})}), 0)


def versioned_row(schema: KeySchema, key: tuple[Value, ...], cells: dict[str, tuple[Cell, ...]]) -> Row:
    named = dict(zip(schema.names, key, strict=True))
    return Row(schema.position(key), Contents.of_cells(named, cells), 0)


def numbered_key(service: Service, number: int) -> tuple[Value, ...]:
    """A key of a service's own table, in one of some partitions."""
    if service is Service.DYNAMODB:
        return text(f"p{number % 17}"), decimal(number)
    if service is Service.AZURE_TABLE:
        return text(f"p{number % 17:02}"), text(f"{number:06}")
    return text(f"p{number % 17}"), int64(number), bytes_value(b"c"), text("d")


def numbered_rows(service: Service, count: int, size: int = 10, first: int = 0) -> list[Row]:
    schema = SCHEMAS[service]
    return [
        row_of(schema, numbered_key(service, number), {"pad": text("x" * size)})
        for number in range(first, first + count)
    ]


def key_of(row: Row, schema: KeySchema) -> Key:
    return Key(tuple(row.latest[name] for name in schema.names), row.position)


def read_all(endpoint: Endpoint, wanted: int = 1) -> list[Row]:
    segments = endpoint.segments(wanted)
    return [row for segment in segments for page in endpoint.scan(segment) for row in page.rows]


def same(row: Row) -> list[tuple[str, str]]:
    """A row's values so that NaN and -0.0 compare as what they are."""
    return sorted((name, repr(_canonical(value))) for name, value in row.latest.items())


def _canonical(value: Value) -> object:
    if value.kind is Kind.DECIMAL:
        return value.kind, decimal_text(value.data)
    if value.kind in SETS:
        return value.kind, sorted(value.data)
    if value.kind is Kind.MAP:
        return value.kind, sorted((name, repr(_canonical(member))) for name, member in value.data.items())
    if value.kind is Kind.LIST:
        return value.kind, [_canonical(member) for member in value.data]
    return value
