"""Builder of literals, conditions, operands and paths, called by the lark parser."""

from __future__ import annotations

from typing import Any

from lark import Token, Transformer, v_args

from tablegate.adapters.dynamodb.expressions.nodes import (
    AndNode,
    ArithmeticNode,
    BetweenNode,
    CallNode,
    CompareNode,
    ConditionNode,
    InNode,
    NotNode,
    OrNode,
    PathNode,
)
from tablegate.adapters.dynamodb.partiql import operands
from tablegate.adapters.dynamodb.partiql.literals import Literal, constant, name_of_parameter, number_text
from tablegate.adapters.dynamodb.partiql.reserved_words import RESERVED_WORDS
from tablegate.adapters.dynamodb.partiql.syntax_errors import INVALID_COMPONENT, not_well_formed, place_of
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.errors import validation
from tablegate.adapters.dynamodb.wire.messages import expression_text

# Expressions


@v_args(inline=True)
class ExpressionBuilder(Transformer[Token, Any]):
    """A transformer that builds literals, conditions, their operands and paths."""

    # Literals and the names of their members

    def text(self, token: Token) -> Literal:
        return Literal("S", _unquote(token), place_of(token))

    def number(self, token: Token) -> Literal:
        return Literal("N", number_text(str(token)), place_of(token))

    def minus(self, _sign: Token, number: Literal) -> Literal:
        data = number.data
        return number._replace(data=data[1:] if data.startswith("-") else "-" + data)

    def plus(self, _sign: Token, number: Literal) -> Literal:
        return number

    def boolean(self, token: Token) -> Literal:
        return Literal("BOOL", token.type == "TRUE", place_of(token))

    def null(self, token: Token) -> Literal:
        return Literal("NULL", True, place_of(token))

    def missing(self, token: Token) -> Literal:
        raise validation("MISSING must be compared using IS operator")

    def parameter(self, token: Token) -> Literal:
        return Literal("?", name_of_parameter(token.start_pos or 0), place_of(token))

    def list(self, *members: Literal | operands.FunctionCall | None) -> Literal:
        return Literal("L", _literals(members), "")

    def bag(self, *members: Any) -> Literal:
        return Literal("BAG", _literals(members[1:-1]), "")

    def map(self, *pairs: Any) -> Literal:
        return Literal("M", _present(pairs), "")

    def pair(self, name: Token, value: Literal | operands.FunctionCall) -> tuple[str, Literal]:
        return _unquote(name), _literal(value)

    def member(self, token: Token) -> str:
        if token == "''":
            raise validation("Path component cannot be an empty string")
        return _unquote(token)

    # Conditions

    def either(self, left: Any, right: Any) -> ConditionNode:
        return operands.in_one_chain(OrNode, left, right)

    def both(self, left: Any, right: Any) -> ConditionNode:
        return operands.in_one_chain(AndNode, left, right)

    def negated(self, node: Any) -> ConditionNode:
        return operands.negated(operands.condition(node, "The argument to NOT must be a Type or Expression"))

    def compared(self, left: Any, operator: Token, right: Any) -> ConditionNode:
        name = "<>" if operator == "!=" else str(operator)
        for condition, other in ((left, right), (right, left)):
            if operands.is_condition(condition):
                return operands.compared_condition(operands.condition(condition), name, other)
        return CompareNode(name, operands.operand(left), operands.operand(right))

    def between(self, operand: Any, lower: Any, upper: Any) -> ConditionNode:
        return BetweenNode(operands.operand(operand), operands.operand(lower), operands.operand(upper))

    def not_between(self, operand: Any, lower: Any, upper: Any) -> ConditionNode:
        return NotNode(self.between(operand, lower, upper))

    def within(self, operand: Any, members: Any) -> ConditionNode:
        inner = members.data if isinstance(members, Literal) else members
        if not inner or not isinstance(operand, operands.DocumentPath):
            raise validation(operands.BAD_IN)
        return InNode(operand.node, tuple([operands.operand(member) for member in inner]))

    def not_within(self, operand: Any, members: Any) -> ConditionNode:
        return NotNode(self.within(operand, members))

    def is_type(self, operand: Any, name: str) -> ConditionNode:
        if name == "MISSING":
            return CallNode("attribute_not_exists", (operands.operand(operand),))
        return CallNode("attribute_type", (operands.operand(operand), constant(Literal("S", name, ""))))

    def is_not_type(self, operand: Any, name: str) -> ConditionNode:
        return operands.negated(self.is_type(operand, name))

    def type(self, name: Token) -> str:
        return operands.type_named(str(name))

    # Operands

    def arithmetic(self, left: Any, operator: Token, right: Any) -> ArithmeticNode:
        return ArithmeticNode(str(operator), operands.update_operand(left), operands.update_operand(right))

    def function(self, name: Token, arguments: tuple[Any, ...] | None) -> operands.FunctionCall:
        """Build a function call. Its use checks whether it is allowed there."""
        function, place = name.lower(), place_of(name)
        operand_list = arguments or ()
        if function not in operands.FUNCTIONS or function in operands.SET_FUNCTIONS:
            return operands.FunctionCall(CallNode(function, ()), operand_list, place)
        read = operands.update_operand if function in operands.UPDATE_FUNCTIONS else operands.operand
        return operands.FunctionCall(
            CallNode(function, tuple([read(argument) for argument in operand_list])), operand_list, place
        )

    def arguments(self, *arguments: Any) -> tuple[Any, ...]:
        return arguments

    def path(self, *steps: Any) -> operands.DocumentPath:
        for step in steps[1:]:
            if isinstance(step, Token) and step.type == "NAME" and step.lower() in RESERVED_WORDS:
                raise not_well_formed(INVALID_COMPONENT)
        return operands.DocumentPath(
            PathNode(tuple([str(s) if isinstance(s, str) else s for s in steps])), place_of(steps[0])
        )

    def name(self, token: Token) -> Token:
        if token == '""':
            raise validation("Path component cannot be an empty string")
        if token.type == "QUOTED":
            return token.update(value=token[1:-1].replace('""', '"'))
        return token

    def index(self, *tokens: Token) -> int:
        digits = tokens[-1]
        value = int(digits) if digits.isdigit() and len(digits) < 20 else -1
        if tokens[0].type == "MINUS":
            value = -value
        if not 0 <= value <= limits.EXPRESSION_LIST_INDEX:
            index_text = "".join(tokens)
            text = expression_text("index", index=index_text)
            raise validation(f"{text} at {place_of(digits)}")
        return value


def _present(members: tuple[Any, ...]) -> tuple[Any, ...]:
    return () if members == (None,) else members


def _literals(members: tuple[Any, ...]) -> tuple[Literal, ...]:
    return tuple([_literal(member) for member in _present(members)])


def _literal(value: Literal | operands.FunctionCall) -> Literal:
    """Convert a function to a literal CALL. The error for it contains the place inside the value."""
    return value if isinstance(value, Literal) else Literal("CALL", value.node.function, value.place)


def _unquote(token: Token) -> str:
    return token[1:-1].replace("''", "'")
