"""Evaluation of predicates on rows."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import assert_never

from tablegate.gateway.model.expressions.predicates import (
    Always,
    And,
    AnyVersion,
    Attribute,
    Compare,
    Comparison,
    Computed,
    Contains,
    Exists,
    ExtractedValue,
    HasKind,
    Literal,
    Not,
    Operand,
    Or,
    Predicate,
    RevisionIs,
    RowExists,
    SizeOf,
    StartsWith,
    View,
)
from tablegate.gateway.model.expressions.row_values import RowValues
from tablegate.gateway.model.values.rows import LONG_KINDS, Row
from tablegate.gateway.model.values.values import Kind, Value, compare, equal

_new = tuple.__new__  # creates a named tuple in half the time of its own constructor


def matches(predicate: Predicate, row: Row | None, view: View | None = None) -> bool:
    """Evaluate a predicate on a row, or on None if there is no row. `view`: None for the values as they are stored."""
    return _matches(predicate, _new(RowValues, (row, view, {})))


def failing_part(predicate: Predicate, row: Row | None, view: View | None = None) -> Predicate | None:
    """Return the first top-level conjunct that is false, or None if the predicate is true."""
    values = _new(RowValues, (row, view, {}))
    for part in predicate.parts if isinstance(predicate, And) else (predicate,):
        if not _matches(part, values):
            return part
    return None


def _matches(predicate: Predicate, values: RowValues) -> bool:
    match predicate:
        case Compare(left, comparison, right):
            # The most frequent form.
            if type(left) is Attribute and type(right) is Literal:
                left_value = values.at(left.path)
                if left_value is None:
                    return comparison is Comparison.NE
                if left_value.kind not in LONG_KINDS:
                    return _COMPARATORS[comparison](left_value, right.value)
                return _compare(left_value, comparison, right.value, values)
            return _compares(_values_of(left, values), comparison, _values_of(right, values), values)
        case And(parts):
            for part in parts:
                if not _matches(part, values):
                    return False
            return True
        case Or(parts):
            for part in parts:
                if _matches(part, values):
                    return True
            return False
        case Not(part):
            return not _matches(part, values)
        case Exists(path):
            return values.at(path) is not None
        case StartsWith(operand, prefix):
            return _any_pair(_starts_with, _values_of(operand, values), _values_of(prefix, values))
        case Contains(Attribute(path), Literal(member_value)):
            value = values.at(path)
            return value is not None and values.contains(value, member_value)
        case Contains(container, member):
            return _any_pair(values.contains, _values_of(container, values), _values_of(member, values))
        case HasKind(operand, kinds):
            return any(value.kind in kinds for value in _values_of(operand, values))
        case Always():
            return True
        case RowExists():
            return values.row is not None
        case RevisionIs(modified_at):
            return values.row is not None and values.row.modified_at == modified_at
    assert_never(predicate)


def extract(value: Value, operand: ExtractedValue) -> Value | None:
    """Evaluate ExtractedValue on a value."""
    kind = operand.kind
    match = operand.pattern.find(value.data, operand.reach_bytes) if value.kind is Kind.TEXT else None
    if match is None:
        return None
    if kind is Kind.TEXT:
        return Value(kind, match)
    if kind is Kind.BYTES:
        return Value(kind, match.encode())
    try:
        if kind is Kind.INT64:
            number = int(match) if len(match) <= _INTEGER_TEXT_MAX else _INT64_END
            return Value(kind, number) if -_INT64_END <= number < _INT64_END else None
        return Value(kind, float(match))
    except ValueError:
        return None


_INT64_END = 2**63
_INTEGER_TEXT_MAX = 64  # characters. Leading zeros are legal, but thousands of digits would waste time.


def _values_of(operand: Operand, values: RowValues) -> tuple[Value, ...]:
    """Return the values of an operand: none, one, or several (AnyVersion)."""
    match operand:
        case Literal(value):
            return (value,)
        case Attribute(path):
            stored_value = values.at(path)
            return () if stored_value is None else (stored_value,)
        case SizeOf(path):
            size = values.size_at(path)
            return () if size is None else (Value(Kind.DECIMAL, Decimal(size)),)
        case AnyVersion(name):
            return () if values.row is None else _versions_of(values.row, name, values)
        case ExtractedValue(inner):
            results = (extract(value, operand) for value in _values_of(inner, values))
            return tuple(value for value in results if value is not None)
        case Computed(of):
            result = None if values.row is None else of(values.row)
            return () if result is None else (result,)
    assert_never(operand)


def _versions_of(row: Row, name: str, values: RowValues) -> tuple[Value, ...]:
    cells = row.cells.get(name)
    if cells is None:  # missing, or a key column, which has no versions
        value = values.at((name,))
        return () if value is None else (value,)
    view = values.view
    return tuple(cell.value if view is None else view(cell.value) for cell in cells)


def _compares(
    lefts: tuple[Value, ...], comparison: Comparison, rights: tuple[Value, ...], values: RowValues
) -> bool:
    if not lefts or not rights:
        return comparison is Comparison.NE
    return any(_compare(left, comparison, right, values) for left in lefts for right in rights)


def _compare(left: Value, comparison: Comparison, right: Value, values: RowValues) -> bool:
    if comparison is Comparison.EQ:
        return values.equals(left, right)
    if comparison is Comparison.NE:
        return not values.equals(left, right)
    return _COMPARATORS[comparison](left, right)


_COMPARATORS: dict[Comparison, Callable[[Value, Value], bool]] = {
    Comparison.EQ: equal,
    Comparison.NE: lambda left, right: not equal(left, right),
    Comparison.LT: lambda left, right: compare(left, right) == -1,
    Comparison.LE: lambda left, right: compare(left, right) in (-1, 0),
    Comparison.GT: lambda left, right: compare(left, right) == 1,
    Comparison.GE: lambda left, right: compare(left, right) in (0, 1),
}


def _any_pair(
    test: Callable[[Value, Value], bool], lefts: tuple[Value, ...], rights: tuple[Value, ...]
) -> bool:
    return any(test(left, right) for left in lefts for right in rights)


def _starts_with(value: Value, prefix: Value) -> bool:
    kind = value.kind
    return (
        kind is prefix.kind
        and (kind is Kind.TEXT or kind is Kind.BYTES)
        and value.data.startswith(prefix.data)
    )
