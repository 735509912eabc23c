"""The service's errors for invalid statements.

The service has a hand-written parser, so its text depends on the wrong token and on those before it. Sources:
captures of October 2026 in nubo-db/dynamodb-conformance (eu-west-2), and users' reports. Without a capture, the
text is the most likely of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation

if TYPE_CHECKING:
    from lark import Token
    from lark.exceptions import UnexpectedToken


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
