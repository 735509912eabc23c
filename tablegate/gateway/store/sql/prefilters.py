"""Prefilters: conditions in SQL on the bytes of a row's body that are necessary for a predicate.

A prefilter may accept rows for which the predicate is false: `matches` (model/expressions/predicates.py) still
evaluates each fetched row. It never rejects a row for which the predicate is true. So a prefilter may be coarse, and
the rows that it rejects are neither fetched nor decoded.

The module depends on how bodies.py writes values, and so on the few forms that equal values can have. It depends on no
dialect's view, only on the rules for all of them (predicates.View): a number is shown as an equal number or as its
text. A value that is not TEXT may be shown as its text in the body or in one of the few forms named here. Nothing else
changes its kind.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import orjson

from tablegate.gateway.model.expressions.predicates import (
    And,
    Attribute,
    Compare,
    Comparison,
    Contains,
    Exists,
    ExtractedValue,
    HasKind,
    Literal,
    Operand,
    Or,
    Path,
    Predicate,
    SizeOf,
    StartsWith,
)
from tablegate.gateway.model.values.values import NUMBERS, Kind, Value, decimal_text, double_of, number_of
from tablegate.gateway.store.sql.databases import BodyPattern, Condition, Statements, Wildcards

# Beyond this many patterns a disjunction costs more than it saves. Of a conjunction the first ones suffice.
_MAX_PATTERNS = 12
# SQLite refuses long patterns.
_LONGEST_NAME, _LONGEST_TEXT = 128, 512
_GREATEST_EXPONENT = 400
# Bounds of numbers are compared as doubles, with a margin above their rounding error.
_SLACK = 1e-9
_SIDES = {Comparison.GT: True, Comparison.GE: True, Comparison.LT: False, Comparison.LE: False}
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class BodyContains:
    """A condition that the body contains a pattern.

    `foreign`: accept only rows with other kinds than DynamoDB's, because no others can match. Patterns begin inside the
    attribute's name, because its first letter is rarer than a quote and is found faster.
    """

    pattern: BodyPattern
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class NumberBeyond:
    """A condition that an attribute is a number on one side of an approximate bound.

    Only SQLite evaluates it, faster than rows can be decoded here. PostgreSQL cannot read JSON from bytes.
    """

    name: str
    above: bool
    bound: float


@dataclass(frozen=True, slots=True)
class AllOf:
    """A conjunction of prefilters."""

    parts: tuple[Prefilter, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A disjunction of prefilters."""

    parts: tuple[Prefilter, ...]


Prefilter = BodyContains | NumberBeyond | AllOf | AnyOf


def prefilter_of(predicate: Predicate) -> Prefilter | None:
    """Return the prefilter of a predicate, or None if it has no necessary condition on bodies."""
    try:
        return _prefilter(predicate)
    except orjson.JSONEncodeError:  # a text that no body can hold, such as half a surrogate pair
        return None


def _prefilter(predicate: Predicate) -> Prefilter | None:
    match predicate:
        case And(parts):
            return _all([_prefilter(part) for part in parts])
        case Or(parts):
            return _any([_prefilter(part) for part in parts])
        case Compare(Attribute(path), Comparison.EQ, Literal(value)):
            return _equal(path, value)
        case Compare(Literal(value), Comparison.EQ, Attribute(path)):
            return _equal(path, value)
        case Compare(Attribute(path), Comparison() as comparison, Literal(value)) if comparison in _SIDES:
            return _beyond(path, _SIDES[comparison], value)
        case Compare(Literal(value), Comparison() as comparison, Attribute(path)) if comparison in _SIDES:
            return _beyond(path, not _SIDES[comparison], value)
        case Compare(left, comparison, right) if comparison is not Comparison.NE:
            return _all([_present(left), _present(right)])
        case StartsWith(Attribute(path), Literal(Value(Kind.TEXT, data))):
            return _text(path, data, "")
        case Contains(Attribute(path), Literal(member)):
            return _containing(path, member)
        case StartsWith(left, right) | Contains(left, right):
            return _all([_present(left), _present(right)])
        case HasKind(operand, _):
            return _present(operand)
        case Exists(path):
            return _attribute(path)
    return None


