"""Builder of literals, called by the lark parser."""

from __future__ import annotations

from typing import Any

from lark import Token, Transformer, v_args

from tablegate.adapters.dynamodb.partiql import operands
from tablegate.adapters.dynamodb.partiql.literals import Literal, name_of_parameter, number_text
from tablegate.adapters.dynamodb.partiql.syntax_errors import place_of
from tablegate.adapters.dynamodb.wire.errors import validation


@v_args(inline=True)
class LiteralBuilder(Transformer[Token, Any]):
    """A transformer that builds literals and the names of their members."""

    def text(self, token: Token) -> Literal:
        return Literal("S", _unquote(token), place_of(token))

    def number(self, token: Token) -> Literal:
        return Literal("N", number_text(str(token)), place_of(token))

    def minus(self, _sign: Token, number: Literal) -> Literal:
        data = number.data
        return number._replace(data=data[1:] if data.startswith("-") else "-" + data)

    def plus(self, _sign: Token, number: Literal) -> Literal:
        return number

    def boolean(self, token: Token) -> Literal:
        return Literal("BOOL", token.type == "TRUE", place_of(token))

    def null(self, token: Token) -> Literal:
        return Literal("NULL", True, place_of(token))

    def missing(self, token: Token) -> Literal:
        raise validation("MISSING must be compared using IS operator")

    def parameter(self, token: Token) -> Literal:
        return Literal("?", name_of_parameter(token.start_pos or 0), place_of(token))

    def list(self, *members: Literal | operands.FunctionCall | None) -> Literal:
        return Literal("L", _literals(members), "")

    def bag(self, *members: Any) -> Literal:
        return Literal("BAG", _literals(members[1:-1]), "")

    def map(self, *pairs: Any) -> Literal:
        return Literal("M", _present(pairs), "")

    def pair(self, name: Token, value: Literal | operands.FunctionCall) -> tuple[str, Literal]:
        return _unquote(name), _literal(value)

    def member(self, token: Token) -> str:
        if token == "''":
            raise validation("Path component cannot be an empty string")
        return _unquote(token)


def _present(members: tuple[Any, ...]) -> tuple[Any, ...]:
    return () if members == (None,) else members


def _literals(members: tuple[Any, ...]) -> tuple[Literal, ...]:
    return tuple([_literal(member) for member in _present(members)])


def _literal(value: Literal | operands.FunctionCall) -> Literal:
    """Convert a function to a literal CALL. The error for it contains the place inside the value."""
    return value if isinstance(value, Literal) else Literal("CALL", value.node.function, value.place)


def _unquote(token: Token) -> str:
    return token[1:-1].replace("''", "'")
