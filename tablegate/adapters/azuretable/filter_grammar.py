"""The grammar of $filter: an OData expression -> the common predicate tree, with names as the client wrote them.

    or < and < not < comparison (eq ne gt ge lt le); operands are properties and literals on either side

Comparisons are typed: numbers compare with numbers, every other type with itself. A missing property matches nothing,
not even `ne`. There is no arithmetic and there are no functions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

from lark import Lark, Token, Transformer, UnexpectedInput, v_args
from lark.exceptions import VisitError

from tablegate.adapters.azuretable.values import parse_datetime
from tablegate.adapters.azuretable.wire import limits
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.gateway.model.expressions.predicates import (
    ALWAYS,
    And,
    Attribute,
    Compare,
    Comparison,
    Computed,
    Exists,
    HasKind,
    Literal,
    Not,
    Operand,
    Or,
    Predicate,
)
from tablegate.gateway.model.values.values import FALSE, NUMBERS, TRUE, Kind, Value

_GRAMMAR = r"""
start: expression
?expression: conjunction
    | expression _OR conjunction   -> either
?conjunction: negation
    | conjunction _AND negation    -> both
?negation: comparison
    | _NOT negation                -> negated
?comparison: operand
    | operand OPERATOR operand     -> compared
?operand: "(" expression ")"       -> grouped
    | NAME "(" [arguments] ")"     -> function
    | NAME                         -> name
    | TEXT                         -> text
    | TYPED                        -> typed
    | NUMBER                       -> number
arguments: expression ("," expression)*

_OR.3: /or(?![\w@.])/
_AND.3: /and(?![\w@.])/
_NOT.3: /not(?![\w@.])/
OPERATOR.3: /(eq|ne|gt|ge|lt|le)(?![\w@.])/
TYPED.4: /[A-Za-z]+'[^']*'/
TEXT: /'(?:[^']|'')*'/
NUMBER.2: /-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?[LlDdFfMm]?(?![\w.])|-INF(?!\w)/
NAME: /[^\W\d]\w*/
%ignore /[ \t\r\n]+/
"""

_MIRRORED = {
    Comparison.EQ: Comparison.EQ,
    Comparison.NE: Comparison.NE,
    Comparison.GT: Comparison.LT,
    Comparison.GE: Comparison.LE,
    Comparison.LT: Comparison.GT,
    Comparison.LE: Comparison.GE,
}
_NEVER = Not(ALWAYS)
_HEXADECIMAL = re.compile(r"(?:[0-9A-Fa-f]{2})*")
_INT32 = range(-(2**31), 2**31)
_INT64 = range(-(2**63), 2**63)


class _Node(NamedTuple):
    """A parsed node: a predicate or an operand (Literal, Attribute, Computed), and the depth of its tree."""

    tree: Any
    depth: int = 1


@v_args(inline=True)
class _Builder(Transformer[Token, Any]):
    """Builds the predicate while lark parses, so that no tree of tokens is walked recursively."""

    def start(self, node: _Node) -> Predicate:
        return _predicate(node)

    def either(self, left: _Node, right: _Node) -> _Node:
        return _in_one_chain(Or, left, right)

    def both(self, left: _Node, right: _Node) -> _Node:
        return _in_one_chain(And, left, right)

    def negated(self, node: _Node) -> _Node:
        return _Node(Not(_predicate(node)), _deeper(node))

    def grouped(self, node: _Node) -> _Node:
        return node

    def compared(self, left: _Node, operator: Token, right: _Node) -> _Node:
        return _Node(_comparison(left, Comparison[operator.upper()], right), _deeper(left, right))

    def function(self, name: Token, arguments: Any) -> _Node:
        raise ServiceError("NotImplemented")

    def arguments(self, *nodes: _Node) -> None:
        return None

    def name(self, name: Token) -> _Node:
        return _Node(_named_operand(str(name)))

    def text(self, token: Token) -> _Node:
        return _Node(Literal(Value(Kind.TEXT, token[1:-1].replace("''", "'"))))

    def typed(self, token: Token) -> _Node:
        prefix, _, rest = token.partition("'")
        if prefix.lower() not in _TYPED:
            raise ServiceError("InvalidInput")
        edm, reader = _TYPED[prefix.lower()]
        return _Node(_literal(edm, token, reader(rest[:-1])))

    def number(self, token: Token) -> _Node:
        return _Node(_number(str(token)))


_WORD = re.compile(r"\w+|\S")


@cache
def _parser() -> Lark:
    """Return the parser. It is created on first use, since creation is slow."""
    return Lark(_GRAMMAR, parser="lalr", lexer="contextual", transformer=_Builder())


def parse(text: str) -> Predicate:
    """Return the predicate of a $filter, with names as written. Raises ServiceError InvalidInput, NotImplemented."""
    try:
        tree: Predicate = _parser().parse(text)  # type: ignore[assignment]  # what _Builder.start returns
    except VisitError as error:
        if isinstance(error.orig_exc, ServiceError):
            raise error.orig_exc from None
        raise
    except UnexpectedInput as error:
        raise ServiceError("InvalidInput", _syntax_text(text, error)) from None
    return tree


def _syntax_text(text: str, error: UnexpectedInput) -> str:
    """Return the service's error text. Its position is after the unexpected word."""
    start = getattr(error, "pos_in_stream", None)
    word = None if start is None else _WORD.match(text, start)
    position = len(text) if word is None else word.end()
    return f"Syntax error at position {position} in '{text[: limits.ECHO_MAX_CHARACTERS]}'."


