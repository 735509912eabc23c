"""A statement's text -> its syntax tree: the nodes that expressions have too (grammar.py), and who is written or read.

Knows what can be said of a text alone. A literal is a ValueNode named by its own wire JSON, a parameter one named `?` and
its number, so that a tree is the same for all parameters and may be kept by text. Conditions and operands are told apart
here; whether they suit each other is conditions.py's. Hostile text is bounded by limits.py: the parser keeps its own
stack, literals stop at 32 levels and conditions at 300 operators.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedInput, UnexpectedToken, VisitError

from adapters.dynamodb import limits
from adapters.dynamodb.errors import ServiceError, validation
from adapters.dynamodb.expression_messages import text_of
from adapters.dynamodb.grammar import (
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
    ValueNode,
)
from adapters.dynamodb.partiql.literals import Literal, constant, name_of_parameter, number_text
from adapters.dynamodb.partiql.syntax_errors import at, not_well_formed, refused
from gateway.model.predicates import Path

Source = tuple[str, ...]
"""A table's name, and that of its index if one is read."""


class Select(NamedTuple):
    """`paths` None: all attributes. `order`: attribute and whether descending."""

    source: Source
    paths: tuple[PathNode, ...] | None
    where: ConditionNode | None
    order: tuple[tuple[str, bool], ...]


class Insert(NamedTuple):
    """`item`: attribute -> literal or parameter."""

    source: Source
    item: tuple[tuple[str, ValueNode], ...]


class Update(NamedTuple):
    """`returning`: as ReturnValues of UpdateItem has it."""

    source: Source
    sections: tuple[SectionNode, ...]
    where: ConditionNode | None
    returning: str


class Delete(NamedTuple):
    source: Source
    where: ConditionNode | None
    returning: str


class Exists(NamedTuple):
    """EXISTS(SELECT ...): a condition check."""

    select: Select

    @property
    def source(self) -> Source:
        return self.select.source


Statement = Select | Insert | Update | Delete | Exists


class Parsed(NamedTuple):
    """A statement and the names of its parameters, in order."""

    statement: Statement
    parameters: tuple[str, ...]


def parse(text: str) -> Parsed:
    """What a text says. Raises ServiceError."""
    return (_kept if len(text) <= _LONGEST_KEPT else _parse)(text)


_LONGEST_KEPT = (
    1024  # characters; longer texts are rare, and would let a hostile client fill memory with their trees
)


def _parse(text: str) -> Parsed:
    tokens: list[Token] = []
    try:
        tokens += _parser.lex(text)
        statement: Any = _parser.parse(text)
    except VisitError as error:
        if isinstance(error.orig_exc, ServiceError):
            raise error.orig_exc from None
        raise
    except UnexpectedToken as error:
        raise refused(error, tokens) from None
    except UnexpectedInput:
        raise not_well_formed("") from None
    names = [name_of_parameter(token.start_pos or 0) for token in tokens if token.type == "PARAMETER"]
    return Parsed(statement, tuple(names))


_kept = lru_cache(maxsize=512)(_parse)


def shown_name(steps: Path) -> str:
    """What a selected path is called in the answer: its last name, with the list indexes behind it."""
    last = max(place for place, step in enumerate(steps) if isinstance(step, str))
    return str(steps[last]) + "".join(f"[{index}]" for index in steps[last + 1 :])


# Conditions and operands

_CONDITION_FUNCTIONS = frozenset(
    {"attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains"}
)
_UPDATE_FUNCTIONS = frozenset({"list_append", "if_not_exists", "set_add", "set_delete"})
_FUNCTIONS = _CONDITION_FUNCTIONS | _UPDATE_FUNCTIONS | {"size"}
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
_BAD_IN = (
    "IN operator must have a left hand argument of type Variable Reference "
    "and right hand argument of type Seq with at least one member"
)
_NO_BOOLEAN = "WHERE clause must contain an expression that resolves to a boolean"


class _Call(NamedTuple):
    """A function as it is written, with where its arguments begin."""

    node: CallNode
    arguments: tuple[Any, ...]


class _Path(NamedTuple):
    node: PathNode
    place: str


def _is_condition(node: Any) -> bool:
    inner = node.node if isinstance(node, _Call) else node
    if isinstance(inner, CallNode):
        return inner.function in _CONDITION_FUNCTIONS
    return isinstance(node, (AndNode, OrNode, NotNode, CompareNode, BetweenNode, InNode))


def _condition(node: Any, otherwise: str = "The arguments to AND/OR must be Expressions") -> ConditionNode:
    if not _is_condition(node):
        raise validation(otherwise)
    return node.node if isinstance(node, _Call) else node


def _operand(node: Any) -> Any:
    """An operand of a condition."""
    match node:
        case _Path(path):
            return path
        case Literal():
            return constant(node)
        case _Call(call) if call.function == "size":
            return call
        case ArithmeticNode(operator):
            raise validation(f"Unsupported operator in Condition Expression. Operator: {operator}")
    raise validation("Unsupported token in expression: a condition is no operand")


