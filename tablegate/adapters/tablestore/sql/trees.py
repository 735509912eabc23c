"""Parts of the trees of sqlglot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

SUBQUERIES = frozenset({"subquery", "exists", "select", "union"})
_DIGITS_MAX = 400  # of a number
_FLIPPED = {"eq": "eq", "lt": "gt", "lte": "gte", "gt": "lt", "gte": "lte"}
# Parts of a tree by its key. Any other part would change its meaning.
USUAL_PARTS = frozenset({"this", "expression", "expressions"})
PARTS = {
    "column": frozenset({"this", "table"}),
    "literal": frozenset({"this", "is_string"}),
    "between": frozenset({"this", "low", "high"}),
    "like": frozenset({"this", "expression", "negate"}),
    "in": frozenset({"this", "expressions", "query"}),
    "case": frozenset({"this", "ifs", "default"}),
    "concat": frozenset({"expressions", "safe", "coalesce"}),  # texts beside each other
    "cast": frozenset({"this", "to", "_type"}),
    "div": frozenset({"this", "expression", "typed", "safe"}),
}


class LiteralComparison(NamedTuple):
    """A comparison of an expression with other ones.

    - `operator`: eq, lt, lte, gt, gte, between or in.
    - `literals`: the values of the others as Python values. None for an expression that is no literal.
    """

    operator: str
    expression: Any
    literals: list[Any]


def own_nodes(tree: Any) -> Iterator[Any]:
    """Yield the nodes of a SELECT, without those inside of its subqueries."""
    yield from tree.walk(prune=lambda node: node is not tree and node.key in SUBQUERIES)


def flat(tree: Any) -> list[Any]:
    """Return the parts of a chain of AND or OR. A chain can be longer than the nesting of expressions."""
    parts, pending = [], [tree]
    while pending:
        part = pending.pop()
        if part.key == tree.key:
            pending += [part.expression, part.this]
        else:
            parts.append(part)
    return parts


def conjuncts(tree: Any) -> Iterator[Any]:
    """Yield the parts of a condition that must all be true."""
    pending = [tree]
    while pending:
        part = pending.pop()
        if part.key == "and":
            pending += [part.expression, part.this]
        elif part.key == "paren":
            pending.append(part.this)
        else:
            yield part


def function_name(tree: Any) -> str:
    """Return the name of a call of a function in upper case, or "" for any other expression."""
    return str(tree.this).upper() if tree.key == "anonymous" else ""


def literal_value(tree: Any) -> Any:
    """Return the int, float, bool or str of a literal. None for any other expression."""
    sign = 1
    if tree.key == "neg":
        sign, tree = -1, tree.this
        if tree.key != "literal" or tree.is_string:
            return None
    if tree.key == "boolean":
        return bool(tree.this)
    if tree.key != "literal":
        return None
    if tree.is_string:
        return tree.this
    if len(tree.this) > _DIGITS_MAX:
        return None
    is_whole = tree.this.isascii() and tree.this.isdigit()
    return sign * (int(tree.this) if is_whole else float(tree.this))


def comparison_of(tree: Any) -> LiteralComparison | None:
    """Return the comparison that a tree is, None for any other tree. A literal on the left is moved to the right."""
    operator, left = tree.key, tree.this
    if operator == "between":
        others = [tree.args["low"], tree.args["high"]]
    elif operator == "in":
        others = tree.expressions
    elif operator not in _FLIPPED:
        return None
    elif literal_value(left) is not None:
        operator, left, others = _FLIPPED[operator], tree.expression, [left]
    else:
        others = [tree.expression]
    return LiteralComparison(operator, left, [literal_value(each) for each in others])
