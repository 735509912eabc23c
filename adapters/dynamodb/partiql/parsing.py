"""A statement's text -> its tree (nodes.py).

Knows what can be said of a text alone. Hostile text is bounded by limits.py: the parser keeps its own stack, literals stop
at 32 levels and conditions at 300 operators.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedInput, UnexpectedToken, VisitError

from tablegate.adapters.dynamodb.expressions.nodes import (
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
    RemoveNode,
    SectionNode,
    SetNode,
)
from tablegate.adapters.dynamodb.partiql import operands
from tablegate.adapters.dynamodb.partiql.literals import Literal, constant, name_of_parameter, number_text
from tablegate.adapters.dynamodb.partiql.nodes import (
    Delete,
    Exists,
    Insert,
    Parsed,
    Select,
    Source,
    Update,
    shown_name,
)
from tablegate.adapters.dynamodb.partiql.reserved_words import RESERVED_WORDS
from tablegate.adapters.dynamodb.partiql.syntax_errors import INVALID_COMPONENT, at, not_well_formed, refused
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.adapters.dynamodb.wire.expression_messages import text_of

# Words, texts, quoted names and comparisons.
_TOKENS = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|[A-Za-z_$][A-Za-z0-9_$]*|<>|!=|<=|>=|[+<>=]""")
_JOINING = frozenset({"AND", "OR", "IN", "NOT"})


def _count_operators(text: str) -> None:
    """Refuse too many operators of a condition before a tree is built of them. Left to the tree are statements with SET,
    whose = is none, and with TRUE and FALSE, to which a condition may be compared without another operator."""
    found = [token.upper() for token in _TOKENS.findall(text)]
    signs = found.count("+") // 2  # each may stand before a number, too
    if signs > limits.EXPRESSION_OPERATORS:
        raise validation(text_of("operators", count=signs))
    if not {"SET", "TRUE", "FALSE"}.isdisjoint(found):
        return
    compared = sum(token in _COMPARISONS for token in found)
    if compared + found.count("IN") + found.count("AND") + found.count("OR") > limits.EXPRESSION_OPERATORS:
        count = compared + sum(token in _JOINING for token in found)
        raise validation(text_of("operators", count=count))


_COMPARISONS = frozenset({"<>", "!=", "<=", ">=", "<", ">", "="})


def parse(text: str) -> Parsed:
    """The tree of a statement, and the names of its parameters. Raises ServiceError."""
    if len(text) > 2 * limits.EXPRESSION_OPERATORS:
        _count_operators(text)
    tokens: list[Token] = []
    reading: Any = _parser().parse_interactive()
    try:
        tokens += _parser().lex(text)
        for token in tokens:
            reading.feed_token(token)
        statement: Any = reading.feed_eof(tokens[-1] if tokens else None)
    except VisitError as error:
        if isinstance(error.orig_exc, ServiceError):
            raise error.orig_exc from None
        raise
    except UnexpectedToken as error:
        error.interactive_parser = reading  # which knows what it would have accepted
        raise refused(error, tokens) from None
    except UnexpectedInput:
        raise not_well_formed("") from None
    names = [name_of_parameter(token.start_pos or 0) for token in tokens if token.type == "PARAMETER"]
    return Parsed(statement, tuple(names))


