"""Key ranges: half-open intervals of positions, and their derivation from conditions on key columns.

Depends on encoded bytes only, not on SQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tablegate.gateway.model.expressions.predicates import (
    ALWAYS,
    Always,
    And,
    Attribute,
    Compare,
    Comparison,
    Literal,
    Predicate,
    StartsWith,
)
from tablegate.gateway.model.values import keys
from tablegate.gateway.model.values.values import Kind, Value


class KeyRange(NamedTuple):
    """Positions with lower <= position < upper. The direction of reading is separate."""

    lower: keys.Position
    upper: keys.Position

    @property
    def is_empty(self) -> bool:
        """True if no position is in the range."""
        return self.lower >= self.upper

    def after(self, position: keys.Position) -> KeyRange:
        """Return the part of the range above a position."""
        return KeyRange(max(self.lower, position.after), self.upper)

    def before(self, position: keys.Position) -> KeyRange:
        """Return the part of the range below a position."""
        return KeyRange(self.lower, min(self.upper, position))


EVERYTHING = KeyRange(keys.Position(keys.LOWEST, keys.LOWEST), keys.Position(keys.HIGHEST, keys.LOWEST))


def within(partition: bytes, lower: bytes = keys.LOWEST, upper: bytes = keys.HIGHEST) -> KeyRange:
    """Return the range of one partition with lower <= sort bytes < upper."""
    return KeyRange(keys.Position(partition, lower), keys.Position(partition, upper))


def prefix(head: bytes) -> tuple[bytes, bytes]:
    """Return the bounds of all bytes that begin with `head`.

    The upper bound is `head` up to its last byte below 0xFF, incremented by one. Every encoded column begins with a tag
    below 0xFF, so there is such a byte.
    """
    stem = head.rstrip(b"\xff")
    return head, stem[:-1] + bytes((stem[-1] + 1,)) if stem else keys.HIGHEST


class ColumnBounds(NamedTuple):
    """The bounds of one key column: lower <= encoded bytes < upper, including any bytes that follow the column."""

    lower: bytes = keys.LOWEST
    upper: bytes = keys.HIGHEST

    def intersect(self, other: ColumnBounds) -> ColumnBounds:
        """Return the intersection of both bounds."""
        return ColumnBounds(max(self.lower, other.lower), min(self.upper, other.upper))


def bounds_of(comparison: Comparison, value: Value) -> ColumnBounds | None:
    """Return the bounds for a comparison with a key value. None if it has none (NE).

    An encoded column is self-delimiting, and no column begins with 0xFF. So the value followed by 0xFF is above all of
    its continuations.
    """
    exact = keys.encode_column(value)
    match comparison:
        case Comparison.EQ:
            return ColumnBounds(exact, exact + keys.HIGHEST)
        case Comparison.LT:
            return ColumnBounds(upper=exact)
        case Comparison.LE:
            return ColumnBounds(upper=exact + keys.HIGHEST)
        case Comparison.GT:
            return ColumnBounds(lower=exact + keys.HIGHEST)
        case Comparison.GE:
            return ColumnBounds(lower=exact)
    return None


def bounds_of_prefix(value: Value) -> ColumnBounds:
    """Return the bounds of the TEXT or BYTES keys that begin with a value."""
    return ColumnBounds(*prefix(keys.encode_prefix(value)))


def range_of(
    schema: keys.KeySchema, equal: Sequence[Value], next_bounds: ColumnBounds | None = None
) -> KeyRange:
    """Return the range of keys with these values in the first columns and the next column within the bounds."""
    head = schema.position(equal)
    lower, upper = next_bounds or ColumnBounds()
    if len(equal) < len(schema.partition):
        return KeyRange(
            keys.Position(head.partition + lower, keys.LOWEST),
            keys.Position(head.partition + upper, keys.LOWEST),
        )
    return within(head.partition, head.sort + lower, head.sort + upper)


def narrow(predicate: Predicate, schema: keys.KeySchema) -> tuple[KeyRange, Predicate]:
    """Return the range of keys that can match a predicate, and the rest of the predicate for the rows in it.

    It uses the conjuncts that compare a TEXT key column with a literal: equalities from the first column on, and the
    bounds of the first column without one. Every dialect sees TEXT as it is stored, so these need no further
    evaluation.
    """
    equal: list[Value] = []
    used_conjuncts: list[Predicate] = []
    conjuncts = list(_conjuncts(predicate))
    next_bounds = None
    for column in schema.columns:
        bounds, exact, column_conjuncts = _bounds_on(column, conjuncts)
        if bounds is None:
            break
        used_conjuncts += column_conjuncts
        if exact is None:
            next_bounds = bounds
            break
        equal.append(exact)
    other_conjuncts = tuple(part for part in conjuncts if not any(part is used for used in used_conjuncts))
    residual = (
        ALWAYS
        if not other_conjuncts
        else other_conjuncts[0]
        if len(other_conjuncts) == 1
        else And(other_conjuncts)
    )
    key_range = range_of(schema, equal, next_bounds)
    return KeyRange(key_range.lower, key_range.lower) if key_range.is_empty else key_range, residual


def _conjuncts(predicate: Predicate) -> list[Predicate]:
    """Return the conjuncts of a predicate, with nested Ands flattened."""
    if isinstance(predicate, And):
        return [conjunct for part in predicate.parts for conjunct in _conjuncts(part)]
    return [] if isinstance(predicate, Always) else [predicate]


def _bounds_on(
    column: keys.KeyColumn, conjuncts: list[Predicate]
) -> tuple[ColumnBounds | None, Value | None, list[Predicate]]:
    """Return the bounds of a column, its value if it is fixed, and the conjuncts that were used.

    One equality is enough for the range. Any other conjunct then stays in the rest.
    """
    if column.kind is not Kind.TEXT:
        return None, None, []
    bounds: ColumnBounds | None = None
    used_conjuncts: list[Predicate] = []
    for conjunct in conjuncts:
        comparison, value = _key_comparison(conjunct, column.name)
        if value is None:
            continue
        if comparison is Comparison.EQ:
            return bounds_of(Comparison.EQ, value), value, [conjunct]
        bounds_of_conjunct = bounds_of_prefix(value) if comparison is None else bounds_of(comparison, value)
        if bounds_of_conjunct is not None:
            bounds = bounds_of_conjunct if bounds is None else bounds.intersect(bounds_of_conjunct)
            used_conjuncts.append(conjunct)
    return bounds, None, used_conjuncts


_FLIPPED = {
    Comparison.EQ: Comparison.EQ,
    Comparison.NE: Comparison.NE,
    Comparison.LT: Comparison.GT,
    Comparison.LE: Comparison.GE,
    Comparison.GT: Comparison.LT,
    Comparison.GE: Comparison.LE,
}


def _key_comparison(conjunct: Predicate, name: str) -> tuple[Comparison | None, Value | None]:
    """Return a conjunct as a comparison of the column with a TEXT value, the column on the left.

    A comparison of None is a prefix test. A value of None means that the conjunct is something else.
    """
    match conjunct:
        case Compare(Attribute((attribute,)), comparison, Literal(value)) if attribute == name:
            pass
        case Compare(Literal(value), comparison, Attribute((attribute,))) if attribute == name:
            comparison = _FLIPPED[comparison]
        case StartsWith(Attribute((attribute,)), Literal(value)) if attribute == name:
            return None, value if _is_spellable(value) else None
        case _:
            return None, None
    return comparison, value if _is_spellable(value) else None


def _is_spellable(value: Value) -> bool:
    """Return True if a value can be part of a TEXT key. A lone surrogate cannot be encoded."""
    if value.kind is not Kind.TEXT:
        return False
    try:
        value.data.encode()
    except UnicodeEncodeError:
        return False
    return True
