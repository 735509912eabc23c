"""Prefilters: what the bytes of a row's body must look like for a predicate to be true, as a condition that SQL can judge.

A prefilter may let rows through of which the predicate is false - `matches` (model/expressions/predicates.py) is still asked
about each row that comes - but it never keeps one back of which the predicate is true. So a prefilter may be coarse, and the rows
that it keeps back are neither fetched nor decoded.

Knows how bodies.py spells a value, and so in which few spellings a value stands that equals a given one. Knows no dialect's
view, only what all of them keep to (predicates.View): a number is shown as an equal number or as its text, what is not TEXT
may be shown as the text that it has in the body or as one of the few forms named here, and nothing else changes its kind.
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
from tablegate.gateway.model.values.values import NUMBERS, Kind, Value, decimal_text, number_of
from tablegate.gateway.store.sql.databases import BodyPattern, Condition, Statements, Wildcards

# Past so many patterns a disjunction costs more than it saves; of a conjunction the first will do.
_MOST_PATTERNS = 12
# SQLite refuses long patterns, and nobody needs them.
_LONGEST_NAME, _LONGEST_TEXT = 128, 512
_GREATEST_EXPONENT = 400
# Bounds of numbers are compared as doubles, with more room than their rounding needs.
_SLACK = 1e-9
_SIDES = {Comparison.GT: True, Comparison.GE: True, Comparison.LT: False, Comparison.LE: False}
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class BodyContains:
    """Whether the body has something like this in it. `foreign`: only rows with other kinds than DynamoDB's are looked at,
    others cannot have it. Patterns begin inside the attribute's name: its first letter is rarer than a quote, and what is
    rare is found fast."""

    pattern: BodyPattern
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class NumberBeyond:
    """Whether an attribute is a number on this side of about this bound. Judged by SQLite alone, which reads JSON faster than
    rows can be decoded here; PostgreSQL cannot read it out of bytes."""

    name: str
    above: bool
    bound: float


@dataclass(frozen=True, slots=True)
class AllOf:
    """Whether every part lets a row through."""

    parts: tuple[Prefilter, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Whether one part lets a row through."""

    parts: tuple[Prefilter, ...]


Prefilter = BodyContains | NumberBeyond | AllOf | AnyOf


def prefilter_of(predicate: Predicate) -> Prefilter | None:
    """The prefilter of a predicate; None: nothing can be said of the bodies of the rows of which it is true."""
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
    """The prefilter of a conjunction: parts that say nothing are left out. The part that keeps most rows back comes first."""
    telling = sorted([part for part in parts if part is not None], key=_telling, reverse=True)
    del telling[_MOST_PATTERNS:]
    return telling[0] if len(telling) == 1 else AllOf(tuple(telling)) if telling else None


def _any(parts: Sequence[Prefilter | None]) -> Prefilter | None:
    telling = tuple(part for part in parts if part is not None)
    if len(telling) < len(parts) or sum(map(_patterns, telling)) > _MOST_PATTERNS:
        return None
    return telling[0] if len(telling) == 1 else AnyOf(telling)


def _telling(prefilter: Prefilter) -> int:
    """About how much a prefilter keeps back: by the length of what it looks for."""
    match prefilter:
        case BodyContains(pattern, _):
            return sum(len(piece) for piece in pattern if isinstance(piece, str))
        case NumberBeyond():
            return 0
        case AllOf(parts):
            return max(map(_telling, parts))
        case AnyOf(parts):
            return min(map(_telling, parts), default=0)


def _patterns(prefilter: Prefilter) -> int:
    return sum(map(_patterns, prefilter.parts)) if isinstance(prefilter, AllOf | AnyOf) else 1


# What is at a path


def _present(operand: Operand) -> Prefilter | None:
    """The prefilter of an operand of which nothing is known but that it is there."""
    match operand:
        case Attribute(path) | SizeOf(path) | ExtractedValue(Attribute(path)):
            return _attribute(path)
    return None


def _attribute(path: Path) -> Prefilter:
    return BodyContains((_name(path) + '":',))


def _name(path: Path) -> str:
    """The innermost name of a path as bodies spell it, without what precedes its last characters."""
    name = next(step for step in reversed(path) if isinstance(step, str))
    return _escaped(name)[-_LONGEST_NAME:]


def _escaped(text: str) -> str:
    return orjson.dumps(text).decode()[1:-1]


