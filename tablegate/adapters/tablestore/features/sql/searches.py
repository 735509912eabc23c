"""The socket of SQL for search indexes, which find rows by conditions on any columns.

A capability with search indexes sets `installed`. Without one, statements read rows by their keys only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tablegate.adapters.tablestore.features.sql.accesses import ColumnComparison, Wanted
from tablegate.adapters.tablestore.features.sql.mappings import Mapping
from tablegate.adapters.tablestore.features.sql.scopes import Row, Scope
from tablegate.adapters.tablestore.features.sql.sql_values import SqlColumn
from tablegate.adapters.tablestore.features.sql.work import Work
from tablegate.adapters.tablestore.wire.errors import ServiceError
from tablegate.gateway.model.tables.tables import Table


class SearchPath(Protocol):
    """The access path to the rows of a table by a query. It finds every row that can fulfil the WHERE, and maybe more.

    `is_sorted`: it finds the rows in the order of the SELECT.
    """

    @property
    def is_sorted(self) -> bool: ...

    def in_order(self, tree: Any, scope: Scope, comparisons: Sequence[ColumnComparison]) -> SearchPath:
        """Return the path with the order of a SELECT, or in any order if only the rows can be sorted."""

    async def read(self, table: Table, wanted: Wanted, work: Work) -> list[Row]:
        """Return the wanted rows of a table."""

    async def aggregate(
        self, table: Table, aggregates: Sequence[Any], scope: Scope, used_names: frozenset[str], work: Work
    ) -> list[Any] | None:
        """Return the results of each `Aggregate` (result_rows.py). None if only the rows can tell."""


class SearchedIndex(Protocol):
    """A search index of a table. `fields`: the name and the type of each field."""

    @property
    def name(self) -> str: ...

    @property
    def fields(self) -> Sequence[tuple[str, str]]: ...

    def with_fields(self, columns: Mapping, has_virtual: bool) -> Mapping:
        """Return columns with the fields that have their values. `has_virtual`: virtual fields too."""

    def check_column(self, column: SqlColumn) -> None:
        """Raise ServiceError if a mapping of the index cannot have a column."""

    def ranked(
        self, conditions: Sequence[Any], scope: Scope, limit: int | None
    ) -> tuple[SearchedIndex, Sequence[Any]]:
        """Return the index with the condition that gives each row a score, if there is one, and the other conditions.

        `limit`: the LIMIT of the SELECT. Raises ServiceError.
        """

    def path(self, conditions: Sequence[Any], scope: Scope, places: range) -> SearchPath:
        """Return the path for conditions that must all be true. `places`: those of the table's columns in the scope."""


class Searches:
    """The search indexes of a server without them. A capability with search indexes overrides all methods."""

    def condition(self, tree: Any, scope: Scope) -> Callable[[Row], Any] | None:
        """Compile a condition that only search indexes have. None for any other expression. Raises ServiceError."""
        return None

    def has_scores(self, tree: Any) -> bool:
        """Return True if a condition of a SELECT gives each row a score."""
        return False

    async def of_table(self, table: Table) -> Sequence[SearchedIndex]:
        """Return the search indexes of a table."""
        return ()

    async def find(self, table: Table, name: str) -> SearchedIndex:
        """Return a search index of a table. Raises ServiceError."""
        raise ServiceError("OTSMetaNotMatch", f"search index [{name}] does not exist")

    async def covering(self, table: Table, names: frozenset[str]) -> SearchedIndex | None:
        """Return a search index that copies these columns of all rows."""
        return None


installed = Searches()
