"""Evaluation of predicates on rows, and the values of one row as a predicate reads them.

A predicate of 4 KB can name one list of 60,000 elements a hundred times. So the results that take time proportional to
the size of a value are kept while the predicate is evaluated on the row. Evaluation then takes a number of steps
proportional to the size of the row plus the size of the predicate, and not to their product.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from decimal import Decimal
from typing import Any, NamedTuple, assert_never

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
    Path,
    Predicate,
    RevisionIs,
    RowExists,
    SizeOf,
    StartsWith,
    View,
    size_of,
    walk,
)
from tablegate.gateway.model.values.rows import LONG_KINDS, Row
from tablegate.gateway.model.values.values import (
    NUMBERS,
    Kind,
    Value,
    compare,
    contains,
    decimal_text,
    equal,
    number_of,
)


class RowValues(NamedTuple):
    """The values of a row under a dialect's view, with the results that took long to compute. `row` is None if there is no row.

    Each result is kept together with its values, because another value could get the id of one that is gone.
    """

    row: Row | None
    view: View | None
    kept: dict[Hashable, Any]

    def at(self, path: Path) -> Value | None:
        """Return the value at a path as the dialect sees it. Values inside documents have kinds that all dialects
        have."""
        row, view, _ = self
        if row is None:
            return None
        value = row.contents.value(path[0])  # type: ignore[arg-type]
        if value is not None and view is not None:
            value = self._viewed(value, path[0]) if value.kind in LONG_KINDS else view(value)
        return value if len(path) == 1 else walk(value, path)

    def _viewed(self, value: Value, name: str | int) -> Value:
        assert self.view is not None
        if name not in self.kept:
            self.kept[name] = self.view(value)
        viewed: Value = self.kept[name]
        return viewed

    def size_at(self, path: Path) -> int | None:
        """Return the size of the value at a path, or None if it has none."""
        key = ("size", path)
        if key not in self.kept:
            value = self.at(path)
            self.kept[key] = None if value is None else size_of(value)
        size: int | None = self.kept[key]
        return size

    def equals(self, left: Value, right: Value) -> bool:
        """Return True if two values are equal. Long ones are compared once, however often a predicate does so."""
        if left.kind not in LONG_KINDS or right.kind not in LONG_KINDS:
            return equal(left, right)
        key = ("equal", id(left), id(right))
        if key not in self.kept:
            self.kept[key] = (equal(left, right), left, right)
        return bool(self.kept[key][0])

    def contains(self, container: Value, member: Value) -> bool:
        """Return True if a container contains a value. The elements of a list are hashed at the second search in it."""
        if container.kind is not Kind.LIST:
            return contains(container, member)
        key: Hashable = ("elements", id(container))
        if key not in self.kept:
            self.kept[key] = (None, container)
            return contains(container, member)
        elements, _ = self.kept[key]
        if elements is None:
            elements = frozenset(map(_key_of, container.data))
            self.kept[key] = (elements, container)
        if member.kind not in LONG_KINDS:
            return _key_of(member) in elements
        key = ("member", id(container), id(member))
        if key not in self.kept:
            self.kept[key] = (_key_of(member) in elements, member)
        return bool(self.kept[key][0])


def _key_of(value: Value) -> Hashable:
    """Return a key that two values share if and only if they are equal (`values.equal`).

    Numbers become texts. Texts are hashed with a secret, while a client can choose many numbers of the same hash.
    """
    kind, data = value
    if kind is Kind.TEXT:
        return value
    if kind in NUMBERS:
        number = number_of(value)
        if number is None:  # NaN equals nothing, not even itself
            return data if data == data else object()
        return decimal_text(number)
    if kind is Kind.LIST:
        return kind, tuple(map(_inner_key_of, data))
    if kind is Kind.MAP:
        return kind, frozenset((name, _inner_key_of(member)) for name, member in data.items())
    return value


def _inner_key_of(value: Value) -> Hashable:
    """Return the key of a value in a document, where numbers of two kinds are not equal."""
    return value.kind, _key_of(value)


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
