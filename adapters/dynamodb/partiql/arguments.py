"""What the constants and parameters of one statement stand for.

They take the place of an expression's placeholders, so that conditions.py and updates.py read statements too;
what is wrong is told without a frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from tablegate.adapters.dynamodb.expressions.conditions import ConditionReader
from tablegate.adapters.dynamodb.expressions.nodes import ConditionNode, ValueNode
from tablegate.adapters.dynamodb.expressions.placeholders import Placeholders
from tablegate.adapters.dynamodb.values.values import measure, value_of
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.adapters.dynamodb.wire.expression_messages import text_of
from tablegate.adapters.dynamodb.wire.wording import ANY_OPERATION, Wording
from tablegate.gateway.model.expressions.predicates import ALWAYS, Predicate
from tablegate.gateway.model.values.values import Value


class Arguments(Placeholders):
    """The arguments of a statement, by the names that parsing.py gave them. Raises ServiceError if there are too few."""

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
        """The wire value that a node stands for."""
        given = self._given.get(node.name)
        return orjson.loads(node.name) if given is None else given

    def value(self, placeholder: str) -> Value:
        """The value that a node of this name stands for."""
        made = self._made.get(placeholder)
        if made is None:
            made = self._made[placeholder] = value_of(self.wire(ValueNode(placeholder)))
        return made

    def name(self, placeholder: str) -> str:
        """Names stand for themselves, also if they begin with #."""
        return placeholder

    def error(self, rule: str, expression: str = "", **facts: object) -> ServiceError:
        """The error of a rule."""
        return validation(text_of(rule, **facts))

    def predicate(self, condition: ConditionNode | None) -> Predicate:
        """What a condition means with these arguments. Raises ServiceError."""
        return ALWAYS if condition is None else ConditionReader("", self).condition(condition)


def check_parameters(parameters: Sequence[Any]) -> None:
    """Raise ServiceError for a parameter that is no value; which is told before the statement is read."""
    for parameter in parameters:
        measure(parameter, 0)
