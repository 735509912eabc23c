"""Comparisons: what is planted is found and named, and nothing else is."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.gateway.model import fast_paths
from tablegate.gateway.model.commands.table_commands import NewIndex
from tablegate.gateway.model.tables.indexes import IndexProjection
from tablegate.gateway.model.tables.tables import ExpiryRule, Rules
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema, Position
from tablegate.gateway.model.values.rows import Cell, Contents, Row
from tablegate.gateway.model.values.values import NULL, Kind, Value
from tablegate.transfer.comparing.checksums import TableSums, signature
from tablegate.transfer.comparing.differences import Difference, ExitStatus, Report
from tablegate.transfer.comparing.sides import CompareOptions, TablePair
from tablegate.transfer.comparing.suspects import Suspects
from tablegate.transfer.comparing.verifying import VerificationLevel, diff, verify
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.errors import SchemaChanged, TransferError
from tablegate.transfer.mapping.mapping import Mapping, MappingOptions
from tests.support.tables import each_row
from tests.transfer.support.plain_endpoint import PlainEndpoint, WholeEndpoint
from tests.transfer.support.tables import tables

DYNAMODB, AZURE, TABLE_STORE, TABLEGATE = Service
PAIR = KeySchema((KeyColumn("pk", Kind.TEXT),), (KeyColumn("sk", Kind.DECIMAL),))
ITEMS = Definition("Orders", DYNAMODB, PAIR)
CELLS = Definition(
    "Orders",
    TABLE_STORE,
    KeySchema(
        (KeyColumn("c1", Kind.TEXT),),
        (KeyColumn("c2", Kind.INT64), KeyColumn("c3", Kind.BYTES), KeyColumn("c4", Kind.TEXT)),
    ),
    rules=Rules(stamped=True),
)
ENTITIES = Definition(
    "Orders",
    AZURE,
    KeySchema((KeyColumn("PartitionKey", Kind.TEXT),), (KeyColumn("RowKey", Kind.TEXT),)),
)


def text(data: str) -> Value:
    return Value(Kind.TEXT, data)


def number(data: str) -> Value:
    return Value(Kind.DECIMAL, Decimal(data))


def double(data: float) -> Value:
    return Value(Kind.DOUBLE, data)


def row_of(definition: Definition, values: dict[str, Value]) -> Row:
    position = definition.key_schema.key(values).position
    if not definition.rules.stamped:
        return Row(position, Contents.of_values(values), 0)
    names = definition.key_schema.names
    cells = {name: (Cell(value, 1_700_000_000_000),) for name, value in values.items() if name not in names}
    return Row(position, Contents.of_cells({name: values[name] for name in names}, cells), 0)


def key_of(definition: Definition, at: int) -> dict[str, Value]:
    if definition.service is AZURE:
        return {"PartitionKey": text(f"p{at % 50}"), "RowKey": text(f"r{at}")}
    if definition.service is TABLE_STORE:
        return {
            "c1": text(f"p{at % 50}"),
            "c2": Value(Kind.INT64, 7),
            "c3": Value(Kind.BYTES, b"\x00|"),
            "c4": text(f"r{at}"),  # rows that differ in no other column
        }
    return {"pk": text(f"p{at % 50}"), "sk": number(str(at))}


def attributes_of(definition: Definition, at: int) -> dict[str, Value]:
    """Each row has these, of kinds that its service has."""
    common = {
        "title": text(f"the title of row {at}"),
        "blob": Value(Kind.BYTES, bytes([at % 256]) * 40),
        "flag": Value(Kind.BOOL, at % 2 == 0),
        "gone": text("later"),
    }
    if definition.service is DYNAMODB:
        return {
            **common,
            "price": number(f"0.1{at:04}7"),
            "large": number("1.2345678901234567890123456789012345678"),
            "count": number(str(at + 1)),
            "zero": number("0"),
            "tags": Value(Kind.TEXT_SET, frozenset({"a", "b", f"t{at}"})),
            "doc": Value(Kind.MAP, {"a": Value(Kind.LIST, (number("1"), NULL))}),
            "nothing": NULL,
        }
    more = {
        "price": double(0.1 + at),
        "zero": double(-0.0),
        "nan": double(float("nan")),
        "count": Value(Kind.INT64, at + 1),
    }
    if definition.service is AZURE:
        more |= {
            "when": Value(Kind.DATETIME, 638_000_000_000_000_001 + at),
            "id": Value(Kind.GUID, UUID(int=at)),
        }
    return {**common, **more}


def table_of(definition: Definition, rows: int = 400) -> list[Row]:
    return [
        row_of(definition, {**key_of(definition, at), **attributes_of(definition, at)}) for at in range(rows)
    ]


@dataclass
class Copy:
    """A table and its copy, in which defects are planted."""

    first: PlainEndpoint
    second: PlainEndpoint
    mapping: Mapping

    @classmethod
    def of(cls, definition: Definition, target: Service, rows: int = 400) -> Copy:
        made = table_of(definition, rows)
        mapping = Mapping(definition, target)
        copies = [mapping.map(row).row for row in made]
        assert None not in copies
        second = PlainEndpoint(mapping.definition, copies, target)  # type: ignore[arg-type]
        return cls(PlainEndpoint(definition, made), second, mapping)

    def change(self, at: int, **values: Value | None) -> None:
        """Change attributes of a row of the copy. None removes an attribute."""
        row = self.second.rows[at]
        latest = {name: value for name, value in {**row.latest, **values}.items() if value is not None}
        self.second.rows[at] = row_of(self.second.definition, latest)

    def verify(self, level: str = "checksum", **options: object) -> Report:
        return verify(self.first, self.second, level, CompareOptions(**options))  # type: ignore[arg-type]


WAYS = [
    (ITEMS, DYNAMODB), (ITEMS, AZURE), (ITEMS, TABLE_STORE), (ITEMS, TABLEGATE), (ENTITIES, DYNAMODB), (ENTITIES, AZURE),
    (ENTITIES, TABLE_STORE), (ENTITIES, TABLEGATE), (CELLS, DYNAMODB), (CELLS, AZURE), (CELLS, TABLE_STORE), (CELLS, TABLEGATE),
]  # fmt: skip
IDS = [f"{definition.service.value}-{target.value}" for definition, target in WAYS]


@each_row("definition, target", WAYS)
@each_row("level", ["count", "checksum", "full", "sample:40"])
def test_a_copy_is_equal(definition: Definition, target: Service, level: str) -> None:
    copy = Copy.of(definition, target, rows=60)
    random.Random(1).shuffle(copy.second.rows)
    report = copy.verify(level)
    assert report.status is ExitStatus.EQUAL, report.text()
    assert report.rows == ((40, 40) if level == "sample:40" else (60, 60))
    assert copy.second.looked_up == (40 if level == "sample:40" else 0)
    assert copy.verify(level, strict=True).status is ExitStatus.EQUAL
    if level == "checksum":  # and the other way round
        assert verify(copy.second, copy.first).status is ExitStatus.EQUAL


Planted = tuple[str, int, str, str, str]
"""(what, the number of the row, attribute, how, detail)"""


def plant_some(copy: Copy, planted: list[Planted], used: Iterator[int]) -> None:
    """One defect of each sort that the two services can have."""
    rows = copy.second.rows
    latest = rows[0].latest
    ends = (copy.first.service, copy.second.service)

    def changed(name: str, make: Callable[[Value], Value | None], how: str, detail: str) -> None:
        if name in latest:
            at = next(used)
            copy.change(at, **{name: make(rows[at].latest[name])})
            planted.append(("changed", at, name, how, detail))

    changed("price", lambda value: None, "missing", "")
    changed("blob", lambda value: Value(Kind.BYTES, value.data[:30]), "changed", "truncated to 30 of 40")
    changed("title", lambda value: text(value.data[:-1]), "changed", "truncated")
    changed("title", lambda value: text(value.data.upper()), "changed", "case")
    changed("flag", lambda value: Value(Kind.BOOL, not value.data), "changed", "")
    changed("flag", lambda value: text(str(value.data).lower()), "changed", "BOOL is TEXT")
    changed("count", lambda value: Value(value.kind, value.data + 1), "changed", "")
    changed("doc", lambda value: text("{}"), "changed", "")
    at = next(used)
    copy.change(at, added=text("x"))
    planted.append(("changed", at, "added", "extra", ""))
    at = next(used)
    copy.change(at, gone=None, Gone=rows[at].latest["gone"])
    planted += [
        ("changed", at, "Gone", "extra", "case: gone"),
        ("changed", at, "gone", "missing", "case: Gone"),
    ]
    if copy.first.service is DYNAMODB:
        value = (
            number("1.2345678901234568") if copy.second.service is DYNAMODB else double(1.2345678901234568)
        )
        detail = "rounded to 17 of 38 digits" if copy.second.service in (DYNAMODB, TABLEGATE) else ""
        changed("large", lambda _: value, "changed", detail)
    elif DYNAMODB not in ends:
        changed("zero", lambda value: double(0.0), "changed", "sign of zero")
        changed("nan", lambda value: double(1.0), "changed", "not a finite number")


def plant(copy: Copy) -> list[Planted]:
    """Create a hundred defects, each in a separate row. Returns the expected finding of each."""
    rows = copy.second.rows
    planted: list[Planted] = []
    used = iter(range(3, 400, 3))
    while len({each[1] for each in planted}) < 80:
        plant_some(copy, planted, used)
    for _ in range(10):
        at = next(used)
        planted.append(("missing", at, "", "", ""))
    for _, at, *_ in planted[-10:]:
        rows[at] = replace_key(copy, at)
        planted.append(("extra", at, "", "", ""))
    return planted


def replace_key(copy: Copy, at: int) -> Row:
    """The row under another key: the copy's lost one, and has another instead."""
    row = copy.second.rows[at]
    schema = copy.second.definition.key_schema
    return row_of(copy.second.definition, {**row.latest, schema.names[0]: text(f"another {at}")})


