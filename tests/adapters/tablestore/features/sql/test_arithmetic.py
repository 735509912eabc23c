"""Arithmetic of SQL: integers are exact in 64 bits or out of range, and a quotient is the Double nearest to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.adapters.tablestore.features.sql.functions import FUNCTIONS
from tablegate.adapters.tablestore.features.sql.operators import ARITHMETIC, UNARY
from tablegate.adapters.tablestore.features.sql.result_rows import _REDUCERS
from tablegate.adapters.tablestore.features.sql.sql_values import (
    INTEGER_MAX,
    INTEGER_MIN,
    checked,
    to_integer,
)
from tablegate.adapters.tablestore.wire.errors import ServiceError

INTEGERS = st.sampled_from([1, 53, 54, 63]).flatmap(lambda bits: st.integers(-(2**bits), 2**bits - 1))
DOUBLES = st.floats(-1e18, 1e18)


def _rounded(number: Fraction) -> int:
    """Return the nearest integer, a half away from zero."""
    size = math.floor(abs(number) + Fraction(1, 2))
    return size if number >= 0 else -size


def _is(expected: Fraction, result: Any) -> None:
    """Check a result that is evaluated here: the exact integer, or an error if it is out of range."""
    if INTEGER_MIN <= expected <= INTEGER_MAX:
        assert checked(result()) == expected
    else:
        with pytest.raises(ServiceError):
            checked(result())


@given(INTEGERS, INTEGERS)
def test_operators_of_integers_equal_those_of_fractions(left: int, right: int) -> None:
    one, other = Fraction(left), Fraction(right)
    _is(one + other, lambda: ARITHMETIC["add"](left, right))
    _is(one - other, lambda: ARITHMETIC["sub"](left, right))
    _is(one * other, lambda: ARITHMETIC["mul"](left, right))
    _is(-one, lambda: UNARY["neg"](left))
    _is(abs(one), lambda: FUNCTIONS["ABS"].call(left))
    if right:
        _is(Fraction(math.trunc(one / other)), lambda: ARITHMETIC["intdiv"](left, right))
        _is(one - other * math.trunc(one / other), lambda: ARITHMETIC["mod"](left, right))
        assert ARITHMETIC["div"](left, right) == float(one / other)
    else:
        assert [ARITHMETIC[name](left, right) for name in ("div", "intdiv", "mod")] == [None] * 3


@given(INTEGERS, st.integers(-20, 5))
def test_integers_are_rounded_and_truncated_exactly(number: int, places: int) -> None:
    unit = Fraction(10) ** -places if places < 0 else Fraction(1)
    _is(_rounded(number / unit) * unit, lambda: FUNCTIONS["ROUND"].call(number, places))
    _is(math.trunc(number / unit) * unit, lambda: FUNCTIONS["TRUNCATE"].call(number, places))


@given(DOUBLES | st.integers(2**52, 2**53).map(float) | st.just(0.49999999999999994))
def test_doubles_are_rounded_to_the_nearest_integer(number: float) -> None:
    assert FUNCTIONS["ROUND"].call(number, 0) == _rounded(Fraction(number))
    assert to_integer(number) == _rounded(Fraction(number))
    assert FUNCTIONS["TRUNCATE"].call(number, 0) == math.trunc(number)
    assert FUNCTIONS["CEIL"].call(number) == math.ceil(number)
    assert FUNCTIONS["FLOOR"].call(number) == math.floor(number)


@given(st.lists(INTEGERS, min_size=1))
def test_sums_and_averages_of_integers_are_rounded_once(numbers: Sequence[int]) -> None:
    total = sum(map(Fraction, numbers), Fraction(0))
    assert _REDUCERS["SUM"](list(numbers)) == float(total)
    assert _REDUCERS["AVG"](list(numbers)) == float(total / len(numbers))
