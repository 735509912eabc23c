"""Encoded vectors of vector indexes, and digests of the values that searches filter by.

A vector is a list of numbers in an attribute. An index stores it as concatenated 32-bit floating-point numbers,
little-endian. Searching is in other modules. The module does not use numpy, so that tables with vector indexes can be
written without it.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Any

from tablegate.gateway.model.values.keys import encode_column
from tablegate.gateway.model.values.values import Kind, Value, number_of

DIGEST_BYTES = 16
ABSENT = bytes(DIGEST_BYTES)
"""The digest of a missing value."""
COMPONENT_BYTES = 4
"""Bytes of one component of a vector."""


class Metric(Enum):
    """The distance of two vectors: one minus the cosine of their angle, Euclidean distance, or dot product.

    A greater dot product is nearer.
    """

    COSINE = "cosine"
    EUCLIDEAN = "euclidean"
    DOT_PRODUCT = "dot_product"


def vector_of(member: Any, dimensions: int) -> bytes | None:
    """Return the vector in a tagged value (bodies.py), or None if it is not a list of `dimensions` 32-bit numbers."""
    elements = member.get("L") if member is not None else None
    if elements is None or len(elements) != dimensions:
        return None
    try:
        return pack([float(element["N"]) for element in elements])
    except (KeyError, OverflowError):
        return None


def pack(components: Sequence[float]) -> bytes:
    """Return the encoded vector of numbers. Raises OverflowError if one is too great for 32 bits."""
    return _form(len(components)).pack(*components)


def float_of(text: str) -> float:
    """Return the 32-bit number that is nearest to a decimal."""
    return unpack(pack([float(text)]))[0]


def unpack(vector: bytes) -> tuple[float, ...]:
    """Return the components of a vector."""
    return _form(len(vector) // COMPONENT_BYTES).unpack(vector)


def components_of(vector: bytes) -> list[Decimal]:
    """Return the components of a vector, each as the shortest decimal that converts back to it."""
    components = []
    for component in unpack(vector):
        shortest = next(
            text for digits in range(6, 10) if float_of(text := f"{component:.{digits}g}") == component
        )
        components.append(Decimal(shortest))
    return components


@lru_cache(64)
def _form(dimensions: int) -> struct.Struct:
    return struct.Struct(f"<{dimensions}f")


def is_of_kind(value: Value, kind: Kind) -> bool:
    """Return True if a value fits the kind of a column. Numbers of all kinds fit DECIMAL."""
    return value.kind is kind or (kind is Kind.DECIMAL and number_of(value) is not None)


def digest_of(value: Value) -> bytes:
    """Return the digest of a TEXT, a BYTES or a number. Equal values have equal digests, and none is ABSENT."""
    number = number_of(value)
    if number is not None:
        value = Value(Kind.DECIMAL, number)
    return hashlib.sha256(encode_column(value)).digest()[:DIGEST_BYTES]