@pytest.mark.parametrize(("definition", "target"), WAYS, ids=IDS)
def test_planted_defects_are_named_and_nothing_else_is(definition: Definition, target: Service) -> None:
    copy = Copy.of(definition, target)
    planted = plant(copy)
    wanted = set()
    for what, at, name, how, detail in planted:
        if what == "extra":
            identity: object = (f"another {at}",)
        else:
            pair = TablePair(copy.first, copy.second, CompareOptions())
            identity = pair.sides[0].compared_row(copy.first.rows[at]).identity
        wanted.add((what, identity, name, how, detail))
    report = copy.verify()
    found = set()
    for difference in report.differences:
        identity = difference.identity[:1] if difference.what == "extra" else difference.identity
        for each in difference.attributes or (None,):
            name, how, detail = ("", "", "") if each is None else (each.name, each.how, each.detail)
            known = {
                entry[4]
                for entry in wanted
                if entry[:4] == (difference.what, identity, name, how) and detail.startswith(entry[4])
            }
            found.add((difference.what, identity, name, how, max(known, key=len, default=detail)))
    assert found == wanted
    assert len({each[1] for each in planted}) >= 90
    assert len(planted) >= 100
    assert report.status is ExitStatus.DIFFERENT
    assert report.counts["missing"] == report.counts["extra"] == 10
    assert copy.verify("full").differences == report.differences


