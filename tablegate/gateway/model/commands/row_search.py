"""A search for rows as data: conditions on key columns and attributes of a table or an index.

The console makes it of a form and reads the rows. Adapters write it as a statement and as code of their SDKs.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from tablegate.gateway.model.expressions.predicates import (
    ALWAYS,
    And,
    Attribute,
    Compare,
    Comparison,
    Contains,
    Exists,
    HasKind,
    Literal,
    Not,
    Or,
    Path,
    Predicate,
    SizeOf,
    StartsWith,
)
from tablegate.gateway.model.expressions.ranges import (
    EVERYTHING,
    ColumnBounds,
    KeyRange,
    bounds_of,
    bounds_of_prefix,
    range_of,
)
from tablegate.gateway.model.tables.indexes import Index
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.values import Kind, Value


class Operator(Enum):
    """The operators of conditions. The values are the texts in forms. NOT_EXISTS and EXISTS have no operand."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    BETWEEN = "between"
    IN = "in"
    BEGINS_WITH = "begins with"
    CONTAINS = "contains"
    EXISTS = "exists"
    NOT_EXISTS = "is missing"
    TYPE = "is of type"
    SIZE_EQ = "size ="
    SIZE_NE = "size <>"
    SIZE_LT = "size <"
    SIZE_LE = "size <="
    SIZE_GT = "size >"
    SIZE_GE = "size >="

    @property
    def comparison(self) -> Comparison | None:
        """The comparison of the value or of its size. None for other operators."""
        return _COMPARISONS.get(self) or _SIZE_COMPARISONS.get(self)

    @property
    def is_of_size(self) -> bool:
        return self in _SIZE_COMPARISONS


_COMPARISONS = {
    Operator.EQ: Comparison.EQ, Operator.NE: Comparison.NE, Operator.LT: Comparison.LT,
    Operator.LE: Comparison.LE, Operator.GT: Comparison.GT, Operator.GE: Comparison.GE,
}  # fmt: skip
_SIZE_COMPARISONS = {
    Operator.SIZE_EQ: Comparison.EQ, Operator.SIZE_NE: Comparison.NE, Operator.SIZE_LT: Comparison.LT,
    Operator.SIZE_LE: Comparison.LE, Operator.SIZE_GT: Comparison.GT, Operator.SIZE_GE: Comparison.GE,
}  # fmt: skip
KEY_OPERATORS = (
    Operator.EQ, Operator.LT, Operator.LE, Operator.GT, Operator.GE, Operator.BETWEEN, Operator.BEGINS_WITH,
)  # fmt: skip
"""The operators that are a range of a key column."""


class Condition(NamedTuple):
    """A condition on the value at a document path. `kind` is the operand of Operator.TYPE."""

    path: Path
    operator: Operator
    values: tuple[Value, ...] = ()
    kind: Kind | None = None

    def predicate(self) -> Predicate:
        """Return the condition as a predicate."""
        attribute, literals = Attribute(self.path), [Literal(value) for value in self.values]
        comparison = self.operator.comparison
        if comparison is not None:
            operand = SizeOf(self.path) if self.operator.is_of_size else attribute
            return Compare(operand, comparison, literals[0])
        match self.operator:
            case Operator.EXISTS:
                return Exists(self.path)
            case Operator.NOT_EXISTS:
                return Not(Exists(self.path))
            case Operator.BEGINS_WITH:
                return StartsWith(attribute, literals[0])
            case Operator.CONTAINS:
                return Contains(attribute, literals[0])
            case Operator.BETWEEN:
                lowest, highest = literals
                return And(
                    (Compare(attribute, Comparison.GE, lowest), Compare(attribute, Comparison.LE, highest))
                )
            case Operator.IN:
                return Or(tuple(Compare(attribute, Comparison.EQ, literal) for literal in literals))
        assert self.kind is not None
        return HasKind(attribute, frozenset({self.kind}))

    def bounds(self) -> ColumnBounds:
        """Return the bounds of a key column. The operator is one of KEY_OPERATORS."""
        if self.operator is Operator.BEGINS_WITH:
            return bounds_of_prefix(self.values[0])
        if self.operator is Operator.BETWEEN:
            lower_bounds, upper_bounds = (
                bounds_of(comparison, value)
                for comparison, value in zip((Comparison.GE, Comparison.LE), self.values, strict=True)
            )
            assert lower_bounds is not None
            assert upper_bounds is not None
            return lower_bounds.intersect(upper_bounds)
        comparison = self.operator.comparison
        assert comparison is not None
        column_bounds = bounds_of(comparison, self.values[0])
        assert column_bounds is not None
        return column_bounds


