"""Roles of a statement's parts: conditions, operands of conditions, and new values of attributes.

The grammar does not distinguish them, because parentheses may enclose any of them. conditions.py checks the kinds
of operands.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tablegate.adapters.dynamodb.expressions.syntax import (
    AndNode,
    ArithmeticNode,
    BetweenNode,
    CallNode,
    ChangeNode,
    CompareNode,
    ConditionNode,
    InNode,
    NotNode,
    OrNode,
    PathNode,
)
from tablegate.adapters.dynamodb.features.partiql.statement_syntax import Literal, constant, not_well_formed
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.error_texts import expression_text
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation

_CONDITION_FUNCTIONS = frozenset(
    {"attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains"}
)
SET_FUNCTIONS = frozenset({"set_add", "set_delete"})
UPDATE_FUNCTIONS = SET_FUNCTIONS | {"list_append", "if_not_exists"}
FUNCTIONS = _CONDITION_FUNCTIONS | UPDATE_FUNCTIONS | {"size"}
_TYPES = {
    "NULL": "NULL",
    "BOOLEAN": "BOOL",
    "BOOL": "BOOL",
    "BLOB": "B",
    "STRING": "S",
    "NUMERIC": "N",
    "STRUCT": "M",
    "TUPLE": "M",
    "LIST": "L",
}
_NO_TYPES_HERE = (
    "Unsupported data type for IS operator: {name}. "
    "Supported data types are [MISSING, NULL, BOOLEAN, BLOB, STRING, NUMERIC, STRUCT, TUPLE, LIST]"
)
_OTHER_TYPES = frozenset(
    {
        "INT",
        "INTEGER",
        "INT2",
        "INT4",
        "INT8",
        "SMALLINT",
        "BIGINT",
        "FLOAT",
        "REAL",
        "DECIMAL",
        "DATE",
        "TIME",
    }
    | {"TIMESTAMP", "CHAR", "CHARACTER", "VARCHAR", "SYMBOL", "CLOB", "BAG", "SEXP", "ANY"}
)
BAD_IN = (
    "IN operator must have a left hand argument of type Variable Reference "
    "and right hand argument of type Seq with at least one member"
)
NO_BOOLEAN = "WHERE clause must contain an expression that resolves to a boolean"


def type_named(name: str) -> str:
    """Return the wire name of a type after IS, or MISSING. Raises ServiceError."""
    upper = name.upper()
    if upper == "MISSING":
        return upper
    if upper in _OTHER_TYPES:
        raise validation(_NO_TYPES_HERE.format(name=upper))
    if upper not in _TYPES:
        raise not_well_formed("Expected type name")
    return _TYPES[upper]


class FunctionCall(NamedTuple):
    """A function call as written, with its place.

    The node of an unknown function, and of one on sets, has no operands.
    """

    node: CallNode
    arguments: tuple[Any, ...]
    place: str


class DocumentPath(NamedTuple):
    """A path and its place in the text (line:column:length)."""

    node: PathNode
    place: str


def is_condition(node: Any) -> bool:
    """True if a part of a statement is a condition, not a value."""
    inner = node.node if isinstance(node, FunctionCall) else node
    if isinstance(inner, CallNode):
        return inner.function in _CONDITION_FUNCTIONS
    return isinstance(node, (AndNode, OrNode, NotNode, CompareNode, BetweenNode, InNode))


def _unrecognized(call: FunctionCall) -> ServiceError:
    return validation(f"Unrecognized function: {call.node.function} at {call.place}")


def condition(node: Any, otherwise: str = "The arguments to AND/OR must be Expressions") -> ConditionNode:
    """Return a part of a statement as a condition. Raises ServiceError with the text `otherwise` if it is none."""
    if not is_condition(node):
        if isinstance(node, FunctionCall) and node.node.function != "size":
            raise _unrecognized(node)
        raise validation(otherwise)
    return node.node if isinstance(node, FunctionCall) else node


def operand(node: Any) -> Any:
    """Return a part of a statement as an operand of a condition. Raises ServiceError."""
    match node:
        case DocumentPath(path):
            return path
        case Literal():
            return constant(node)
        case FunctionCall(call) if call.function == "size":
            return call
        case FunctionCall(call) if call.function not in _CONDITION_FUNCTIONS:
            raise _unrecognized(node)
        case ArithmeticNode(operator):
            raise validation(f"Unsupported operator in Condition Expression. Operator: {operator}")
    raise validation("Unsupported token in expression: a condition is no operand")


def update_operand(node: Any) -> Any:
    """Return a part of a statement as the new value of an attribute. Raises ServiceError."""
    match node:
        case DocumentPath(path):
            return path
        case Literal():
            return constant(node)
        case ArithmeticNode():
            return node
        case FunctionCall(call) if call.function in ("list_append", "if_not_exists"):
            return call
        case FunctionCall():
            raise _unrecognized(node)
    raise validation("Unsupported operator in Update Expression. Operator: " + _operator_name(node))


def _operator_name(node: Any) -> str:
    return {AndNode: "AND", OrNode: "OR", NotNode: "NOT", BetweenNode: "BETWEEN", InNode: "IN"}.get(
        type(node)
    ) or str(node.operator)


def in_one_chain(kind: type[AndNode] | type[OrNode], left: Any, right: Any) -> ConditionNode:
    """Join both sides in one node. A chain of AND, or of OR, is flat, so its length adds no depth."""
    parts: tuple[ConditionNode, ...] = ()
    for side in (condition(left), condition(right)):
        parts += side.parts if isinstance(side, kind) else (side,)
    return kind(parts)


def negated(condition: ConditionNode) -> ConditionNode:
    """Return the negation of a condition."""
    return condition.part if isinstance(condition, NotNode) else NotNode(condition)


def check_operators(node: Any) -> None:
    """Raise ServiceError if a condition or a new value has too many operators."""
    count = 0
    stack = [node]
    while stack:
        match stack.pop():
            case AndNode(parts) | OrNode(parts):
                count += len(parts) - 1
                stack += parts
            case NotNode(part):
                count += 1
                stack.append(part)
            case ArithmeticNode(_, left, right):
                count += 1
                stack += (left, right)
            case CallNode(function, operands):
                count += function in UPDATE_FUNCTIONS
                stack += operands
            case CompareNode() | BetweenNode() | InNode():
                count += 1
    if count > limits.EXPRESSION_OPERATORS:
        raise validation(expression_text("operators", count=count))


def compared_condition(condition: ConditionNode, operator: str, other: Any) -> ConditionNode:
    """Compare the truth of a condition with a boolean. It never equals any other constant."""
    if operator not in ("=", "<>"):
        raise validation(expression_text("operand-type", function=operator, kind="BOOL"))
    if not isinstance(other, Literal) or other.tag == "?":
        raise validation("Unsupported token in expression: a condition can only be compared with a literal")
    truth = other.data if other.tag == "BOOL" else None
    if truth is None:
        return CompareNode(operator, constant(Literal("BOOL", True, "")), constant(other))
    return condition if truth is (operator == "=") else negated(condition)


def set_change(path: DocumentPath, call: FunctionCall) -> ChangeNode:
    """Return the change of a set for `SET path = set_add(path, set)` or set_delete. Raises ServiceError.

    updates.py checks the type of a parameter.
    """
    name = call.node.function.upper()
    if len(call.arguments) != 2:
        raise validation(f"{name} must have exactly two arguments at {call.place}")
    first, second = call.arguments
    if not isinstance(first, DocumentPath) or first.node != path.node:
        raise validation(f"The first argument to {name} must equal the assignment value at {call.place}")
    if not isinstance(second, Literal) or second.tag not in ("BAG", "?"):
        raise validation(expression_text("set-argument", function=name, place=first.place))
    return ChangeNode(name.removeprefix("SET_"), path.node, constant(second), first.place)
