"""MySQL as sqlglot parses it, with calls of functions as they are written.

sqlglot rewrites many functions to common names. Here all calls are Anonymous, because only the functions of functions.py
exist. Forms with words inside of the parentheses, such as TRIM(BOTH x FROM y), become calls with arguments.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from tablegate.adapters.tablestore.sql.sql_types import sql_error
from tablegate.adapters.tablestore.wire import limits

_EXTRACTED = ("MICROSECOND", "SECOND", "MINUTE", "HOUR", "DAY", "MONTH", "QUARTER", "YEAR")


@cache
def dialect_and_parser() -> tuple[Any, Any]:
    """Return the dialect, and a class of parsers of it that rewrites no function."""
    from sqlglot import TokenType, exp
    from sqlglot.dialects.mysql import MySQL

    parsers = MySQL.Parser.FUNCTION_PARSERS
    members = {
        "FUNCTIONS": {},
        "FUNCTION_PARSERS": {name: parsers[name] for name in ("CAST", "CONVERT")}
        | {
            "EXTRACT": _extract,
            "POSITION": _position,
            "SUBSTR": _substring,
            "SUBSTRING": _substring,
            "TRIM": _trim,
        },
        "COLUMN_OPERATORS": MySQL.Parser.COLUMN_OPERATORS
        | {TokenType.ARROW: _json_value, TokenType.DARROW: _json_text},
        "LAMBDAS": {},  # they begin with the same arrow
        "NO_PAREN_FUNCTIONS": {
            token: partial(exp.Anonymous, this=token.name)
            for token in (
                TokenType.CURRENT_DATE,
                TokenType.CURRENT_TIMESTAMP,
                TokenType.LOCALTIME,
                TokenType.LOCALTIMESTAMP,
            )
        },
        "NO_PAREN_FUNCTION_PARSERS": {"CASE": MySQL.Parser.NO_PAREN_FUNCTION_PARSERS["CASE"]},
    }
    return MySQL(), type("Parser", (_bounded(MySQL.Parser),), members)


def _bounded(parser_class: Any) -> Any:
    """Return a class of parsers that end after a number of steps.

    sqlglot reads the name of a type before a parenthesis twice or more: as a type, then as a function. Nested calls of
    such names take exponential time.
    """

    class BoundedParser(parser_class):  # type: ignore[misc]
        steps = 0

        def _advance(self, times: int = 1) -> None:
            self.steps += 1
            if self.steps > limits.SQL_PARSER_STEPS_MAX:
                raise sql_error("The SQL statement takes too long to parse.")
            super()._advance(times)

    return BoundedParser


def _call(name: str, *arguments: Any) -> Any:
    from sqlglot import exp

    return exp.Anonymous(this=name, expressions=list(arguments))


def _json_value(parser: Any, document: Any, path: Any) -> Any:
    if path is None:
        parser.raise_error("Expected a JSON path")
    return _call("JSON_EXTRACT", document, path)


def _json_text(parser: Any, document: Any, path: Any) -> Any:
    return _call("JSON_UNQUOTE", _json_value(parser, document, path))


def _extract(parser: Any) -> Any:
    """Return EXTRACT(unit FROM moment) as a call of the function of the unit."""
    from sqlglot import TokenType

    if not parser._match_texts(_EXTRACTED):
        parser.raise_error("Expected a unit that is supported")
    name = parser._prev.text.upper()
    _expect(parser, TokenType.FROM)
    return _call(name, _argument(parser))


def _position(parser: Any) -> Any:
    """Return POSITION(part IN text) as a call of LOCATE."""
    from sqlglot import TokenType

    part = parser._parse_bitwise()
    _expect(parser, TokenType.IN)
    return _call("LOCATE", part, _argument(parser))


def _substring(parser: Any) -> Any:
    """Return SUBSTRING(text FROM start FOR length), or its form with commas."""
    from sqlglot import TokenType

    arguments = parser._parse_csv(parser._parse_disjunction)
    if parser._match(TokenType.FROM):
        arguments.append(_argument(parser))
        if parser._match(TokenType.FOR):
            arguments.append(_argument(parser))
    return _call("SUBSTRING", *arguments)


def _trim(parser: Any) -> Any:
    """Return TRIM(BOTH removed FROM text) as a call with two arguments, of a name for each side."""
    from sqlglot import TokenType, exp

    side = parser._prev.text.upper() if parser._match_texts(("BOTH", "LEADING", "TRAILING")) else "BOTH"
    text, removed = parser._parse_disjunction(), None
    if parser._match(TokenType.FROM):
        text, removed = _argument(parser), text
    if text is None:
        parser.raise_error("Expected a text")
    return _call(f"TRIM {side}", text, removed or exp.Literal.string(" "))


def _argument(parser: Any) -> Any:
    value = parser._parse_disjunction()
    if value is None:
        parser.raise_error("Expected an expression")
    return value


def _expect(parser: Any, token: Any) -> None:
    if not parser._match(token):
        parser.raise_error(f"Expected {token.name}")