def test_rows_that_swap_values_and_rows_that_are_there_twice_are_seen() -> None:
    """XOR of hashes would see neither a row twice at both ends' cost nor, with hashes of values, a swap."""
    copy = Copy.of(ITEMS, TABLEGATE, rows=20)
    mine, other = copy.second.rows[3].latest, copy.second.rows[4].latest
    copy.change(3, title=other["title"])
    copy.change(4, title=mine["title"])
    copy.second.rows += [copy.second.rows[9], copy.second.rows[9]]
    report = copy.verify()
    assert report.counts == {"changed": 2, "extra": 1}
    [extra] = [each for each in report.differences if each.what == "extra"]
    assert extra.detail == "1 times at the first end and 3 times at the second"
    assert extra.identity == ("p9", "9")
    del copy.first.rows[10]
    copy.first.rows.append(copy.first.rows[11])
    assert copy.verify("count").status is ExitStatus.DIFFERENT  # two more
    assert copy.verify("count").counts == {"rows": 2}


@pytest.mark.parametrize(
    ("values", "detail"),
    [((1e308, 1e-308), "decimal point"), ((1e-308, 1e308), "decimal point"), ((-3e300, -5e-300), "")],
)
def test_doubles_that_are_far_apart_have_a_detail(values: tuple[float, float], detail: str) -> None:
    """Their quotient is no Double."""
    copy = Copy.of(ENTITIES, TABLEGATE, rows=1)
    key = key_of(ENTITIES, 0)
    copy.first.rows, copy.second.rows = ([row_of(ENTITIES, {**key, "n": double(value)})] for value in values)
    [difference] = copy.verify().differences
    assert [each.detail for each in difference.attributes] == [detail]


