"""Values in statements: literals, and the arguments that replace constants and parameters.

A constant is a ValueNode named by its wire JSON. Errors of literals contain the place inside the value, as the
service's do. Arguments replace an expression's placeholders, so conditions.py and updates.py also convert statements.
Errors of arguments have no frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from tablegate.adapters.dynamodb.expressions.conditions import ConditionReader
from tablegate.adapters.dynamodb.expressions.static_checks import Placeholders
from tablegate.adapters.dynamodb.expressions.syntax import ConditionNode, ValueNode
from tablegate.adapters.dynamodb.features.partiql.statement_syntax import not_well_formed
from tablegate.adapters.dynamodb.values.scalars import InvalidValue, canonical_number
from tablegate.adapters.dynamodb.values.values import measure, value_of
from tablegate.adapters.dynamodb.wire import limits, messages
from tablegate.adapters.dynamodb.wire.errors import ANY_OPERATION, ServiceError, Wording, validation
from tablegate.adapters.dynamodb.wire.messages import expression_text
from tablegate.gateway.model.expressions.predicates import ALWAYS, Predicate
from tablegate.gateway.model.values.values import Value

# Literals


TOO_DEEP = "Nesting Levels have exceeded supported limits"


class Literal(NamedTuple):
    """A literal as written.

    `tag`: a wire tag, BAG, `?` for a parameter, or CALL for a function, which is invalid. `place`:
    line:column:length.
    """

    tag: str
    data: Any
    place: str


def name_of_parameter(start: int) -> str:
    """Return the name of a parameter, by the offset of its `?`. JSON never begins with `?`."""
    return f"?{start}"


_INTEGER_MAX = 2**31 - 1


def number_text(text: str) -> str:
    """Return a number's digits.

    Raises ServiceError if exponent or scale overflow 32 bits, as the service's parser does.
    """
    mantissa, _, power = text.lower().partition("e")
    exponent = int(power) if len(power) < 12 and power else 0
    scale = len(mantissa.partition(".")[2]) - exponent
    if len(power) >= 12 or abs(exponent) > _INTEGER_MAX or abs(scale) > _INTEGER_MAX:
        raise not_well_formed("")
    return text if not text.startswith(".") else "0" + text


def constant(literal: Literal) -> ValueNode:
    """Return the node of a literal or parameter."""
    if literal.tag == "?":
        return ValueNode(literal.data)
    return ValueNode(orjson.dumps(_wire(literal, "root", 0)).decode())


def _wire(literal: Literal, where: str, level: int) -> dict[str, Any]:
    tag, data, place = literal
    if level >= limits.NESTING_LEVELS:
        raise validation(f"{TOO_DEEP} under {where}")
    match tag:
        case "?":
            raise validation(f"Unsupported data type: Parameter under key {where} at {place}")
        case "CALL":
            raise validation(f"Unsupported data type: {data} under key {where} at {place}")
        case "N":
            return {"N": _number(data, where)}
        case "L":
            return {"L": [_wire(member, f"{where}[{n}]", level + 1) for n, member in enumerate(data)]}
        case "M":
            names = [name for name, _ in data]
            for name in names:
                if names.count(name) > 1:
                    raise validation(f"Duplicate keys in tuple. Key: {name} under {where}")
            return {"M": {name: _wire(member, f"{where}.{name}", level + 1) for name, member in data}}
        case "BAG":
            return _bag(data, where)
    return {tag: data}


def _number(text: str, where: str) -> str:
    try:
        return canonical_number(text)
    except InvalidValue as refusal:
        raise validation(f"{refusal.message} under {where}") from None


def _bag(members: tuple[Literal, ...], where: str) -> dict[str, Any]:
    if not members:
        raise validation("Empty bags are not supported")
    tags = {member.tag for member in members}
    if not tags <= {"S", "N"}:
        raise validation(
            "Unsupported data type in Bag. DynamoDB only supports either numbers or strings in bags"
        )
    if len(tags) > 1:
        kind = "Number" if members[0].tag == "N" else "String"
        other = "String" if kind == "Number" else "Number"
        raise validation(f"Unexpected data type {other} in {kind} Set under key {where}")
    texts = [member.data for member in members]
    if tags == {"S"}:
        if len(set(texts)) < len(texts):
            raise InvalidValue("duplicate-strings", members=texts)
        return {"SS": texts}
    numbers = [_number(text, where) for text in texts]
    if len(set(numbers)) < len(numbers):
        listing = ", ".join(texts)
        raise validation(f"{messages.INVALID}Input collection [{listing}] contains duplicates! under {where}")
    return {"NS": numbers}


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