def _all(parts: Sequence[Prefilter | None]) -> Prefilter | None:
    """Return the prefilter of a conjunction, the most selective part first. Parts without a prefilter are dropped."""
    usable = sorted([part for part in parts if part is not None], key=_selectivity, reverse=True)
    del usable[_MAX_PATTERNS:]
    return usable[0] if len(usable) == 1 else AllOf(tuple(usable)) if usable else None


def _any(parts: Sequence[Prefilter | None]) -> Prefilter | None:
    usable = tuple(part for part in parts if part is not None)
    if len(usable) < len(parts) or sum(map(_patterns, usable)) > _MAX_PATTERNS:
        return None
    return usable[0] if len(usable) == 1 else AnyOf(usable)


def _selectivity(prefilter: Prefilter) -> int:
    """Return the estimated selectivity of a prefilter, by the length of its patterns."""
    match prefilter:
        case BodyContains(pattern, _):
            return sum(len(piece) for piece in pattern if isinstance(piece, str))
        case NumberBeyond():
            return 0
        case AllOf(parts):
            return max(map(_selectivity, parts))
        case AnyOf(parts):
            return min(map(_selectivity, parts), default=0)


def _patterns(prefilter: Prefilter) -> int:
    return sum(map(_patterns, prefilter.parts)) if isinstance(prefilter, AllOf | AnyOf) else 1


# Paths


def _present(operand: Operand) -> Prefilter | None:
    """Return the prefilter of an operand that must only be present."""
    match operand:
        case Attribute(path) | SizeOf(path) | ExtractedValue(Attribute(path)):
            return _attribute(path)
    return None


def _attribute(path: Path) -> Prefilter:
    return BodyContains((_name(path) + '":',))


def _name(path: Path) -> str:
    """Return the innermost name of a path as bodies spell it, cut to its last characters."""
    name = next(step for step in reversed(path) if isinstance(step, str))
    return _escaped(name)[-_LONGEST_NAME:]


def _escaped(text: str) -> str:
    return orjson.dumps(text).decode()[1:-1]


