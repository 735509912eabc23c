"""Parsing of statements with sqlglot, within bounds of length and depth.

sqlglot rewrites many functions to common names. In the MySQL dialect of this module all calls are Anonymous, because only
the functions of functions.py exist. Forms with words inside of the parentheses, such as TRIM(BOTH x FROM y), become
calls with arguments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, partial
from itertools import zip_longest
from typing import Any

from tablegate.adapters.tablestore.features.sql.sql_values import sql_error
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import ServiceError

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


_NAME = r"`?(?P<table>[A-Za-z0-9_]+)`?"
_DROP = re.compile(
    r"\s*drop\s+mapping\s+table\s+(?:if\s+exists\s+)?(?P<tables>[A-Za-z0-9_`]+(?:\s*,\s*[A-Za-z0-9_`]+)*)\s*;?\s*",
    re.IGNORECASE,
)
_EXPLAIN = re.compile(r"\s*explain\s+(?=select\b)", re.IGNORECASE)
_DATABASE = r"(?:\s+(?:from|in)\s+(?P<database>`[^`]{1,64}`|[A-Za-z0-9_]+))?"
_PATTERN = r"""(?:\s+like\s+(?P<pattern>'(?:[^'\\]|''|\\.)*'|"(?:[^"\\]|""|\\.)*"))?"""
_END = r"\s*;?\s*"
_SHOW_TABLES = re.compile(rf"\s*show\s+tables{_DATABASE}{_PATTERN}{_END}", re.IGNORECASE | re.DOTALL)
_SHOW_INDEX = re.compile(
    rf"\s*show\s+(?:index|indexes|keys)\s+(?:in|from)\s+{_NAME}{_DATABASE}{_END}", re.IGNORECASE
)
_SHOW_COLUMNS = re.compile(
    rf"\s*show\s+(?P<full>full\s+)?(?:columns|fields)\s+(?:in|from)\s+{_NAME}{_DATABASE}{_PATTERN}{_END}",
    re.IGNORECASE | re.DOTALL,
)
_DESCRIBE = re.compile(rf"\s*(?:desc|describe)\s+{_NAME}{_END}", re.IGNORECASE)
_BLANKS = re.compile(r"\s+")
_HIGHLIGHT = re.compile("\x1b\\[[0-9]*m")


@dataclass(frozen=True, slots=True)
class ShowTables:
    """SHOW TABLES. `database`: the instance that it names, or "". `pattern`: that of its LIKE."""

    database: str = ""
    pattern: str = "%"


@dataclass(frozen=True, slots=True)
class ShowIndex:
    """SHOW INDEX of a table."""

    table: str
    database: str = ""


@dataclass(frozen=True, slots=True)
class ShowColumns:
    """SHOW COLUMNS of a table, and DESCRIBE, which is the same without a LIKE. `is_full`: with SHOW FULL COLUMNS."""

    table: str
    database: str = ""
    pattern: str = "%"
    is_full: bool = False


@dataclass(frozen=True, slots=True)
class DropMapping:
    """DROP MAPPING TABLE of one or more names, with or without IF EXISTS."""

    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CreateMapping:
    """CREATE TABLE, as a tree of sqlglot."""

    tree: Any


@dataclass(frozen=True, slots=True)
class AlterMapping:
    """ALTER TABLE, as a tree of sqlglot."""

    tree: Any


@dataclass(frozen=True, slots=True)
class Select:
    """SELECT, as a tree of sqlglot. `labels`: the source text of each selected expression."""

    tree: Any
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explain:
    """EXPLAIN of a SELECT."""

    select: Select


Statement = (
    ShowTables | ShowIndex | ShowColumns | DropMapping | CreateMapping | AlterMapping | Select | Explain
)


def parse_statement(text: str) -> Statement:
    """Return the statement of a text. Raises ServiceError."""
    if len(text) > limits.SQL_CHARACTERS_MAX:
        raise sql_error(f"The statement is longer than {limits.SQL_CHARACTERS_MAX} characters.")
    if found := _SHOW_TABLES.fullmatch(text):
        return ShowTables(_database_of(found), _pattern_of(found))
    if found := _SHOW_INDEX.fullmatch(text):
        return ShowIndex(found["table"], _database_of(found))
    if found := _SHOW_COLUMNS.fullmatch(text):
        return ShowColumns(found["table"], _database_of(found), _pattern_of(found), found["full"] is not None)
    if found := _DESCRIBE.fullmatch(text):
        return ShowColumns(found["table"])
    if found := _DROP.fullmatch(text):
        return DropMapping(tuple(name.strip().strip("`") for name in found["tables"].split(",")))
    if found := _EXPLAIN.match(text):
        statement = _parse_tree(text[found.end() :])
        assert isinstance(statement, Select)  # no other statement begins with this word
        return Explain(statement)
    return _parse_tree(text)


