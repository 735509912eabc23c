"""ConditionExpression and FilterExpression to the model's predicates.

Functions and operators are checked with their operands, from left to right. The first error is raised.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache
from typing import assert_never

from tablegate.adapters.dynamodb.expressions.projections import path_text
from tablegate.adapters.dynamodb.expressions.static_checks import (
    CONDITION,
    PlaceholderReader,
    Placeholders,
    condition_tree,
)
from tablegate.adapters.dynamodb.expressions.syntax import (
    AndNode,
    BetweenNode,
    CallNode,
    CompareNode,
    ConditionNode,
    InNode,
    NotNode,
    OperandNode,
    OrNode,
    PathNode,
    ValueNode,
)
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.error_texts import expression_text
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.adapters.dynamodb.wire.gateway_errors import type_name
from tablegate.gateway.model.expressions.predicates import (
    And,
    Attribute,
    Compare,
    Comparison,
    Contains,
    Exists,
    HasKind,
    Literal,
    Not,
    Operand,
    Or,
    Path,
    Predicate,
    SizeOf,
    StartsWith,
    size_of,
)
from tablegate.gateway.model.values import bodies
from tablegate.gateway.model.values.values import NUMBERS, Kind, Value, compare


def parse_condition(text: str, placeholders: Placeholders, kind: str = CONDITION) -> Predicate:
    """Return the predicate of a condition, or of a filter if `kind` is FILTER. Raises ServiceError."""
    if "#" not in text and ":" not in text and len(text) <= _CACHED_MAX_CHARACTERS:
        try:
            return _constant_condition(text, kind)
        except ServiceError:
            pass  # parsed again below for the error with this operation's text
    return ConditionReader(kind, placeholders).condition(condition_tree(text, kind, placeholders))


@lru_cache(maxsize=512)
def _constant_condition(text: str, kind: str) -> Predicate:
    """Return the predicate of a condition without placeholders. Cached, because it is the same for every request."""
    none = Placeholders()
    return ConditionReader(kind, none).condition(condition_tree(text, kind, none))


_CACHED_MAX_CHARACTERS = 256  # characters


def refuse_filter_on_keys(
    paths: Iterable[Path], key_names: Iterable[str], parameter: str = "Filter Expression"
) -> None:
    """Raise ServiceError if a Query's filter reads a key attribute of the table or index.

    `parameter`: "Filter Expression" or "QueryFilter".
    """
    read = {path[0] for path in paths}
    for name in key_names:
        if name in read:
            raise validation(expression_text("filter-key", parameter=parameter, name=name))


_COMPARISONS = {comparison.value: comparison for comparison in Comparison}
_ORDERED_KINDS = frozenset({Kind.TEXT, Kind.BYTES}) | NUMBERS
_PREFIX_KINDS = frozenset({Kind.TEXT, Kind.BYTES})
_KINDS_BY_NAME = {
    "S": frozenset({Kind.TEXT}),
    "N": NUMBERS,
    "B": frozenset({Kind.BYTES}),
    "BOOL": frozenset({Kind.BOOL}),
    "NULL": frozenset({Kind.NULL}),
    "L": frozenset({Kind.LIST}),
    "M": frozenset({Kind.MAP}),
    "SS": frozenset({Kind.TEXT_SET}),
    "NS": frozenset({Kind.DECIMAL_SET}),
    "BS": frozenset({Kind.BYTES_SET}),
}
_ANY_TYPE = "{NS,SS,L,BS,N,M,B,BOOL,NULL,S}"


class ConditionReader(PlaceholderReader):
    """A converter from syntax trees to predicates."""

    def condition(self, node: ConditionNode) -> Predicate:
        match node:
            case CompareNode(operator, left, right):
                return self._comparison(operator, self.operand(left), self.operand(right))
            case CallNode():
                return self._call_predicate(node)
            case AndNode(parts):
                return And(tuple([self.condition(part) for part in parts]))
            case OrNode(parts):
                return Or(tuple([self.condition(part) for part in parts]))
            case NotNode(part):
                return self._negation(part)
            case BetweenNode(operand, lower, upper):
                are_values = isinstance(lower, ValueNode) and isinstance(upper, ValueNode)
                return self._between(
                    self.operand(operand), self.operand(lower), self.operand(upper), are_values=are_values
                )
            case InNode(operand, members):
                return self._member(self.operand(operand), [self.operand(member) for member in members])
        assert_never(node)

    def operand(self, node: OperandNode) -> Operand:
        match node:
            case PathNode():
                return Attribute(self.path(node))
            case ValueNode():
                return Literal(self.value(node))
            case CallNode():
                return self._size(node)
        assert_never(node)

    def _negation(self, part: ConditionNode) -> Predicate:
        """NOT NOT cancels out, so a chain of them makes no deep tree."""
        inner = self.condition(part)
        return inner.part if isinstance(inner, Not) else Not(inner)

    def _comparison(self, operator: str, left: Operand, right: Operand) -> Predicate:
        self._check_distinct(operator, [left, right])
        comparison = _COMPARISONS[operator]
        if comparison is not Comparison.EQ and comparison is not Comparison.NE:
            self._check_kinds(operator, (left, right), _ORDERED_KINDS)
        return Compare(left, comparison, right)

    def _between(self, operand: Operand, lower: Operand, upper: Operand, *, are_values: bool) -> Predicate:
        """`are_values`: both bounds are in the request, so their order can be checked."""
        self._check_distinct("BETWEEN", [operand, lower, upper])
        self._check_kinds("BETWEEN", (operand, lower, upper), _ORDERED_KINDS)
        if are_values and isinstance(lower, Literal) and isinstance(upper, Literal):
            order = compare(lower.value, upper.value)
            if order is None or order > 0:
                rule = "between-kinds" if order is None else "between-order"
                self.refuse(rule, lower=_bound_text(lower.value), upper=_bound_text(upper.value))
        return And((Compare(operand, Comparison.GE, lower), Compare(operand, Comparison.LE, upper)))

    def _member(self, operand: Operand, members: list[Operand]) -> Predicate:
        if len(members) > limits.EXPRESSION_IN_OPERANDS:
            self.refuse("in-operands", count=len(members))
        self._check_distinct("IN", [operand, *members])
        return Or(tuple([Compare(operand, Comparison.EQ, member) for member in members]))

    def _call_predicate(self, call: CallNode) -> Predicate:
        operands = [self.operand(node) for node in call.operands]
        self.check_count(call)
        self._check_distinct(call.function, operands)
        match call.function:
            case "attribute_exists":
                return Exists(self._path_of(operands[0], call.function))
            case "attribute_not_exists":
                return Not(Exists(self._path_of(operands[0], call.function)))
            case "attribute_type":
                return HasKind(operands[0], self._kinds_named(operands[1]))
            case "begins_with":
                self._check_kinds(call.function, operands, _PREFIX_KINDS)
                return StartsWith(operands[0], operands[1])
            case "contains":
                return Contains(operands[0], operands[1])
        raise AssertionError(call.function)

    def _size(self, call: CallNode) -> Operand:
        """Return size() of an attribute, or a constant for a value of the request.

        Source: test_condition_expression.py test_update_condition_size_parameter.
        """
        if any(isinstance(node, CallNode) for node in call.operands) and len(call.operands) == 1:
            self.refuse("operand-type", function="size", kind="N")
        operands = [self.operand(node) for node in call.operands]
        self.check_count(call)
        match operands[0]:
            case Attribute(path):
                return SizeOf(path)
            case Literal(value):
                size = size_of(value)
                if size is None:
                    self.refuse("operand-type", function="size", kind=type_name(value.kind))
                return Literal(Value(Kind.DECIMAL, Decimal(size or 0)))
        raise AssertionError(call)

    def _path_of(self, operand: Operand, function: str) -> Path:
        if not isinstance(operand, Attribute):
            self.refuse("operand-path", function=function)
            return ()
        return operand.path

    def _kinds_named(self, operand: Operand) -> frozenset[Kind]:
        if not isinstance(operand, Literal) or operand.value.kind is not Kind.TEXT:
            self.refuse("operand-type", function="attribute_type", kind=_type_of(operand) or _ANY_TYPE)
            return frozenset()
        kinds = _KINDS_BY_NAME.get(operand.value.data)
        if kinds is None:
            self.refuse("type-name", name=operand.value.data)
            return frozenset()
        return kinds

    def _check_distinct(self, function: str, operands: list[Operand]) -> None:
        first = operands[0]
        if isinstance(first, Attribute) and first in operands[1:]:
            self.refuse("distinct", function=function, path=path_text(first.path))

    def _check_kinds(self, function: str, operands: Iterable[Operand], kinds: frozenset[Kind]) -> None:
        """Constants must be of a kind that the function takes. Attributes of the item may be of any kind."""
        for operand in operands:
            if isinstance(operand, SizeOf):
                if Kind.DECIMAL not in kinds:
                    self.refuse("operand-type", function=function, kind="N")
            elif isinstance(operand, Literal) and operand.value.kind not in kinds:
                self.refuse("operand-type", function=function, kind=type_name(operand.value.kind))


def _type_of(operand: Operand) -> str | None:
    """Return the type of an operand if it does not depend on the item."""
    match operand:
        case Literal(value):
            return type_name(value.kind)
        case SizeOf():
            return "N"
    return None


def _bound_text(value: Value) -> str:
    ((tag, data),) = bodies.tagged(value).items()
    return f"{{{tag}:{data}}}"
