"""Conditions and filters as one closed tree, and its one evaluator.

Every dialect's spelling (condition expressions, Expected, OData $filter, protobuf filters) is parsed into these few
nodes. What a dialect adds is desugared by its parser: BETWEEN is two comparisons, IN is an Or of equalities, "pass if
missing" is an Or with Not(Exists), a typed comparison is an And with HasKind.

A predicate is never a truth value: `bool(predicate)` raises, so that `and` between predicates cannot slip through.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from gateway.model.rows import Row
from gateway.model.values import Kind, Value

Path = tuple[str | int, ...]
"""A document path: an attribute name, then member names (str) and list indexes (int)."""

View = Callable[[Value], Value]
"""How a dialect sees a stored value; pure."""


class Node:
    """Base of predicates and operands."""

    __slots__ = ()

    def __bool__(self) -> bool:
        raise TypeError("a predicate is a tree, not a truth value: use holds()")


# Operands


@dataclass(frozen=True, slots=True)
class Attribute(Node):
    """The latest value at a document path."""

    path: Path


@dataclass(frozen=True, slots=True)
class AnyVersion(Node):
    """Each kept version of an attribute: a comparison holds if it holds for one of them."""

    name: str


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A constant."""

    value: Value


@dataclass(frozen=True, slots=True)
class SizeOf(Node):
    """The size of the value at a path: bytes of TEXT (UTF-8) and BYTES, number of elements of documents and sets."""

    path: Path


Operand = Attribute | AnyVersion | Literal | SizeOf


class Comparison(Enum):
    """The six comparison operators."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


# Predicates


@dataclass(frozen=True, slots=True)
class Always(Node):
    """True for every row, and where there is no row."""


@dataclass(frozen=True, slots=True)
class And(Node):
    """True if all parts are; the parts are judged from left to right."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or(Node):
    """True if one part is."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Not(Node):
    """True if the part is not."""

    part: Predicate


@dataclass(frozen=True, slots=True)
class Compare(Node):
    """A comparison. With an absent operand, or operands without a common order, all but NE are false and NE is true."""

    left: Operand
    comparison: Comparison
    right: Operand


@dataclass(frozen=True, slots=True)
class StartsWith(Node):
    """Whether a TEXT or BYTES operand begins with another of its kind."""

    operand: Operand
    prefix: Operand


@dataclass(frozen=True, slots=True)
class Contains(Node):
    """Substring, member of a set, or element of a list."""

    container: Operand
    member: Operand


@dataclass(frozen=True, slots=True)
class HasKind(Node):
    """Whether a value is there and is of one of these kinds."""

    operand: Operand
    kinds: frozenset[Kind]


@dataclass(frozen=True, slots=True)
class Exists(Node):
    """Whether there is a value at the path."""

    path: Path


@dataclass(frozen=True, slots=True)
class RowExists(Node):
    """Whether there is a row at all."""


@dataclass(frozen=True, slots=True)
class RevisionIs(Node):
    """Whether the row is there and was last modified at exactly this time (ticks of 100 ns since 1970)."""

    modified_at: int


Predicate = (
    Always | And | Or | Not | Compare | StartsWith | Contains | HasKind | Exists | RowExists | RevisionIs
)

ALWAYS = Always()


def holds(predicate: Predicate, row: Row | None, view: View | None = None) -> bool:
    """Whether a predicate is true of a row (None: there is no row) as a dialect sees it (None: as it is stored)."""
    raise NotImplementedError  # next commit: expressions


def failing_part(predicate: Predicate, row: Row | None, view: View | None = None) -> Predicate | None:
    """The first top-level conjunct that is false, or None if the predicate holds."""
    parts = predicate.parts if isinstance(predicate, And) else (predicate,)
    for part in parts:
        if not holds(part, row, view):
            return part
    return None


def value_at(values: Mapping[str, Value], path: Path) -> Value | None:
    """The value at a document path, or None."""
    found = values.get(path[0])  # type: ignore[arg-type]
    for step in path[1:]:
        if found is None:
            return None
        if isinstance(step, str):
            found = found.data.get(step) if found.kind is Kind.MAP else None
        elif found.kind is Kind.LIST and step < len(found.data):
            found = found.data[step]
        else:
            return None
    return found