def _update_operand(node: Any) -> Any:
    """What an attribute is set to."""
    match node:
        case _Path(path):
            return path
        case Literal():
            return constant(node)
        case ArithmeticNode():
            return node
        case _Call(call) if call.function in ("list_append", "if_not_exists"):
            return call
        case _Call(call):
            raise validation(text_of("function-in-update", function=call.function))
    raise validation("Unsupported operator in Update Expression. Operator: " + _operator_name(node))


def _operator_name(node: Any) -> str:
    return {AndNode: "AND", OrNode: "OR", NotNode: "NOT", BetweenNode: "BETWEEN", InNode: "IN"}.get(
        type(node)
    ) or str(node.operator)


def _joined(kind: type[AndNode] | type[OrNode], left: Any, right: Any) -> ConditionNode:
    """A chain of the same connective is one flat node: length is no depth."""
    parts: tuple[ConditionNode, ...] = ()
    for side in (_condition(left), _condition(right)):
        parts += side.parts if isinstance(side, kind) else (side,)
    return kind(parts)


def _negated(condition: ConditionNode) -> ConditionNode:
    return condition.part if isinstance(condition, NotNode) else NotNode(condition)


def check_operators(node: Any) -> None:
    """Raise ServiceError if a condition or a new value has more operators than an expression may have."""
    count = 0
    waiting = [node]
    while waiting:
        match waiting.pop():
            case AndNode(parts) | OrNode(parts):
                count += len(parts) - 1
                waiting += parts
            case NotNode(part):
                count += 1
                waiting.append(part)
            case ArithmeticNode(_, left, right):
                count += 1
                waiting += (left, right)
            case CallNode(function, operands):
                count += function in _UPDATE_FUNCTIONS
                waiting += operands
            case CompareNode() | BetweenNode() | InNode():
                count += 1
    if count > limits.EXPRESSION_OPERATORS:
        raise validation(text_of("operators", count=count))


@v_args(inline=True)
class _Builder(Transformer[Token, Any]):
    """Builds the nodes while lark parses, so no tree of tokens is ever walked recursively."""

    def start(self, statement: Any, _semicolon: Any = None) -> Statement:
        return statement

    # Statements

    def select(self, paths: Any, source: Source, where: Any, order: Any) -> Select:
        if len(source) > 2:
            raise validation("A path may contain at most 2 components in the FROM clause")
        return Select(source, paths, _where(where), order or ())

    def exists(self, select: Select) -> Exists:
        return Exists(select)

    def insert(self, source: Source, value: Literal, returning: Any) -> Insert:
        if len(source) > 1:
            raise validation(
                "FROM clause may only contain a single table name in data manipulation statements"
            )
        if value.tag != "M":
            raise validation(
                "Unsupported format in item expression. "
                "Please use struct format {...} to express item values for insert statement."
            )
        if returning is not None:
            raise validation("RETURNING is not supported in INSERT")
        names = [name for name, _ in value.data]
        for name in names:
            if names.count(name) > 1:
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
        nodes = tuple([path.node for path in paths])
        names = [shown_name(node.steps) for node in nodes]
        for name in names:
            if names.count(name) > 1:
                raise validation(f"Duplicate identifiers in select clause: {name}")
        return nodes

    def source(self, *names: Token) -> Source:
        return tuple(map(str, names))

    def orderings(self, *orderings: Any) -> tuple[tuple[str, bool], ...]:
        return orderings

    def ordering(self, path: _Path, direction: Token | None) -> tuple[str, bool]:
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

    def removes(self, *paths: _Path) -> tuple[RemoveNode, ...]:
        return tuple([RemoveNode(path.node) for path in paths])

    def assignment(self, path: _Path, _equals: Token, value: Any) -> SetNode | ChangeNode:
        if isinstance(value, _Call) and value.node.function in ("set_add", "set_delete"):
            return _set_change(path, value)
        operand = _update_operand(value)
        check_operators(operand)
        return SetNode(path.node, operand)

    # Conditions

    def either(self, left: Any, right: Any) -> ConditionNode:
        return _joined(OrNode, left, right)

    def both(self, left: Any, right: Any) -> ConditionNode:
        return _joined(AndNode, left, right)

    def negated(self, node: Any) -> ConditionNode:
        return _negated(_condition(node, "The argument to NOT must be a Type or Expression"))

    def compared(self, left: Any, operator: Token, right: Any) -> ConditionNode:
        name = "<>" if operator == "!=" else str(operator)
        for condition, other in ((left, right), (right, left)):
            if _is_condition(condition):
                return _compared_condition(_condition(condition), name, other)
        return CompareNode(name, _operand(left), _operand(right))

    def between(self, operand: Any, lower: Any, upper: Any) -> ConditionNode:
        return BetweenNode(_operand(operand), _operand(lower), _operand(upper))

    def not_between(self, operand: Any, lower: Any, upper: Any) -> ConditionNode:
        return NotNode(self.between(operand, lower, upper))

    def within(self, operand: Any, members: Any) -> ConditionNode:
        inner = members.data if isinstance(members, Literal) else members
        if not inner or not isinstance(operand, _Path):
            raise validation(_BAD_IN)
        return InNode(operand.node, tuple([_operand(member) for member in inner]))

    def not_within(self, operand: Any, members: Any) -> ConditionNode:
        return NotNode(self.within(operand, members))

    def is_type(self, operand: Any, name: str) -> ConditionNode:
        if name == "MISSING":
            return CallNode("attribute_not_exists", (_operand(operand),))
        return CallNode("attribute_type", (_operand(operand), constant(Literal("S", name, ""))))

    def is_not_type(self, operand: Any, name: str) -> ConditionNode:
        return _negated(self.is_type(operand, name))

    def type(self, name: Token) -> str:
        upper = name.upper()
        if upper == "MISSING":
            return upper
        if upper in _TYPES:
            return _TYPES[upper]
        if upper in _OTHER_TYPES:
            raise validation(_NO_TYPES_HERE.format(name=upper))
        raise not_well_formed("Expected type name")

    # Operands

    def arithmetic(self, left: Any, operator: Token, right: Any) -> ArithmeticNode:
        return ArithmeticNode(str(operator), _update_operand(left), _update_operand(right))

    def function(self, name: Token, arguments: tuple[Any, ...] | None) -> _Call:
        function = name.lower()
        if function not in _FUNCTIONS:
            raise validation(f"Unrecognized function: {name}")
        given = arguments or ()
        read = _update_operand if function in _UPDATE_FUNCTIONS else _operand
        if function in ("set_add", "set_delete"):
            return _Call(CallNode(function, ()), given)
        return _Call(CallNode(function, tuple([read(argument) for argument in given])), given)

    def arguments(self, *arguments: Any) -> tuple[Any, ...]:
        return arguments

    def path(self, *steps: Any) -> _Path:
        return _Path(PathNode(tuple([str(s) if isinstance(s, str) else s for s in steps])), at(steps[0]))

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

    def list(self, *members: Literal | None) -> Literal:
        return Literal("L", _present(members), "")

    def bag(self, *members: Any) -> Literal:
        return Literal("BAG", _present(members[1:-1]), "")

    def map(self, *pairs: Any) -> Literal:
        return Literal("M", _present(pairs), "")

    def pair(self, name: Token, value: Literal) -> tuple[str, Literal]:
        return _unquoted(name), value


