"""Conditions and filters as one closed tree, with the regular expressions of clients. evaluation.py evaluates it.

The syntaxes of the dialects (condition expressions, Expected, OData $filter, protobuf filters) are parsed into these
nodes. Parsers desugar the rest. BETWEEN is two comparisons, IN is an Or of equalities, "pass if missing" is an Or with
Not(Exists), and a typed comparison is an And with HasKind.

`bool(predicate)` raises TypeError, so that `and` between predicates fails early.

RE2 runs the regular expressions. It is an engine for untrusted patterns, which never backtracks. Its syntax is Perl's
without back references, look-around and possessive quantifiers. Characters are Unicode code points. The classes
(digits, spaces, word characters) are ASCII, as in Perl's bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Any, Protocol

from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import SETS, Kind, Value

TEXT_MAX_BYTES = 65_536
"""Maximum searched length of a text."""
_SEARCH_MAX_STEPS = 16 * 1024 * 1024
# Per pattern: its program of at most about 40,000 steps, and the caches of the engine.
_MEMORY_MAX_BYTES = 512 * 1024
_KEPT_PATTERNS = 64


def reach_bytes(steps: int) -> int:
    """Return the searched length of each text, given the total number of steps of all patterns.

    In the worst case all searches then take 0.2 s (10 ns per byte and step, measured). Up to 256 steps, texts are
    searched up to TEXT_MAX_BYTES.
    """
    return min(TEXT_MAX_BYTES, _SEARCH_MAX_STEPS // max(steps, 1))


class BadPattern(ValueError):
    """The pattern is not a regular expression that RE2 supports. The text says why."""


class Pattern:
    """A valid pattern. Raises BadPattern. Immutable, and equal to others with the same source.

    `steps`: size of the compiled program. A search takes at most this number of steps for each byte.
    """

    __slots__ = ("source", "steps")

    def __init__(self, source: str) -> None:
        self.source = source
        self.steps: int = _compile(source).programsize

    def find(self, text: str, most_bytes: int = TEXT_MAX_BYTES) -> str | None:
        """Return the leftmost match's first group, or the whole match if the pattern has no group. None without a
        match.

        Only the first `most_bytes` of the text are searched, in whole characters.
        """
        data = text[:most_bytes].encode("utf-8", "surrogatepass")
        if len(data) > most_bytes:
            data = data[:most_bytes].decode("utf-8", "ignore").encode()
        match = _compile(self.source).search(data)
        if match is None:
            return None
        group: bytes | None = match.group(min(match.re.groups, 1))
        return None if group is None else group.decode("utf-8", "replace")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and other.source == self.source

    def __hash__(self) -> int:
        return hash(self.source)

    def __repr__(self) -> str:
        return f"Pattern({self.source!r})"


@lru_cache(maxsize=_KEPT_PATTERNS)
def _compile(source: str) -> Any:
    import re2  # imported with the first pattern of a client

    options = re2.Options()
    options.max_mem = _MEMORY_MAX_BYTES
    options.log_errors = False
    try:
        return re2.compile(source.encode("utf-8", "surrogatepass"), options)
    except re2.error as error:
        raise BadPattern(_reason(error)) from None


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else ""
    return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)


Path = tuple[str | int, ...]
"""A document path: an attribute name, then member names (str) and list indexes (int)."""

View = Callable[[Value], Value]
"""The view of a dialect on stored values. Pure.

Numbers become equal numbers or text, other kinds except TEXT may become text, and nothing else changes its kind.
store/sql/prefilters.py depends on that.
"""


class Node:
    """Base class of predicates and operands."""

    __slots__ = ()

    def __bool__(self) -> bool:
        raise TypeError("a predicate is a tree, not a truth value: use evaluation.matches()")


# Operands


@dataclass(frozen=True, slots=True)
class Attribute(Node):
    """The latest value at a document path."""

    path: Path


@dataclass(frozen=True, slots=True)
class AnyVersion(Node):
    """Each stored version of an attribute. A comparison is true if it is true of one of them."""

    name: str


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A constant."""

    value: Value


@dataclass(frozen=True, slots=True)
class SizeOf(Node):
    r"""The size of the value at a path: UTF-16 code units of TEXT, bytes of BYTES, elements of documents and sets.

    Other kinds have no size. UTF-16: measured on DynamoDB, ExtendDB issue 60, where "\u00e9\U0001d11e" has size 3.
    """

    path: Path


@dataclass(frozen=True, slots=True)
class Computed(Node):
    """A value that a dialect computes from the whole row: Azure's Timestamp, the text of a composite key. Pure."""

    of: Callable[[Row], Value | None]


@dataclass(frozen=True, slots=True)
class ExtractedValue(Node):
    """The match of a pattern in a TEXT value (see `Pattern`), converted to TEXT, BYTES, INT64 or DOUBLE.

    It is absent if the value is no TEXT, or without a match, or if the conversion fails. `reach_bytes`: searched length
    of the text.
    """

    operand: Attribute | AnyVersion
    pattern: Pattern
    kind: Kind
    reach_bytes: int = TEXT_MAX_BYTES


