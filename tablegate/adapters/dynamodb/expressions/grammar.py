"""The grammar of DynamoDB's expressions: text to syntax tree (syntax.py), or the service's syntax error.

Placeholders, functions and types are checked in static_checks.py. The rules are those of the DynamoDbGrammar that
the DAX clients publish (amazon-dax-client, Apache 2.0). All expressions share one set of tokens, so SET is no
attribute name in a condition either.

An LALR parser has its own stack and sees each token once. So hostile texts cause no recursion and cost little
time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedToken, v_args

from tablegate.adapters.dynamodb.expressions.syntax import (
    AndNode,
    ArithmeticNode,
    BetweenNode,
    CallNode,
    ChangeNode,
    CompareNode,
    ConditionNode,
    ExpressionError,
    InNode,
    NotNode,
    OperandNode,
    OrNode,
    PathNode,
    RemoveNode,
    SectionNode,
    SetNode,
    ValueNode,
)
from tablegate.adapters.dynamodb.wire import limits

# A call alone is a condition, a call before an operator is an operand. With one token of look-ahead, a call in
# parentheses stays undecided (`paren_call`) until the token after its last parenthesis. So boolean rules come in
# two sorts: rules with names that end in x match everything except a lone call.
_GRAMMAR = r"""
condition: or_
?or_: orx | paren_call
?orx: andx | or_ _OR and_ -> either
?and_: andx | paren_call
?andx: notx | and_ _AND not_ -> both
?not_: notx | paren_call
?notx: _NOT not_ -> negated | plain
?plain: operand (COMPARATOR | EQUALS) operand -> compared
      | operand _BETWEEN operand _AND operand -> between
      | operand _IN "(" operands ")" -> member
      | "(" orx ")"

update: section+
section: SET set_action ("," set_action)*
       | REMOVE remove_action ("," remove_action)*
       | ADD change ("," change)*
       | DELETE change ("," change)*
set_action: path EQUALS set_value
?set_value: operand | arithmetic
?arithmetic: operand SIGN operand -> calculated | "(" arithmetic ")"
remove_action: path
change: path value

projection: path ("," path)*

unknown: UNKNOWN

?operand: paren_call | other
?other: path | value | "(" other ")"
?paren_call: call | "(" paren_call ")"
call: ID "(" operands ")"
operands: operand ("," operand)*
value: VALUE
path: name (step | index)*
?step: "." name
index: "[" INDEX "]"
!name: ID | NAME

