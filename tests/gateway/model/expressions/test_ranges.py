"""Narrowing conditions to key ranges never loses a row.

Only conditions that a range does not express remain to evaluate.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tablegate.gateway.model.expressions.evaluation import matches
from tablegate.gateway.model.expressions.predicates import (
    ALWAYS,
    And,
    Attribute,
    Compare,
    Comparison,
    Exists,
    Literal,
    Not,
    Or,
    Predicate,
    StartsWith,
)
from tablegate.gateway.model.expressions.ranges import (
    EVERYTHING,
    bounds_of,
    bounds_of_prefix,
    narrow,
    prefix,
    range_of,
    within,
)
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, Value, decimal, text

TABLE = KeySchema((KeyColumn("p", Kind.TEXT),), (KeyColumn("s", Kind.TEXT),))
WIDE = KeySchema((KeyColumn("p", Kind.TEXT), KeyColumn("q", Kind.TEXT)), (KeyColumn("s", Kind.TEXT),))
NUMBERED = KeySchema((KeyColumn("p", Kind.TEXT),), (KeyColumn("s", Kind.DECIMAL),))

texts = st.text(alphabet="\x00\x01ab\x7f\xff\uffff\U0010ffff", max_size=3)
literals = (texts | st.just("\ud800")).map(lambda data: Literal(text(data))) | st.just(Literal(decimal(1)))


@st.composite
def comparisons(draw: st.DrawFn) -> Predicate:
    attribute = Attribute((draw(st.sampled_from("pqsx")),))
    literal = draw(literals)
    form = draw(st.integers(0, 7))
    if form == 6:
        return StartsWith(attribute, literal)
    if form == 7:
        return Compare(literal, draw(st.sampled_from(Comparison)), attribute)
    return Compare(attribute, draw(st.sampled_from(Comparison)), literal)


predicates = st.recursive(
    comparisons() | st.just(ALWAYS) | st.just(Exists(("x",))),
    lambda parts: (
        st.lists(parts, max_size=4).map(lambda found: And(tuple(found)))
        | st.lists(parts, max_size=2).map(lambda found: Or(tuple(found)))
        | parts.map(Not)
    ),
    max_leaves=6,
)


def row_of(schema: KeySchema, values: dict[str, Value]) -> Row:
    return Row(schema.key(values).position, Contents.of_values(values), 1)


@given(predicates, st.sampled_from([TABLE, WIDE]), texts, texts, texts)
def test_narrowing_never_loses_a_row_and_never_gains_one(
    predicate: Predicate, schema: KeySchema, p: str, q: str, s: str
) -> None:
    row = row_of(schema, {"p": text(p), "q": text(q), "s": text(s)})
    found, residual = narrow(predicate, schema)
    inside = found.lower <= row.position < found.upper
    assert (inside and matches(residual, row)) == matches(predicate, row)


def compared(name: str, comparison: Comparison, value: Value) -> Compare:
    return Compare(Attribute((name,)), comparison, Literal(value))


P_IS_A = compared("p", Comparison.EQ, text("a"))


def test_equalities_and_a_range_leave_no_condition() -> None:
    found, residual = narrow(
        And((compared("s", Comparison.GE, text("m")), P_IS_A, compared("s", Comparison.LT, text("n")))), TABLE
    )
    assert residual is ALWAYS
    assert found == within(b"\x20a\x00", b"\x20m\x00", b"\x20n\x00")


def test_conditions_outside_the_range_keep_their_order() -> None:
    other, negated = Exists(("x",)), Not(P_IS_A)
    found, residual = narrow(And((other, And((P_IS_A, negated)))), TABLE)
    assert found == range_of(TABLE, [text("a")])
    assert residual == And((other, negated))


def test_a_range_of_partitions_needs_no_equality() -> None:
    found, residual = narrow(StartsWith(Attribute(("p",)), Literal(text("a"))), TABLE)
    assert residual is ALWAYS
    assert found.lower.partition == b"\x20a"
    assert found.upper.partition == b"\x20b"


def test_contradictions_make_an_empty_range() -> None:
    found, _ = narrow(
        And((compared("p", Comparison.GT, text("b")), compared("p", Comparison.LT, text("a")))), TABLE
    )
    assert found.is_empty


def test_columns_that_are_no_text_and_alternatives_are_left_alone() -> None:
    number = compared("s", Comparison.EQ, decimal(1))
    assert narrow(And((P_IS_A, number)), NUMBERED) == (range_of(NUMBERED, [text("a")]), number)
    either = Or((P_IS_A, number))
    assert narrow(either, NUMBERED) == (EVERYTHING, either)
    assert narrow(ALWAYS, TABLE) == (EVERYTHING, ALWAYS)


@given(
    st.binary(max_size=4) | st.lists(st.sampled_from([254, 255]), max_size=3).map(bytes),
    st.binary(max_size=6),
)
def test_prefix_bounds_exactly_what_begins_with_it(head: bytes, other: bytes) -> None:
    lower, upper = prefix(b"\x30" + head)
    for data in (head + other, other):
        assert (lower <= b"\x30" + data < upper) == data.startswith(head)


@given(st.integers(-3, 3), st.integers(-3, 3), st.sampled_from(Comparison))
def test_bounds_of_numbers(low: int, high: int, comparison: Comparison) -> None:
    bounds = bounds_of(comparison, decimal(high))
    row = row_of(NUMBERED, {"p": text("a"), "s": decimal(low)})
    if bounds is None:
        assert comparison is Comparison.NE
        return
    found = range_of(NUMBERED, [text("a")], bounds)
    assert (found.lower <= row.position < found.upper) == matches(
        compared("s", comparison, decimal(high)), row
    )


def test_bounds_together() -> None:
    both = bounds_of_prefix(text("a")).intersect(bounds_of_prefix(text("ab")))
    assert both == bounds_of_prefix(text("ab"))
