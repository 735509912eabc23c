"""A prefilter passes every row that satisfies its predicate, for each writing and each reading dialect."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from itertools import product
from uuid import UUID

import hypothesis
import pytest

from tablegate.adapters.azuretable.values import view as azure_view
from tablegate.adapters.dynamodb.values.values import view as dynamodb_view
from tablegate.adapters.tablestore.views import view as tablestore_view
from tablegate.gateway.model.expressions.evaluation import matches
from tablegate.gateway.model.expressions.predicates import (
    ALWAYS,
    And,
    AnyVersion,
    Attribute,
    Compare,
    Comparison,
    Contains,
    Exists,
    HasKind,
    Literal,
    Not,
    Or,
    Path,
    Predicate,
    SizeOf,
    StartsWith,
    View,
)
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import FALSE, NULL, TRUE, Kind, Value, decimal, number_set, text
from tablegate.gateway.store.opening import open_database
from tablegate.gateway.store.sql.databases import Database, Session
from tablegate.gateway.store.sql.prefilters import BodyContains, condition_of, prefilter_of
from tablegate.gateway.store.sqlite.statements import SQLiteStatements

ROWS, PREDICATES = 250, 8 * hypothesis.settings().max_examples

NAMES = ["a", "A", "aa", 'quo"te', "back\\slash", "star*[x]?", "per%cent_", "é😀", "S", "x" * 300]
TEXTS = [
    *[
        "",
        "a",
        "ab",
        "abc",
        "A",
        "5",
        "5.0",
        "-0.0",
        "0",
        "1e+16",
        "NaN",
        "Infinity",
        "{",
        '{"S":"a"}',
        "}",
        "]",
        ":[",
    ],
    *[
        'quo"te',
        "back\\slash",
        "per%cent",
        "under_score",
        "star*",
        "question?",
        "[bracket]",
        "^",
        "é",
        "😀",
        "é😀",
    ],
    *["\x00", "tab\t", "\x7f", "\ufffe", "line\u2028", "long" * 400, "2021-01-01T00:00:00.0000000Z", "2021"],
    *["c9da6455-213d-42c9-9a79-3e9149a57833", "c9da", "NULL", "SS", '"N":"5"', "1.5", "1E+125", "inf"],
]
NUMBERS = [
    *[
        "0",
        "5",
        "-5",
        "5.5",
        "500",
        "50",
        "0.5",
        "0.1",
        "1E+16",
        "1E+22",
        "1E-7",
        "1E+125",
        "9007199254740993",
        "1234567890123456768",
        "99999999999999991611392",
    ],
    *["123456789012345678901234567890.12345678", "-0.000001", "2147483648", "9223372036854775807", "1E-130"],
]
DOUBLES = [
    0.0,
    -0.0,
    5.0,
    5.5,
    500.0,
    0.1,
    1e16,
    1e22,
    1234567890123456768.0,
    1e23,
    1.7e38,
    1e-7,
    1e125,
    1e300,
    -5.0,
    math.inf,
    -math.inf,
    math.nan,
]
OPAQUE = [b"", b"a", b"ab", b"\xff\x00\x10", b"abcdef" * 200]
TICKS = [637_450_560_000_000_000, 0, 5]
GUIDS = [UUID("c9da6455-213d-42c9-9a79-3e9149a57833"), UUID(int=5)]

VIEWS: dict[str, View | None] = {
    "as stored": None,
    "dynamodb": dynamodb_view,
    "azuretable": azure_view,
    "tablestore": tablestore_view,
}


class Chance:
    """Random values, predicates and rows, from pools small enough that equal ones are frequent."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def native(self, depth: int = 0) -> Value:
        pick = self.random.choice
        match self.random.randrange(7 if depth > 1 else 12):
            case 0 | 1:
                return text(pick(TEXTS))
            case 2 | 3:
                return decimal(pick(NUMBERS))
            case 4:
                return Value(Kind.BYTES, pick(OPAQUE))
            case 5:
                return pick([TRUE, FALSE])
            case 6:
                return NULL
            case 7:
                return Value(
                    Kind.LIST, tuple(self.native(depth + 1) for _ in range(self.random.randrange(3)))
                )
            case 8:
                return Value(
                    Kind.MAP, {pick(NAMES): self.native(depth + 1) for _ in range(self.random.randrange(3))}
                )
            case 9:
                return Value(Kind.TEXT_SET, frozenset(self.random.sample(TEXTS, 2)))
            case 10:
                return number_set(self.random.sample(NUMBERS, 2))
            case _:
                return Value(Kind.BYTES_SET, frozenset(self.random.sample(OPAQUE, 2)))

    def value(self) -> Value:
        pick = self.random.choice
        match self.random.randrange(9):
            case 0:
                return Value(Kind.INT32, pick([0, 5, -5, 500, 50, 2**31 - 1]))
            case 1:
                return Value(Kind.INT64, pick([0, 5, -5, 500, 2**31, 2**53 + 1, 2**63 - 1]))
            case 2:
                return Value(Kind.DOUBLE, pick(DOUBLES))
            case 3:
                return Value(Kind.DATETIME, pick(TICKS))
            case 4:
                return Value(Kind.GUID, pick(GUIDS))
            case _:
                return self.native()

    def row(self, number: int) -> Row:
        make = self.native if self.random.random() < 0.4 else self.value
        values = {name: make() for name in self.random.sample(NAMES, self.random.randrange(1, 5))}
        return Row(Position(b"p", b"%08d" % number), Contents.of_values(values), number)

    def path(self, rows: list[Row]) -> Path:
        """Often one that leads somewhere."""
        path: list[str | int] = [self.random.choice(NAMES)]
        found = self.random.choice(rows).latest.get(str(path[0]))
        while (
            found is not None
            and found.kind in (Kind.LIST, Kind.MAP)
            and found.data
            and self.random.random() < 0.8
        ):
            step = self.random.choice(list(found.data) if found.kind is Kind.MAP else range(len(found.data)))
            path.append(step)
            found = found.data[step]
        return tuple(path)

    def literal(self, rows: list[Row], view: View | None) -> Literal:
        """Often one that some row has."""
        if self.random.random() < 0.3:
            return Literal(self.value())
        value = self.random.choice(list(self.random.choice(rows).latest.values()))
        if value.kind in (Kind.LIST, Kind.MAP) and value.data and self.random.random() < 0.7:
            value = self.random.choice(list(value.data.values() if value.kind is Kind.MAP else value.data))
        elif value.kind.name.endswith("_SET"):
            kind = Kind[value.kind.name.removesuffix("_SET")]
            member = self.random.choice(sorted(value.data))
            value = decimal(member) if kind is Kind.DECIMAL else Value(kind, member)
        seen = value if view is None else view(value)
        if seen.kind in (Kind.TEXT, Kind.BYTES) and self.random.random() < 0.5:
            start = self.random.randrange(2)
            return Literal(Value(seen.kind, seen.data[start : start + self.random.randrange(1, 40)]))
        return Literal(seen)

    def predicate(self, rows: list[Row], view: View | None, depth: int = 0) -> Predicate:
        attribute = Attribute(self.path(rows))
        parts = (
            [self.predicate(rows, view, depth + 1) for _ in range(self.random.randrange(4))]
            if depth < 2
            else []
        )
        match self.random.randrange(9 if depth > 1 else 12):
            case 0 | 1 | 2:
                return Compare(attribute, Comparison.EQ, self.literal(rows, view))
            case 3:
                return Compare(self.literal(rows, view), self.random.choice(list(Comparison)), attribute)
            case 4:
                left = SizeOf(attribute.path) if self.random.random() < 0.5 else attribute
                right = self.random.choice([attribute, self.literal(rows, view), AnyVersion("a")])
                return Compare(left, self.random.choice(list(Comparison)), right)
            case 5:
                return StartsWith(attribute, self.literal(rows, view))
            case 6:
                return Contains(attribute, self.literal(rows, view))
            case 7:
                return HasKind(attribute, frozenset(self.random.sample(list(Kind), 3)))
            case 8:
                return Exists(attribute.path)
            case 9:
                return Not(self.predicate(rows, view, depth + 1))
            case 10:
                return And(tuple(parts))
            case _:
                return Or(tuple(parts))


