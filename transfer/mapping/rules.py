"""The rules of the mapping between services, by name: what happens to a row, and how much of it survives.

docs/migrating.md has them as a table that is generated from here (`python -m transfer.mapping.rules`, held equal by a test).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class Fidelity(Enum):
    """How much of a value survives. In order: each is worse than the one before."""

    LOSSLESS = "lossless"
    """Another spelling of a value that compares equal to it."""
    RENDERED = "rendered"
    """Another kind from which the value can be had back exactly."""
    LOSSY = "lossy"
    """Something is lost that cannot be had back."""
    IMPOSSIBLE = "impossible"
    """The target cannot hold the row: it is rejected."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: its stable name, what it does to what is lost, and a sentence with its source."""

    name: str
    fidelity: Fidelity
    meaning: str


class Finding(NamedTuple):
    """A rule that applied to a row: to which attribute (or key column; "" for the row as a whole)."""

    rule: Rule
    attribute: str