def _database_of(found: re.Match[str]) -> str:
    return (found["database"] or "").strip("`")


def _pattern_of(found: re.Match[str]) -> str:
    """Return the text of the literal after LIKE."""
    if found["pattern"] is None:
        return "%"
    [literal] = dialect_and_parser()[0].tokenize(found["pattern"])
    return str(literal.text)


def tables_of(text: str) -> list[str]:
    """Return the names of the tables in a statement. Empty if it is none."""
    try:
        statement = parse_statement(text)
    except ServiceError:
        return []
    match statement:
        case ShowTables():
            return []
        case Select(tree) | Explain(Select(tree)) | CreateMapping(tree) | AlterMapping(tree):
            return [node.name for node in tree.walk() if node.key == "table"]
        case DropMapping(tables):
            return list(tables)
    return [statement.table]


def _parse_tree(text: str) -> Statement:
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    dialect, parser = dialect_and_parser()
    try:
        tokens = dialect.tokenize(text)
        _check_tokens(tokens)
        parsed = parser(dialect=dialect).parse(tokens, text)
    except SqlglotError as error:
        reason = _BLANKS.sub(" ", _HIGHLIGHT.sub("", str(error)))[:200]
        raise sql_error(f"Failed to parse the SQL statement: {reason}") from None
    except RecursionError:
        raise _too_deep() from None
    trees = [tree for tree in parsed if tree is not None and tree.key != "semicolon"]
    if len(trees) != 1:
        raise sql_error("The request must have one SQL statement.")
    [tree] = trees
    _check_size(tree)
    if isinstance(tree, exp.Select):
        return Select(tree, _labels(text, tokens))
    if isinstance(tree, exp.Create) and tree.kind == "TABLE":
        return CreateMapping(tree)
    if isinstance(tree, exp.Alter) and tree.args.get("kind") == "TABLE":
        return AlterMapping(tree)
    raise sql_error(f"Unsupported SQL statement: {tree.key}.")


def _check_tokens(tokens: list[Any]) -> None:
    """Raise ServiceError for what the parser accepts or what it must not enter.

    That is a list that ends after a comma, a clause without a list, and parentheses that are nested too deep.
    """
    depth = 0
    for token, following in zip_longest(tokens, tokens[1:]):
        kind, next_kind = (None if each is None else each.token_type.name for each in (token, following))
        if kind in _BEFORE_AN_EXPRESSION and (next_kind is None or next_kind in _AFTER_AN_EXPRESSION):
            raise sql_error(
                f"Failed to parse the SQL statement: an expression is missing after {token.text}."
            )
        depth += (kind == "L_PAREN") - (kind == "R_PAREN")
        if depth > limits.SQL_DEPTH_MAX:
            raise _too_deep()


def _check_size(tree: Any) -> None:
    """Raise ServiceError for a tree that is too deep or too large. Chains of AND and OR are flat."""
    pending, number = [(tree, 0)], 0
    while pending:
        node, depth = pending.pop()
        number += 1
        if number > limits.SQL_NODES_MAX:
            raise sql_error("The SQL statement is too long.")
        if depth > limits.SQL_TREE_DEPTH_MAX:
            raise _too_deep()
        for child in node.iter_expressions():
            is_flat = child.key == node.key and child.key in ("and", "or")
            pending.append((child, depth if is_flat else depth + 1))


def _too_deep() -> Exception:
    return sql_error("The SQL statement is nested too deep.")


_CLAUSES = frozenset({"FROM", "WHERE", "GROUP_BY", "HAVING", "ORDER_BY", "LIMIT", "SEMICOLON"})
_BEFORE_AN_EXPRESSION = frozenset({"COMMA", "GROUP_BY", "ORDER_BY"})
_AFTER_AN_EXPRESSION = _CLAUSES | {"R_PAREN"}


def _labels(text: str, tokens: list[Any]) -> tuple[str, ...]:
    """Return the source text of each selected expression: unnamed columns are called by it."""
    labels: list[str] = []
    depth = 0
    first = last = None
    for token in tokens[1:]:
        kind = token.token_type.name
        if first is None and kind in ("DISTINCT", "ALL"):
            continue
        if depth == 0 and kind in _CLAUSES:
            break
        if depth == 0 and kind == "COMMA" and first is not None and last is not None:
            labels.append(text[first.start : last.end + 1])
            first = None
            continue
        depth += (kind == "L_PAREN") - (kind == "R_PAREN")
        first, last = first or token, token
    if first is not None and last is not None:
        labels.append(text[first.start : last.end + 1])
    return tuple(labels)