def _deeper(*nodes: _Node) -> int:
    depth = 1 + max(node.depth for node in nodes)
    if depth > limits.FILTER_MAX_DEPTH:
        raise ServiceError("InvalidInput", "The filter is nested too deeply.")
    return depth


def _in_one_chain(kind: type[And] | type[Or], left: _Node, right: _Node) -> _Node:
    """Join both sides into one node. Chains of And or of Or are flat, so that their length adds no depth."""
    first, second = _predicate(left), _predicate(right)
    parts = first.parts if isinstance(first, kind) else (first,)
    depth = left.depth if isinstance(first, kind) else left.depth + 1
    further_parts = second.parts if isinstance(second, kind) else (second,)
    node = _Node(kind(parts + further_parts), max(depth, right.depth + 1))
    if node.depth > limits.FILTER_MAX_DEPTH:
        raise ServiceError("InvalidInput", "The filter is nested too deeply.")
    return node


def _predicate(node: _Node) -> Predicate:
    """Return a node as a condition. Of operands, only a boolean property or literal is one. Raises ServiceError."""
    tree = node.tree
    if isinstance(tree, Literal):
        if tree.value.kind is not Kind.BOOL:
            raise ServiceError("InvalidInput")
        return ALWAYS if tree.value.data else _NEVER
    if isinstance(tree, Attribute | Computed):
        return Compare(tree, Comparison.EQ, Literal(TRUE))
    return tree


def _comparison(left: _Node, comparison: Comparison, right: _Node) -> Predicate:
    mine, other = left.tree, right.tree
    if isinstance(mine, Literal) and not isinstance(other, Literal):
        mine, comparison, other = other, _MIRRORED[comparison], mine
    if not isinstance(mine, Literal | Attribute | Computed):
        return _condition_comparison(mine, comparison, other)
    if not isinstance(other, Literal | Attribute | Computed):
        return _condition_comparison(other, _MIRRORED[comparison], mine)
    plain = Compare(mine, comparison, other)
    if comparison is not Comparison.NE:
        return plain
    if isinstance(other, Literal):
        # The common NE is true for a missing value and for another type. OData's NE is not.
        kinds = NUMBERS if other.value.kind in NUMBERS else frozenset({other.value.kind})
        return And((HasKind(mine, kinds), plain))
    return And((*_presence(mine), *_presence(other), plain))


