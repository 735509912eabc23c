"""Tagged values: the kinds of all dialects, equality and order.

Independent of rows, wire formats and databases.

Values are tagged because `True == 1 == 1.0` in Python, while the dialects distinguish them. Numbers (DECIMAL, INT32,
INT64, DOUBLE) are one family and compare by value. Every other kind compares only with itself.

Python hashes texts and bytes with a secret. Its hashes of numbers, and of types that consist of numbers, have none. A
client can send thousands of numbers with one hash, and each look-up of one of them would compare it with all the others.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable
from datetime import date
from decimal import Context, Decimal
from enum import Enum
from typing import Any, NamedTuple, TypeVar


class Kind(Enum):
    """The closed set of kinds. Logs and `tablegate tables` show the names of the members."""

    TEXT = "TEXT"
    BYTES = "BYTES"
    BOOL = "BOOL"
    DECIMAL = "DECIMAL"
    INT32 = "INT32"
    INT64 = "INT64"
    DOUBLE = "DOUBLE"
    DATETIME = "DATETIME"
    GUID = "GUID"
    NULL = "NULL"
    LIST = "LIST"
    MAP = "MAP"
    TEXT_SET = "TEXT_SET"
    DECIMAL_SET = "DECIMAL_SET"
    BYTES_SET = "BYTES_SET"

    # The inherited __hash__ is a Python function. Kinds are dictionary keys on every hot path.
    __hash__ = object.__hash__


class Value(NamedTuple):
    """A tagged value.

    `data` is str, bytes, bool, Decimal, int, float, int ticks of 100 ns since 0001-01-01, UUID, None, a tuple of values
    (LIST), a dict of values (MAP, never modified), or a frozenset. That of DECIMAL_SET has texts (`number_set`).
    """

    kind: Kind
    data: Any


INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
NUMBERS = frozenset({Kind.DECIMAL, Kind.INT32, Kind.INT64, Kind.DOUBLE})
SETS = frozenset({Kind.TEXT_SET, Kind.DECIMAL_SET, Kind.BYTES_SET})
ORDERED = NUMBERS | {Kind.TEXT, Kind.BYTES, Kind.DATETIME, Kind.GUID}
MEMBER_KIND = {Kind.TEXT_SET: Kind.TEXT, Kind.DECIMAL_SET: Kind.DECIMAL, Kind.BYTES_SET: Kind.BYTES}

NULL = Value(Kind.NULL, None)
TRUE = Value(Kind.BOOL, True)
FALSE = Value(Kind.BOOL, False)

DECIMAL_DIGITS = 38
DECIMAL_MAX_EXPONENT = 125  # of the leading digit
DECIMAL_MIN_EXPONENT = -130

CANONICAL_NUMBER = re.compile(r"0|-?[1-9][0-9]*|-?(?:0|[1-9][0-9]*)\.[0-9]*[1-9]")
"""The results of `decimal_text`. A text with at most 38 characters of this form is in range."""

# Wide enough for the exact sum of any two numbers in range (255 digits apart at most).
_WIDE = Context(prec=400)


def text(data: str) -> Value:
    """Return a TEXT value."""
    return Value(Kind.TEXT, data)


def decimal(data: Decimal | int | str) -> Value:
    """Return a DECIMAL value."""
    return Value(Kind.DECIMAL, Decimal(data))


def number_set(numbers: Iterable[Decimal | int | str]) -> Value:
    """Return a DECIMAL_SET. Its members are the canonical texts of the numbers, as `hash_key` explains.

    Raises ValueError or ArithmeticError for a number that DECIMAL cannot hold.
    """
    return Value(Kind.DECIMAL_SET, frozenset(map(_canonical_text, numbers)))


def _canonical_text(number: Decimal | int | str) -> str:
    if type(number) is str and len(number) <= DECIMAL_DIGITS and CANONICAL_NUMBER.fullmatch(number):
        return number
    exact = Decimal(number)
    if not exact.is_finite() or not decimal_fits(exact):
        raise ValueError(f"{number} is out of range")
    return decimal_text(exact)


def number_of(value: Value) -> Decimal | int | None:
    """Return the exact number of a value, or None for other kinds, NaN and the infinities.

    A finite DOUBLE is the number of `number_of_double`.
    """
    kind = value.kind
    if kind is Kind.DECIMAL or kind is Kind.INT64 or kind is Kind.INT32:
        return value.data
    if kind is Kind.DOUBLE and math.isfinite(value.data):
        return number_of_double(value.data)
    return None


def number_of_double(data: float) -> Decimal:
    """Return the number that a finite DOUBLE stands for in comparisons, conversions and arithmetic.

    A whole DOUBLE is its exact value if a DECIMAL can hold it: 2.0**60 is 1152921504606846976. Every other one is its
    shortest round-trip decimal, so that 0.1 equals the decimal 0.1. Different DOUBLEs have different numbers in the
    same order.
    """
    if data.is_integer():
        exact = Decimal(data)
        if decimal_fits(exact):
            return exact
    return Decimal(repr(data))


def double_of(number: Decimal) -> float | None:
    """Return the DOUBLE that stands for a number (`number_of_double`), or None if none does."""
    nearest = float(number)
    return nearest if math.isfinite(nearest) and number_of_double(nearest) == number else None


def equal(left: Value, right: Value) -> bool:
    """Return True if two values are equal: numbers by value, everything else within its kind. NaN equals nothing."""
    if left.kind in NUMBERS and right.kind in NUMBERS:
        if left.kind is right.kind:
            return bool(left.data == right.data)
        left_number, right_number = number_of(left), number_of(right)
        if left_number is None or right_number is None:
            return _float_of(left) == _float_of(right)
        return left_number == right_number
    return left.kind is right.kind and left.data == right.data


def compare(left: Value, right: Value) -> int | None:
    """Return -1, 0 or 1. None if there is no order (different kinds, NaN, unordered kinds).

    TEXT is ordered by its UTF-8 bytes, which is code point order, and BYTES by unsigned bytes.
    """
    if left.kind in NUMBERS and right.kind in NUMBERS:
        left_data: Any = number_of(left)
        right_data: Any = number_of(right)
        if left_data is None or right_data is None:
            left_data, right_data = _float_of(left), _float_of(right)
            if math.isnan(left_data) or math.isnan(right_data):
                return None
    elif left.kind is right.kind and left.kind in ORDERED:
        left_data, right_data = left.data, right.data
        if left.kind is Kind.GUID:
            left_data, right_data = left_data.bytes, right_data.bytes
    else:
        return None
    return (left_data > right_data) - (left_data < right_data)


def contains(container: Value, member: Value) -> bool:
    """Return True for a substring, a subsequence of bytes, a member of a set, or an element of a list."""
    kind = container.kind
    if kind is Kind.LIST:
        return any(equal(element, member) for element in container.data)
    if kind is Kind.TEXT or kind is Kind.BYTES:
        return member.kind is kind and member.data in container.data
    if kind in SETS:
        if kind is Kind.DECIMAL_SET:
            number = number_of(member)
            return number is not None and decimal_text(number) in container.data
        return member.kind is MEMBER_KIND[kind] and member.data in container.data
    return False


def _float_of(value: Value) -> float:
    return float(value.data)


def decimal_text(number: Decimal | int) -> str:
    """Return the canonical text of a number: plain digits, no exponent, no superfluous zeros, no negative zero."""
    if isinstance(number, int):
        return str(number)
    if not number:
        return "0"
    plain = format(number, "f")
    if "." in plain:
        plain = plain.rstrip("0").rstrip(".")
    return plain


def decimal_fits(number: Decimal) -> bool:
    """Return True if a number is zero, or has at most 38 significant digits and a magnitude in 1E-130 .. 9.99E+125."""
    if not number:
        return True
    if not DECIMAL_MIN_EXPONENT <= number.adjusted() <= DECIMAL_MAX_EXPONENT:
        return False
    digits = number.as_tuple().digits
    return len(digits) <= DECIMAL_DIGITS or not any(digits[DECIMAL_DIGITS:])


def exact_sum(left: Decimal, right: Decimal) -> Decimal:
    """Return the sum of two numbers in range. It may need more than 38 digits or be out of range."""
    return _WIDE.add(left, right)


def number_size_bytes(number: Decimal | int) -> int:
    """Return the billed size of a number in bytes.

    It is 1, plus a byte for every two significant digits on each side of the point, plus 1 if negative. Source:
    docs/protocols/dynamodb.md rule 25 (measured by dynoxide and paritysuite).
    """
    return _text_size_bytes(decimal_text(number))


def _text_size_bytes(text: str) -> int:
    """Return the billed size of the canonical text of a number."""
    if text == "0":
        return 1
    plain = text.lstrip("-")
    integer, _, fraction = plain.partition(".")
    if integer == "0":
        integer = ""
    if fraction:
        fraction = fraction if integer else fraction.lstrip("0")
        size = (len(integer) + 1) // 2 + (len(fraction) + 1) // 2
    else:
        size = (len(integer.rstrip("0")) + 1) // 2
    return size + 1 + (text[0] == "-")


def size_bytes(value: Value) -> int:
    """Return the billed size of a value in bytes, by DynamoDB's rules, which apply to all dialects.

    Kinds that DynamoDB lacks have the sizes that Azure documents: 4, 8 and 16 bytes.
    """
    kind, data = value
    if kind is Kind.TEXT:
        return len(data) if data.isascii() else len(data.encode())
    if kind is Kind.DECIMAL:
        return number_size_bytes(data)
    if kind is Kind.BYTES:
        return len(data)
    if kind is Kind.BOOL or kind is Kind.NULL:
        return 1
    if kind is Kind.MAP:
        return 3 + sum(len(name.encode()) + size_bytes(member) + 1 for name, member in data.items())
    if kind is Kind.LIST:
        return 3 + sum(size_bytes(member) + 1 for member in data)
    if kind is Kind.TEXT_SET:
        return sum(len(member.encode()) for member in data)
    if kind is Kind.DECIMAL_SET:
        return sum(map(_text_size_bytes, data))
    if kind is Kind.BYTES_SET:
        return sum(len(member) for member in data)
    if kind is Kind.INT32:
        return 4
    return 16 if kind is Kind.GUID else 8


T = TypeVar("T")

_SECRETLY_HASHED = (str, bytes, date, type(None))  # a datetime is a date


def hash_key(data: Any) -> Hashable:
    """Return a key that equal values share, and no others. All NaN share one."""
    if isinstance(data, _SECRETLY_HASHED):
        return data
    if isinstance(data, int):  # True equals 1
        return (str(int(data)),)
    if isinstance(data, float):
        return (str(int(data)) if data.is_integer() else repr(data),)
    if isinstance(data, Decimal):
        return (decimal_text(data),)
    if isinstance(data, (tuple, list)):
        return tuple([hash_key(each) for each in data])
    return (repr(data),)


def distinct(values: Iterable[T]) -> list[T]:
    """Return the first one of each group of equal values, in their order."""
    first: dict[Hashable, T] = {}
    for value in values:
        first.setdefault(hash_key(value), value)
    return list(first.values())
