"""Aggregates: COUNT, SUM, AVG, MIN and MAX, with DISTINCT."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tablegate.adapters.tablestore.sql.compiled import Compiled
from tablegate.adapters.tablestore.sql.expressions import Compiler
from tablegate.adapters.tablestore.sql.scopes import Row, Scope
from tablegate.adapters.tablestore.sql.sql_types import SqlType, sql_error
from tablegate.adapters.tablestore.sql.sql_values import checked, compare, to_number
from tablegate.adapters.tablestore.sql.trees import SUBQUERIES, function_name, own_nodes
from tablegate.gateway.model.values.values import distinct

NAMES = frozenset({"COUNT", "SUM", "AVG", "MIN", "MAX"})


class Aggregate(NamedTuple):
    """An aggregate of a group.

    `values`: its arguments (empty: COUNT(*)). `place`: that of its argument, None if that is no column.
    """

    name: str
    values: tuple[Callable[[Row], Any], ...]
    is_distinct: bool
    place: int | None

    def result(self, rows: Sequence[Row], keep: Callable[[Any], Any]) -> Any:
        """Return the result for the rows of a group. NULL values do not count. `keep` counts each value."""
        if not self.values:
            return len(rows)
        found = []
        for row in rows:
            given = tuple([keep(value(row)) for value in self.values])
            if None not in given:
                found.append(given)
        if self.is_distinct:
            found = distinct(found)
        return _REDUCERS[self.name]([given[0] for given in found])


class GroupCompiler(Compiler):
    """Compiles expressions of groups. The row of a group is its first row, followed by the results of `aggregates`."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self.aggregates: list[Aggregate] = []
        self._rows = Compiler(scope)

    def _anonymous(self, tree: Any) -> Compiled:
        name = str(tree.this).upper()
        if name not in NAMES:
            return super()._anonymous(tree)
        parts = list(tree.expressions)
        is_distinct = len(parts) == 1 and parts[0].key == "distinct"
        if is_distinct:
            parts = list(parts[0].expressions)
        is_all = name == "COUNT" and len(parts) == 1 and parts[0].key == "star" and not is_distinct
        if not is_all and (not parts or (len(parts) > 1 and not (name == "COUNT" and is_distinct))):
            raise sql_error(f"Incorrect parameter count in the call to function '{name}'.")
        arguments = [] if is_all else [self._rows.compile(part) for part in parts]
        kind = arguments[0].type if name in ("MIN", "MAX") else SqlType.DOUBLE
        if name == "COUNT":
            kind = SqlType.LONG
        is_column = len(parts) == 1 and parts[0].key == "column"
        argument = self.scope.known_place(parts[0].name, parts[0].table) if is_column else None
        self.aggregates.append(
            Aggregate(name, tuple(each.value for each in arguments), is_distinct, argument)
        )
        place = len(self.scope.columns) + len(self.aggregates) - 1
        return Compiled(kind, operator.itemgetter(place))


def has_aggregate(tree: Any) -> bool:
    """Return True if a tree of sqlglot has a call of an aggregate."""
    return any(function_name(node) in NAMES for node in own_nodes(tree))


def has_bare_column(tree: Any) -> bool:
    """Return True if a tree of sqlglot names a column outside of its aggregates."""
    nodes = tree.walk(prune=lambda node: function_name(node) in NAMES or node.key in SUBQUERIES)
    return any(node.key in ("column", "star") for node in nodes)


def _total(values: list[Any]) -> Any:
    """Return the sum of values, which is exact for integers."""
    return sum(to_number(value) or 0 for value in values)


def _sum(values: list[Any]) -> float | None:
    return float(checked(float(_total(values)))) if values else None


def _average(values: list[Any]) -> float | None:
    return float(checked(_total(values) / len(values))) if values else None


def _extreme(wanted: int) -> Callable[[list[Any]], Any]:
    def reduce(values: list[Any]) -> Any:
        best = values[0] if values else None
        for value in values[1:]:
            if compare(value, best) == wanted:
                best = value
        return best

    return reduce


_REDUCERS: dict[str, Callable[[list[Any]], Any]] = {
    "COUNT": len,
    "SUM": _sum,
    "AVG": _average,
    "MIN": _extreme(-1),
    "MAX": _extreme(1),
}
