"""The syntax of statements: their trees, and the service's errors for invalid statements.

Conditions and paths are the nodes of expressions (expressions/syntax.py). A literal is a ValueNode named by its own wire
JSON, a parameter one named `?` and its offset. So a tree does not depend on the parameters, and can be cached by text.

The service has a hand-written parser, so the text of an error depends on the wrong token and on those before it.
Sources: captures of October 2026 in nubo-db/dynamodb-conformance (eu-west-2), and users' reports. Without a capture, the
text is the most likely of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tablegate.adapters.dynamodb.expressions.syntax import ConditionNode, PathNode, SectionNode, ValueNode
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.gateway.model.expressions.predicates import Path

if TYPE_CHECKING:
    from lark import Token
    from lark.exceptions import UnexpectedToken


# Trees


Source = tuple[str, ...]
"""The table's name, and the index's if one is read."""


class Select(NamedTuple):
    """A SELECT. `paths` None: all attributes. `order`: pairs of an attribute and True for descending."""

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
