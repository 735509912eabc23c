"""Keys of sets and dictionaries for values that clients choose.

Python hashes texts and bytes with a secret. Its hashes of numbers, and of types that consist of numbers, have none. A
client can send thousands of numbers with one hash, and each look-up of one of them would compare it with all the others.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from datetime import date
from decimal import Decimal
from typing import Any, TypeVar

from tablegate.gateway.model.values.values import decimal_text

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