@pytest.fixture
def opened(database_url: str) -> Iterator[Database]:
    database = open_database(database_url)
    yield database
    database.close()


def insert(database: Database, rows: list[Row]) -> None:
    with database.write() as session:
        for row in rows:
            session.execute_many(
                "INSERT INTO rows (table_id, partition, sort, slot, modified_at, size_bytes, kinds, body)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [(1, *row.position, 0, row.modified_at, 0, row.contents.kinds, row.contents.body)],
            )


def let_through(session: Session, predicate: Predicate) -> set[bytes] | None:
    prefilter = prefilter_of(predicate)
    if prefilter is None:
        return None
    condition, parameters = condition_of(prefilter, session.statements)
    return {sort for (sort,) in session.query(f"SELECT r.sort FROM rows r WHERE {condition}", parameters)}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_no_row_that_satisfies_the_predicate_is_filtered_out(opened: Database, view: View | None) -> None:
    chance = Chance(20261121)
    rows = [chance.row(number) for number in range(ROWS)]
    insert(opened, rows)
    prefiltered = kept_back = 0
    with opened.read() as session:
        for _ in range(PREDICATES):
            predicate = chance.predicate(rows, view)
            passing = let_through(session, predicate)
            if passing is None:
                continue
            prefiltered += 1
            kept_back += ROWS - len(passing)
            wrong = [
                row for row in rows if row.position.sort not in passing and matches(predicate, row, view)
            ]
            assert not wrong, (predicate, wrong[0])
    assert prefiltered > PREDICATES / 3
    assert kept_back > prefiltered * ROWS / 2


