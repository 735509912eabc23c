"""Sums of edits: exact, in the stored kind where it holds them, and refused at the limits of each kind.

DynamoDB's numbers have 38 digits and magnitudes from 1E-130 to 9.99E+125 ("Naming rules and data types").
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal, Inexact
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.gateway.model.errors import BadOperand, NumberOutOfRange
from tablegate.gateway.model.expressions.edits import add, increment
from tablegate.gateway.model.values.values import Kind, Value, decimal, text

MOST_INT64, LEAST_INT64 = 2**63 - 1, -(2**63)


def int32(number: int) -> Value:
    return Value(Kind.INT32, number)


def int64(number: int) -> Value:
    return Value(Kind.INT64, number)


def test_arithmetic_without_a_context_of_its_own_fails_in_tests() -> None:
    """tests/conftest.py sets this trap, also for threads. In production it would round to 28 digits."""
    with pytest.raises(Inexact):
        -Decimal("1" * 29)
    with ThreadPoolExecutor() as pool, pytest.raises(Inexact):
        pool.submit(Decimal("1" * 29).normalize).result()


def test_a_sum_of_decimals_keeps_all_38_digits() -> None:
    nines = "9" * 38
    assert add(decimal(f"{nines[:-1]}8"), decimal(1), None) == decimal(nines)
    with pytest.raises(NumberOutOfRange) as caught:
        add(decimal(nines), decimal("0.1"), None)
    assert caught.value.args[0] == "precision"


def test_a_sum_above_the_greatest_decimal_is_an_overflow() -> None:
    half = decimal("5E+125")
    assert add(half, decimal("4E+125"), None) == decimal("9E+125")
    with pytest.raises(NumberOutOfRange) as caught:
        add(half, half, None)
    assert caught.value.args[0] == "overflow"


def test_a_difference_is_exact() -> None:
    assert add(decimal("0.3"), decimal("0.1"), None, minus=True) == decimal("0.2")


@pytest.mark.parametrize(
    ("left", "right", "total"),
    [
        (int32(2**31 - 2), int32(1), int32(2**31 - 1)),
        (int32(2**31 - 1), int32(1), decimal(2**31)),
        (int32(2**31 - 1), int64(1), int64(2**31)),
        (int64(MOST_INT64), decimal(1), decimal(2**63)),
        (int64(LEAST_INT64 + 1), decimal(-1), int64(LEAST_INT64)),
        (int32(1), decimal("0.5"), decimal("1.5")),
        (Value(Kind.DOUBLE, 0.5), decimal("0.25"), Value(Kind.DOUBLE, 0.75)),
        (decimal("0.1"), Value(Kind.DOUBLE, 0.2), Value(Kind.DOUBLE, 0.3)),
    ],
)
def test_the_first_stored_kind_that_holds_a_sum_is_its_kind(left: Value, right: Value, total: Value) -> None:
    found = add(left, right, None)
    assert (found.kind, found.data) == (total.kind, total.data)


def test_a_value_that_is_no_number_has_no_sum() -> None:
    with pytest.raises(BadOperand):
        add(decimal(1), text("1"), None)


@pytest.mark.parametrize(
    ("current", "delta", "fits"),
    [
        (MOST_INT64 - 1, 1, True),
        (MOST_INT64, 1, False),
        (LEAST_INT64 + 1, -1, True),
        (LEAST_INT64, -1, False),
    ],
)
def test_an_increment_stays_within_64_bits(current: int, delta: int, fits: bool) -> None:
    if fits:
        assert increment(int64(current), int64(delta), None) == int64(current + delta)
    else:
        with pytest.raises(NumberOutOfRange):
            increment(int64(current), int64(delta), None)


def test_an_increment_of_nothing_is_its_delta_and_of_another_kind_is_refused() -> None:
    assert increment(None, int64(5), None) == int64(5)
    with pytest.raises(BadOperand):
        increment(text("5"), int64(5), None)


def test_an_increment_of_doubles_must_stay_finite() -> None:
    double = Value(Kind.DOUBLE, 1.7e308)
    assert increment(double, Value(Kind.DOUBLE, -1.7e308), None) == Value(Kind.DOUBLE, 0.0)
    with pytest.raises(NumberOutOfRange):
        increment(double, double, None)


def test_a_difference_keeps_all_38_digits() -> None:
    long = decimal("12345678901234567890123456789012345678")
    assert add(long, long, None, minus=True) == decimal(0)
    assert add(decimal(0), long, None, minus=True) == decimal("-12345678901234567890123456789012345678")


def _fits(number: Fraction) -> bool:
    """True if a DECIMAL can hold a number: at most 38 digits, and a magnitude from 1E-130 to 9.99E+125."""
    if not number:
        return True
    scaled = abs(number) * 10**200
    return (
        scaled.denominator == 1
        and len(str(scaled.numerator).strip("0")) <= 38
        and Fraction(1, 10**130) <= abs(number) < 10**126
    )


def _exceeded(number: Fraction) -> str:
    """Return the limit that a number exceeds."""
    if abs(number) >= 10**126:
        return "overflow"
    return "underflow" if abs(number) < Fraction(1, 10**130) else "precision"


def test_the_limit_that_a_sum_exceeds_is_exact() -> None:
    """As doubles, the sums are 1E+126."""
    most = decimal("9.9999999999999999999999999999999999999E+125")
    for addend, limit in (("1E+87", "precision"), ("1E+88", "overflow")):
        with pytest.raises(NumberOutOfRange) as caught:
            add(most, decimal(addend), None)
        assert caught.value.args[0] == limit, addend


DECIMALS = st.builds(
    lambda digits, exponent, negative: Decimal(f"{'-' if negative else ''}{digits}E{exponent}"),
    st.sampled_from([0, 1, 28, 29, 37, 38]).flatmap(
        lambda length: st.integers(10**length // 10, 10**length - 1)
    ),
    st.sampled_from([-130, -38, -1, 0, 1, 88]),
    st.booleans(),
)  # the lengths around 28, the digits of Python's default context, and 38
NUMBERS = st.one_of(
    DECIMALS.map(decimal),
    st.integers(-(2**31), 2**31 - 1).map(int32),
    st.integers(LEAST_INT64, MOST_INT64).map(int64),
    st.integers(-(2**80), 2**80).map(lambda number: Value(Kind.DOUBLE, float(number))),
)


@given(NUMBERS, NUMBERS, st.booleans())
def test_sums_and_differences_equal_those_of_fractions(left: Value, right: Value, minus: bool) -> None:
    numbers = Fraction(left.data), Fraction(right.data)
    expected = numbers[0] - numbers[1] if minus else numbers[0] + numbers[1]
    if _fits(expected):
        total = add(left, right, None, minus)
        is_shown = total.kind is Kind.DOUBLE and not total.data.is_integer()  # 0.1 stands for one tenth
        assert Fraction(repr(total.data) if is_shown else total.data) == expected
    else:
        with pytest.raises(NumberOutOfRange) as caught:
            add(left, right, None, minus)
        assert caught.value.args[0] == _exceeded(expected)


@given(st.integers(LEAST_INT64, MOST_INT64), st.integers(LEAST_INT64, MOST_INT64))
def test_increments_equal_sums_of_integers(current: int, delta: int) -> None:
    if LEAST_INT64 <= current + delta <= MOST_INT64:
        assert increment(int64(current), int64(delta), None) == int64(current + delta)
    else:
        with pytest.raises(NumberOutOfRange):
            increment(int64(current), int64(delta), None)
