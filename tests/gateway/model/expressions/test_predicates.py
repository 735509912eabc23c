"""Conditions on rows: comparison by kind and value, paths, versions, and the view of the dialect."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tablegate.gateway.model.expressions.evaluation import failing_part, matches
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
    Predicate,
    RevisionIs,
    RowExists,
    SizeOf,
    StartsWith,
    paths_of,
)
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import Cell, Contents, Row
from tablegate.gateway.model.values.values import NULL, TRUE, Kind, Value, decimal, number_set, text
from tests.support.tables import each_row


def row_of(**attributes: Value) -> Row:
    return Row(Position(b"p", b""), Contents.of_values(attributes), modified_at=70)


def compared(left: Value, comparison: Comparison, right: Value) -> bool:
    return matches(Compare(Attribute(("a",)), comparison, Literal(right)), row_of(a=left))


VALUES = [
    decimal(1),
    text("hello"),
    TRUE,
    NULL,
    Value(Kind.BYTES, b"xyz"),
    Value(Kind.LIST, (text("hello"), decimal(42))),
    Value(Kind.MAP, {"hello": text("world")}),
    Value(Kind.TEXT_SET, frozenset({"a", "b"})),
    number_set({Decimal(1), Decimal(2)}),
    Value(Kind.BYTES_SET, frozenset({b"a"})),
]


@each_row("left", VALUES)
@each_row("right", VALUES)
def test_a_value_equals_only_itself(left: Value, right: Value) -> None:
    assert compared(left, Comparison.EQ, right) is (left is right)
    assert compared(left, Comparison.NE, right) is (left is not right)


@pytest.mark.parametrize(
    ("smaller", "larger"),
    [
        (decimal("9"), decimal("10")),
        (text("a"), text("aa")),
        (
            text("\ue000"),
            text("\U00010000"),
        ),  # UTF-8 order, not UTF-16 (floci, against the service, 2026-09-07)
        (Value(Kind.BYTES, b"\x7f"), Value(Kind.BYTES, b"\x80")),  # unsigned
        (Value(Kind.INT64, 9), decimal("9.5")),
        (Value(Kind.DOUBLE, 0.1), decimal("0.2")),
    ],
)
def test_ordering_comparisons(smaller: Value, larger: Value) -> None:
    assert compared(smaller, Comparison.LT, larger)
    assert compared(smaller, Comparison.LE, larger)
    assert not compared(smaller, Comparison.GT, larger)
    assert not compared(smaller, Comparison.GE, larger)
    assert compared(larger, Comparison.GT, smaller)
    assert compared(larger, Comparison.GE, larger)
    assert compared(larger, Comparison.LE, larger)
    assert not compared(larger, Comparison.LT, larger)


@pytest.mark.parametrize("comparison", [Comparison.LT, Comparison.LE, Comparison.GT, Comparison.GE])
def test_values_without_a_common_order_are_neither_before_nor_after(comparison: Comparison) -> None:
    assert not compared(decimal(1), comparison, text("1"))
    assert not compared(TRUE, comparison, TRUE)
    assert not compared(Value(Kind.DOUBLE, float("nan")), comparison, decimal(1))


def test_an_absent_attribute_is_unequal_to_everything_even_to_another_absent_one() -> None:
    # test_condition_expression.py: test_update_condition_eq_two_unset, test_update_condition_ne
    absent = Attribute(("q",))
    for other in (Literal(decimal(1)), Attribute(("z",)), SizeOf(("a",))):
        for left, right in ((absent, other), (other, absent)):
            for comparison in Comparison:
                found = matches(Compare(left, comparison, right), row_of(a=decimal(1)))
                assert found is (comparison is Comparison.NE)


def test_paths_lead_into_documents() -> None:
    row = row_of(a=Value(Kind.MAP, {"b": Value(Kind.LIST, (decimal(1), text("two")))}), s=text("x"))
    assert matches(Compare(Attribute(("a", "b", 1)), Comparison.EQ, Literal(text("two"))), row)
    assert matches(Exists(("a", "b", 0)), row)
    for path in [("a", "b", 2), ("a", "c"), ("a", 0), ("a", "b", "c"), ("s", "b"), ("s", 0), ("z", "b")]:
        assert not matches(Exists(path), row)


def test_boolean_nodes() -> None:
    yes, no = Exists(("a",)), Exists(("z",))
    row = row_of(a=NULL)
    assert matches(And(()), row)
    assert matches(And((yes, yes)), row)
    assert not matches(And((yes, no)), row)
    assert not matches(Or(()), row)
    assert matches(Or((no, yes)), row)
    assert not matches(Or((no, no)), row)
    assert matches(Not(no), row)
    assert matches(ALWAYS, None)


def test_without_a_row_only_inequality_holds() -> None:
    assert not matches(RowExists(), None)
    assert not matches(Exists(("a",)), None)
    assert not matches(RevisionIs(70), None)
    assert matches(Compare(Attribute(("a",)), Comparison.NE, Literal(NULL)), None)


def test_the_revision_is_exact() -> None:
    assert matches(RowExists(), row_of())
    assert matches(RevisionIs(70), row_of())
    assert not matches(RevisionIs(71), row_of())


def test_begins_with_is_for_texts_and_bytes_of_the_same_kind() -> None:
    row = row_of(s=text("hello"), b=Value(Kind.BYTES, b"hello"), n=decimal(12))
    assert matches(StartsWith(Attribute(("s",)), Literal(text("hell"))), row)
    assert matches(StartsWith(Attribute(("b",)), Literal(Value(Kind.BYTES, b"he"))), row)
    assert matches(StartsWith(Literal(text("hello!")), Attribute(("s",))), row)
    assert not matches(StartsWith(Attribute(("b",)), Literal(text("he"))), row)
    assert not matches(StartsWith(Attribute(("n",)), Literal(decimal(1))), row)
    assert not matches(StartsWith(Attribute(("z",)), Literal(text(""))), row)


def test_contains_is_substring_member_or_element() -> None:
    row = row_of(
        s=text("hello"),
        ns=number_set({Decimal(2), Decimal(4)}),
        li=Value(Kind.LIST, (decimal(2), number_set({Decimal(1)}))),
    )
    assert matches(Contains(Attribute(("s",)), Literal(text("ell"))), row)
    assert matches(Contains(Attribute(("ns",)), Literal(decimal("4.0"))), row)
    assert matches(Contains(Attribute(("li",)), Literal(number_set({Decimal(1)}))), row)
    assert not matches(Contains(Attribute(("s",)), Literal(decimal(1))), row)
    assert not matches(Contains(Attribute(("z",)), Literal(decimal(1))), row)


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (text("hello"), 5),
        (text("é𝄞"), 3),  # UTF-16 units: measured on the service, ExtendDB issue 60
        (Value(Kind.BYTES, b"hi there"), 8),
        (Value(Kind.LIST, (decimal(1), NULL)), 2),
        (Value(Kind.MAP, {"x": NULL, "y": Value(Kind.MAP, {"m": NULL})}), 2),
        (Value(Kind.TEXT_SET, frozenset("abc")), 3),
        (decimal(5), None),
        (TRUE, None),
        (NULL, None),
    ],
)
def test_size_compares_lengths_and_is_absent_for_other_kinds(value: Value, size: int | None) -> None:
    is_seven = Compare(SizeOf(("a",)), Comparison.EQ, Literal(decimal(7 if size is None else size)))
    assert matches(is_seven, row_of(a=value)) is (size is not None)


def test_has_kind() -> None:
    row = row_of(a=Value(Kind.INT64, 3))
    assert matches(HasKind(Attribute(("a",)), frozenset({Kind.INT32, Kind.INT64})), row)
    assert not matches(HasKind(Attribute(("a",)), frozenset({Kind.DECIMAL})), row)
    assert not matches(HasKind(Attribute(("z",)), frozenset(Kind)), row)


def as_dynamodb(value: Value) -> Value:
    return Value(Kind.DECIMAL, Decimal(value.data)) if value.kind is Kind.INT64 else value


def test_stored_values_are_compared_in_the_view_of_the_dialect_and_literals_unchanged() -> None:
    row = row_of(a=Value(Kind.INT64, 3))
    kind_is_decimal = HasKind(Attribute(("a",)), frozenset({Kind.DECIMAL}))
    assert matches(kind_is_decimal, row, as_dynamodb)
    assert not matches(kind_is_decimal, row)
    assert matches(Compare(Attribute(("a",)), Comparison.EQ, Literal(decimal(3))), row, as_dynamodb)


def versioned(*values: Value) -> Row:
    cells = {"a": tuple(Cell(value, 100 - age) for age, value in enumerate(values))}
    return Row(Position(b"p", b""), Contents.of_cells({"k": text("key")}, cells), 70)


def test_any_version_checks_each_kept_version() -> None:
    row = versioned(decimal(3), decimal(2), text("one"))
    for value, found in [(decimal(3), True), (decimal(2), True), (text("one"), True), (decimal(1), False)]:
        assert matches(Compare(AnyVersion("a"), Comparison.EQ, Literal(value)), row) is found
    assert matches(Compare(Attribute(("a",)), Comparison.EQ, Literal(decimal(3))), row)
    assert not matches(Compare(Attribute(("a",)), Comparison.EQ, Literal(decimal(2))), row)
    assert matches(HasKind(AnyVersion("a"), frozenset({Kind.TEXT})), row)


def test_any_version_of_an_absent_or_key_column_is_compared() -> None:
    row = versioned(decimal(3))
    assert matches(Compare(AnyVersion("z"), Comparison.NE, Literal(decimal(3))), row)
    assert not matches(Compare(AnyVersion("z"), Comparison.EQ, Literal(decimal(3))), row)
    assert matches(Compare(AnyVersion("k"), Comparison.EQ, Literal(text("key"))), row)
    assert matches(Compare(AnyVersion("a"), Comparison.NE, Literal(decimal(3))), None)


def test_the_first_false_conjunct_is_named() -> None:
    no = Exists(("z",))
    assert failing_part(And((RowExists(), no)), row_of()) is no
    assert failing_part(RowExists(), row_of()) is None


def test_paths_of_a_predicate() -> None:
    predicate: Predicate = And(
        (
            Or((Not(Exists(("a", "b"))), Compare(Attribute(("c",)), Comparison.EQ, SizeOf(("d", 0))))),
            StartsWith(Attribute(("e",)), Literal(text("x"))),
            HasKind(AnyVersion("f"), frozenset()),
            RowExists(),
        )
    )
    assert list(paths_of(predicate)) == [("a", "b"), ("c",), ("d", 0), ("e",), ("f",)]


def test_a_predicate_is_no_truth_value() -> None:
    with pytest.raises(TypeError):
        bool(ALWAYS)