class RowSearch(NamedTuple):
    """A search for rows of a table or an index.

    - `equal`: values of the leading key columns.
    - `last`: the condition on the key column that follows. None permits any value.
    - `filters`: conditions on the rows in that range. All must be true.
    - `reverse`: the order is from the highest key to the lowest.
    """

    table: Table
    search_index: Index | None = None
    equal: tuple[Value, ...] = ()
    last: Condition | None = None
    filters: tuple[Condition, ...] = ()
    reverse: bool = False

    @property
    def schema(self) -> KeySchema:
        return self.table.key_schema if self.search_index is None else self.search_index.key_schema

    @property
    def key_conditions(self) -> list[tuple[KeyColumn, Condition]]:
        """The conditions on key columns, in the order of the columns."""
        columns = self.schema.columns
        conditions = [
            Condition((column.name,), Operator.EQ, (value,))
            for column, value in zip(columns, self.equal, strict=False)
        ]
        if self.last is not None:
            conditions.append(self.last)
        return list(zip(columns, conditions, strict=False))

    def key_range(self) -> KeyRange:
        """Return the range of keys."""
        if not self.equal and self.last is None:
            return EVERYTHING
        return range_of(self.schema, self.equal, None if self.last is None else self.last.bounds())

    def filter(self) -> Predicate:
        """Return the filters as one predicate."""
        parts = tuple(condition.predicate() for condition in self.filters)
        if not parts:
            return ALWAYS
        return parts[0] if len(parts) == 1 else And(parts)


class Endpoint(NamedTuple):
    """A server as programs reach it. `accepts_all`: it accepts any credential (`--auth dev`)."""

    url: str
    accepts_all: bool


class NotExpressible(ValueError):
    """A dialect has no form for a search. The text says what is missing."""


class StatementPage(NamedTuple):
    """A page of the rows that a statement reads.

    - `table_name`: the table in the statement.
    - `token`: where the next page begins. "": there is none.
    """

    table_name: str
    rows: list[dict[str, Value]]
    token: str


_STEP = re.compile(r'"((?:[^"]|"")+)"|([^.\[\]"]+)|\[(\d{1,6})\]')


def parse_path(text: str) -> Path | None:
    """Return the document path of a text such as `a.b[0]`. Names with other characters are quoted: `"a.b"[0]`.

    None if the text is no path.
    """
    steps: list[str | int] = []
    at = 0
    while at < len(text):
        if text[at] == "." and steps:
            at += 1
        elif steps and text[at] != "[":
            return None
        step_match = _STEP.match(text, at)
        if step_match is None or (step_match[3] is not None and (not steps or text[at - 1] == ".")):
            return None
        quoted, plain, number = step_match.groups()
        steps.append(quoted.replace('""', '"') if quoted else plain or int(number))
        at = step_match.end()
    return tuple(steps) if steps else None


def path_text(path: Path) -> str:
    """Return a path as text that `parse_path` reads."""
    parts = []
    for step in path:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        else:
            is_plain = step and not re.search(r'[.\[\]"]', step)
            parts.append("." + (step if is_plain else '"' + step.replace('"', '""') + '"'))
    return "".join(parts).removeprefix(".")