@pytest.mark.parametrize("value", [text("it"), decimal("5"), TRUE, Value(Kind.BYTES, b"six666")])
def test_an_equality_lets_only_the_equal_through(opened: Database, value: Value) -> None:
    others = [
        text("It"),
        text("its"),
        text(" it"),
        decimal("4"),
        decimal("-5"),
        FALSE,
        Value(Kind.BYTES, b"xsi"),
    ]
    rows = [
        Row(Position(b"p", b"%d" % number), Contents.of_values({"a": each}), 1)
        for number, each in enumerate([value, *others])
    ]
    insert(opened, rows)
    with opened.read() as session:
        assert let_through(session, Compare(Attribute(("a",)), Comparison.EQ, Literal(value))) == {b"0"}
        assert let_through(session, Compare(Attribute(("b",)), Comparison.EQ, Literal(value))) == set()


def test_a_range_of_numbers_lets_all_of_it_through(opened: Database) -> None:
    """Uses numbers with different spellings, sizes and kinds."""
    numbers = [
        decimal(number)
        for number in (*NUMBERS, *(f"-{number}" for number in NUMBERS if number[0] not in "-0"))
    ]
    numbers += [Value(Kind.DOUBLE, number) for number in DOUBLES]
    numbers += [Value(Kind.INT32, number) for number in (0, 5, -5, 500)]
    numbers += [Value(Kind.INT64, number) for number in (5, 2**53, 2**53 + 1, -(2**63), 2**63 - 1)]
    rows = [
        Row(Position(b"p", b"%03d" % at), Contents.of_values({"Visits": number, "b": text("x")}), 1)
        for at, number in enumerate(numbers)
    ]
    insert(opened, rows)
    with opened.read() as session:
        for number, comparison in product(
            numbers,
            (Comparison.LT, Comparison.LE, Comparison.GT, Comparison.GE, Comparison.EQ),
        ):
            for predicate in (
                Compare(Attribute(("Visits",)), comparison, Literal(number)),
                Compare(Literal(number), comparison, Attribute(("Visits",))),
            ):
                passing = let_through(session, predicate)
                assert passing is not None
                assert not [
                    row for row in rows if row.position.sort not in passing and matches(predicate, row)
                ]
        above = let_through(session, Compare(Attribute(("Visits",)), Comparison.GT, Literal(decimal(400))))
        assert above is not None
        # PostgreSQL reads no numbers out of bodies, so it lets all of them through.
        reads_numbers = isinstance(session.statements, SQLiteStatements)
        assert reads_numbers is (b"%03d" % numbers.index(decimal(5)) not in above)


def test_elements_of_lists_are_let_through(opened: Database) -> None:
    """They have no name before them."""
    inner = Value(Kind.MAP, {"b": Value(Kind.LIST, (text("ab"), decimal("5")))})
    rows = [Row(Position(b"p", b"0"), Contents.of_values({"a": Value(Kind.LIST, (text("ab"), inner))}), 1)]
    insert(opened, rows)
    with opened.read() as session:
        for path, value in ((("a", 0), text("ab")), (("a", 1, "b", 1), decimal("5"))):
            for predicate in (
                Compare(Attribute(path), Comparison.EQ, Literal(value)),
                Contains(Attribute(path[:-1]), Literal(value)),
            ):
                assert matches(predicate, rows[0])
                assert let_through(session, predicate) == {b"0"}
        starts = StartsWith(Attribute(("a", 0)), Literal(text("a")))
        assert matches(starts, rows[0])
        assert let_through(session, starts) == {b"0"}


@pytest.mark.parametrize(
    "predicate",
    [
        ALWAYS,
        Not(Exists(("a",))),
        Compare(Attribute(("a",)), Comparison.NE, Literal(decimal(5))),
        Or((Exists(("a",)), Not(Exists(("b",))))),
        And(()),
        Or(tuple(Compare(Attribute(("a",)), Comparison.EQ, Literal(decimal(n))) for n in range(100))),
    ],
)
def test_predicates_that_absence_or_many_values_satisfy_have_no_prefilter(predicate: Predicate) -> None:
    assert prefilter_of(predicate) is None


def test_a_conjunction_evaluates_the_most_selective_term_first() -> None:
    there, equal = (
        HasKind(Attribute(("a",)), frozenset(Kind)),
        Compare(Attribute(("a",)), Comparison.EQ, Literal(text("value"))),
    )
    prefilter = prefilter_of(And((there, equal)))
    assert prefilter is not None and not isinstance(prefilter, BodyContains)
    assert prefilter.parts[0] == prefilter_of(equal)


def test_half_a_surrogate_pair_is_in_no_body() -> None:
    assert prefilter_of(Compare(Attribute(("a",)), Comparison.EQ, Literal(text("\ud800")))) is None
