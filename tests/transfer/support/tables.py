"""Generated tables of all kinds: definitions of every service, and rows with every kind, odd names, and keys that some
service rejects.

Values are mostly small. `long_*` have about the length of some limit.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from tablegate.adapters.azuretable.keys import SYSTEM_NAMES, is_legal
from tablegate.adapters.tablestore.wire.names import is_column_name
from tablegate.gateway.model.tables.tables import Rules
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Cell, Contents, Row
from tablegate.gateway.model.values.values import NULL, Kind, Value, decimal_fits, number_set
from tablegate.transfer.endpoints.endpoint import Definition, Service

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
ODD_TEXTS = st.sampled_from(
    [
        "",
        "a",
        "a|b",
        "a%7Cb",
        "%25",
        "a/b",
        "q?#\\",
        "\x01",
        "\x7f",
        "_x_",
        "_x002F_",
        "_x0041-",
        "07",
        "42",
        "-0",
        "1.50",
        "ü🙂",
    ]
)
KEY_TEXTS = ODD_TEXTS | TEXTS
# 1,024 and 2,048 bytes, 512 units of UTF-16, and their neighbours.
LONG_TEXTS = st.builds(
    lambda character, length: character * length,
    st.sampled_from(["a", "é", "🙂", "/"]),
    st.sampled_from([255, 256, 257, 511, 512, 513, 1023, 1024, 1025, 2047, 2048, 2049]),
)
BINARIES = st.binary(max_size=6)
INT64S = st.integers(-(2**63), 2**63 - 1) | st.sampled_from(
    [0, 7, -1, 2**31 - 1, 2**31, -(2**31) - 1, 2**53 + 1]
)
DECIMALS = st.one_of(
    st.sampled_from(
        [
            Decimal(0),
            Decimal("0.1"),
            Decimal("1E+125"),
            Decimal("-1E-130"),
            Decimal("0.30000000000000004"),
            Decimal("12345678901234567890123456789012345678"),
            Decimal("1.2345678901234567890123456789012345678"),
            Decimal(2**63),
            Decimal(2**53 + 1),
        ]
    ),
    st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9),
    st.integers(-(2**70), 2**70).map(Decimal),
).filter(decimal_fits)
DOUBLES = st.floats() | st.sampled_from(
    [0.0, -0.0, 0.1, 1e300, 5e-324, 1e-131, float("nan"), float("-inf"), 2.0**60]
)
TICKS_OF_1601 = 504_911_232_000_000_000
DATETIMES = st.integers(TICKS_OF_1601, 3_155_378_975_999_999_999)

NATIVE = st.one_of(
    (TEXTS | ODD_TEXTS).map(lambda data: Value(Kind.TEXT, data)),
    DECIMALS.map(lambda data: Value(Kind.DECIMAL, data)),
    BINARIES.map(lambda data: Value(Kind.BYTES, data)),
    st.booleans().map(lambda data: Value(Kind.BOOL, data)),
    st.just(NULL),
    st.frozensets(TEXTS, min_size=1, max_size=3).map(lambda data: Value(Kind.TEXT_SET, data)),
    st.frozensets(DECIMALS, min_size=1, max_size=3).map(number_set),
    st.frozensets(BINARIES, min_size=1, max_size=3).map(lambda data: Value(Kind.BYTES_SET, data)),
)
DOCUMENTS = st.recursive(
    NATIVE,
    lambda inner: st.one_of(
        st.lists(inner, max_size=2).map(lambda data: Value(Kind.LIST, tuple(data))),
        st.dictionaries(st.text("ab.-", min_size=1, max_size=2), inner, max_size=2).map(
            lambda data: Value(Kind.MAP, data)
        ),
    ),
    max_leaves=4,
)
FOREIGN = st.one_of(
    st.integers(-(2**31), 2**31 - 1).map(lambda data: Value(Kind.INT32, data)),
    INT64S.map(lambda data: Value(Kind.INT64, data)),
    DOUBLES.map(lambda data: Value(Kind.DOUBLE, data)),
    DATETIMES.map(lambda data: Value(Kind.DATETIME, data)),
    st.uuids().map(lambda data: Value(Kind.GUID, data)),
)
NAMES = st.sampled_from(
    [
        "a",
        "b",
        "A",
        "my-attr",
        "my_x002D_attr",
        "1st",
        "#h",
        "_x0023_h",
        "Timestamp",
        "RowKey",
        "x.y",
        "größe",
        "_x_",
        "pk",
    ]
) | st.text("ab-#_x0", min_size=1, max_size=8)

TABLE_STORE_VALUES = st.one_of(
    INT64S.map(lambda data: Value(Kind.INT64, data)),
    DOUBLES.map(lambda data: Value(Kind.DOUBLE, data)),
    st.booleans().map(lambda data: Value(Kind.BOOL, data)),
    (TEXTS | ODD_TEXTS).map(lambda data: Value(Kind.TEXT, data)),
    BINARIES.map(lambda data: Value(Kind.BYTES, data)),
)
VALUES = {
    Service.DYNAMODB: DOCUMENTS,
    Service.AZURE_TABLE: NATIVE.filter(lambda value: value.kind in (Kind.TEXT, Kind.BYTES, Kind.BOOL))
    | FOREIGN,
    Service.TABLE_STORE: TABLE_STORE_VALUES,
    Service.TABLEGATE: DOCUMENTS | FOREIGN,
}
"""Attributes that rows of each service have. (A database of tablegate has what any of the others has.)"""

_KEY_KINDS = {
    Service.DYNAMODB: [Kind.TEXT, Kind.BYTES, Kind.DECIMAL],
    Service.TABLE_STORE: [Kind.TEXT, Kind.BYTES, Kind.INT64],
    Service.TABLEGATE: [Kind.TEXT, Kind.BYTES, Kind.DECIMAL, Kind.INT64],
}


@st.composite
def definitions(draw: st.DrawFn, service: Service) -> Definition:
    """A table of a service. Table Store's have up to four key columns and up to three versions."""
    if service is Service.AZURE_TABLE:
        schema = KeySchema((KeyColumn("PartitionKey", Kind.TEXT),), (KeyColumn("RowKey", Kind.TEXT),))
        return Definition("people", service, schema, is_stored=draw(st.booleans()))
    is_wide = service is Service.TABLE_STORE
    kinds = draw(st.lists(st.sampled_from(_KEY_KINDS[service]), min_size=1, max_size=4 if is_wide else 2))
    columns = [KeyColumn(name, kind) for name, kind in zip(("pk", "sk", "k3", "k4"), kinds, strict=False)]
    schema = KeySchema((columns[0],), tuple(columns[1:]))
    rules = Rules(stamped=True, max_versions=draw(st.sampled_from([1, 3]))) if is_wide else Rules()
    is_stored = service is Service.TABLEGATE or draw(st.booleans())
    return Definition("people", service, schema, rules=rules, is_stored=is_stored)


