"""The operators of numbers and the decisions of comparisons, by the keys of sqlglot's trees."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from tablegate.adapters.tablestore.sql.functions import FUNCTIONS
from tablegate.adapters.tablestore.sql.sql_values import checked, to_integer


def _whole_quotient(left: Any, right: Any) -> int | None:
    if right == 0:
        return None
    if isinstance(left, int) and isinstance(right, int):
        quotient = abs(left) // abs(right)
        return quotient if (left >= 0) == (right > 0) else -quotient
    return int(checked(left / right))


def _bitwise(apply: Callable[..., int]) -> Callable[..., int]:
    """Return a function of numbers that applies one of BIGINTs to the nearest integers."""

    def function(*numbers: int | float) -> int:
        for number in numbers:
            checked(math.trunc(number))
        return apply(*map(to_integer, numbers))

    return function


COMPARISONS: dict[str, Callable[[int], bool]] = {
    "eq": lambda order: order == 0,
    "neq": lambda order: order != 0,
    "lt": lambda order: order < 0,
    "lte": lambda order: order <= 0,
    "gt": lambda order: order > 0,
    "gte": lambda order: order >= 0,
}
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": lambda left, right: None if right == 0 else left / right,
    "intdiv": _whole_quotient,
    "mod": FUNCTIONS["MOD"].call,
    "bitwiseand": _bitwise(operator.and_),
    "bitwiseor": _bitwise(operator.or_),
    "bitwisexor": _bitwise(operator.xor),
}
UNARY: dict[str, Callable[[Any], Any]] = {"neg": operator.neg, "bitwisenot": _bitwise(operator.invert)}
WHOLE_RESULTS = frozenset({"intdiv", "bitwisenot", "bitwiseand", "bitwiseor", "bitwisexor"})
"""Operators of which the result is an integer, whatever the operands are."""
