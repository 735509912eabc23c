"""Checks of an expression's text, and substitution of its placeholders. Common to all of DynamoDB's expressions.

Functions, reserved words and limits of texts and paths are checked in the service's order. grammar.py has the
syntax. conditions.py, key_conditions.py, updates.py and projections.py convert the trees.

Checks of the text alone (syntax, reserved words, functions, number of operators) run once for each text, and the
tree is cached. Checks that depend on placeholders run for each request. Both walks are bounded by the 300
operators and 4,096 bytes of an expression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, TypeVar

from tablegate.adapters.dynamodb.expressions.nodes import (
    AndNode,
    ArithmeticNode,
    BetweenNode,
    CallNode,
    CompareNode,
    ConditionNode,
    ExpressionError,
    InNode,
    NotNode,
    OrNode,
    PathNode,
    SectionNode,
    ValueNode,
)
from tablegate.adapters.dynamodb.expressions.placeholders import Placeholders
from tablegate.adapters.dynamodb.expressions.reserved_words import is_reserved
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.errors import validation
from tablegate.adapters.dynamodb.wire.messages import expression_text
from tablegate.gateway.model.expressions.predicates import Path
from tablegate.gateway.model.values.values import NULL, Value

# Checks


CONDITION = "ConditionExpression"
FILTER = "FilterExpression"
KEY_CONDITION = "KeyConditionExpression"
UPDATE = "UpdateExpression"
PROJECTION = "ProjectionExpression"


class PlaceholderReader:
    """A base for readers that replace placeholders by names and values. `kind`: the parameter, as errors name it."""

    def __init__(self, kind: str, placeholders: Placeholders) -> None:
        self._kind = kind
        self._placeholders = placeholders

    def refuse(self, rule: str, **facts: object) -> None:
        """Raise the error of a rule. A subclass may collect errors instead."""
        raise self._placeholders.error(rule, self._kind, **facts)

    def path(self, node: PathNode) -> Path:
        """Return the path with its placeholders replaced by names."""
        steps = node.steps
        for at, step in enumerate(steps):
            if type(step) is str and step[0] == "#":
                name = self._placeholders.name(step)
                if name is None:
                    self.refuse("undefined-name", name=step)
                else:
                    steps = (*steps[:at], name, *steps[at + 1 :])
        if len(steps) > limits.EXPRESSION_PATH_STEPS:
            self.refuse("depth", levels=len(steps))
        return steps

    def value(self, node: ValueNode) -> Value:
        value = self._placeholders.value(node.name)
        if value is None:
            self.refuse("undefined-value", name=node.name)
            return NULL
        return value

    def check_count(self, call: CallNode) -> bool:
        """Refuse a call with a wrong number of operands. Return True if the number is right."""
        if len(call.operands) == _OPERAND_COUNTS[call.function]:
            return True
        self.refuse("operand-count", function=call.function, count=len(call.operands))
        return False


def condition_tree(text: str, kind: str, placeholders: Placeholders) -> ConditionNode:
    """Return the syntax tree of a condition, filter or key condition with a valid text. Raises ServiceError."""
    return _checked_tree(_condition_tree, text, kind, placeholders)


def update_tree(text: str, placeholders: Placeholders) -> tuple[SectionNode, ...]:
    """Return the sections of an update with a valid text. Raises ServiceError."""
    return _checked_tree(_update_tree, text, UPDATE, placeholders)


def projection_tree(text: str, placeholders: Placeholders) -> tuple[PathNode, ...]:
    """Return the paths of a projection with a valid text. Raises ServiceError."""
    return _checked_tree(_projection_tree, text, PROJECTION, placeholders)


def refuse_paths_into_keys(
    paths: Iterable[Path], table_keys: Iterable[str], index_keys: Iterable[str]
) -> None:
    """Raise ServiceError if a path goes into a key attribute of the table or of one of its indexes."""
    outer_names = {path[0] for path in paths if len(path) > 1}
    if not outer_names:
        return
    for role, names in (("Key", table_keys), ("IndexKey", index_keys)):
        for name in names:
            if name in outer_names:
                raise validation(expression_text("key-path", role=role, name=name))


# Checks of the text

_Tree = TypeVar("_Tree")
# In characters. Longer texts are rare, and caching them would let a hostile client fill the memory.
_CACHED_MAX_CHARACTERS = 1024

_CONDITION_FUNCTIONS = {
    "attribute_exists": 1,
    "attribute_not_exists": 1,
    "attribute_type": 2,
    "begins_with": 2,
    "contains": 2,
}
_UPDATE_FUNCTIONS = {"if_not_exists": 2, "list_append": 2}
_OPERAND_COUNTS = {**_CONDITION_FUNCTIONS, **_UPDATE_FUNCTIONS, "size": 1}


def _checked_tree(tree_of: Callable[[str], _Tree], text: str, kind: str, placeholders: Placeholders) -> _Tree:
    """Return the tree of a text, from the cache if it is short. Raises ServiceError."""
    try:
        if len(text) > _CACHED_MAX_CHARACTERS:
            tree_of = tree_of.__wrapped__  # type: ignore[attr-defined]
        return tree_of(text)
    except ExpressionError as refused:
        raise placeholders.error(refused.rule, kind, **refused.facts) from None


@lru_cache(maxsize=512)
def _condition_tree(text: str) -> ConditionNode:
    # The parser is loaded for the first text (docs/architecture.md section 11).
    from tablegate.adapters.dynamodb.expressions import grammar

    tree: ConditionNode = grammar.parse("condition", text)
    nodes = list(_walk(tree, as_condition=True))
    _check_operators(node for node, _ in nodes)
    _check_functions(nodes, _misuse_in_condition)
    _check_names(node for node, _ in nodes)
    return tree


@lru_cache(maxsize=512)
def _update_tree(text: str) -> tuple[SectionNode, ...]:
    from tablegate.adapters.dynamodb.expressions import grammar

    sections: tuple[SectionNode, ...] = grammar.parse("update", text)
    nodes = [
        node_and_flag
        for section in sections
        for action in section.actions
        for part in action
        if not isinstance(part, str)
        for node_and_flag in _walk(part, as_condition=True)
    ]
    _check_operators(node for node, _ in nodes)
    _check_names(node for node, _ in nodes)
    _check_functions(nodes, _misuse_in_update)
    keywords = set()
    for section in sections:
        if section.keyword in keywords:
            raise ExpressionError("section-twice", section=section.keyword)
        keywords.add(section.keyword)
    return sections


@lru_cache(maxsize=512)
def _projection_tree(text: str) -> tuple[PathNode, ...]:
    from tablegate.adapters.dynamodb.expressions import grammar

    paths: tuple[PathNode, ...] = grammar.parse("projection", text)
    _check_names(paths)
    return paths


def _walk(tree: Any, as_condition: bool) -> Iterator[tuple[Any, bool]]:
    """Yield each node, outer before inner and left before right. The flag is True where a condition may stand.

    In an update the flag is True for the whole of a new value. The walk has its own stack, because functions may
    be nested a thousand deep.
    """
    stack = [(tree, as_condition)]
    while stack:
        node, outer = stack.pop()
        yield node, outer
        inner = outer and isinstance(node, (AndNode, OrNode, NotNode))
        stack.extend((child, inner) for child in reversed(_children(node)))


def _children(node: Any) -> tuple[Any, ...]:
    match node:
        case PathNode() | ValueNode():
            return ()
        case CallNode(_, operands):
            return operands
        case AndNode(parts) | OrNode(parts):
            return parts
        case NotNode(part):
            return (part,)
        case CompareNode(_, left, right) | ArithmeticNode(_, left, right):
            return (left, right)
        case BetweenNode(operand, lower, upper):
            return (operand, lower, upper)
        case InNode(operand, members):
            return (operand, *members)
    raise AssertionError(node)


def _check_operators(nodes: Iterable[Any]) -> None:
    """Functions and parentheses do not count (test_limits.py test_deeply_nested_expression_2)."""
    count = 0
    for node in nodes:
        match node:
            case AndNode(parts) | OrNode(parts):
                count += len(parts) - 1
            case NotNode() | CompareNode() | BetweenNode() | InNode() | ArithmeticNode():
                count += 1
    if count > limits.EXPRESSION_OPERATORS:
        raise ExpressionError("operators", count=count)


def _check_functions(nodes: list[tuple[Any, bool]], misuse_of: Callable[[str, bool], str | None]) -> None:
    """Check that all functions exist, then that each is allowed where it stands (dynalite scan.js, in this order)."""
    calls = [(node.function, outer) for node, outer in nodes if isinstance(node, CallNode)]
    for function, _ in calls:
        if function not in _OPERAND_COUNTS:
            raise ExpressionError("function-unknown", function=function)
    for function, outer in calls:
        rule = misuse_of(function, outer)
        if rule is not None:
            raise ExpressionError(rule, function=function)


def _misuse_in_condition(function: str, as_condition: bool) -> str | None:
    if function in _UPDATE_FUNCTIONS:
        return "function-in-condition"
    return None if as_condition is (function in _CONDITION_FUNCTIONS) else "function-misused"


def _misuse_in_update(function: str, as_whole: bool) -> str | None:
    """list_append is no operand of another function (test_update_expression.py
    test_update_expression_function_nesting).
    """
    if function not in _UPDATE_FUNCTIONS:
        return "function-in-update"
    return "function-misused" if function == "list_append" and not as_whole else None


def _check_names(nodes: Iterable[Any]) -> None:
    for node in nodes:
        if isinstance(node, PathNode):
            for step in node.steps:
                if isinstance(step, int):
                    if step > limits.EXPRESSION_LIST_INDEX:
                        raise ExpressionError("index", index=step)
                elif step[0] != "#" and is_reserved(step):
                    raise ExpressionError("reserved", name=step)
