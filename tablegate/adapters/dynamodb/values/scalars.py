"""Scalars in DynamoDB's form: numbers in decimal digits, binaries in base64, booleans, times, and errors of invalid
values.

The limits are in docs/protocols/dynamodb.md rules 9 and 21. Billed sizes are computed here too. values.py has
documents and sets.
"""

from __future__ import annotations

import re
from binascii import a2b_base64
from datetime import date
from typing import Any, NoReturn

from tablegate.adapters.dynamodb.wire import error_texts, limits
from tablegate.adapters.dynamodb.wire.error_texts import json_type
from tablegate.adapters.dynamodb.wire.errors import ErrorTexts, ServiceError, serialization
from tablegate.gateway.model.values.values import CANONICAL_NUMBER


class InvalidValue(ServiceError):
    """A value that DynamoDB rejects. `rule` and `facts` are for error_texts.py. The text has no frame."""

    def __init__(self, rule: str, **facts: Any) -> None:
        super().__init__("ValidationException", error_texts.bare(rule, **facts))
        self.rule = rule
        self.facts = facts

    def text(self, error_texts: ErrorTexts) -> str:
        """Return the text of the error for an operation, without a frame."""
        return error_texts.value_text(self.rule, **self.facts)


class ValueTooLarge(InvalidValue):
    """A value or item above the size limit. The rest of it is not checked."""

    def __init__(self) -> None:
        super().__init__("item-size")


def wrong_type(kind: str, data: Any) -> NoReturn:
    """Raise the SerializationException for data of the wrong JSON type (ValueError for null)."""
    if data is None:
        raise ValueError("null stands for an absent tag")  # values.measure drops it
    raise serialization(json_type(kind, data, java="AttributeValue"))


def utf8_bytes(text: str) -> int:
    """Return the length of a text in UTF-8. Raises SerializationException for lone surrogates."""
    try:
        return len(text.encode())
    except UnicodeEncodeError:  # a lone surrogate: valid in JSON, not in UTF-8
        raise serialization() from None


# Numbers

_NUMBER = re.compile(r"([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(?:[eE]([+-]?[0-9]+))?")
_WRAPPING = 2**31  # position of a first digit that overflows 32 bits
_EXPONENTS = 2**63  # exponents that overflow 64 bits are not numbers


def canonical_number(text: str) -> str:
    """Return the plain-digit text of a number: no exponent, no superfluous zeros or signs.

    Raises InvalidValue (rule 21; exponents: paritysuite, eu-west-2, October 2026).
    """
    if len(text) <= limits.NUMBER_DIGITS and CANONICAL_NUMBER.fullmatch(text) is not None:
        return text
    if not text:
        raise InvalidValue("empty-number")
    if len(text) > limits.MEASURED_BYTES:
        raise ValueTooLarge
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise InvalidValue("not-a-number", text=text)
    sign, integer, fraction, only_fraction, power = match.groups()
    integer = integer or ""
    fraction = fraction or only_fraction or ""
    digits = (integer + fraction).lstrip("0")
    if not digits and power is None:
        return "0"
    written_exponent = int(power or 0) if len(power or "") <= limits.NUMBER_DIGITS else _EXPONENTS
    if not -_EXPONENTS <= written_exponent < _EXPONENTS:
        raise InvalidValue("not-a-number", text=text)
    exponent = written_exponent - len(fraction)
    leading = max(len(digits) - 1, 0) + exponent  # zeros are checked too, by their written exponent
    if leading > limits.NUMBER_MAX_EXPONENT:
        raise InvalidValue("number-overflow", wraps=exponent < _WRAPPING <= leading + 1)
    if leading < limits.NUMBER_MIN_EXPONENT:
        raise InvalidValue("number-underflow")
    if not digits:
        return "0"
    stripped = digits.rstrip("0")
    exponent += len(digits) - len(stripped)
    if len(stripped) > limits.NUMBER_DIGITS:
        raise InvalidValue("number-precision")
    return ("-" if sign == "-" else "") + _plain(stripped, exponent)


def _plain(digits: str, exponent: int) -> str:
    if exponent >= 0:
        return digits + "0" * exponent
    point = len(digits) + exponent
    if point > 0:
        return digits[:point] + "." + digits[point:]
    return "0." + "0" * -point + digits


def number_size_bytes(text: str) -> int:
    """Return the billed size of a canonical number. Same arithmetic as gateway/model/values/values.py, on text."""
    if text == "0":
        return 1
    size = 1
    if text[0] == "-":
        text = text[1:]
        size = 2
    integer, _, fraction = text.partition(".")
    if not fraction:
        return size + (len(integer.rstrip("0")) + 1) // 2
    if integer == "0":
        return size + (len(fraction.lstrip("0")) + 1) // 2
    return size + (len(integer) + 1) // 2 + (len(fraction) + 1) // 2


# Binaries and booleans

_LAST_BEFORE_TWO_PADS = frozenset("AQgw")
_LAST_BEFORE_ONE_PAD = frozenset("AEIMQUYcgkosw048")


def binary_bytes(text: Any) -> int:
    """Return the number of bytes in a base64 text. Raises SerializationException for wrong padding or unused bits."""
    if type(text) is not str:
        wrong_type("Blob", text)
    length = len(text)
    if length % 4:
        raise serialization(error_texts.bare("base64-length", length=length))
    try:
        a2b_base64(text, strict_mode=True)
    except ValueError:
        raise serialization(error_texts.bare("base64")) from None
    if not text or text[-1] != "=":
        return length // 4 * 3
    pads, alphabet = (2, _LAST_BEFORE_TWO_PADS) if text[-2] == "=" else (1, _LAST_BEFORE_ONE_PAD)
    if text[-1 - pads] not in alphabet:
        raise serialization(error_texts.bare("base64"))
    return length // 4 * 3 - pads


def boolean_of(data: Any) -> bool:
    """Convert a JSON value to a Boolean. Some texts convert, numbers do not (dynalite validations/index.js)."""
    if type(data) is bool:
        return data
    if type(data) is str:
        if data.upper() in ("TRUE", "1", "YES"):
            return True
        if data.upper() in ("FALSE", "0", "NO"):
            return False
    wrong_type("Boolean", data)


_TICKS_PER_DAY = 864_000_000_000
_TICKS_PER_SECOND = 10_000_000


def datetime_text(ticks: int) -> str:
    """Format ticks of 100 ns since 0001-01-01 as ISO 8601 with seven digits and Z."""
    days, rest = divmod(ticks, _TICKS_PER_DAY)
    seconds, fraction = divmod(rest, _TICKS_PER_SECOND)
    day = date.fromordinal(days + 1)
    return f"{day.isoformat()}T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:07}Z"
