"""Decimals for property tests.

hypothesis divides to make a decimal. This rounds, and rounding of Decimal is an error in tests (tests/conftest.py).
"""

from __future__ import annotations

from decimal import Decimal

from hypothesis import strategies as st

from tablegate.gateway.model.values.values import decimal_fits

DECIMALS = st.builds(
    lambda digits, exponent, negative: Decimal((int(negative), tuple(digits), exponent)),
    st.lists(st.integers(0, 9), min_size=1, max_size=38),
    st.integers(-130, 80) | st.integers(-3, 3),
    st.booleans(),
).filter(decimal_fits)
"""Numbers of at most 38 digits that a DECIMAL can hold."""