EQUALS: "="
COMPARATOR: "<>" | "<=" | ">=" | "<" | ">"
SIGN: "+" | "-"
_OR.3: /or(?![A-Za-z0-9_])/i
_AND.3: /and(?![A-Za-z0-9_])/i
_NOT.3: /not(?![A-Za-z0-9_])/i
_IN.3: /in(?![A-Za-z0-9_])/i
_BETWEEN.3: /between(?![A-Za-z0-9_])/i
SET.3: /set(?![A-Za-z0-9_])/i
REMOVE.3: /remove(?![A-Za-z0-9_])/i
ADD.3: /add(?![A-Za-z0-9_])/i
DELETE.3: /delete(?![A-Za-z0-9_])/i
ID.2: /[A-Za-z][A-Za-z0-9_]*/
NAME.2: /#[A-Za-z0-9_]+/
VALUE.2: /:[A-Za-z0-9_]+/
INDEX.2: /0|[1-9][0-9]*/
UNKNOWN.-1: /[\s\S]/
%ignore /[ \t\r\n]+/
"""


@v_args(inline=True)
class _Builder(Transformer[Token, Any]):
    """A transformer that makes the tree while the parser reduces. The tree contains no lark nodes."""

    negated = NotNode
    between = BetweenNode
    member = InNode
    remove_action = RemoveNode

    def condition(self, node: ConditionNode) -> ConditionNode:
        return node

    def either(self, left: ConditionNode, right: ConditionNode) -> OrNode:
        return OrNode((*left.parts, right) if isinstance(left, OrNode) else (left, right))

    def both(self, left: ConditionNode, right: ConditionNode) -> AndNode:
        return AndNode((*left.parts, right) if isinstance(left, AndNode) else (left, right))

    def compared(self, left: OperandNode, operator: Token, right: OperandNode) -> CompareNode:
        return CompareNode(str(operator), left, right)

    def calculated(self, left: OperandNode, operator: Token, right: OperandNode) -> ArithmeticNode:
        return ArithmeticNode(str(operator), left, right)

    def call(self, function: Token, operands: tuple[OperandNode, ...]) -> CallNode:
        return CallNode(str(function), operands)

    def value(self, name: Token) -> ValueNode:
        return ValueNode(str(name))

    def name(self, name: Token) -> str:
        return str(name)

    def index(self, digits: Token) -> int:
        return int(digits)

    def set_action(self, path: PathNode, equals: Token, operand: OperandNode) -> SetNode:
        return SetNode(path, operand)

    def path(self, *steps: str | int) -> PathNode:
        return PathNode(steps)

    def change(self, path: PathNode, value: ValueNode) -> tuple[PathNode, ValueNode]:
        return path, value

    def section(self, word: Token, *actions: Any) -> SectionNode:
        keyword = word.upper()
        if keyword in ("ADD", "DELETE"):
            actions = tuple([ChangeNode(keyword, path, value) for path, value in actions])
        return SectionNode(keyword, actions)

    def _all(self, *parts: Any) -> tuple[Any, ...]:
        return parts

    operands = update = projection = _all


@cache
def _parser() -> Lark:
    """Return the parser, built at the first expression (30 ms).

    The start rule `unknown` only keeps its token in the grammar.
    """
    starts = ["condition", "update", "projection", "unknown"]
    return Lark(_GRAMMAR, parser="lalr", lexer="basic", start=starts, transformer=_Builder())


_DOUBLED = re.compile(r"\([ \t\r\n]*\(")


def parse(start: str, text: str) -> Any:
    """Return the tree of an expression. Raises ExpressionError.

    `start`: `condition` (also for filters and key conditions) gives a ConditionNode, `update` the sections and
    `projection` the paths, each in the order of the text.
    """
    if not text:
        raise ExpressionError("empty")
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > limits.EXPRESSION_BYTES:
        raise ExpressionError("size", size=size)
    if len(text) > 2 * limits.EXPRESSION_OPERATORS:
        _count_operators(start, text)
    try:
        tree = _parser().parse(text, start=start)
    except UnexpectedToken as unexpected:
        raise _syntax_error(text, unexpected.token) from None
    if _DOUBLED.search(text) and _has_redundant_parentheses(list(_parser().lex(text))):
        raise ExpressionError("parentheses")
    return tree


_OPERATORS = re.compile(r"[#:][A-Za-z0-9_]*|[A-Za-z][A-Za-z0-9_]*|<>|<=|>=|[-+<>=]")
_WORDS = frozenset({"and", "or", "not", "in"})


def _count_operators(start: str, text: str) -> None:
    """Raise ExpressionError for too many operators before a tree is built.

    BETWEEN is counted by its AND. The = of an assignment does not count, nor do signs in a condition.
    """
    symbols = {"<>", "<=", ">=", "<", ">", "=", *_WORDS} if start == "condition" else {"+", "-"}
    count = sum(symbol.lower() in symbols for symbol in _OPERATORS.findall(text))
    if count > limits.EXPRESSION_OPERATORS:
        raise ExpressionError("operators", count=count)


def _syntax_error(text: str, token: Token) -> ExpressionError:
    """Return the error with the first wrong token and the text from the token before it to the token after it.

    Redundant parentheses closed before that token take precedence, because the service detects them while it
    reads.
    """
    tokens = list(_parser().lex(text))
    at = len(tokens)
    if token.type != "$END":
        at = next(place for place, candidate in enumerate(tokens) if candidate.start_pos == token.start_pos)
    if _has_redundant_parentheses(tokens[:at]):
        return ExpressionError("parentheses")
    begin = tokens[at - 1].start_pos if at else 0
    end = tokens[at + 1].end_pos if at + 1 < len(tokens) else len(text)
    return ExpressionError("syntax", token="<EOF>" if at == len(tokens) else str(token), near=text[begin:end])


def _has_redundant_parentheses(tokens: Iterable[Token]) -> bool:
    """True if two pairs of parentheses enclose the same text: ((a = b)), ((a)) = b.

    Parentheses of function operands and of IN's members do not count as a pair.
    """
    open_pairs: list[tuple[int, bool]] = []
    closed: tuple[int, int] | None = None  # start and end of the pair that was closed last
    before = ""
    for place, token in enumerate(tokens):
        if token.type == "LPAR":
            open_pairs.append((place, before not in ("ID", "_IN")))
        elif token.type == "RPAR" and open_pairs:
            begin, is_grouping = open_pairs.pop()
            if is_grouping and closed == (begin + 1, place - 1):
                return True
            closed = (begin, place)
        before = token.type
    return False
