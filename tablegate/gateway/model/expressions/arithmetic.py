"""Arithmetic of edits: exact where possible, in the stored kind of number."""

from __future__ import annotations

import math
from decimal import Decimal

from tablegate.gateway.model.errors import BadOperand, NumberOutOfRange
from tablegate.gateway.model.expressions.predicates import View
from tablegate.gateway.model.values import values


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
