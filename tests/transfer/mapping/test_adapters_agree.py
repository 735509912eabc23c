"""The mapping agrees with the services. tablegate's dialects accept a mapped row exactly if no rule makes it
impossible, and return it unchanged.

The limits of each service are tested on both sides, to the byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.gateway.model.commands.table_commands import NewIndex
from tablegate.gateway.model.tables.indexes import IndexProjection
from tablegate.gateway.model.tables.tables import Rules
from tablegate.gateway.model.values.keys import Key, KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Cell, Contents, Row
from tablegate.gateway.model.values.values import NULL, Kind, Value
from tablegate.transfer.comparing.checksums import CanonicalForm
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.mapping import rules
from tablegate.transfer.mapping.mapping import Mapping, MappingOptions
from tablegate.transfer.mapping.rules import Fidelity, MappingFinding, MappingRule
from tablegate.transfer.mapping.targets import Cells, MappingTarget
from tests.support.examples import examples
from tests.transfer.support.dialects import Dialects, opened
from tests.transfer.support.tables import tables

DYNAMODB, AZURE, TABLE_STORE, TABLEGATE = Service
CLOUDS = [DYNAMODB, AZURE, TABLE_STORE]


@pytest.fixture(scope="module")
def dialects() -> Iterator[Dialects]:
    with opened() as made:
        yield made


class Unchecked(MappingTarget):
    """A target that refuses nothing, so that its service may."""

    def __init__(self, target: MappingTarget, key_schema: KeySchema) -> None:
        self._target, self._key_schema = target, key_schema

    def check_key(self, column: KeyColumn, is_partition: bool, value: Value) -> MappingRule | None:
        return None

    def view(self, value: Value) -> Value:
        return self._target.view(value)

    def has_null(self) -> bool:
        return self._target.has_null()

    def check_value(self, name: str, value: Value) -> MappingRule | None:
        return None

    def contents(
        self, key: Key, attributes: dict[str, Value], cells: Cells | None, found: list[MappingFinding]
    ) -> Contents | None:
        key_values = dict(zip(self._key_schema.names, key.values, strict=True))
        if cells is None:
            return Contents.of_values({**key_values, **attributes})
        return Contents.of_cells(key_values, cells)


def unchecked(mapping: Mapping) -> Mapping:
    assert mapping._target is not None
    mapping._target = Unchecked(mapping._target, mapping.definition.key_schema)
    mapping._keys._check = mapping._target.check_key
    return mapping


def agree(
    dialects: Dialects, definition: Definition, target: Service, row: Row, options: MappingOptions
) -> set[MappingRule]:
    """Map a row, write it, and see that the service is of the same mind. Gives the rules that applied."""
    mapping = Mapping(definition, target, options=options)
    mapped = mapping.map(row)
    applied = {finding.rule for finding in mapped.findings}
    sent = mapped.row
    if sent is None:
        sent = unchecked(Mapping(definition, target, options=options)).map(row).row
        if sent is None:  # there is nothing that could be sent
            assert applied & {rules.KEY_UNREADABLE, rules.NAME_CLASH}
            return applied
    refused = dialects.write(mapping.definition, sent)
    assert (refused is None) == (mapped.row is not None), (applied, refused)
    if mapped.row is not None:
        schema = mapping.definition.key_schema
        found = dialects.read(mapping.definition, schema.key(mapped.row.latest))
        terms = CanonicalForm(
            target, target, strict=True, versions=definition.rules.stamped and target is TABLE_STORE
        )
        assert terms.row_bytes(schema, ("", ""), found) == terms.row_bytes(schema, ("", ""), mapped.row)
    return applied


@examples(150)
@given(tables(), st.sampled_from(CLOUDS), st.booleans())
def test_services_accept_mapped_values_and_refuse_impossible_ones(
    dialects: Dialects, table: tuple[Definition, list[Row]], target: Service, escaped: bool
) -> None:
    definition, made = table
    for row in made:
        agree(dialects, definition, target, row, MappingOptions(escaped))


# Limits, on both sides

PAIR = KeySchema((KeyColumn("pk", Kind.TEXT),), (KeyColumn("sk", Kind.TEXT),))
ONE = Definition("people", TABLEGATE, PAIR)


def text(data: str) -> Value:
    return Value(Kind.TEXT, data)


def row_of(**values: Value) -> Row:
    values = {"pk": text("p"), "sk": text("s"), **values}
    return Row(PAIR.key(values).position, Contents.of_values(values), 17_000_000_000_000_000)


def nested(levels: int) -> Value:
    value = text("x")
    for _ in range(levels):
        value = Value(Kind.LIST, (value,))
    return value


# Bytes of a row with keys "p" and "s" besides the texts: names of keys and of the attribute, and their lengths.
_DYNAMODB_ROOM = 409_600 - len("pk" + "p" + "sk" + "s" + "a")
_AZURE_ROOM = (1 << 20) - 4 - 2 * 2
_LONG = (
    32_000  # units of one text; each attribute of two letters: 8 + 2 * 2 of its name, 4 + 2 * units of itself
)


def azure_texts(total: int) -> dict[str, Value]:
    """Return attributes that give an entity with keys "p" and "s" this size in bytes."""
    values = {}
    each = 8 + 4 + 4 + 2 * _LONG
    left = total - 4 - 4
    for number in range(99):
        name = f"{chr(97 + number // 26)}{chr(97 + number % 26)}"
        if left <= each:
            values[name] = text("x" * ((left - 16) // 2))
            return values
        values[name] = text("x" * _LONG)
        left -= each
    raise AssertionError(total)


LIMITS = [
    (
        DYNAMODB,
        row_of(a=text("x" * _DYNAMODB_ROOM)),
        row_of(a=text("x" * (_DYNAMODB_ROOM + 1))),
        rules.ROW_TOO_LARGE,
    ),
    (DYNAMODB, row_of(pk=text("é" * 1024)), row_of(pk=text("é" * 1024 + "x")), rules.KEY_TOO_LONG),
    (DYNAMODB, row_of(sk=text("x" * 1024)), row_of(sk=text("x" * 1025)), rules.KEY_TOO_LONG),
    (DYNAMODB, row_of(sk=text("x")), row_of(sk=text("")), rules.KEY_EMPTY),
    (DYNAMODB, row_of(a=nested(31)), row_of(a=nested(32)), rules.TOO_DEEP),
    (
        DYNAMODB,
        row_of(a=Value(Kind.DECIMAL, Decimal("9" * 38))),
        row_of(a=Value(Kind.DECIMAL, Decimal("9" * 39))),
        rules.NUMBER_OUT_OF_RANGE,
    ),
    (
        DYNAMODB,
        row_of(a=Value(Kind.DECIMAL, Decimal("1E+125"))),
        row_of(a=Value(Kind.DECIMAL, Decimal("1E+126"))),
        rules.NUMBER_OUT_OF_RANGE,
    ),
    (
        DYNAMODB,
        row_of(a=Value(Kind.TEXT_SET, frozenset({"x"}))),
        row_of(a=Value(Kind.TEXT_SET, frozenset())),
        rules.EMPTY_SET,
    ),
    (
        DYNAMODB,
        row_of(**{"n" * 65_535: text("")}),
        row_of(**{"n" * 65_536: text("")}),
        rules.NAME_NOT_ALLOWED,
    ),
    (AZURE, row_of(pk=text("x" * 512)), row_of(pk=text("x" * 513)), rules.KEY_TOO_LONG),
    (AZURE, row_of(sk=text("🙂" * 256)), row_of(sk=text("🙂" * 256 + "x")), rules.KEY_TOO_LONG),
    (AZURE, row_of(sk=text("a b")), row_of(sk=text("a/b")), rules.KEY_FORBIDDEN),
    (AZURE, row_of(sk=text("\xa0")), row_of(sk=text("\x9f")), rules.KEY_FORBIDDEN),
    (AZURE, row_of(a=text("x" * 32_768)), row_of(a=text("x" * 32_769)), rules.VALUE_TOO_LONG),
    (AZURE, row_of(a=text("🙂" * 16_384)), row_of(a=text("🙂" * 16_384 + "x")), rules.VALUE_TOO_LONG),
    (
        AZURE,
        row_of(a=Value(Kind.BYTES, b"x" * 65_536)),
        row_of(a=Value(Kind.BYTES, b"x" * 65_537)),
        rules.VALUE_TOO_LONG,
    ),
    (
        AZURE,
        # {"L":[{"S":"x..."}]}
        row_of(a=Value(Kind.LIST, (text("x" * (32_768 - 16)),))),
        row_of(a=Value(Kind.LIST, (text("x" * (32_768 - 15)),))),
        rules.VALUE_TOO_LONG,
    ),
    (AZURE, row_of(**{"n" * 255: text("")}), row_of(**{"n" * 256: text("")}), rules.NAME_NOT_ALLOWED),
    (
        AZURE,
        row_of(**{"-" * 36 + "abc": text("")}),
        row_of(**{"-" * 36 + "abcd": text("")}),
        rules.NAME_NOT_ALLOWED,
    ),
    (
        AZURE,
        row_of(**{f"a{n}": text("") for n in range(252)}),
        row_of(**{f"a{n}": text("") for n in range(253)}),
        rules.TOO_MANY_ATTRIBUTES,
    ),
    (
        AZURE,
        row_of(**{f"a{n}": text("") for n in range(252)}, b=NULL),
        row_of(**{f"a{n}": text("") for n in range(252)}, b=text("")),
        rules.TOO_MANY_ATTRIBUTES,
    ),
    (AZURE, row_of(**azure_texts(1 << 20)), row_of(**azure_texts((1 << 20) + 2)), rules.ROW_TOO_LARGE),
    (
        AZURE,
        row_of(a=Value(Kind.DATETIME, 504_911_232_000_000_000)),
        row_of(a=Value(Kind.DATETIME, 504_911_232_000_000_000 - 1)),
        rules.DATETIME_OUT_OF_RANGE,
    ),
    (TABLE_STORE, row_of(pk=text("é" * 512)), row_of(pk=text("é" * 512 + "x")), rules.KEY_TOO_LONG),
    (
        TABLE_STORE,
        row_of(a=text("é" * (1 << 20))),
        row_of(a=text("é" * (1 << 20) + "x")),
        rules.VALUE_TOO_LONG,
    ),
    (
        TABLE_STORE,
        row_of(**{f"a{n}": text("") for n in range(1024)}),
        row_of(**{f"a{n}": text("") for n in range(1025)}),
        rules.TOO_MANY_ATTRIBUTES,
    ),
    (TABLE_STORE, row_of(**{"n" * 255: text("")}), row_of(**{"n" * 256: text("")}), rules.NAME_NOT_ALLOWED),
    (
        TABLE_STORE,
        row_of(a=text("x" * (1 << 21)), b=text("x" * ((1 << 21) - len("pkpskscab"))), c=text("")),
        row_of(a=text("x" * (1 << 21)), b=text("x" * ((1 << 21) - len("pkpskscab"))), c=text("x")),
        rules.ROW_TOO_LARGE,
    ),
]


@pytest.mark.parametrize(
    ("target", "good", "bad", "rule"), LIMITS, ids=[f"{each[0].value}-{each[3].name}" for each in LIMITS]
)
def test_limits(dialects: Dialects, target: Service, good: Row, bad: Row, rule: MappingRule) -> None:
    assert rule not in agree(dialects, ONE, target, good, MappingOptions())
    assert rule in agree(dialects, ONE, target, bad, MappingOptions())


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (text("x"), text("")),
        (text("x" * 2048), text("x" * 2049)),
        (text("x"), Value(Kind.DECIMAL, Decimal(1))),
    ],
)
def test_keys_of_indexes(dialects: Dialects, good: Value, bad: Value) -> None:
    index = NewIndex("by_a", KeySchema((KeyColumn("a", Kind.TEXT),)), IndexProjection.ALL)
    definition = replace(ONE, indexes=(index,))
    assert rules.INDEX_KEY not in agree(dialects, definition, DYNAMODB, row_of(a=good), MappingOptions())
    assert rules.INDEX_KEY in agree(dialects, definition, DYNAMODB, row_of(a=bad), MappingOptions())


def test_versions_count_as_cells(dialects: Dialects) -> None:
    """A write of Table Store has 1,024 cells, whichever columns they are of."""
    definition = replace(ONE, service=TABLE_STORE, rules=Rules(stamped=True, max_versions=1024))

    def row(versions: int) -> Row:
        stamps = range(1_700_000_000_000, 0, -1)
        cells = tuple(Cell(text(""), stamp) for stamp in stamps[:versions])
        made = Contents.of_cells({"pk": text("p"), "sk": text("s")}, {"a": cells, "b": cells[:1]})
        return Row(PAIR.key(made.latest).position, made, 0)

    assert rules.TOO_MANY_ATTRIBUTES not in agree(
        dialects, definition, TABLE_STORE, row(1023), MappingOptions()
    )
    assert rules.TOO_MANY_ATTRIBUTES in agree(dialects, definition, TABLE_STORE, row(1024), MappingOptions())


def test_every_rule_that_rejects_is_tried() -> None:
    """But those of tables that are not made here, and of what nothing can be sent for: rows that cannot be read are in
    tests/transfer/test_unreadable_rows.py."""
    tried = {each[3] for each in LIMITS} | {rules.INDEX_KEY, rules.KEY_UNREADABLE, rules.NAME_CLASH}
    rest = {rule for rule in rules.RULES if rule.fidelity is Fidelity.IMPOSSIBLE} - tried
    assert rest == {rules.DEFINED_KIND, rules.STAMP_OUT_OF_RANGE, rules.ROW_UNREADABLE}