def key_values(kind: Kind, service: Service, most: int) -> st.SearchStrategy[Value]:
    """Return values that a key column of a service accepts, with at most this size in bytes."""
    needs_one = service is Service.DYNAMODB
    data: st.SearchStrategy[Any]
    match kind:
        case Kind.TEXT:
            data = KEY_TEXTS | LONG_TEXTS.filter(lambda given: len(given.encode()) <= most)
            if service is Service.AZURE_TABLE:
                data = KEY_TEXTS
        case Kind.BYTES:
            data = BINARIES | st.sampled_from([b"\x00" * length for length in (512, 1024)])
        case Kind.DECIMAL:
            data = DECIMALS
        case _:
            data = INT64S
    if needs_one and kind in (Kind.TEXT, Kind.BYTES):
        data = data.filter(lambda given: len(given) > 0)
    return data.map(lambda given: Value(kind, given))


def is_name_in(definition: Definition, name: str) -> bool:
    """True if an attribute of a table can have this name. In a tablegate database any name is valid."""
    if definition.service is Service.AZURE_TABLE and not definition.is_stored:
        return is_legal(name) and name not in SYSTEM_NAMES
    return definition.service is not Service.TABLE_STORE or definition.is_stored or is_column_name(name)


def _longest_key(definition: Definition, at: int) -> int:
    if definition.is_stored:
        return 4096
    return 2048 if definition.service is Service.DYNAMODB and at == 0 else 1024


@st.composite
def rows(draw: st.DrawFn, definition: Definition) -> Row:
    """A row of a table."""
    service = definition.service
    key = {
        column.name: draw(key_values(column.kind, service, _longest_key(definition, at)))
        for at, column in enumerate(definition.key_schema.columns)
    }
    attributes = draw(
        st.dictionaries(NAMES.filter(lambda name: name not in key), VALUES[service], max_size=4)
    )
    position = definition.key_schema.key(key).position
    if not definition.rules.stamped:
        return Row(position, Contents.of_values({**key, **attributes}), 17_000_000_000_000_000)
    cells = {}
    for name, value in attributes.items():
        older = draw(st.lists(VALUES[service], max_size=definition.rules.max_versions - 1))
        stamps = range(1_700_000_000_000, 0, -1000)
        cells[name] = tuple(Cell(each, stamp) for each, stamp in zip([value, *older], stamps, strict=False))
    return Row(position, Contents.of_cells(key, cells), 17_000_000_000_000_000)


@st.composite
def tables(
    draw: st.DrawFn, services: st.SearchStrategy[Service] | None = None
) -> tuple[Definition, list[Row]]:
    """A table with a few rows of different keys."""
    definition = draw(definitions(draw(st.sampled_from(Service) if services is None else services)))
    made = draw(st.lists(rows(definition), max_size=5, unique_by=lambda row: row.position))
    return definition, made
