"""The parser of statements: text to tree (statement_syntax.py), with a cache.

Only errors of the text itself are found here. Hostile texts are bounded by limits.py: the parser has its own
stack, literals stop at 32 levels and conditions at 300 operators.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from lark import Lark, Token
from lark.exceptions import UnexpectedInput, UnexpectedToken, VisitError

from tablegate.adapters.dynamodb.features.partiql.statement_syntax import (
    Parsed,
    error_of_token,
    name_of_parameter,
    not_well_formed,
)
from tablegate.adapters.dynamodb.features.partiql.tree_builder import StatementBuilder
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.error_texts import expression_text
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation

# Words, texts, quoted names and comparisons.
_TOKENS = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|[A-Za-z_$][A-Za-z0-9_$]*|<>|!=|<=|>=|[+<>=]""")
_JOINING = frozenset({"AND", "OR", "IN", "NOT"})


def _count_operators(text: str) -> None:
    """Raise ServiceError for too many operators before a tree is built.

    Two kinds of statements are counted in the tree instead: those with SET, where = is no operator, and those
    with TRUE or FALSE. A condition may be compared with TRUE or FALSE without another operator.
    """
    words = [token.upper() for token in _TOKENS.findall(text)]
    signs = words.count("+") // 2  # each may also be the sign of a number
    if signs > limits.EXPRESSION_OPERATORS:
        raise validation(expression_text("operators", count=signs))
    if not {"SET", "TRUE", "FALSE"}.isdisjoint(words):
        return
    comparisons = sum(token in _COMPARISONS for token in words)
    if comparisons + words.count("IN") + words.count("AND") + words.count("OR") > limits.EXPRESSION_OPERATORS:
        count = comparisons + sum(token in _JOINING for token in words)
        raise validation(expression_text("operators", count=count))


_COMPARISONS = frozenset({"<>", "!=", "<=", ">=", "<", ">", "="})


def parse(text: str) -> Parsed:
    """Return the tree of a statement, and the names of its parameters. Raises ServiceError."""
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
        error.interactive_parser = reading  # has the tokens that it would have accepted
        raise error_of_token(error, tokens) from None
    except UnexpectedInput:
        raise not_well_formed("") from None
    names = [name_of_parameter(token.start_pos or 0) for token in tokens if token.type == "PARAMETER"]
    return Parsed(statement, tuple(names))


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
    """Return a name, or the keyword token for a keyword."""
    upper = token.upper()
    if upper in _KEYWORDS:
        return token.update(type=upper if upper in _KEPT_KEYWORDS else "_" + upper)
    return token


_callbacks: dict[str, Callable[[Token], Token]] = {"NAME": _keyword}


@cache
def _parser() -> Lark:
    """Return the parser, built at the first statement (40 ms)."""
    grammar = Path(__file__).with_name("grammar.lark").read_text()
    return Lark(
        grammar, parser="lalr", lexer="basic", transformer=StatementBuilder(), lexer_callbacks=_callbacks
    )


# In characters. Longer texts are rare, and caching them would let a hostile client fill the memory.
_CACHED_MAX_CHARACTERS = 1024


def parsed(text: str) -> Parsed:
    """Return the tree of a statement, and the names of its parameters. Raises ServiceError."""
    return (_parse_cached if len(text) <= _CACHED_MAX_CHARACTERS else parse)(text)


_parse_cached = lru_cache(maxsize=512)(parse)