@v_args(inline=True)
class _Builder(Transformer[Token, Any]):
    """Builds the nodes while lark parses, so no tree of tokens is ever walked recursively."""

    def start(self, statement: Any, _semicolon: Any = None) -> Any:
        return statement

    # Statements

    def select(self, paths: Any, source: Source, where: Any, order: Any) -> Select:
        if len(source) > 2:
            raise validation("A path may contain at most 2 components in the FROM clause")
        return Select(source, paths, _where(where), order or ())

    def exists(self, _exists: Token, select: Select) -> Exists:
        return Exists(select)

    def insert(self, source: Source, value: Literal | operands.Call, returning: Any) -> Insert:
        if len(source) > 1:
            raise validation(
                "FROM clause may only contain a single table name in data manipulation statements"
            )
        if not isinstance(value, Literal) or value.tag != "M":
            raise validation(
                "Unsupported format in item expression. "
                "Please use struct format {...} to express item values for insert statement."
            )
        if returning is not None:
            raise validation("RETURNING is not supported in INSERT")
        names = [name for name, _ in value.data]
        if len(set(names)) < len(names):
            for name in names:
                if names.count(name) == 1:
                    continue
                raise validation(f"Duplicate keys in tuple. Key: {name} under root")
        return Insert(source, tuple([(name, constant(member)) for name, member in value.data]))

    def update(self, source: Source, sections: Any, where: Any, returning: Any) -> Update:
        _refuse_index(source)
        return Update(source, sections, _where(where), returning or "NONE")

    def update_from(self, source: Source, where: Any, sections: Any, returning: Any) -> Update:
        return self.update(source, sections, where, returning)

    def delete(self, source: Source, where: Any, returning: Any) -> Delete:
        _refuse_index(source)
        if returning not in (None, "ALL_OLD"):
            which = returning.replace("UPDATED_", "MODIFIED ").replace("_", " ")
            raise validation(
                f"Invalid returning clause: RETURNING {which} *. "
                "Only RETURNING ALL OLD * is allowed in DELETE statements."
            )
        return Delete(source, _where(where), returning or "NONE")

    def projection(self, *paths: Any) -> tuple[PathNode, ...] | None:
        if isinstance(paths[0], Token):
            return None
        for path in paths:
            if isinstance(path, operands.Call):
                raise validation(f"Unexpected path component at {path.place}")
        nodes = tuple([path.node for path in paths])
        names = [shown_name(node.steps) for node in nodes]
        if len(set(names)) < len(names):
            for name in names:
                if names.count(name) == 1:
                    continue
                raise validation(f"Duplicate identifiers in select clause: {name}")
        return nodes

    def counted(self, name: Token, _star: Token) -> operands.Call:
        return operands.Call(CallNode(name.lower(), ()), (), at(name))

    def source(self, *names: Token) -> Source:
        return tuple(map(str, names))

    def orderings(self, *orderings: Any) -> tuple[tuple[str, bool], ...]:
        return orderings

    def ordering(self, path: operands.Path, direction: Token | None) -> tuple[str, bool]:
        if len(path.node.steps) > 1:
            raise validation("Argument to ORDER BY must be of type VariableReference. Type: Path")
        return str(path.node.steps[0]), direction is not None and direction.type == "DESC"

    def returning(self, which: Token, side: Token, _star: Token) -> str:
        return f"{'ALL' if which.type == 'ALL' else 'UPDATED'}_{side.type}"

    # What is updated

    def clauses(self, *clauses: tuple[Any, ...]) -> tuple[SectionNode, ...]:
        return tuple([SectionNode("", (action,)) for clause in clauses for action in clause])

    def sets(self, *assignments: Any) -> tuple[Any, ...]:
        return assignments

    def removes(self, *paths: operands.Path) -> tuple[RemoveNode, ...]:
        return tuple([RemoveNode(path.node) for path in paths])

    def assignment(self, path: operands.Path, _equals: Token, value: Any) -> SetNode | ChangeNode:
        if isinstance(value, operands.Call) and value.node.function in operands.SET_FUNCTIONS:
            return operands.set_change(path, value)
        operand = operands.update_operand(value)
        operands.check_operators(operand)
        return SetNode(path.node, operand)

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
        if not inner or not isinstance(operand, operands.Path):
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

    def function(self, name: Token, arguments: tuple[Any, ...] | None) -> operands.Call:
        """A function in any place; whether it may stand there is told where it is used."""
        function, place = name.lower(), at(name)
        given = arguments or ()
        if function not in operands.FUNCTIONS or function in operands.SET_FUNCTIONS:
            return operands.Call(CallNode(function, ()), given, place)
        read = operands.update_operand if function in operands.UPDATE_FUNCTIONS else operands.operand
        return operands.Call(CallNode(function, tuple([read(argument) for argument in given])), given, place)

    def arguments(self, *arguments: Any) -> tuple[Any, ...]:
        return arguments

    def path(self, *steps: Any) -> operands.Path:
        for step in steps[1:]:
            if isinstance(step, Token) and step.type == "NAME" and step.lower() in RESERVED_WORDS:
                raise not_well_formed(INVALID_COMPONENT)
        return operands.Path(
            PathNode(tuple([str(s) if isinstance(s, str) else s for s in steps])), at(steps[0])
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
            shown = "".join(tokens)
            text = text_of("index", index=shown)
            raise validation(f"{text} at {at(digits)}")
        return value

    def member(self, token: Token) -> str:
        if token == "''":
            raise validation("Path component cannot be an empty string")
        return _unquoted(token)

    # Literals

    def text(self, token: Token) -> Literal:
        return Literal("S", _unquoted(token), at(token))

    def number(self, token: Token) -> Literal:
        return Literal("N", number_text(str(token)), at(token))

    def minus(self, _sign: Token, number: Literal) -> Literal:
        data = number.data
        return number._replace(data=data[1:] if data.startswith("-") else "-" + data)

    def plus(self, _sign: Token, number: Literal) -> Literal:
        return number

    def boolean(self, token: Token) -> Literal:
        return Literal("BOOL", token.type == "TRUE", at(token))

    def null(self, token: Token) -> Literal:
        return Literal("NULL", True, at(token))

    def missing(self, token: Token) -> Literal:
        raise validation("MISSING must be compared using IS operator")

    def parameter(self, token: Token) -> Literal:
        return Literal("?", name_of_parameter(token.start_pos or 0), at(token))

    def list(self, *members: Literal | operands.Call | None) -> Literal:
        return Literal("L", _literals(members), "")

    def bag(self, *members: Any) -> Literal:
        return Literal("BAG", _literals(members[1:-1]), "")

    def map(self, *pairs: Any) -> Literal:
        return Literal("M", _present(pairs), "")

    def pair(self, name: Token, value: Literal | operands.Call) -> tuple[str, Literal]:
        return _unquoted(name), _literal(value)


def _present(members: tuple[Any, ...]) -> tuple[Any, ...]:
    return () if members == (None,) else members


def _literals(members: tuple[Any, ...]) -> tuple[Literal, ...]:
    return tuple([_literal(member) for member in _present(members)])


def _literal(value: Literal | operands.Call) -> Literal:
    """A function is no value, which is told with its place inside the value."""
    return value if isinstance(value, Literal) else Literal("CALL", value.node.function, value.place)


def _unquoted(token: Token) -> str:
    return token[1:-1].replace("''", "'")


def _where(node: Any) -> ConditionNode | None:
    if node is None:
        return None
    condition = operands.condition(node, operands.NO_BOOLEAN)
    operands.check_operators(condition)
    return condition


def _refuse_index(source: Source) -> None:
    if len(source) > 1:
        raise validation("This operation is not supported on an index")


# The parser

_KEPT_KEYWORDS = frozenset(
    {"ALL", "MODIFIED", "OLD", "NEW", "ASC", "DESC", "TRUE", "FALSE", "NULL", "MISSING", "EXISTS"}
)
_KEYWORDS = (
    _KEPT_KEYWORDS
    | {
        "SELECT",
        "FROM",
        "WHERE",
        "ORDER",
        "BY",
        "INSERT",
        "INTO",
        "VALUE",
        "UPDATE",
        "SET",
        "REMOVE",
        "DELETE",
    }
    | {"RETURNING", "AND", "OR", "NOT", "BETWEEN", "IN", "IS", "AS", "LIKE"}
)


def _keyword(token: Token) -> Token:
    """A name, or the keyword that it is."""
    upper = token.upper()
    if upper in _KEYWORDS:
        return token.update(type=upper if upper in _KEPT_KEYWORDS else "_" + upper)
    return token


_callbacks: dict[str, Callable[[Token], Token]] = {"NAME": _keyword}


@cache
def _parser() -> Lark:
    """The parser, built for the first statement (40 ms)."""
    grammar = Path(__file__).with_name("grammar.lark").read_text()
    return Lark(grammar, parser="lalr", lexer="basic", transformer=_Builder(), lexer_callbacks=_callbacks)