@given(st.lists(st.integers(0, 2**128 - 1), max_size=6), st.randoms(use_true_random=False))
def test_sums_mind_neither_order_nor_parts_but_numbers(hashes: list[int], chance: random.Random) -> None:
    whole, parts = TableSums(), [TableSums(), TableSums()]
    for row_hash in hashes:
        whole.add(row_hash % 3, row_hash)
    for row_hash in chance.sample(hashes, len(hashes)):
        parts[chance.randrange(2)].add(row_hash % 3, row_hash)
    parts[0].merge(parts[1])
    assert parts[0].unequal(whole) == frozenset()
    assert parts[0].digest() == whole.digest()
    for row_hash in hashes[:1] * 2:  # twice more: XOR would not see it
        whole.add(row_hash % 3, row_hash)
    assert parts[0].unequal(whole) == {row_hash % 3 for row_hash in hashes[:1]}


@pytest.mark.parametrize(("tolerance", "is_equal"), [(0.25, True), (0.2499999, False)])
def test_numbers_within_the_tolerance_are_equal(tolerance: float, is_equal: bool) -> None:
    copy = Copy.of(ITEMS, TABLEGATE, rows=10)
    copy.change(2, price=number("0.2"), doc=Value(Kind.MAP, {"a": Value(Kind.LIST, (number("1.25"), NULL))}))
    copy.first.rows[2] = row_of(ITEMS, {**copy.first.rows[2].latest, "price": number("0.45")})
    report = copy.verify(tolerance=tolerance)
    assert (report.status is ExitStatus.EQUAL) is is_equal
    if not is_equal:
        assert [each.name for each in report.differences[0].attributes] == ["doc", "price"]


@pytest.mark.parametrize("target", [AZURE, TABLEGATE])
@pytest.mark.parametrize("ignored", ["my-attr", "my_x002D_attr"])
def test_ignored_attributes(target: Service, ignored: str) -> None:
    copy = Copy.of(ITEMS, target, rows=10)
    names = {AZURE: "my_x002D_attr", TABLEGATE: "my-attr"}
    copy.change(2, **{names[target]: text("x")})
    copy.first.rows[4] = row_of(ITEMS, {**copy.first.rows[4].latest, "my-attr": text("y")})
    assert [len(each.attributes) for each in copy.verify().differences] == [1, 1]
    is_known = target is AZURE or ignored == "my-attr"
    assert (copy.verify(ignored={ignored}).status is ExitStatus.EQUAL) is is_known


def test_strict_sees_kinds_and_stamps() -> None:
    copy = Copy.of(ENTITIES, AZURE, rows=10)
    copy.change(2, count=double(3.0))
    copy.change(3, id=text(str(UUID(int=3))))
    assert copy.verify(strict=False).counts == {"changed": 1}  # the Guid: both ends have them
    assert copy.verify().counts == {"kind": 1, "changed": 1}
    strict = copy.verify(strict=True)
    assert strict.counts == {"kind": 1, "changed": 1}
    assert [each.what for each in sorted(strict.differences)] == ["changed", "kind"]
    [detail] = [each.attributes[0].detail for each in strict.differences if each.what == "kind"]
    assert detail == "INT64 is DOUBLE"
    copy = Copy.of(CELLS, TABLE_STORE, rows=10)
    row = copy.second.rows[5]
    cells = {name: row.cells[name] for name in row.latest if name not in CELLS.key_schema.names}
    cells["title"] = (cells["title"][0]._replace(stamp_ms=1),)
    key_values = {name: row.latest[name] for name in CELLS.key_schema.names}
    copy.second.rows[5] = Row(row.position, Contents.of_cells(key_values, cells), 0)
    assert copy.verify().status is ExitStatus.EQUAL
    assert copy.verify(strict=True).differences[0].attributes[0].detail == "stamps or older versions"


def _int(kind: Kind, data: int) -> Value:
    return Value(kind, data)


