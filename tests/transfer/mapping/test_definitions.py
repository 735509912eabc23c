"""Tables in other services: keys, names, indexes, expiry, and the reverse mapping."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.gateway.model.commands.table_commands import NewIndex
from tablegate.gateway.model.tables.indexes import IndexProjection
from tablegate.gateway.model.tables.tables import ExpiryRule, Rules, StreamRule
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Cell, Contents, Row
from tablegate.gateway.model.values.values import Kind, Value
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.errors import SchemaChanged
from tablegate.transfer.mapping import rules
from tablegate.transfer.mapping.mapping import Mapping, MappingOptions
from tablegate.transfer.mapping.names import EscapeRules, is_table_name, table_names
from tablegate.transfer.mapping.rules import MappingFinding, MappingRule
from tests.transfer.support.tables import ODD_TEXTS, rows

DYNAMODB, AZURE, TABLE_STORE, TABLEGATE = Service


def schema(*columns: str, partition: int = 1) -> KeySchema:
    made = [KeyColumn(name, Kind[kind]) for name, _, kind in (column.partition(":") for column in columns)]
    return KeySchema(tuple(made[:partition]), tuple(made[partition:]))


def text(data: str) -> Value:
    return Value(Kind.TEXT, data)


def row_of(key_schema: KeySchema, **values: Value) -> Row:
    return Row(key_schema.key(values).position, Contents.of_values(values), 0)


AZURE_KEY = schema("PartitionKey:TEXT", "RowKey:TEXT")


@pytest.mark.parametrize(
    ("source", "target", "key", "notes"),
    [
        (schema("pk:TEXT", "sk:INT64"), DYNAMODB, schema("pk:TEXT", "sk:DECIMAL"), set()),
        (
            schema("a:INT64", "b:TEXT", "c:INT64", "d:BYTES"),
            DYNAMODB,
            schema("a:DECIMAL", "b/c/d:TEXT"),
            {(rules.KEY_RENAMED, name) for name in "bcd"} | {(rules.KEY_ORDER, "c")},
        ),
        (
            schema("pk:DECIMAL"),
            AZURE,
            AZURE_KEY,
            {(rules.KEY_RENAMED, "pk"), (rules.KEY_ORDER, "pk")},
        ),
        (
            schema("pk:DECIMAL", "sk:BYTES"),
            TABLE_STORE,
            schema("pk:TEXT", "sk:BYTES"),
            {(rules.KEY_ORDER, "pk")},
        ),
        (
            schema("p-k:TEXT", "c2/c3:TEXT"),
            TABLE_STORE,
            schema("p_x002D_k:TEXT", "c2_x002F_c3:TEXT"),
            {(rules.KEY_RENAMED, "p-k"), (rules.KEY_RENAMED, "c2/c3")},
        ),
        (schema("a:INT64", "b:TEXT", "c:INT64"), TABLEGATE, schema("a:INT64", "b:TEXT", "c:INT64"), set()),
    ],
)
def test_keys(
    source: KeySchema, target: Service, key: KeySchema, notes: set[tuple[MappingRule, str]]
) -> None:
    mapping = Mapping(Definition("people", TABLEGATE, source), target)
    assert mapping.definition.key_schema == key
    assert {*mapping.notes} == {MappingFinding(*note) for note in notes}
    assert mapping.definition.service is (TABLEGATE if target is TABLEGATE else target)


def test_several_columns_are_one_attribute_and_come_back() -> None:
    columns = schema("a:INT64", "b:TEXT", "c:INT64", "d:BYTES")
    source = Definition("people", TABLE_STORE, columns)
    row = row_of(
        columns,
        a=Value(Kind.INT64, 5),
        b=text("x|%"),
        c=Value(Kind.INT64, -7),
        d=Value(Kind.BYTES, b"\xff"),
        e=text(""),
    )
    there = Mapping(source, DYNAMODB)
    mapped = there.map(row)
    assert mapped.row is not None
    assert mapped.row.latest["b/c/d"] == text("x%7C%25|-7|ff")
    assert {finding.rule for finding in mapped.findings} == {rules.KEY_KIND, rules.KEY_JOINED}
    back = Mapping(there.definition, TABLE_STORE, existing=source).map(mapped.row)
    assert back.row is not None
    assert back.row.latest == row.latest
    assert back.row.position == row.position


@given(st.sampled_from([DYNAMODB, AZURE, TABLE_STORE]), st.data())
def test_the_way_back_gives_the_same_keys(target: Service, data: st.DataObject) -> None:
    """With keys escaped, every key that a service can have comes back from every other, unless it is too long there."""
    kinds = data.draw(
        st.lists(st.sampled_from(["TEXT", "BYTES", "DECIMAL", "INT64"]), min_size=1, max_size=4)
    )
    source = Definition(
        "people", TABLEGATE, schema(*[f"k{at}:{kind}" for at, kind in enumerate(kinds)]), is_stored=True
    )
    row = data.draw(rows(source))
    options = MappingOptions(escape_keys=True)
    there = Mapping(source, target, options=options)
    mapped = there.map(row)
    if mapped.row is None:
        allowed = {rules.KEY_TOO_LONG, rules.NAME_CLASH, rules.KEY_EMPTY}
        if len(kinds) == 1 or target is not DYNAMODB:
            assert {
                f.rule for f in mapped.findings if f.rule.fidelity is rules.Fidelity.IMPOSSIBLE
            } <= allowed
        return
    back = Mapping(there.definition, TABLEGATE, source, options)
    again = back.key(there.definition.key_schema.key(mapped.row.latest))
    assert again is not None
    assert again.position == row.position
    found = back.map(mapped.row).row
    assert found is not None
    assert found.latest.keys() <= row.latest.keys()


@pytest.mark.parametrize(
    ("key", "written"),
    [
        ("a/b", "a_x002F_b"),
        ("", ""),
        ("_x002F_", "_x005F_x002F_"),
        ("_x0041-", "_x0041-"),
        ("_x0041/", "_x005F_x0041_x002F_"),
    ],
)
def test_escaped_keys_of_azure(key: str, written: str) -> None:
    source = Definition("people", DYNAMODB, schema("pk:TEXT"))
    mapping = Mapping(source, AZURE, options=MappingOptions(escape_keys=True))
    if key:
        mapped = mapping.map(row_of(source.key_schema, pk=text(key)))
        assert mapped.row is not None
        assert mapped.row.latest["PartitionKey"] == text(written)
        assert (rules.KEY_ESCAPED in {f.rule for f in mapped.findings}) is (key != written)
        back = Mapping(mapping.definition, DYNAMODB, source, MappingOptions(escape_keys=True))
        again = back.map(mapped.row).row
        assert again is not None
        assert again.latest == {"pk": text(key)}


@given(ODD_TEXTS | st.text("_x0041F/\\A", max_size=14))
def test_escapes_are_each_others_inverse(given_text: str) -> None:
    for escapes in (EscapeRules(r"[/\\]", True), EscapeRules("(?!)", False), EscapeRules(r"\A#", False)):
        assert escapes.unspelled(escapes.spelled(given_text)) == given_text
        if escapes._is_plain(given_text):
            assert escapes.spelled(escapes.unspelled(given_text)) == given_text


def test_the_names_and_kinds_of_an_existing_table_apply() -> None:
    """The names and kinds of the existing table apply. A text that is no key of its kinds is rejected."""
    source = Definition("people", AZURE, AZURE_KEY)
    existing = Definition("People", DYNAMODB, schema("id:DECIMAL", "when:TEXT"))
    mapping = Mapping(source, DYNAMODB, existing)
    assert mapping.definition.name == "People"
    assert mapping.definition.key_schema == existing.key_schema
    good = mapping.map(row_of(AZURE_KEY, PartitionKey=text("42"), RowKey=text("r")))
    assert good.row is not None
    assert good.row.latest == {"id": Value(Kind.DECIMAL, Decimal(42)), "when": text("r")}
    bad = mapping.map(row_of(AZURE_KEY, PartitionKey=text("042"), RowKey=text("r")))
    assert bad == (None, (MappingFinding(rules.KEY_UNREADABLE, "PartitionKey"),))
    clash = mapping.map(row_of(AZURE_KEY, PartitionKey=text("42"), RowKey=text("r"), id=text("")))
    assert clash.row is None
    assert MappingFinding(rules.NAME_CLASH, "id") in clash.findings


@pytest.mark.parametrize(
    ("source", "existing"),
    [
        (schema("a:TEXT", "b:INT64"), schema("a:TEXT")),
        (schema("a:BYTES"), schema("a:DECIMAL")),
        (schema("a:TEXT", "b:TEXT", "c:TEXT"), schema("a:TEXT", "b:BYTES")),
        (schema("a:TEXT", "b:TEXT", "c:TEXT"), schema("a:TEXT")),
        (schema("a:TEXT", "b:TEXT", "c:TEXT"), schema("a:TEXT", "b:TEXT", "c:TEXT", "d:TEXT")),
    ],
)
def test_a_table_that_cannot_hold_the_keys(source: KeySchema, existing: KeySchema) -> None:
    with pytest.raises(SchemaChanged, match="cannot hold the source"):
        Mapping(Definition("t", TABLEGATE, source), TABLEGATE, Definition("t", TABLEGATE, existing))


def test_rules_of_tables() -> None:
    stream = StreamRule("label", True, "NEW_IMAGE", 1, 1)
    ttl = Definition("people", DYNAMODB, schema("pk:TEXT"), rules=Rules(ExpiryRule("until"), stream))
    assert Mapping(ttl, DYNAMODB).definition.rules == ttl.rules
    assert Mapping(ttl, TABLEGATE).definition == replace(ttl, is_stored=True)
    for target in (AZURE, TABLE_STORE):
        mapping = Mapping(ttl, target)
        assert MappingFinding(rules.EXPIRY_NOT_KEPT, "until") in mapping.notes
        assert (MappingFinding(rules.STREAM_NOT_KEPT, "") in mapping.notes) is (target is AZURE)
        assert mapping.definition.rules.expiry is None
    aged = Definition(
        "people",
        TABLE_STORE,
        KeySchema((KeyColumn("pk", Kind.TEXT),), (KeyColumn("id", Kind.INT64, auto_increment=True),)),
        rules=Rules(ExpiryRule(age_ms=86_400_000), None, 3, stamped=True),
    )
    assert Mapping(aged, TABLE_STORE).definition.rules == aged.rules
    assert Mapping(aged, TABLE_STORE).notes == ()
    assert {*Mapping(aged, DYNAMODB).notes} == {
        MappingFinding(rules.EXPIRY_NOT_KEPT, ""),
        MappingFinding(rules.STAMPS_NOT_KEPT, ""),
        MappingFinding(rules.AUTO_INCREMENT_NOT_KEPT, "id"),
    }
    assert (
        MappingFinding(rules.TIMESTAMP_NOT_KEPT, "Timestamp")
        in Mapping(Definition("p", AZURE, AZURE_KEY), DYNAMODB).notes
    )


def test_versions_and_stamps_of_cells() -> None:
    source = Definition("people", TABLE_STORE, schema("pk:TEXT"), rules=Rules(max_versions=3, stamped=True))
    cells = {"a": tuple(Cell(text(f"{at}"), 5 - at) for at in range(3)), "b": (Cell(text("x"), 4),)}
    row = Row(
        source.key_schema.key({"pk": text("p")}).position, Contents.of_cells({"pk": text("p")}, cells), 0
    )
    same = Mapping(source, TABLE_STORE).map(row)
    assert same.row is not None
    assert same.findings == ()
    assert {name: same.row.cells[name] for name in cells} == cells
    fewer = Mapping(source, TABLE_STORE, replace(source, rules=Rules(max_versions=2, stamped=True))).map(row)
    assert fewer.row is not None
    assert fewer.row.cells["a"] == cells["a"][:2]
    assert fewer.findings == (MappingFinding(rules.OLDER_VERSIONS, "a"),)
    gone = Mapping(source, DYNAMODB).map(row)
    assert gone.row is not None
    assert gone.findings == (MappingFinding(rules.OLDER_VERSIONS, "a"),)
    assert gone.row.kinds is None
    stamped = Contents.of_cells({"pk": text("p")}, {"a": (Cell(text(""), 2**63 // 1000),)})
    assert Mapping(source, TABLE_STORE).map(Row(row.position, stamped, 0)).findings == (
        MappingFinding(rules.STAMP_OUT_OF_RANGE, ""),
    )


def test_defined_columns() -> None:
    source = Definition("people", DYNAMODB, schema("pk:TEXT"))
    existing = Definition(
        "people",
        TABLE_STORE,
        schema("pk:TEXT"),
        rules=Rules(stamped=True),
        properties={"tablestore": {"defined": [["a", 1]]}},  # DCT_INTEGER
    )
    mapping = Mapping(source, TABLE_STORE, existing)
    assert (
        mapping.map(row_of(source.key_schema, pk=text("p"), a=Value(Kind.DECIMAL, Decimal(5)))).row
        is not None
    )
    refused = mapping.map(row_of(source.key_schema, pk=text("p"), a=text("5")))
    assert refused == (None, (MappingFinding(rules.DEFINED_KIND, "a"),))


def index(name: str, key: KeySchema, **more: object) -> NewIndex:
    return NewIndex(name, key, **{"projection": IndexProjection.ALL, **more})  # type: ignore[arg-type]


def test_indexes() -> None:
    by_text = index("by_text", schema("t:TEXT", "sk:TEXT"))
    by_number = index("by_number", schema("n:DECIMAL"))
    local = index("local", schema("pk:TEXT", "t:TEXT"), local=True)
    source = Definition("people", DYNAMODB, schema("pk:TEXT", "sk:TEXT"), (by_text, by_number, local))
    assert Mapping(source, DYNAMODB).definition.indexes == source.indexes
    there = Mapping(source, TABLE_STORE)
    assert [each.name for each in there.definition.indexes] == ["by_text", "local"]
    assert {*there.notes} == {
        MappingFinding(rules.INDEX_PROJECTION, "by_text"),
        MappingFinding(rules.INDEX_NOT_KEPT, "by_number"),
        MappingFinding(rules.INDEX_PROJECTION, "local"),
    }
    assert Mapping(source, AZURE).definition.indexes == ()
    assert Mapping(source, TABLEGATE).definition.indexes == source.indexes

    cells = Definition(
        "people",
        TABLE_STORE,
        schema("a:TEXT", "b:INT64", "c:TEXT"),
        (
            index("by_d", schema("d:INT64", "a:TEXT"), projection=IndexProjection.INCLUDE, included=("e",)),
            index("by_c", schema("c:TEXT", "a:TEXT")),  # c is a part of one attribute elsewhere
        ),
        Rules(stamped=True),
    )
    back = Mapping(cells, DYNAMODB)
    assert [each.key_schema for each in back.definition.indexes] == [schema("d:DECIMAL", "a:TEXT")]
    assert MappingFinding(rules.INDEX_NOT_KEPT, "by_c") in back.notes
    wrong = row_of(cells.key_schema, a=text("x"), b=Value(Kind.INT64, 1), c=text("y"), d=text("no number"))
    assert MappingFinding(rules.INDEX_KEY, "d") in back.map(wrong).findings


@pytest.mark.parametrize("target", [DYNAMODB, AZURE, TABLE_STORE])
def test_names_of_tables(target: Service) -> None:
    names = [
        "Orders",
        "orders",
        "ORDERS",
        "my-table",
        "my.table",
        "t",
        "tables",
        "Tables",
        "ü",
        "x" * 255,
        "_a",
        "1st",
    ]
    made = table_names(target, names)
    assert made == table_names(target, reversed(names))
    assert all(is_table_name(target, name) for name in made.values())
    folded = [name.lower() if target is AZURE else name for name in made.values()]
    assert len({*folded}) == len(names)
    kept = {name for name in names if made[name] == name}
    assert (
        kept
        == {
            DYNAMODB: {*names} - {"t", "ü", "_a"},
            AZURE: {"ORDERS"},
            TABLE_STORE: {*names} - {"my-table", "my.table", "ü", "1st"},
        }[target]
    )
    renamed = Mapping(Definition("my-table.", DYNAMODB, schema("pk:TEXT")), AZURE)
    assert MappingFinding(rules.TABLE_RENAMED, "my-table.") in renamed.notes
    assert renamed.definition.name.startswith("mytable")
