"""Computations of edits: arithmetic, exact where possible, and changes of maps, lists and sets along document paths.

Every edit sees the documents as they were before all edits, list indexes included. Independent of rows, numbers and
dialects.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from typing import Any

from tablegate.gateway.model.errors import BadOperand, BadPath, NumberOutOfRange
from tablegate.gateway.model.expressions.predicates import Attributes, Path, View, value_at
from tablegate.gateway.model.values import values
from tablegate.gateway.model.values.values import SETS, Kind, Value


def add(left: values.Value, right: values.Value, view: View | None, minus: bool = False) -> values.Value:
    """Return the exact sum or difference, in the first stored kind among the operands that can represent it, else a
    DECIMAL."""
    left_number, right_number = _decimal_of(left, view), _decimal_of(right, view)
    if minus:
        right_number = right_number.copy_negate()
    total = values.exact_sum(left_number, right_number)
    if not values.decimal_fits(total):
        raise NumberOutOfRange(_range_rule(total))
    for kind in (left.kind, right.kind):
        if kind is not values.Kind.DECIMAL:
            result = _in_kind(total, kind)
            if result is not None:
                return result
    return values.Value(values.Kind.DECIMAL, total)


def increment(current: values.Value | None, delta: values.Value, view: View | None) -> values.Value:
    """Return the result of `Increment`: a number of the stored kind, or of the delta's kind if there is no value.

    DOUBLEs use floating-point addition, which rounds.
    """
    if current is None:
        return delta
    visible_value = current if view is None else view(current)
    if visible_value.kind is not delta.kind:
        raise BadOperand("operand", actual=current)
    if delta.kind is values.Kind.DOUBLE:
        sum_ = visible_value.data + delta.data
        if not math.isfinite(sum_):
            raise NumberOutOfRange("overflow")
        return values.Value(values.Kind.DOUBLE, sum_)
    total = values.exact_sum(Decimal(visible_value.data), Decimal(delta.data))
    result = _in_kind(total, current.kind if current.kind in values.NUMBERS else delta.kind)
    if result is None or not values.decimal_fits(total):
        raise NumberOutOfRange("overflow")
    return result


def _decimal_of(value: values.Value, view: View | None) -> Decimal:
    visible_value = value if view is None else view(value)
    number = values.number_of(visible_value)
    if number is None:
        raise BadOperand("operand", actual=value)
    return Decimal(number)


def _range_rule(total: Decimal) -> str:
    """Return the limit that a sum exceeds which no DECIMAL can represent."""
    if total.adjusted() > values.DECIMAL_MAX_EXPONENT:
        return "overflow"
    return "underflow" if total.adjusted() < values.DECIMAL_MIN_EXPONENT else "precision"


_INTEGER_BITS = {values.Kind.INT32: 31, values.Kind.INT64: 63}


def _in_kind(number: Decimal, kind: values.Kind) -> values.Value | None:
    """Return the number as a value of the kind, None if the kind cannot represent it exactly."""
    if kind in _INTEGER_BITS:
        limit = 1 << _INTEGER_BITS[kind]
        if number != number.to_integral_value() or not -limit <= number < limit:
            return None
        return values.Value(kind, int(number))
    if kind is values.Kind.DOUBLE:
        nearest = values.double_of(number)
        return None if nearest is None else values.Value(kind, nearest)
    return values.Value(values.Kind.DECIMAL, number)


def sum_of(current: values.Value | None, value: values.Value, view: View | None) -> values.Value:
    """Return a value with another one added: the sum of numbers, the union of sets, or both lists in order.

    Raises BadOperand if the kinds do not fit.
    """
    if current is None:
        return value
    if value.kind in values.NUMBERS:
        return add(current, value, view)
    if current.kind is value.kind and value.kind in values.SETS:
        return values.Value(value.kind, current.data | value.data)
    if current.kind is value.kind is values.Kind.LIST:
        return values.Value(values.Kind.LIST, current.data + value.data)
    raise BadOperand("operand", actual=current)


@dataclass(slots=True)
class _Branch:
    """A document that is being edited. Edited children are branches themselves.

    List indexes stay those from before the edit until it is done, so that several elements can be removed at once.
    """

    kind: Kind
    members: dict[
        Any, Any
    ]  # name or index -> Value or _Branch. Removed list elements are missing, so indexes may have gaps.
    length: int = 0  # of a list, before the edit
    added: dict[int, Value] = field(default_factory=dict)  # appended elements by the index in the path

    @classmethod
    def of(cls, value: Value | None, step: str | int) -> _Branch:
        """Open a document for an edit at this step. Raises BadPath if the value is not such a document."""
        expected = Kind.MAP if isinstance(step, str) else Kind.LIST
        if value is None or value.kind is not expected:
            raise BadPath("path")
        if expected is Kind.MAP:
            return cls(expected, dict(value.data))
        return cls(expected, dict(enumerate(value.data)), len(value.data))

    def put(self, step: str | int, value: Value) -> None:
        """Set a member or an element. An index past the end of the list appends."""
        if isinstance(step, int) and step >= self.length:
            self.added[step] = value
        else:
            self.members[step] = value

    def as_value(self) -> Value:
        """Return the edited document as a value."""
        members = {
            step: member.as_value() if isinstance(member, _Branch) else member
            for step, member in self.members.items()
        }
        if self.kind is Kind.MAP:
            return Value(Kind.MAP, members)
        added = tuple(self.added[index] for index in sorted(self.added))
        return Value(Kind.LIST, tuple(members[index] for index in sorted(members)) + added)


class Documents:
    """The edits of documents in a set of attributes. Edits do not see each other's results."""

    def __init__(self, before: Attributes) -> None:
        self._before = before
        self._changed: dict[str, Value | _Branch | None] = {}

    def old_at(self, path: Path) -> Value | None:
        """Return the stored value at a path before the edit."""
        return value_at(self._before, path)

    def put(self, path: Path, value: Value) -> None:
        """Set the value at a path. List indexes past the end append, in the order of the indexes. Raises BadPath."""
        if len(path) == 1:
            self._changed[str(path[0])] = value
        else:
            self._branch(path).put(path[-1], value)

    def remove(self, path: Path) -> None:
        """Remove the value at a path, if there is one. Raises BadPath."""
        if len(path) == 1:
            self._changed[str(path[0])] = None
        else:
            self._branch(path).members.pop(path[-1], None)

    def subtract(self, path: Path, value: Value) -> None:
        """Remove members from the set at a path. An empty set is removed. Raises BadPath, BadOperand."""
        current = self.old_at(path)
        if current is None:
            if len(path) > 1:
                self._branch(path)
            return
        if current.kind is not value.kind or value.kind not in SETS:
            raise BadOperand("operand", actual=current)
        members = current.data - value.data
        if members:
            self.put(path, Value(value.kind, members))
        else:
            self.remove(path)

    def results(self) -> list[tuple[str, Value | None]]:
        """Return the edited attributes with their new values, None for removed ones."""
        return [
            (name, result.as_value() if isinstance(result, _Branch) else result)
            for name, result in self._changed.items()
        ]

    def _branch(self, path: Path) -> _Branch:
        """Return the branch that contains the last step of a path. Raises BadPath if it does not exist."""
        name = str(path[0])
        branch = self._changed.get(name)
        if not isinstance(branch, _Branch):
            branch = _Branch.of(self._before.get(name), path[1])
            self._changed[name] = branch
        for step, next_step in pairwise(path[1:]):
            self._require(branch, step)
            child = branch.members.get(step)
            if not isinstance(child, _Branch):
                child = _Branch.of(child, next_step)
                branch.members[step] = child
            branch = child
        self._require(branch, path[-1])
        return branch

    @staticmethod
    def _require(branch: _Branch, step: str | int) -> None:
        if isinstance(step, str) is not (branch.kind is Kind.MAP):
            raise BadPath("path")