def test_a_changed_kind_is_a_difference_where_both_services_have_it() -> None:
    """The default. Services without the kind show one kind of number, which is compared by value."""
    int32, int64 = _int(Kind.INT32, 5), _int(Kind.INT64, 5)
    stored = replace(ENTITIES, is_stored=True)
    for definition, target, first, second, is_different in (
        (ENTITIES, AZURE, int64, int32, True),
        (ENTITIES, AZURE, int32, double(5.0), True),
        (ENTITIES, TABLEGATE, int64, int32, True),
        (stored, AZURE, int64, int32, True),
        (stored, TABLEGATE, int64, number("5"), True),
        (ENTITIES, TABLE_STORE, int64, double(5.0), True),
        (CELLS, TABLE_STORE, int64, double(5.0), True),
        (CELLS, AZURE, int64, double(5.0), True),
        (CELLS, AZURE, int64, int32, False),  # Table Store has no Int32
        (ENTITIES, DYNAMODB, int64, number("5.0"), False),
        (ITEMS, DYNAMODB, number("5"), number("5.0"), False),
    ):
        copy = Copy.of(definition, target, rows=3)
        copy.first.rows[1] = row_of(definition, {**copy.first.rows[1].latest, "count": first})
        copy.change(1, count=second)
        case = (definition.service, target, first, second)
        for level in ("checksum", "full", "sample:3"):
            report = copy.verify(level)
            assert report.counts == ({"kind": 1} if is_different else {}), (*case, level)
        other_way = verify(copy.second, copy.first)
        assert other_way.counts == ({"kind": 1} if is_different else {}), case
        assert copy.verify(strict=False).status is ExitStatus.EQUAL, case
        signatures = signature(copy.first, copy.second.service), signature(copy.second, copy.first.service)
        assert (signatures[0] != signatures[1]) is is_different, case


def test_a_lenient_comparison_says_so() -> None:
    copy = Copy.of(ENTITIES, AZURE, rows=3)
    copy.change(1, count=_int(Kind.INT32, 2))
    lenient = copy.verify(strict=False)
    assert lenient.status is ExitStatus.EQUAL
    assert lenient.text().endswith("\nlenient: kinds of numbers were not compared\nequal\n")
    assert json.loads(lenient.json())["lenient"] is True
    usual = copy.verify()
    assert "lenient" not in usual.text()
    assert "different: 1 kind" in usual.text()
    assert json.loads(usual.json())["lenient"] is False


def test_rows_written_during_a_comparison_are_no_differences() -> None:
    copy = Copy.of(ITEMS, AZURE, rows=30)
    row = copy.second.rows.pop(7)

    def arrive() -> None:
        if row not in copy.second.rows:
            copy.second.rows.append(row)

    copy.second.changing = arrive
    report = copy.verify()
    assert report.status is ExitStatus.EQUAL
    assert report.settled == 1


def test_an_end_that_can_only_be_read_whole() -> None:
    copy = Copy.of(ITEMS, AZURE, rows=30)
    copy.first = WholeEndpoint(copy.first.definition, copy.first.rows)
    copy.second = WholeEndpoint(copy.second.definition, copy.second.rows)
    copy.change(7, title=text("x"))
    del copy.second.rows[9]
    report = copy.verify()
    assert report.counts == {"changed": 1, "missing": 1}
    assert copy.verify("sample:30").counts == {"changed": 1, "missing": 1}


def test_rows_that_the_target_cannot_have_are_missing_by_that_rule() -> None:
    copy = Copy.of(ITEMS, AZURE, rows=30)
    odd = row_of(ITEMS, {"pk": text("a/b"), "sk": number("1"), "x": text("y" * 40_000)})
    copy.first.rows.append(odd)
    for level in ("checksum", "full"):
        report = copy.verify(level)
        assert report.counts == {"missing": 1}
        assert report.impossible == 1
        assert report.differences == [
            Difference("missing", ("a/b", "1"), (), ("key-forbidden", "value-too-long"))
        ]
    assert copy.verify("count").status is ExitStatus.EQUAL