def _equal(path: Path, value: Value) -> Prefilter:
    """The prefilter of rows that have a value at a path that equals another."""
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
        whole = data[: _LONGEST_TEXT // 4 * 3]
        return BodyContains((f'{head}B":"{base64.b64encode(whole[: len(whole) // 3 * 3]).decode()}',))
    if kind is Kind.DATETIME:
        return BodyContains((f'{head}DT":"{data}"',), foreign=True)
    if kind is Kind.GUID:
        return BodyContains((f'{head}G":"{data}"',), foreign=True)
    return _attribute(path)


def _number(path: Path, number: Decimal) -> Prefilter:
    """The prefilter of rows with a number at a path: whatever its kind, it begins with these digits, and a DOUBLE may have
    ".0" after them. One pattern serves all kinds, although it may find the number under a later name."""
    if not -_GREATEST_EXPONENT < number.adjusted() < _GREATEST_EXPONENT:
        return _attribute(path)
    head, digits, double = _name(path) + '":{"', decimal_text(number), float(number)
    usual = BodyContains((head, Wildcards.RUN, f':"{digits}', Wildcards.STOP))
    if math.isfinite(double) and Decimal(repr(double)) == number:
        spelled = {repr(double), repr(-double)} if not double else {repr(double)}
        unlike = [text for text in sorted(spelled) if text not in (digits, digits + ".0")]
        if unlike:
            return AnyOf((usual, *(BodyContains((f'{head}D":"{text}"',), foreign=True) for text in unlike)))
    return usual


def _beyond(path: Path, above: bool, value: Value) -> Prefilter:
    """The prefilter of rows with a number at a path that is above or below another, or equal to it."""
    present, number = _attribute(path), number_of(value)
    if number is None or len(path) > 1 or not _PLAIN_NAME.fullmatch(str(path[0])):
        return present
    bound = float(number)
    slack = abs(bound) * _SLACK
    if not math.isfinite(bound):
        return present
    return AllOf((present, NumberBeyond(str(path[0]), above, bound - slack if above else bound + slack)))


def _text(path: Path, text: str, end: str) -> Prefilter:
    """The prefilter of rows with a text at a path that begins with another and then goes on with `end`: as TEXT, or as the
    text of another kind, of which its first character leaves only a few."""
    first = text[:1]
    if first in ("", "{") or not isinstance(path[-1], str):
        return _attribute(path)
    head, spelled = _name(path) + '":{"', _escaped(text)
    if len(spelled) > _LONGEST_TEXT:
        spelled, end = spelled[:_LONGEST_TEXT], ""
    ways = [BodyContains((f'{head}S":"{spelled}{end}',))]
    if first in "-0123456789abcdef":
        ways.append(BodyContains((f'{head}G":"{spelled}{end}',), foreign=True))
    if first in "-0123456789":
        ways += [BodyContains((f'{head}N":"{spelled}{end}',)), BodyContains((f'{head}DT"',), foreign=True)]
    if first in "-0123456789NI":
        ways.append(BodyContains((f'{head}D"',), foreign=True))
    return ways[0] if len(ways) == 1 else AnyOf(tuple(ways))


def _containing(path: Path, member: Value) -> Prefilter:
    """The prefilter of rows with a member, an element or a part at a path. Inside a document texts and numbers are spelled as
    outside."""
    head, (kind, data), number = _name(path) + '":', member, number_of(member)
    if kind is Kind.TEXT:
        spelled = _escaped(data)
        if spelled != data or len(spelled) > _LONGEST_TEXT:  # a document shown as TEXT spells it otherwise
            return _attribute(path)
        shown_otherwise = (
            BodyContains((head + '{"DT"',), foreign=True),
            BodyContains((head + '{"D"',), foreign=True),
        )
        return AnyOf((BodyContains((head, Wildcards.RUN, spelled)), *shown_otherwise))
    if number is not None and -_GREATEST_EXPONENT < Decimal(number).adjusted() < _GREATEST_EXPONENT:
        return BodyContains((head, Wildcards.RUN, f'"{decimal_text(number)}"'))
    return _attribute(path)


# As SQL


def condition_of(prefilter: Prefilter, statements: Statements) -> Condition:
    """The condition that is true of the rows that a prefilter lets through, false or NULL of others."""
    if isinstance(prefilter, BodyContains):
        condition, parameters = statements.pattern_condition(prefilter.pattern)
        return f"({'r.kinds IS NOT NULL AND ' if prefilter.foreign else ''}{condition})", parameters
    if isinstance(prefilter, NumberBeyond):
        return statements.number_condition(prefilter.name, prefilter.above, prefilter.bound)
    parts = [condition_of(part, statements) for part in prefilter.parts]
    if not parts:
        return "(1 = 0)", []  # an empty Or, which nothing satisfies
    joint = " AND " if isinstance(prefilter, AllOf) else " OR "
    parameters = [parameter for _, some in parts for parameter in some]
    return f"({joint.join(sql for sql, _ in parts)})", parameters


def spelled(
    pattern: BodyPattern, wild: Mapping[Wildcards, str], special: re.Pattern[str], quoted: str
) -> Iterator[str]:
    """The parts of a pattern in the words of a database: its wildcards, and its special characters quoted."""
    for piece in pattern:
        yield (
            wild[piece]
            if isinstance(piece, Wildcards)
            else special.sub(lambda found: quoted % found[0], piece)
        )
