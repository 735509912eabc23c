"""The syntax of statements: their trees, literals and arguments, and the service's errors for invalid statements.

Conditions and paths are the nodes of expressions (expressions/syntax.py). A literal is a ValueNode named by its own wire
JSON, a parameter one named `?` and its offset. So a tree does not depend on the parameters, and can be cached by text.

The service has a hand-written parser, so the text of an error depends on the wrong token and on those before it.
Sources: captures of October 2026 in nubo-db/dynamodb-conformance (eu-west-2), and users' reports. Without a capture, the
text is the most likely of these.

Errors of literals contain the place inside the value, as the service's do. Arguments replace an expression's
placeholders, so conditions.py and updates.py also convert statements. Errors of arguments have no frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from tablegate.adapters.dynamodb.expressions.conditions import ConditionReader
from tablegate.adapters.dynamodb.expressions.static_checks import Placeholders
from tablegate.adapters.dynamodb.expressions.syntax import ConditionNode, PathNode, SectionNode, ValueNode
from tablegate.adapters.dynamodb.values.scalars import InvalidValue, canonical_number
from tablegate.adapters.dynamodb.values.values import measure, value_of
from tablegate.adapters.dynamodb.wire import error_texts, limits
from tablegate.adapters.dynamodb.wire.error_texts import expression_text
from tablegate.adapters.dynamodb.wire.errors import ANY_OPERATION, ErrorTexts, ServiceError, validation
from tablegate.gateway.model.expressions.predicates import ALWAYS, Path, Predicate
from tablegate.gateway.model.values.values import Value

if TYPE_CHECKING:
    from lark import Token
    from lark.exceptions import UnexpectedToken


# Trees


Source = tuple[str, ...]
"""The table's name, and the index's if one is read."""


class Select(NamedTuple):
    """A SELECT. `paths` is None for all attributes. `order`: pairs of an attribute and True for descending."""

    source: Source
    paths: tuple[PathNode, ...] | None
    where: ConditionNode | None
    order: tuple[tuple[str, bool], ...]


class Insert(NamedTuple):
    """An INSERT. `item`: attribute -> literal or parameter."""

    source: Source
    item: tuple[tuple[str, ValueNode], ...]


class Update(NamedTuple):
    """An UPDATE. `returning`: as in ReturnValues of UpdateItem."""

    source: Source
    sections: tuple[SectionNode, ...]
    where: ConditionNode | None
    returning: str


class Delete(NamedTuple):
    """A DELETE. `returning`: the value of RETURNING, or "NONE"."""

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


def shown_name(steps: Path) -> str:
    """Return the name of a selected path in the answer: its last name and the list indexes after it."""
    last = max(place for place, step in enumerate(steps) if isinstance(step, str))
    return str(steps[last]) + "".join(f"[{index}]" for index in steps[last + 1 :])


# Errors


def not_well_formed(detail: str) -> ServiceError:
    """Return the error for a text that is no statement."""
    return validation(f"Statement wasn't well formed, can't be processed: {detail}")


def place_of(token: Token) -> str:
    """Return the place of a token: line, column, and length as written."""
    start, end = token.start_pos or 0, token.end_pos or 0
    return f"{token.line}:{token.column}:{end - start}"


INVALID_COMPONENT = "Invalid path dot component"
_ENDS = frozenset({"$END", "SEMICOLON"})
_NAMES = frozenset({"NAME", "QUOTED", "_AS"})
_OPERATORS = frozenset(
    {"EQUALS", "OPERATOR", "PLUS", "MINUS", "_AND", "_OR", "_IN", "_LIKE", "_IS", "_BETWEEN", "STAR"}
)
_INFIX = frozenset({"EQUALS", "OPERATOR", "_AND", "_OR", "_IN", "_BETWEEN"})


def error_of_token(error: UnexpectedToken, tokens: Sequence[Token]) -> ServiceError:
    """Return the error for the first misplaced token. `tokens`: all of the text."""
    kind, accepted = error.token.type, error.accepts
    before = [token.type for token in tokens if kind == "$END" or _start(token) < _start(error.token)]
    if not before or _is_half_an_update(kind, accepted):
        return not_well_formed("Expected data manipulation")
    if "DOT" in accepted and kind in _NAMES and accepted & {"_WHERE", "_SET"}:
        return validation("Aliasing is not supported")
    if before[-1] == "DOT":
        return not_well_formed(INVALID_COMPONENT)
    if "$END" in accepted or (kind in _NAMES and "_VALUE" in accepted):
        return not_well_formed("Unexpected token after expression")
    if before[-2:] == ["_DELETE", "_FROM"]:
        return not_well_formed("Expected identifier for simple path")
    if kind in _ENDS:
        is_infix = before[-1] in _INFIX
        return not_well_formed(
            "Missing right-hand side expression of infix operator" if is_infix else "Unexpected term"
        )
    if before[-1] == "_IS" or before[-2:] == ["_IS", "_NOT"]:
        return not_well_formed("Expected type name")
    if kind in _OPERATORS:
        return not_well_formed("Unexpected operator")
    if kind.lstrip("_") == error.token.upper():
        return not_well_formed("Unexpected keyword")
    return not_well_formed("Unexpected term")


def _start(token: Token) -> int:
    return token.start_pos or 0


def _is_half_an_update(kind: str, accepted: set[str]) -> bool:
    """True after UPDATE and a table without SET or REMOVE (`UPDATE a-b SET`)."""
    return "_SET" in accepted and "DOT" in accepted and "_WHERE" not in accepted and kind not in _NAMES


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
    return ValueNode(orjson.dumps(_wire_of_literal(literal, "root", 0)).decode())


def _wire_of_literal(literal: Literal, where: str, level: int) -> dict[str, Any]:
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
            return {
                "L": [_wire_of_literal(member, f"{where}[{n}]", level + 1) for n, member in enumerate(data)]
            }
        case "M":
            names = [name for name, _ in data]
            for name in names:
                if names.count(name) > 1:
                    raise validation(f"Duplicate keys in tuple. Key: {name} under {where}")
            return {
                "M": {name: _wire_of_literal(member, f"{where}.{name}", level + 1) for name, member in data}
            }
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
        raise validation(
            f"{error_texts.INVALID}Input collection [{listing}] contains duplicates! under {where}"
        )
    return {"NS": numbers}


# Arguments


class Arguments(Placeholders):
    """The arguments of a statement, by the names from parsing.py. Raises ServiceError if there are too few."""

    __slots__ = ("_given", "_made")

    def __init__(
        self, names: Sequence[str], parameters: Sequence[Any], error_texts: ErrorTexts = ANY_OPERATION
    ) -> None:
        super().__init__(error_texts=error_texts)
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