def test_rows_under_escaped_keys_are_found_again() -> None:
    options = MappingOptions(escape_keys=True)
    rows = [row_of(ITEMS, {"pk": text(f"p/{at}"), "sk": number("1")}) for at in range(4)]
    mapping = Mapping(ITEMS, AZURE, options=options)
    copies = [made for row in rows if (made := mapping.map(row).row) is not None]
    first, second = PlainEndpoint(ITEMS, rows[1:]), PlainEndpoint(mapping.definition, copies)
    late = rows[0]
    first.changing = lambda: first.rows.append(late) if late not in first.rows else None
    report = verify(first, second, options=CompareOptions(mapping=options))
    assert (report.status, report.settled) == (ExitStatus.EQUAL, 1)
    assert verify(first, second).counts == {"missing": 4, "extra": 4}  # without the option


def test_an_expired_row_that_one_end_has_kept() -> None:
    definition = replace(ITEMS, rules=Rules(expiry=ExpiryRule("until")))
    copy = Copy.of(ITEMS, DYNAMODB, rows=10)
    copy.first.definition = definition
    old = row_of(ITEMS, {"pk": text("old"), "sk": number("1"), "until": number("1700000000")})
    copy.second.rows.append(Row(old.position, old.contents, 17_000_000_000_000_000))
    [difference] = copy.verify().differences
    assert difference == Difference("extra", ("old", "1"), (), ("row-expired",))


def test_tables_themselves() -> None:
    index = NewIndex("by_title", KeySchema((KeyColumn("title", Kind.TEXT),)), IndexProjection.ALL)
    copy = Copy.of(replace(ITEMS, indexes=(index,)), DYNAMODB, rows=10)
    copy.second.definition = replace(copy.second.definition, name="orders", indexes=())
    report = copy.verify()
    assert [(each.what, each.first, each.second, each.counts) for each in report.tables] == [
        ("case of the name", "Orders", "orders", True),
        ("indexes", "by_title", "none", False),
    ]
    assert report.status is ExitStatus.DIFFERENT
    copy.second.definition = replace(copy.second.definition, name="Orders")
    assert copy.verify().status is ExitStatus.EQUAL
    assert copy.verify(strict=True).status is ExitStatus.DIFFERENT


def test_keys_that_can_never_be_the_same() -> None:
    other = Definition(
        "t", DYNAMODB, KeySchema((KeyColumn("pk", Kind.BYTES),), (KeyColumn("sk", Kind.BYTES),))
    )
    with pytest.raises(SchemaChanged):
        verify(PlainEndpoint(ITEMS, []), PlainEndpoint(other, []))


@pytest.mark.parametrize("text_of_level", ["sample", "sample:0", "sample:x", "count:1", "none", "sample:-1"])
def test_levels_that_are_none(text_of_level: str) -> None:
    with pytest.raises(ValueError, match="none of count"):
        VerificationLevel.of(text_of_level)


def test_a_full_disk_under_the_suspects() -> None:
    suspects = Suspects()
    suspects._connection.execute("PRAGMA max_page_count = 4")
    rows = [(b"%d" % number, Position(b"x" * 1_000, b""), number) for number in range(100)]
    with pytest.raises(TransferError, match=r"temporary file in .* is full\. Free space, or .* TMPDIR"):
        suspects.add(True, rows)
    suspects.close()


def test_an_error_ends_a_comparison() -> None:
    copy = Copy.of(ITEMS, AZURE, rows=30)

    def scan(*_: object) -> None:
        raise SchemaChanged("no longer what it was")

    copy.second.scan = scan  # type: ignore[method-assign, assignment]
    with pytest.raises(SchemaChanged):
        copy.verify()


# The fast way over bodies


@pytest.mark.extended
@given(tables(st.sampled_from([TABLEGATE, DYNAMODB])), st.data())
def test_the_fast_way_and_the_general_one_find_the_same(
    table: tuple[Definition, list[Row]], data: st.DataObject
) -> None:
    """Rows with equal bodies are equal. For unequal bodies, canonical rows decide."""
    definition, rows = table
    changed = list(rows)
    if rows and data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(rows) - 1))
        latest = dict(rows[at].latest)
        if data.draw(st.booleans()):  # another order of attributes: other bytes, the same row
            latest = dict(reversed(latest.items()))
        else:
            latest["changed"] = data.draw(st.sampled_from([text("x"), double(-0.0), NULL]))
        changed[at] = Row(rows[at].position, Contents.of_values(latest), 0)
    first, second = PlainEndpoint(definition, rows), PlainEndpoint(definition, changed)
    fast = verify(first, second, workers=1)
    assert fast.differences == verify(first, second, "full", workers=1).differences
    if fast_paths.ARE_ON:
        assert TablePair(first, second, CompareOptions()).hashes_bodies
    sides = TablePair(first, second, CompareOptions()).sides
    for mine, other in zip(rows, changed, strict=True):
        if mine.body == other.body and sides[0].compared_row(mine).row is not None:
            assert sides[0].row_bytes(sides[0].compared_row(mine)) == sides[1].row_bytes(
                sides[1].compared_row(other)
            )