def _presence(operand: Operand) -> tuple[Predicate, ...]:
    return (Exists(operand.path),) if isinstance(operand, Attribute) else ()


def _condition_comparison(condition: Predicate, comparison: Comparison, other: Any) -> Predicate:
    """Return the predicate of (a and b) eq true, as LINQ providers write it. Raises ServiceError."""
    if not isinstance(other, Literal) or other.value.kind is not Kind.BOOL:
        raise ServiceError("InvalidInput")
    if comparison not in (Comparison.EQ, Comparison.NE):
        raise ServiceError("InvalidInput")
    return condition if other.value.data is (comparison is Comparison.EQ) else Not(condition)


# Literals

_DOUBLES = {"NaN": Value(Kind.DOUBLE, float("nan")), "INF": Value(Kind.DOUBLE, float("inf"))}
"""Doubles that are words, in exactly this spelling. Any other spelling, also `Infinity`, is the name of a property.

Source: docs/protocols/azure-table.md rule 8.3.2.
"""

_TRUTHS = {"true": TRUE, "false": FALSE}
"""Case-insensitive. Source: Azure/Azurite issue 1947."""


def _named_operand(name: str) -> Operand:
    """Return the operand of a name. Raises ServiceError for null, a literal of OData that the service refuses.

    Source: Azure/Azurite issue 2471.
    """
    if name == "null":
        raise ServiceError("InvalidInput")
    word = _DOUBLES.get(name) or _TRUTHS.get(name.lower())
    if word is not None:
        return Literal(word)
    return Attribute((name,))


def _literal(edm: str, token: str, value: Value | None) -> Literal:
    """Return the literal of a token. Raises ServiceError if it is None, which is no value of this type.

    Source of the text: Azure/azure-storage-node issue 316.
    """
    if value is None:
        text = f"Unrecognized '{edm}' literal '{token[: limits.ECHO_MAX_CHARACTERS]}'"
        raise ServiceError("InvalidInput", text)
    return Literal(value)


_WHOLE_NUMBERS = {"": ("Edm.Int32", Kind.INT32, _INT32), "l": ("Edm.Int64", Kind.INT64, _INT64)}
"""Suffix -> type of a whole number. Only `L` makes an Int64 (Azure/azure-storage-node issue 316)."""


def _number(token: str) -> Literal:
    if "I" in token:
        return Literal(Value(Kind.DOUBLE, float("-inf")))
    suffix = token[-1].lower() if token[-1].isalpha() else ""
    digits = token[:-1] if suffix else token
    is_whole = digits.lstrip("-").isdigit()
    if suffix == "l" or (suffix == "" and is_whole):
        edm, kind, valid_range = _WHOLE_NUMBERS[suffix]
        number = int(digits) if is_whole and len(digits) < 30 else None
        is_valid = number is not None and number in valid_range
        return _literal(edm, token, Value(kind, number) if is_valid else None)
    double = float(digits)
    return _literal("Edm.Double", token, Value(Kind.DOUBLE, double) if math.isfinite(double) else None)


def _read_datetime(text: str) -> Value | None:
    ticks = parse_datetime(text)
    return None if ticks is None else Value(Kind.DATETIME, ticks)


_GUID = re.compile(r"[0-9a-f]{8}(-?)[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{12}", re.IGNORECASE)


def _read_guid(text: str) -> Value | None:
    return Value(Kind.GUID, UUID(text)) if _GUID.fullmatch(text) else None


def _read_binary(text: str) -> Value | None:
    return Value(Kind.BYTES, bytes.fromhex(text)) if _HEXADECIMAL.fullmatch(text) else None


_TYPED: dict[str, tuple[str, Callable[[str], Value | None]]] = {
    "datetime": ("Edm.DateTime", _read_datetime),
    "guid": ("Edm.Guid", _read_guid),
    "x": ("Edm.Binary", _read_binary),
    "binary": ("Edm.Binary", _read_binary),
}