def _present(members: tuple[Any, ...]) -> tuple[Any, ...]:
    return () if members == (None,) else members


def _unquoted(token: Token) -> str:
    return token[1:-1].replace("''", "'")


def _where(node: Any) -> ConditionNode | None:
    if node is None:
        return None
    condition = _condition(node, _NO_BOOLEAN)
    check_operators(condition)
    return condition


def _refuse_index(source: Source) -> None:
    if len(source) > 1:
        raise validation("This operation is not supported on an index")


def _compared_condition(condition: ConditionNode, operator: str, other: Any) -> ConditionNode:
    """A condition's truth compared with a boolean; with any other constant it is never equal."""
    if operator not in ("=", "<>"):
        raise validation(text_of("operand-type", function=operator, kind="BOOL"))
    if not isinstance(other, Literal) or other.tag == "?":
        raise validation("Unsupported token in expression: a condition can only be compared with a literal")
    wanted = other.data if other.tag == "BOOL" else None
    if wanted is None:  # true or false whatever the condition is
        both = (condition, _negated(condition))
        return AndNode(both) if operator == "=" else OrNode(both)
    return condition if wanted is (operator == "=") else _negated(condition)


def _set_change(path: _Path, call: _Call) -> ChangeNode:
    name = call.node.function.upper()
    if len(call.arguments) != 2:
        raise validation(f"{name} must have exactly two arguments")
    first, second = call.arguments
    if not isinstance(first, _Path) or first.node != path.node:
        raise validation(f"The first argument to {name} must equal the assignment value")
    if not isinstance(second, Literal) or second.tag not in ("BAG", "?"):
        raise validation(f"The second argument to {name} must be a value with type SET at {first.place}")
    return ChangeNode("ADD" if name == "SET_ADD" else "DELETE", path.node, constant(second))


# The parser

_KEPT_KEYWORDS = frozenset(
    {"ALL", "MODIFIED", "OLD", "NEW", "ASC", "DESC", "TRUE", "FALSE", "NULL", "MISSING"}
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
    | {"EXISTS", "RETURNING", "AND", "OR", "NOT", "BETWEEN", "IN", "IS", "AS", "LIKE"}
)


def _keyword(token: Token) -> Token:
    """A name, or the keyword that it is."""
    upper = token.upper()
    if upper in _KEYWORDS:
        return token.update(type=upper if upper in _KEPT_KEYWORDS else "_" + upper)
    return token


_callbacks: dict[str, Callable[[Token], Token]] = {"NAME": _keyword}
_parser = Lark.open(
    "grammar.lark",
    rel_to=__file__,
    parser="lalr",
    lexer="basic",
    transformer=_Builder(),
    lexer_callbacks=_callbacks,
)