# diff and signature


def test_diff_writes_each_difference() -> None:
    copy = Copy.of(ITEMS, AZURE, rows=30)
    copy.change(7, title=text("x\x1b[2J"), large=None)
    del copy.second.rows[9]
    written: list[str] = []
    assert diff(copy.first, copy.second, written.append, form="jsonl") is ExitStatus.DIFFERENT
    documents = {line["what"]: line for line in map(json.loads, written)}
    assert documents["missing"]["key"] == ["p9", "9"]
    [large, title] = documents["changed"]["attributes"]
    assert (large["name"], large["how"], large["second"], large["rules"]) == (
        "large",
        "missing",
        None,
        ["number-as-text"],
    )
    assert (title["first"], title["second"]) == ({"S": "the title of row 7"}, {"S": "x\x1b[2J"})
    written.clear()
    assert diff(copy.first, copy.second, written.append) is ExitStatus.DIFFERENT
    assert "\x1b" not in "".join(written)
    assert any(each.startswith("missing p9 / 9\n") for each in written)
    written.clear()
    assert diff(copy.first, copy.second, written.append, limit=1) is ExitStatus.DIFFERENT
    assert len(written) == 1
    assert diff(copy.first, copy.first, written.append) is ExitStatus.EQUAL


@pytest.mark.parametrize(("definition", "target"), WAYS, ids=IDS)
def test_two_sites_come_to_the_same_signature(definition: Definition, target: Service) -> None:
    copy = Copy.of(definition, target, rows=40)
    mine = signature(copy.first, copy.second.service)
    other = signature(copy.second, copy.first.service)
    assert mine == other
    assert mine.rows == 40
    copy.change(5, title=text("x"))
    assert signature(copy.second, copy.first.service).digest != mine.digest
    assert signature(copy.second, copy.first.service, {"title"}) == signature(
        copy.first, copy.second.service, {"title"}
    )


@pytest.mark.extended
@given(
    tables(st.sampled_from([DYNAMODB, AZURE, TABLE_STORE])),
    st.sampled_from([DYNAMODB, AZURE, TABLE_STORE]),
    st.booleans(),
)
def test_every_copy_is_equal_and_has_the_same_signature(
    table: tuple[Definition, list[Row]], target: Service, escaped: bool
) -> None:
    definition, rows = table
    options = MappingOptions(escaped)
    mapping = Mapping(definition, target, options=options)
    copies = [made for row in rows if (made := mapping.map(row).row) is not None]
    first, second = PlainEndpoint(definition, rows), PlainEndpoint(mapping.definition, copies)
    report = verify(first, second, options=CompareOptions(mapping=options), workers=1)
    assert report.counts["missing"] == report.impossible == len(rows) - len(copies)
    assert sum(report.counts.values()) == report.impossible
    assert (
        verify(first, second, options=CompareOptions(strict=True, mapping=options), workers=1).counts
        == report.counts
    )
    mine = signature(first, target, options=options, workers=1)
    other = signature(second, definition.service, options=options, workers=1)
    assert (mine == other) is (not report.impossible)


def test_reports() -> None:
    copy = Copy.of(ITEMS, AZURE, rows=30)
    copy.change(7, title=text("x"))
    del copy.second.rows[9]
    report = verify(copy.first, copy.second, limit=1)
    document = json.loads(report.json())
    assert document["counts"] == {"missing": 1, "extra": 0, "changed": 1, "kind": 0, "rows": 0}
    assert (document["equal"], document["rows"], len(document["differences"])) == (False, [30, 29], 1)
    assert "... and 1 more" in report.text()
    assert report.text().endswith("different: 1 changed, 1 missing\n")
    assert copy.first.shown in report.text()
    assert verify(copy.first, copy.first).text().endswith("equal\n")
