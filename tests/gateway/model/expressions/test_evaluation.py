"""The work of a predicate or an edit on one row grows with the row plus the expression, not with their product."""

from __future__ import annotations

import sys
from collections.abc import Callable
from decimal import Decimal
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.gateway.model.errors import RowRuleViolated
from tablegate.gateway.model.expressions import updates
from tablegate.gateway.model.expressions.evaluation import matches
from tablegate.gateway.model.expressions.predicates import (
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
    SizeOf,
)
from tablegate.gateway.model.values import bodies
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, Value, contains, decimal, number_set, text

ELEMENTS = 500
NUMBERS = Value(Kind.LIST, tuple(map(decimal, range(ELEMENTS))))
NESTED = Value(Kind.LIST, tuple(Value(Kind.MAP, {"n": decimal(at)}) for at in range(ELEMENTS)))
OTHER = Literal(Value(Kind.LIST, (*NUMBERS.data[:-1], decimal(-1))))
ROW = {
    "l": NUMBERS,
    "m": NUMBERS,
    "nested": NESTED,
    "set": Value(Kind.TEXT_SET, frozenset(map(str, range(ELEMENTS)))),
}
L, M = Attribute(("l",)), Attribute(("m",))


def stored_row() -> Row:
    """Return a row whose values are not decoded yet."""
    return Row(Position(b"p", b""), Contents.of_stored(bodies.encode(ROW), None), 7)


def as_text(value: Value) -> Value:
    """Return a value as a dialect without documents shows it."""
    return Value(Kind.TEXT, bodies.encode({"": value}).decode()) if value.kind is Kind.LIST else value


