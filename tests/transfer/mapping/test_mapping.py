"""The mapping by itself: deterministic, one key for one key, and nothing more to do the second time."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from tablegate.adapters.dynamodb.values.values import item_of, render_row, render_values
from tablegate.gateway.model.commands.table_commands import NewIndex
from tablegate.gateway.model.tables.indexes import IndexProjection
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import NULL, NUMBERS, Kind, Value, decimal_text, number_of, text
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.mapping import rules
from tablegate.transfer.mapping.mapping import Mapping, MappingOptions
from tablegate.transfer.mapping.rules import Fidelity, MappingFinding, MappingRule
from tests.support.tables import each_row
from tests.transfer.support.tables import tables

TARGETS = st.sampled_from(Service)


def told(row: Row | None) -> object:
    return None if row is None else (row.position, row.body, row.kinds)


@given(tables(), TARGETS, st.booleans())
def test_a_mapping_is_deterministic(
    table: tuple[Definition, list[Row]], target: Service, escaped: bool
) -> None:
    definition, made = table
    mapping = Mapping(definition, target, options=MappingOptions(escaped))
    again = Mapping(definition, target, options=MappingOptions(escaped))
    assert mapping.definition == again.definition
    for row in made:
        first, second = mapping.map(row), again.map(row)
        assert first.findings == second.findings
        assert told(first.row) == told(second.row)
        assert (first.row is None) == any(f.rule.fidelity is Fidelity.IMPOSSIBLE for f in first.findings)


@given(tables(), TARGETS, st.booleans())
def test_no_two_rows_get_the_same_key(
    table: tuple[Definition, list[Row]], target: Service, escaped: bool
) -> None:
    definition, made = table
    mapping = Mapping(definition, target, options=MappingOptions(escaped))
    keys = []
    for row in made:
        key = mapping.key(definition.key_schema.decode(row.position))
        mapped = mapping.map(row).row
        if mapped is not None:
            assert key is not None
            assert key.position == mapped.position
            assert mapping.definition.key_schema.key(mapped.latest) == key
        if key is not None:
            keys.append(key.position)
    assert len({*keys}) == len(keys)


@given(tables(st.just(Service.DYNAMODB)))
def test_rows_between_tables_of_dynamodb_are_not_changed(table: tuple[Definition, list[Row]]) -> None:
    definition, made = table
    mapping, general = Mapping(definition, Service.DYNAMODB), Mapping(definition, Service.DYNAMODB)
    assert mapping.is_identity
    general.is_identity = False
    for row in made:
        mapped, other = mapping.map(row), general.map(row)
        assert mapped.findings == other.findings
        if mapped.row is not None and other.row is not None:
            assert mapped.row is row
            assert render_row(row) == render_row(other.row)


PAIR = KeySchema((KeyColumn("pk", Kind.TEXT),), (KeyColumn("sk", Kind.TEXT),))
BY_A = NewIndex("by_a", KeySchema((KeyColumn("a", Kind.TEXT),)), IndexProjection.ALL)
ROOM = 409_600 - len("pk" + "p" + "sk" + "s" + "b")


@each_row(
    "sort_key, attributes, rule",
    [
        ("x" * 1024, {}, None),
        ("x" * 1025, {}, rules.KEY_TOO_LONG),
        ("", {}, rules.KEY_EMPTY),
        ("s", {"b": text("x" * ROOM)}, None),
        ("s", {"b": text("x" * (ROOM + 1))}, rules.ROW_TOO_LARGE),
        ("s", {"a": text("x")}, None),
        ("s", {"a": text("")}, rules.INDEX_KEY),
    ],
)
def test_an_unchanged_row_can_be_refused(
    sort_key: str, attributes: dict[str, Value], rule: MappingRule | None
) -> None:
    """A file of items, or an emulator, can have rows that DynamoDB itself never returns."""
    mapping = Mapping(Definition("t", Service.DYNAMODB, PAIR, indexes=(BY_A,)), Service.DYNAMODB)
    assert mapping.is_identity
    values = {"pk": text("p"), "sk": text(sort_key), **attributes}
    row = Row(PAIR.key(values).position, item_of(render_values(values)).contents, 0)
    mapped = mapping.map(row)
    assert [finding.rule for finding in mapped.findings] == ([] if rule is None else [rule])
    assert (mapped.row is row) is (rule is None)


@given(tables(), TARGETS)
def test_a_second_mapping_changes_nothing(table: tuple[Definition, list[Row]], target: Service) -> None:
    definition, made = table
    mapping = Mapping(definition, target)
    again = Mapping(mapping.definition, target)
    for row in made:
        mapped = mapping.map(row).row
        if mapped is not None:
            second = again.map(mapped)
            assert second.findings == ()
            assert second.row is not None
            assert (second.row.position, second.row.body) == (mapped.position, mapped.body)


KEY = KeySchema((KeyColumn("PartitionKey", Kind.TEXT),), (KeyColumn("RowKey", Kind.TEXT),))


def _after(value: Value, services: list[Service]) -> Value:
    """Return an attribute after copies to these services, one after another. The first one has the value."""
    values = {"PartitionKey": Value(Kind.TEXT, "p"), "RowKey": Value(Kind.TEXT, "r"), "a": value}
    row: Row | None = Row(KEY.key(values).position, Contents.of_values(values), 0)
    definition = Definition("numbers", services[0], KEY)
    for service in services[1:]:
        assert row is not None
        mapping = Mapping(definition, service)
        row, definition = mapping.map(row).row, mapping.definition
    assert row is not None
    return row.latest["a"]


AZURE, DYNAMODB, TABLE_STORE = Service.AZURE_TABLE, Service.DYNAMODB, Service.TABLE_STORE
WHOLE_DOUBLES = st.integers(0, 126).flatmap(lambda bits: st.integers(-(2**bits), 2**bits)).map(float)
DOUBLES = (WHOLE_DOUBLES | st.floats(1e-100, 1e100)).map(lambda data: Value(Kind.DOUBLE, data))
INTEGERS = st.integers(-(2**63), 2**63 - 1).map(lambda data: Value(Kind.INT64, data))
DECIMALS = st.integers(-(10**38) + 1, 10**38 - 1).map(lambda data: Value(Kind.DECIMAL, Decimal(data)))
VALUES_OF_SERVICES = st.tuples(DOUBLES | INTEGERS, st.sampled_from([AZURE, TABLE_STORE])) | st.tuples(
    DECIMALS, st.just(DYNAMODB)
)


def test_a_whole_double_above_2_to_the_53rd_keeps_its_value_between_services() -> None:
    double = Value(Kind.DOUBLE, 1234567890123456768.0)
    number = Value(Kind.DECIMAL, Decimal("1234567890123456768"))
    integer = Value(Kind.INT64, 1234567890123456768)
    assert _after(double, [AZURE, DYNAMODB]) == number
    assert _after(double, [TABLE_STORE, DYNAMODB]) == number
    assert _after(double, [AZURE, DYNAMODB, AZURE]) == integer
    assert _after(double, [AZURE, DYNAMODB, TABLE_STORE]) == integer
    assert _after(double, [AZURE, TABLE_STORE]) == double
    beyond = Value(Kind.DOUBLE, float(2**70))
    assert _after(beyond, [AZURE, DYNAMODB]) == Value(Kind.DECIMAL, Decimal(2**70))
    assert _after(beyond, [AZURE, DYNAMODB, AZURE]) == beyond


@given(VALUES_OF_SERVICES, st.lists(st.sampled_from(Service), min_size=1, max_size=3))
def test_a_number_has_one_value_in_all_services(
    value_of_service: tuple[Value, Service], services: list[Service]
) -> None:
    value, first = value_of_service
    number = number_of(value)
    assert number is not None
    found = _after(value, [first, *services])
    if found.kind in NUMBERS:
        assert number_of(found) == number
    else:
        assert found == Value(Kind.TEXT, decimal_text(number))


def test_a_null_that_is_left_out_needs_no_name_in_the_target() -> None:
    """Azure Table and Table Store have no NULL. Names that they reserve or refuse reject other values only."""
    schema = KeySchema((KeyColumn("id", Kind.TEXT),))
    source = Definition("items", Service.DYNAMODB, schema)
    names = (
        "PartitionKey",
        "RowKey",
        "Timestamp",
        "etag",
        "odata.etag",
        "_x0052_owKey",
        "#h",
        "1st",
        "x" * 300,
        "a",
    )
    columns = KeySchema((KeyColumn("RowKey", Kind.TEXT),))
    existing = {Service.TABLE_STORE: Definition("items", Service.TABLE_STORE, columns)}
    for target in (Service.AZURE_TABLE, Service.TABLE_STORE):
        mapping = Mapping(source, target, existing.get(target))
        for name in names:
            values = {"id": Value(Kind.TEXT, "1"), name: NULL}
            row = Row(schema.key(values).position, Contents.of_values(values), 0)
            mapped = mapping.map(row)
            assert mapped.findings == (MappingFinding(rules.NULL_ABSENT, name),), (target, name)
            assert mapped.row is not None, (target, name)
            assert {*mapped.row.latest} == {*mapping.definition.key_schema.names}, (target, name)
        taken = {"id": Value(Kind.TEXT, "1"), "RowKey": Value(Kind.TEXT, "x")}
        row = Row(schema.key(taken).position, Contents.of_values(taken), 0)
        assert mapping.map(row).row is None