Operand = Attribute | AnyVersion | Literal | SizeOf | ExtractedValue | Computed


class Comparison(Enum):
    """The six comparison operators."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="

    # The inherited __hash__ is a Python function. Comparisons are hashed for every row.
    __hash__ = object.__hash__


# Predicates


@dataclass(frozen=True, slots=True)
class Always(Node):
    """True for every row, and without a row."""


@dataclass(frozen=True, slots=True)
class And(Node):
    """True if all parts are true. The parts are evaluated from left to right."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or(Node):
    """True if any part is true."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Not(Node):
    """True if the part is false."""

    part: Predicate


@dataclass(frozen=True, slots=True)
class Compare(Node):
    """A comparison. If an operand is absent, or the operands have no common order, NE is true and others false."""

    left: Operand
    comparison: Comparison
    right: Operand


@dataclass(frozen=True, slots=True)
class StartsWith(Node):
    """True if a TEXT or BYTES operand begins with another of its kind."""

    operand: Operand
    prefix: Operand


@dataclass(frozen=True, slots=True)
class Contains(Node):
    """True for a substring, a member of a set, or an element of a list."""

    container: Operand
    member: Operand


@dataclass(frozen=True, slots=True)
class HasKind(Node):
    """True if a value exists and is of one of these kinds."""

    operand: Operand
    kinds: frozenset[Kind]


@dataclass(frozen=True, slots=True)
class Exists(Node):
    """True if a value exists at the path."""

    path: Path


@dataclass(frozen=True, slots=True)
class RowExists(Node):
    """True if the row exists."""


@dataclass(frozen=True, slots=True)
class RevisionIs(Node):
    """True if the row exists and was last modified at exactly this time (ticks of 100 ns since 1970)."""

    modified_at: int


Predicate = (
    Always | And | Or | Not | Compare | StartsWith | Contains | HasKind | Exists | RowExists | RevisionIs
)

ALWAYS = Always()


class Attributes(Protocol):
    """Attributes by name: a mapping of values, or the contents of a row, which decode single attributes on demand."""

    def get(self, name: str, /) -> Value | None:
        """Return the value of an attribute, or None."""
        ...


def value_at(values: Attributes, path: Path) -> Value | None:
    """Return the value at a document path, or None."""
    return walk(values.get(path[0]), path)  # type: ignore[arg-type]


def size_of(value: Value) -> int | None:
    """Return the result of `SizeOf` for a value, None if its kind has no size."""
    kind, data = value
    if kind is Kind.TEXT:
        return len(data) if data.isascii() else len(data.encode("utf-16-le", "surrogatepass")) // 2
    if kind is Kind.BYTES or kind is Kind.LIST or kind is Kind.MAP or kind in SETS:
        return len(data)
    return None


def patterns_of(predicate: Predicate) -> Iterator[Pattern]:
    """Yield the patterns of a predicate, once for each search."""
    match predicate:
        case And(parts) | Or(parts):
            for part in parts:
                yield from patterns_of(part)
        case Not(part):
            yield from patterns_of(part)
        case Compare(ExtractedValue(_, pattern)) | HasKind(ExtractedValue(_, pattern)):
            yield pattern


def with_reach(predicate: Predicate, most_bytes: int) -> Predicate:
    """Return an equivalent predicate that searches at most the first `most_bytes` of each text."""
    match predicate:
        case And(parts) | Or(parts):
            return type(predicate)(tuple(with_reach(part, most_bytes) for part in parts))
        case Not(part):
            return Not(with_reach(part, most_bytes))
        case Compare(ExtractedValue(reach_bytes=reach) as left):
            return replace(predicate, left=replace(left, reach_bytes=min(reach, most_bytes)))
        case HasKind(ExtractedValue(reach_bytes=reach) as operand):
            return replace(predicate, operand=replace(operand, reach_bytes=min(reach, most_bytes)))
    return predicate


def paths_of(predicate: Predicate) -> Iterator[Path]:
    """Yield every document path that a predicate reads, from left to right, with duplicates."""
    match predicate:
        case And(parts) | Or(parts):
            for part in parts:
                yield from paths_of(part)
        case Not(part):
            yield from paths_of(part)
        case Compare(left, _, right) | StartsWith(left, right) | Contains(left, right):
            yield from _paths_of_operand(left)
            yield from _paths_of_operand(right)
        case HasKind(operand, _):
            yield from _paths_of_operand(operand)
        case Exists(path):
            yield path


def _paths_of_operand(operand: Operand) -> Iterator[Path]:
    match operand:
        case Attribute(path) | SizeOf(path):
            yield path
        case AnyVersion(name):
            yield (name,)
        case ExtractedValue(inner):
            yield from _paths_of_operand(inner)


def walk(value: Value | None, path: Path) -> Value | None:
    """Return the value at a document path, or None. `value`: the attribute that the path begins with."""
    for step in path[1:]:
        if value is None:
            return None
        if isinstance(step, str):
            value = value.data.get(step) if value.kind is Kind.MAP else None
        elif value.kind is Kind.LIST and step < len(value.data):
            value = value.data[step]
        else:
            return None
    return value