def calls_of(work: Callable[[], Any]) -> int:
    """Return the number of calls of functions, in Python and in C."""
    calls = 0

    def note(_: FrameType, event: str, __: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


PREDICATES: dict[str, Callable[[int], Predicate]] = {
    "contains": lambda at: Contains(L, Literal(decimal(-1 - at))),
    "not contains": lambda at: Not(Not(Contains(L, Literal(text(f"{at}"))))),
    "contains a document": lambda at: Contains(
        Attribute(("nested",)), Literal(Value(Kind.MAP, {"n": decimal(-1 - at)}))
    ),
    "a set": lambda at: Contains(Attribute(("set",)), Literal(text(f"-{at}"))),
    "equals a literal": lambda at: Compare(L, Comparison.EQ, OTHER),
    "differs from an attribute": lambda at: Not(Compare(L, Comparison.EQ, M)),
    "an element": lambda at: Compare(Attribute(("l", at)), Comparison.EQ, Literal(decimal(-1))),
    "a member of an element": lambda at: Exists(("nested", at, "missing")),
    "a size": lambda at: Compare(SizeOf(("l",)), Comparison.LT, Literal(decimal(0))),
    "a kind": lambda at: HasKind(Attribute(("nested",)), frozenset({Kind.TEXT})),
}


def test_a_row_is_decoded_and_searched_once_for_a_predicate() -> None:
    for name, part_of in PREDICATES.items():
        for view in (None, as_text):

            def evaluate(parts: int, part_of: Any = part_of, view: Any = view) -> int:
                predicate, row = Or(tuple(part_of(at) for at in range(parts))), stored_row()
                return calls_of(lambda: matches(predicate, row, view))

            further = (evaluate(102) - evaluate(2)) / 100
            assert further < 100, f"{name}: {further} further calls for each part on {ELEMENTS} elements"


UPDATES: dict[str, Callable[[int], updates.Action]] = {
    "an element": lambda at: updates.SetTo((f"x{at}",), updates.Current(("l", at))),
    "an element of a document": lambda at: updates.SetTo((f"x{at}",), updates.Current(("nested", at, "n"))),
    "a default": lambda at: updates.SetTo(
        (f"x{at}",), updates.CurrentOrDefault(("l", 9_999), updates.Literal(decimal(1)))
    ),
    "a copy": lambda at: updates.SetTo((f"x{at}",), updates.Current(("l",))),
    "a longer copy": lambda at: updates.SetTo(
        (f"x{at}",), updates.Concatenate(updates.Current(("l",)), updates.Current(("m",)))
    ),
    "a part": lambda at: updates.SetTo(("l", at), updates.Current(("m", at))),
}


def test_a_row_is_decoded_once_for_an_edit() -> None:
    for name, action_of in UPDATES.items():

        def edit(actions: int, action_of: Any = action_of) -> int:
            context = updates.EditContext({}, 0, stamped=False, max_bytes=5_000)
            row, edits = stored_row(), tuple(action_of(at) for at in range(actions))

            def run() -> None:
                try:
                    updates.edit(row, edits, context)
                except RowRuleViolated as error:
                    assert error.rule == "update-size"

            return calls_of(run)

        further = (edit(102) - edit(2)) / 100
        assert further < 100, f"{name}: {further} further calls for each action on {ELEMENTS} elements"


def test_copies_beyond_the_size_of_a_row_are_refused_before_they_are_encoded() -> None:
    row = stored_row()
    actions = tuple(updates.SetTo((f"x{at}",), updates.Current(("l",))) for at in range(4))
    size = row.size_bytes
    for max_bytes, is_refused in ((size, False), (size // 4, True)):
        context = updates.EditContext({}, 0, stamped=False, max_bytes=max_bytes)
        if is_refused:
            with pytest.raises(RowRuleViolated, match="update-size"):
                updates.edit(row, actions, context)
        else:
            assert updates.edit(row, actions, context).value("x3") == NUMBERS


SCALARS = st.one_of(
    st.integers(-3, 3).map(decimal),
    st.sampled_from(
        ["1", "1.0", "-0", "0", "1E+2", "100", "0.1", "12345678901234567890123456789012345678"]
    ).map(decimal),
    st.integers(-3, 3).map(lambda number: Value(Kind.INT64, number)),
    st.sampled_from([0.0, -0.0, 0.1, 100.0, float("nan"), float("inf"), float("-inf")]).map(
        lambda number: Value(Kind.DOUBLE, number)
    ),
    st.sampled_from(["", "1", "0.1"]).map(text),
    st.sampled_from([b"", b"1"]).map(lambda data: Value(Kind.BYTES, data)),
    st.booleans().map(lambda data: Value(Kind.BOOL, data)),
    st.just(Value(Kind.NULL, None)),
    st.frozensets(st.sampled_from(["1", "2"]), min_size=1).map(lambda data: Value(Kind.TEXT_SET, data)),
    st.frozensets(
        st.sampled_from([Decimal(1), Decimal("1.0"), Decimal("100"), Decimal("1E+2")]), min_size=1
    ).map(number_set),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda data: Value(Kind.LIST, tuple(data))),
        st.dictionaries(st.sampled_from("ab"), inner, max_size=2).map(lambda data: Value(Kind.MAP, data)),
    ),
    max_leaves=4,
)


@given(st.lists(VALUES, max_size=5), st.lists(VALUES, min_size=1, max_size=5))
def test_hashed_elements_are_those_that_comparisons_find(elements: list[Value], members: list[Value]) -> None:
    container = Value(Kind.LIST, tuple(elements))
    row = Row(Position(b"p", b""), Contents.of_values({"l": container}), 7)
    for member in members:
        # The second search of a predicate uses the hashed elements.
        twice = Not(Or((Not(Contains(L, Literal(member))), Not(Contains(L, Literal(member))))))
        assert matches(twice, row) is contains(container, member), member


def test_numbers_of_one_hash_take_no_longer() -> None:
    """Python's hashes of numbers have no secret. These numbers have one hash, and a set of them is quadratic."""
    modulus = sys.hash_info.modulus
    container = Value(Kind.LIST, tuple(decimal(at * modulus) for at in range(1, ELEMENTS)))
    row = Row(Position(b"p", b""), Contents.of_values({"l": container}), 7)

    class Compared(Decimal):
        count = 0

        def __eq__(self, other: object) -> bool:
            Compared.count += 1
            return Decimal.__eq__(self, other)

        __hash__ = Decimal.__hash__

    members = [Value(Kind.DECIMAL, Compared(at * modulus)) for at in range(ELEMENTS, 2 * ELEMENTS)]
    assert not matches(Or(tuple(Contains(L, Literal(member)) for member in members)), row)
    assert Compared.count <= ELEMENTS
