"""Numbers of values: one exact number for each DOUBLE, and sums that no context rounds."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from tablegate.gateway.model.values.values import decimal_fits, double_of, number_of_double

WHOLE = st.integers(0, 130).flatmap(lambda bits: st.integers(0, 2**bits)).map(float)
DOUBLES = WHOLE | st.floats(allow_nan=False, allow_infinity=False)


def test_a_whole_double_is_its_exact_value() -> None:
    for data, expected in (
        (1234567890123456768.0, "1234567890123456768"),
        (-1234567890123456768.0, "-1234567890123456768"),
        (float(2**53 + 2), "9007199254740994"),
        (float(2**126), str(2**126)),
        (1e23, "99999999999999991611392"),
        (0.1, "0.1"),
        (1.5, "1.5"),
        (1e300, "1e300"),  # no DECIMAL: its shortest form
        (1.7e38, "1.7e38"),  # 39 digits, which no DECIMAL has
    ):
        assert number_of_double(data) == Decimal(expected), data


@given(DOUBLES, DOUBLES)
def test_numbers_of_doubles_convert_back_and_keep_the_order(first: float, second: float) -> None:
    numbers = number_of_double(first), number_of_double(second)
    assert (first < second, first == second) == (numbers[0] < numbers[1], numbers[0] == numbers[1])
    for data, number in zip((first, second), numbers, strict=True):
        assert float(number) == data
        assert double_of(number) == data
        if data.is_integer() and decimal_fits(Decimal(data)):
            assert Fraction(number) == Fraction(data)


def test_no_double_stands_for_a_number_between_two() -> None:
    for text in ("9007199254740993", "1E23", "0.1000000000000000000001", "1E400"):
        assert double_of(Decimal(text)) is None, text
    assert double_of(Decimal("0.1")) == 0.1
    assert math.copysign(1, double_of(Decimal(0)) or 0.0) == 1
