"""Vectors as vector indexes keep them, and digests of the values by which a search is narrowed.

A vector is a list of numbers in an attribute; an index keeps it as 32-bit floating point numbers, little-endian, one behind the
other. Knows nothing of tables, of where entries are kept and how they are searched. Without numpy, so that rows of tables with
such an index can be written where it is not installed.
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
"""In place of the digest of a value that is not there."""
COMPONENT_BYTES = 4
"""The bytes of one component of a vector."""


class Metric(Enum):
    """How the distance of two vectors is measured: one minus the cosine of their angle; the straight line between their ends; or
    their dot product, of which the greater is the nearer."""

    COSINE = "cosine"
    EUCLIDEAN = "euclidean"
    DOT_PRODUCT = "dot_product"


def vector_of(member: Any, dimensions: int) -> bytes | None:
    """The components of a tagged value (bodies.py), or None: it is no list of so many numbers of 32 bits."""
    elements = member.get("L") if member is not None else None
    if elements is None or len(elements) != dimensions:
        return None
    try:
        return packed([float(element["N"]) for element in elements])
    except (KeyError, OverflowError):
        return None


def packed(components: Sequence[float]) -> bytes:
    """Numbers as the components of a vector. Raises OverflowError if one is too great for 32 bits."""
    return _form(len(components)).pack(*components)


def float_of(text: str) -> float:
    """The number of 32 bits that is nearest to a decimal."""
    return unpacked(packed([float(text)]))[0]


def unpacked(vector: bytes) -> tuple[float, ...]:
    """The components of a vector."""
    return _form(len(vector) // COMPONENT_BYTES).unpack(vector)


def components_of(vector: bytes) -> list[Decimal]:
    """The components of a vector, each as the shortest decimal that is read back as it."""
    found = []
    for component in unpacked(vector):
        shortest = next(
            text for digits in range(6, 10) if float_of(text := f"{component:.{digits}g}") == component
        )
        found.append(Decimal(shortest))
    return found


@lru_cache(64)
def _form(dimensions: int) -> struct.Struct:
    return struct.Struct(f"<{dimensions}f")


def is_of_kind(value: Value, kind: Kind) -> bool:
    """Whether a value is one of a column: numbers of any kind are DECIMAL."""
    return value.kind is kind or (kind is Kind.DECIMAL and number_of(value) is not None)


def digest_of(value: Value) -> bytes:
    """A digest of a TEXT, a BYTES or a number; that of equal values is equal, and never ABSENT."""
    number = number_of(value)
    if number is not None:
        value = Value(Kind.DECIMAL, number)
    return hashlib.sha256(encode_column(value)).digest()[:DIGEST_BYTES]
