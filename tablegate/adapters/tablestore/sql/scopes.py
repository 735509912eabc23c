"""The columns and subqueries that an expression can name.

A row is a list of values. A Scope says at which place of it a column is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tablegate.adapters.tablestore.sql.sql_types import ResultColumn, SqlColumn, SqlType, sql_error
from tablegate.adapters.tablestore.sql.trees import own_nodes

Row = Sequence[Any]
SCORE = SqlColumn("SCORE()", SqlType.DOUBLE, "")
"""The score of a row that a vector query finds. A star does not select it."""


class PreparedSelect(NamedTuple):
    """A SELECT of which all rows are read.

    - `outer_places`: of the values that it uses in the row of the statement around it. Empty: its rows are always the same.
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
