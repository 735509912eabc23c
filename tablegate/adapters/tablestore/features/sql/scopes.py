"""The columns and subqueries that an expression can name, and the type of compiled expressions.

A row is a list of values. A Scope says at which place of it a column is. The functions at the beginning take parts of
sqlglot's trees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tablegate.adapters.tablestore.features.sql.sql_values import (
    INTEGER_MAX,
    BytesLiteral,
    ResultColumn,
    SqlColumn,
    SqlType,
    checked,
    sql_error,
)

SUBQUERIES = frozenset({"subquery", "exists", "select", "union"})
_DIGITS_MAX = 400  # of a number
_FLIPPED = {"eq": "eq", "lt": "gt", "lte": "gte", "gt": "lt", "gte": "lte"}
# Parts of a tree by its key. Any other part would change its meaning.
USUAL_PARTS = frozenset({"this", "expression", "expressions"})
PARTS = {
    "column": frozenset({"this", "table"}),
    "literal": frozenset({"this", "is_string"}),
    "between": frozenset({"this", "low", "high"}),
    "like": frozenset({"this", "expression", "negate"}),
    "in": frozenset({"this", "expressions", "query"}),
    "case": frozenset({"this", "ifs", "default"}),
    "concat": frozenset({"expressions", "safe", "coalesce"}),  # texts beside each other
    "cast": frozenset({"this", "to", "_type"}),
    "div": frozenset({"this", "expression", "typed", "safe"}),
}


class LiteralComparison(NamedTuple):
    """A comparison of an expression with other ones.

    - `operator`: eq, lt, lte, gt, gte, between or in.
    - `literals`: the values of the others as Python values. None for an expression that is no literal.
    """

    operator: str
    expression: Any
    literals: list[Any]


def own_nodes(tree: Any) -> Iterator[Any]:
    """Yield the nodes of a SELECT, without those inside of its subqueries."""
    yield from tree.walk(prune=lambda node: node is not tree and node.key in SUBQUERIES)


def flat(tree: Any) -> list[Any]:
    """Return the parts of a chain of AND or OR. A chain can be longer than the nesting of expressions."""
    parts, pending = [], [tree]
    while pending:
        part = pending.pop()
        if part.key == tree.key:
            pending += [part.expression, part.this]
        else:
            parts.append(part)
    return parts


def conjuncts(tree: Any) -> Iterator[Any]:
    """Yield the parts of a condition that must all be true."""
    pending = [tree]
    while pending:
        part = pending.pop()
        if part.key == "and":
            pending += [part.expression, part.this]
        elif part.key == "paren":
            pending.append(part.this)
        else:
            yield part


def function_name(tree: Any) -> str:
    """Return the name of a call of a function in upper case, or "" for any other expression."""
    return str(tree.this).upper() if tree.key == "anonymous" else ""


def literal_value(tree: Any) -> Any:
    """Return the int, float, bool or str of a literal. None for any other expression."""
    sign = 1
    if tree.key == "neg":
        sign, tree = -1, tree.this
        if tree.key != "literal" or tree.is_string:
            return None
    if tree.key == "boolean":
        return bool(tree.this)
    if tree.key != "literal":
        return None
    if tree.is_string:
        return tree.this
    if len(tree.this) > _DIGITS_MAX:
        return None
    is_whole = tree.this.isascii() and tree.this.isdigit()
    return sign * (int(tree.this) if is_whole else float(tree.this))


def comparison_of(tree: Any) -> LiteralComparison | None:
    """Return the comparison that a tree is, None for any other tree. A literal on the left is moved to the right."""
    operator, left = tree.key, tree.this
    if operator == "between":
        others = [tree.args["low"], tree.args["high"]]
    elif operator == "in":
        others = tree.expressions
    elif operator not in _FLIPPED:
        return None
    elif literal_value(left) is not None:
        operator, left, others = _FLIPPED[operator], tree.expression, [left]
    else:
        others = [tree.expression]
    return LiteralComparison(operator, left, [literal_value(each) for each in others])


Row = Sequence[Any]
SCORE = SqlColumn("SCORE()", SqlType.DOUBLE, "")
"""The score of a row that a vector query finds. A star does not select it."""


class PreparedSelect(NamedTuple):
    """A subquery. All of its rows are read.

    - `outer_places`: places of the values that it uses in the row of the outer statement. Without any, its rows are constant.
    - `rows_for`: returns its rows for a row of that statement. Raises ServiceError.
    """

    columns: list[ResultColumn]
    outer_places: frozenset[int]
    rows_for: Callable[[Row], Sequence[Row]]


class Scope:
    """The columns of the rows that expressions read: (name of the table or its alias, column) at each place.

    - `subqueries`: those in the expressions, by the identity of their trees.
    - `outer`: the scope of the statement around a subquery. The values of its row follow those of the `own` places.
    - `check_time`: called for each value that may take long. Raises ServiceError.
    """

    def __init__(
        self,
        columns: Sequence[tuple[str, SqlColumn]],
        subqueries: Mapping[int, PreparedSelect] | None = None,
        outer: Scope | None = None,
        check_time: Callable[[], None] = lambda: None,
    ) -> None:
        self.own = range(len(columns))
        self.columns: list[tuple[str, SqlColumn]] = [*columns, *(outer.columns if outer is not None else ())]
        self.subqueries = subqueries or {}
        self.outer = outer
        self.check_time = check_time

    def place(self, name: str, table: str = "") -> int:
        """Return the place of a column. Raises ServiceError. Names are compared without case, as MySQL does."""
        place = self.known_place(name, table)
        if place is None:
            raise sql_error(f"Unknown column '{name[:255]}'.")
        return place

    def known_place(self, name: str, table: str = "") -> int | None:
        """Return the place of a column, None if there is none. Raises ServiceError if there are several."""
        found = self.places(name, table)
        if len(found) > 1:
            raise sql_error(f"Column '{name[:255]}' is ambiguous.")
        return found[0] if found else None

    def places(self, name: str, table: str = "") -> list[int]:
        """Return the places of the columns with a name: its own ones, or else those of the statement around it."""
        lower, source = name.lower(), table.lower()
        found = [at for at in self.own if self._has_name(at, lower, source)]
        if found or self.outer is None:
            return found
        return [len(self.own) + at for at in self.outer.places(name, table)]

    def _has_name(self, place: int, name: str, source: str) -> bool:
        owner, column = self.columns[place]
        return column.name.lower() == name and (owner.lower() == source if source else not column.is_hidden)


def places_of(tree: Any, scope: Scope) -> set[int]:
    """Return the places of the columns that an expression or a SELECT reads. A star reads all of its own."""
    found: set[int] = set()
    for node in own_nodes(tree):
        if node.key == "star":
            is_count = node.parent is not None and node.parent.key == "anonymous"
            found |= set() if is_count else set(scope.own)
        elif node.key == "column" and node.this.key != "star":
            for name in {node.name, node.name.partition(".")[0]}:  # a field of a nested column
                found.update(scope.places(name, node.table))
        elif id(node) in scope.subqueries:
            found |= scope.subqueries[id(node)].outer_places
    return found


class Compiled(NamedTuple):
    """An expression: its type, and the function that returns its value for a row."""

    type: SqlType
    value: Callable[[Row], Any]


def constant(kind: SqlType, value: Any) -> Compiled:
    """Compile a value."""
    return Compiled(kind, lambda row: value)


def compiled_literal(tree: Any) -> Compiled:
    """Compile a text or a number. One beyond BIGINT is a decimal number, and so a DOUBLE."""
    text = tree.this
    if tree.is_string:
        return constant(SqlType.STRING, text)
    if len(text) > 400:
        raise sql_error("A number is too long.")
    if text.isascii() and text.isdigit() and int(text) <= INTEGER_MAX:
        return constant(SqlType.LONG, int(text))
    return constant(SqlType.DOUBLE, checked(float(text)))


def bytes_constant(digits: str, base: int) -> Compiled:
    """Compile a literal of hexadecimal or binary digits."""
    try:
        length = -(-len(digits) * (base.bit_length() - 1) // 8)
        return constant(SqlType.BINARY, BytesLiteral(int(digits or "0", base).to_bytes(length, "big")))
    except ValueError:
        raise sql_error("Invalid digits in a literal.") from None
