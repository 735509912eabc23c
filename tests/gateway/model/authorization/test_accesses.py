"""The text of a key value, for grants of leading keys: one text for each key."""

from __future__ import annotations

from decimal import Decimal

from tablegate.gateway.model.authorization.accesses import key_text
from tablegate.gateway.model.values.values import Kind, Value, decimal


def test_different_numbers_have_different_texts_in_plain_digits() -> None:
    """Two keys with one text would let a grant of one open the other."""
    for given, expected in (
        ("12345678901234567890123456789012345678", "12345678901234567890123456789012345678"),
        ("12345678901234567890123456789012345679", "12345678901234567890123456789012345679"),
        ("-0.12345678901234567890123456789012345678", "-0.12345678901234567890123456789012345678"),
        ("1.50", "1.5"),
        ("100", "100"),
        ("1E+2", "100"),
        ("0E+3", "0"),
    ):
        assert key_text(decimal(given)) == expected
    assert key_text(Value(Kind.INT64, -(2**63))) == str(-(2**63))
    assert key_text(Value(Kind.TEXT, "1.50")) == "1.50"
    assert key_text(Value(Kind.BYTES, b"\x00\xff")) == "AP8="
    assert key_text(Value(Kind.DECIMAL, Decimal("-0"))) == "0"
