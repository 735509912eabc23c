"""The values of constants and parameters of one statement.

They replace an expression's placeholders, so conditions.py and updates.py also convert statements. Errors have no
frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from tablegate.adapters.dynamodb.expressions.conditions import ConditionReader
from tablegate.adapters.dynamodb.expressions.nodes import ConditionNode, ValueNode
from tablegate.adapters.dynamodb.expressions.placeholders import Placeholders
from tablegate.adapters.dynamodb.values.values import measure, value_of
from tablegate.adapters.dynamodb.wire.errors import ANY_OPERATION, ServiceError, Wording, validation
from tablegate.adapters.dynamodb.wire.messages import expression_text
from tablegate.gateway.model.expressions.predicates import ALWAYS, Predicate
from tablegate.gateway.model.values.values import Value

# Arguments


class Arguments(Placeholders):
    """The arguments of a statement, by the names from parsing.py. Raises ServiceError if there are too few."""

    __slots__ = ("_given", "_made")

    def __init__(
        self, names: Sequence[str], parameters: Sequence[Any], wording: Wording = ANY_OPERATION
    ) -> None:
        super().__init__(wording=wording)
        if len(parameters) < len(names):
            raise validation("Number of parameters in request and statement don't match.")
        self._given = dict(zip(names, parameters, strict=False))
        self._made: dict[str, Value] = {}

    def wire(self, node: ValueNode) -> Any:
        parameter = self._given.get(node.name)
        return orjson.loads(node.name) if parameter is None else parameter

    def value(self, placeholder: str) -> Value:
        value = self._made.get(placeholder)
        if value is None:
            value = self._made[placeholder] = value_of(self.wire(ValueNode(placeholder)))
        return value

    def name(self, placeholder: str) -> str:
        """Return the name unchanged, even if it begins with #."""
        return placeholder

    def error(self, rule: str, expression: str = "", **facts: object) -> ServiceError:
        return validation(expression_text(rule, **facts))

    def predicate(self, condition: ConditionNode | None) -> Predicate:
        """Return the predicate of a condition with these arguments. Raises ServiceError."""
        return ALWAYS if condition is None else ConditionReader("", self).condition(condition)


def check_parameters(parameters: Sequence[Any]) -> None:
    """Raise ServiceError for a parameter that is no value. Call it before the statement is parsed."""
    for parameter in parameters:
        measure(parameter, 0)
