"""The columns and subqueries that an expression can name.

A row is a list of values. A Scope says at which place of it a column is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tablegate.adapters.tablestore.sql.sql_types import SqlColumn, SqlType, sql_error

Row = Sequence[Any]


SCORE = SqlColumn("SCORE()", SqlType.DOUBLE, "", is_hidden=True)
"""The score of a row that a vector query finds."""


class SubqueryResult(NamedTuple):
    """The types of the columns of a subquery, and its rows."""

    types: list[SqlType]
    rows: Sequence[Row]


class Scope:
    """The columns of the rows that expressions read: (name of the table or its alias, column) at each place.

    `subqueries`: the results of the subqueries in the expressions, by the identity of their trees.
    """

    def __init__(
        self, columns: Sequence[tuple[str, SqlColumn]], subqueries: Mapping[int, SubqueryResult] | None = None
    ) -> None:
        self.columns = columns
        self.subqueries = subqueries or {}

    def place(self, name: str, table: str = "") -> int:
        """Return the place of a column. Raises ServiceError. Names are compared without case, as MySQL does."""
        place = self.known_place(name, table)
        if place is None:
            raise sql_error(f"Unknown column '{name[:255]}'.")
        return place

    def known_place(self, name: str, table: str = "") -> int | None:
        """Return the place of a column, None if there is none. Raises ServiceError if there are several."""
        lower, source = name.lower(), table.lower()
        found = [
            at
            for at, (owner, column) in enumerate(self.columns)
            if column.name.lower() == lower and (not source or owner.lower() == source)
        ]
        if len(found) > 1:
            raise sql_error(f"Column '{name[:255]}' is ambiguous.")
        return found[0] if found else None