def _equal(path: Path, value: Value) -> Prefilter:
    """Return the prefilter for rows with an equal value at a path."""
    kind, data = value
    if not isinstance(path[-1], str):
        return _attribute(path)  # an element of a list has no name before it
    head = _name(path) + '":{"'
    if kind is Kind.TEXT:
        return _text(path, data, '"}')
    if kind in NUMBERS:
        number = number_of(value)
        return _attribute(path) if number is None else _number(path, Decimal(number))
    if kind is Kind.BOOL:
        return BodyContains((f'{head}BOOL":{"true" if data else "false"}',))
    if kind is Kind.NULL:
        return BodyContains((head + 'NULL"',))
    if kind is Kind.BYTES:
        head_bytes = data[: _LONGEST_TEXT // 4 * 3]
        return BodyContains(
            (f'{head}B":"{base64.b64encode(head_bytes[: len(head_bytes) // 3 * 3]).decode()}',)
        )
    if kind is Kind.DATETIME:
        return BodyContains((f'{head}DT":"{data}"',), foreign=True)
    if kind is Kind.GUID:
        return BodyContains((f'{head}G":"{data}"',), foreign=True)
    return _attribute(path)


def _number(path: Path, number: Decimal) -> Prefilter:
    """Return the prefilter for rows with an equal number at a path.

    Numbers of all kinds begin with the same digits, and a DOUBLE may have ".0" after them. One pattern serves all
    kinds, although it may also match the number under a later name.
    """
    if not -_GREATEST_EXPONENT < number.adjusted() < _GREATEST_EXPONENT:
        return _attribute(path)
    head, digits, double = _name(path) + '":{"', decimal_text(number), double_of(number)
    usual = BodyContains((head, Wildcards.RUN, f':"{digits}', Wildcards.STOP))
    if double is not None:
        texts = {repr(double), repr(-double)} if not double else {repr(double)}
        unlike = [text for text in sorted(texts) if text not in (digits, digits + ".0")]
        if unlike:
            return AnyOf((usual, *(BodyContains((f'{head}D":"{text}"',), foreign=True) for text in unlike)))
    return usual


def _beyond(path: Path, above: bool, value: Value) -> Prefilter:
    """Return the prefilter for rows with a number at a path that is above, below or equal to a bound."""
    present, number = _attribute(path), number_of(value)
    if number is None or len(path) > 1 or not _PLAIN_NAME.fullmatch(str(path[0])):
        return present
    bound = float(number)
    slack = abs(bound) * _SLACK
    if not math.isfinite(bound):
        return present
    return AllOf((present, NumberBeyond(str(path[0]), above, bound - slack if above else bound + slack)))


def _text(path: Path, text: str, end: str) -> Prefilter:
    """Return the prefilter for rows with a text at a path that begins with `text`, followed by `end`.

    The value is TEXT, or of another kind shown as text. The first character excludes most other kinds.
    """
    first = text[:1]
    if first in ("", "{") or not isinstance(path[-1], str):
        return _attribute(path)
    head, escaped = _name(path) + '":{"', _escaped(text)
    if len(escaped) > _LONGEST_TEXT:
        escaped, end = escaped[:_LONGEST_TEXT], ""
    alternatives = [BodyContains((f'{head}S":"{escaped}{end}',))]
    if first in "-0123456789abcdef":
        alternatives.append(BodyContains((f'{head}G":"{escaped}{end}',), foreign=True))
    if first in "-0123456789":
        alternatives += [
            BodyContains((f'{head}N":"{escaped}{end}',)),
            BodyContains((f'{head}DT"',), foreign=True),
        ]
    if first in "-0123456789NI":
        alternatives.append(BodyContains((f'{head}D"',), foreign=True))
    return alternatives[0] if len(alternatives) == 1 else AnyOf(tuple(alternatives))


def _containing(path: Path, member: Value) -> Prefilter:
    """Return the prefilter for rows with a member, an element or a substring at a path.

    Texts and numbers inside a document are spelled as outside.
    """
    head, (kind, data), number = _name(path) + '":', member, number_of(member)
    if kind is Kind.TEXT:
        escaped = _escaped(data)
        if escaped != data or len(escaped) > _LONGEST_TEXT:  # a document shown as TEXT spells it otherwise
            return _attribute(path)
        shown_otherwise = (
            BodyContains((head + '{"DT"',), foreign=True),
            BodyContains((head + '{"D"',), foreign=True),
        )
        return AnyOf((BodyContains((head, Wildcards.RUN, escaped)), *shown_otherwise))
    if number is not None and -_GREATEST_EXPONENT < Decimal(number).adjusted() < _GREATEST_EXPONENT:
        return BodyContains((head, Wildcards.RUN, f'"{decimal_text(number)}"'))
    return _attribute(path)


# SQL


def condition_of(prefilter: Prefilter, statements: Statements) -> Condition:
    """Return the condition that is true for rows that pass a prefilter, and false or NULL for others."""
    if isinstance(prefilter, BodyContains):
        condition, parameters = statements.pattern_condition(prefilter.pattern)
        return f"({'r.kinds IS NOT NULL AND ' if prefilter.foreign else ''}{condition})", parameters
    if isinstance(prefilter, NumberBeyond):
        return statements.number_condition(prefilter.name, prefilter.above, prefilter.bound)
    parts = [condition_of(part, statements) for part in prefilter.parts]
    if not parts:
        return "(1 = 0)", []  # an empty Or, which nothing satisfies
    joint = " AND " if isinstance(prefilter, AllOf) else " OR "
    parameters = [parameter for _, values in parts for parameter in values]
    return f"({joint.join(sql for sql, _ in parts)})", parameters


def spelled(
    pattern: BodyPattern, wild: Mapping[Wildcards, str], special: re.Pattern[str], quoted: str
) -> Iterator[str]:
    """Yield the parts of a pattern in a database's syntax, with wildcards and quoted special characters."""
    for piece in pattern:
        yield (
            wild[piece]
            if isinstance(piece, Wildcards)
            else special.sub(lambda match: quoted % match[0], piece)
        )
