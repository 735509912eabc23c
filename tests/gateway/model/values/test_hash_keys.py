"""Numbers of one hash, which a client can choose, take no longer in sets and groups than others.

Source: "Hashing of numeric types" (docs.python.org/3/library/stdtypes.html): numbers are hashed modulo a prime, without a
secret. The hashes of str and bytes have one (object.__hash__, "randomized").
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.gateway.model.values import bodies
from tablegate.gateway.model.values.values import (
    Kind,
    Value,
    contains,
    decimal,
    distinct,
    hash_key,
    number_set,
    size_bytes,
)

NUMBERS = 300
MODULUS = sys.hash_info.modulus
OF_ONE_HASH: list[Any] = [at * MODULUS for at in range(1, NUMBERS)]


class Compared(int):
    """A number that counts comparisons."""

    count = 0

    def __eq__(self, other: object) -> bool:
        Compared.count += 1
        return int(self) == other

    __hash__ = int.__hash__


NUMBERS_OF_KINDS: dict[str, Callable[[int], Any]] = {
    "int": int,
    "Decimal": Decimal,
    "fraction": lambda number: Decimal(number).scaleb(-3),
    "float": lambda number: 2.0 ** (number // MODULUS),
    "UUID": lambda number: UUID(int=number),
    "timedelta": lambda number: timedelta(microseconds=number // MODULUS),
    "in a tuple": lambda number: (number,),
}


@pytest.mark.parametrize("kind", NUMBERS_OF_KINDS)
def test_keys_of_numbers_have_different_hashes(kind: str) -> None:
    keys = [hash_key(NUMBERS_OF_KINDS[kind](number)) for number in OF_ONE_HASH]
    assert len(set(map(hash, keys))) == len(keys)


def test_members_of_number_sets_have_different_hashes() -> None:
    members = [str(number) for number in OF_ONE_HASH]
    stored = bodies.untagged({"NS": members})
    assert len(set(map(hash, stored.data))) == len(members)
    assert contains(stored, decimal(members[-1]))
    assert not contains(stored, decimal(0))
    assert bodies.tagged(stored) == {"NS": members}


SCALARS = st.one_of(
    st.integers(-2, 2),
    st.sampled_from([0.0, -0.0, 1.0, 0.5, 1e300, 2.0**60, float("inf")]),
    st.sampled_from([2**60, 10**300]),
    st.booleans(),
    st.none(),
    st.sampled_from(
        ["1", "", b"1", date(2026, 1, 1), datetime(2026, 1, 1), timedelta(1), timedelta(hours=24)]
    ),
)


def test_a_large_float_has_the_key_of_its_exact_integer() -> None:
    assert hash_key(1e300) == hash_key(int(1e300)) != hash_key(10**300)


@given(st.lists(SCALARS | st.lists(SCALARS, max_size=2).map(tuple), max_size=8))
def test_keys_are_equal_as_values_are(values: list[Any]) -> None:
    for one in values:
        for other in values:
            assert (hash_key(one) == hash_key(other)) is (one == other), (one, other)
    assert list(map(repr, distinct(values))) == list(map(repr, dict.fromkeys(values)))


@given(st.lists(st.decimals(-1000, 1000, places=3), min_size=1, max_size=5))
def test_a_number_set_is_that_of_its_numbers(numbers: list[Decimal]) -> None:
    found = number_set([*numbers, *map(str, numbers)])
    assert set(map(Decimal, found.data)) == set(numbers)
    assert found == number_set(map(str, set(numbers)))
    assert size_bytes(found) == sum(size_bytes(Value(Kind.DECIMAL, number)) for number in set(numbers))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1E+999999999", "1E-131", "9" * 39, "x", "-"])
def test_a_number_set_has_numbers_of_the_range(number: str) -> None:
    with pytest.raises((ValueError, ArithmeticError)):
        number_set([number])
