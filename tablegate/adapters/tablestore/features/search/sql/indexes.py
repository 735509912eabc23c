"""The search indexes that SELECT reads by, and the aggregates that they compute without reading rows.

`Searches` of features/sql/searches.py is their interface. The values of aggregates are those of the index, which
follows the table with a delay.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tablegate.adapters.tablestore import DIALECT
from tablegate.adapters.tablestore.call import TableOrIndex
from tablegate.adapters.tablestore.features.search.search_indexes import find_search_index
from tablegate.adapters.tablestore.features.search.sql import conditions
from tablegate.adapters.tablestore.features.search.sql.conditions import exact_field, field_of
from tablegate.adapters.tablestore.features.sql import mappings, searches
from tablegate.adapters.tablestore.features.sql.accesses import Collector, ColumnComparison, Wanted, value_of
from tablegate.adapters.tablestore.features.sql.result_rows import Aggregate
from tablegate.adapters.tablestore.features.sql.scopes import Row, Scope
from tablegate.adapters.tablestore.features.sql.searches import Searches
from tablegate.adapters.tablestore.features.sql.sql_values import SqlColumn, SqlType, checked, sql_error
from tablegate.adapters.tablestore.features.sql.work import Step, Work
from tablegate.adapters.tablestore.values import key_value_shown
from tablegate.adapters.tablestore.views import view
from tablegate.adapters.tablestore.wire import limits
from tablegate.gateway.features.search.aggregations import Inner, Metric, MetricKind
from tablegate.gateway.features.search.documents import document_of
from tablegate.gateway.features.search.queries import Nearest, Query
from tablegate.gateway.features.search.ranking import BY_KEY, FieldSort, ScoreSort, Sorter
from tablegate.gateway.features.search.schema import FieldType, SearchField, SearchIndex, SearchSchema
from tablegate.gateway.features.search.search_commands import ListSearchIndexes, SearchRows
from tablegate.gateway.model.commands.row_commands import VisibleNames
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.values import Value

_NUMBERS = frozenset({SqlType.LONG, SqlType.DOUBLE})
_EXACT_INTEGERS = 2**53
"""Search indexes return the lowest and the highest value as doubles, which have all integers below this one."""


def aggregated_fields(aggregates: Sequence[Aggregate], scope: Scope) -> list[SearchField | None] | None:
    """Return the field of each aggregate, None for COUNT(*). Return None if the index cannot compute one of them."""
    fields: list[SearchField | None] = []
    for aggregate in aggregates:
        if not aggregate.values:
            fields.append(None)
            continue
        column = None if aggregate.place is None else scope.columns[aggregate.place][1]
        field = None if column is None or column.type not in _NUMBERS else exact_field(column)
        if field is None or aggregate.is_distinct:
            return None
        fields.append(field)
    return fields


async def aggregate(
    table: Table,
    index: SearchIndex,
    query: Query,
    aggregates: Sequence[Aggregate],
    fields: Sequence[SearchField | None],
    used_names: frozenset[str],
    work: Work,
) -> list[Any] | None:
    """Return the results of aggregates, None if a number of them may be inexact."""
    metrics: list[Metric] = []
    if work.explains:
        work.steps.append(Step(table.name, "search index, aggregates", index.name, "exact", 0))
    else:
        metrics = list(_metrics(aggregates, fields))
    command = SearchRows(
        table,
        index,
        query,
        limit=1 if work.explains else 0,
        counts=not work.explains,
        aggregated=Inner(tuple(metrics)),
        visible_attributes=VisibleNames(used_names),
        timeout_ms=work.rest_ms,
    )
    page = await command
    work.add_page(TableOrIndex.of(table), 0, 0, index.name)
    if work.explains:
        return [None] * len(aggregates)
    found = {
        metric.name: value for metric, value in zip(metrics, page.aggregations.aggregations, strict=True)
    }
    return _results(aggregates, fields, page.total, found)


def _metrics(aggregates: Sequence[Aggregate], fields: Sequence[SearchField | None]) -> Iterator[Metric]:
    """Yield the metrics for aggregates: the number of values of each field, since SQL has no sum of no values."""
    for at, (each, field) in enumerate(zip(aggregates, fields, strict=True)):
        if field is not None:
            for kind in dict.fromkeys((MetricKind.COUNT, MetricKind[each.name])):
                yield Metric(f"{at} {kind.value}", kind, field)


def _results(
    aggregates: Sequence[Aggregate],
    fields: Sequence[SearchField | None],
    total: int | None,
    found: Mapping[str, Any],
) -> list[Any] | None:
    results: list[Any] = []
    for at, (each, field) in enumerate(zip(aggregates, fields, strict=True)):
        number = total if field is None else found[f"{at} {MetricKind.COUNT.value}"]
        if each.name == "COUNT":
            results.append(number)
            continue
        value = found[f"{at} {MetricKind[each.name].value}"] if number else None
        if value is not None and each.name in ("MIN", "MAX") and abs(value) >= _EXACT_INTEGERS:
            return None
        results.append(None if value is None else checked(value))
    return results


_FIRST_ROWS = 20
"""Rows of the first page of a search, when their size is unknown."""
_SORTED = frozenset({FieldType.LONG, FieldType.DOUBLE, FieldType.KEYWORD})
_VIRTUAL_TYPES = {
    FieldType.KEYWORD: SqlType.STRING,
    FieldType.TEXT: SqlType.STRING,
    FieldType.LONG: SqlType.LONG,
    FieldType.DOUBLE: SqlType.DOUBLE,
}
"""The types of virtual fields in SQL, and those of their columns ("Virtual columns of search indexes")."""


class IndexSearches(Searches):
    """The search indexes of tables."""

    def condition(self, tree: Any, scope: Scope) -> Callable[[Row], Any] | None:
        condition = conditions.condition_of(tree, scope)
        return None if condition is None else conditions.compiled(condition, scope.check_time)

    def has_scores(self, tree: Any) -> bool:
        return conditions.has_vector_query(tree)

    async def of_table(self, table: Table) -> Sequence[IndexOfTable]:
        indexes = await ListSearchIndexes(table.namespace, table.name)
        return [IndexOfTable(index) for _, index in indexes]

    async def find(self, table: Table, name: str) -> IndexOfTable:
        return IndexOfTable(await find_search_index(table, name))

    async def covering(self, table: Table, names: frozenset[str]) -> IndexOfTable | None:
        """Return a search index that copies these columns. One with a time to live does not have all rows."""
        for _, index in await ListSearchIndexes(table.namespace, table.name, only_filled=True):
            has_all_rows = index.dialect == DIALECT and index.lifetime_ms is None
            if has_all_rows and names <= _column_fields(index).keys():
                return IndexOfTable(index)
        return None


@dataclass(frozen=True, slots=True)
class IndexOfTable:
    """A search index (`SearchedIndex`). `nearest`: the vector query of a SELECT. Its last column is then the score."""

    index: SearchIndex
    nearest: Nearest | None = None

    @property
    def name(self) -> str:
        return self.index.name

    @property
    def fields(self) -> Sequence[tuple[str, str]]:
        return [(field.name, field.type.name) for field in self.index.schema.fields]

    def with_fields(self, columns: mappings.Mapping, has_virtual: bool) -> mappings.Mapping:
        fields = _mapped_fields(self.index) if has_virtual else _column_fields(self.index)
        return tuple(dataclasses.replace(column, field=fields.get(column.name)) for column in columns)

    def check_column(self, column: SqlColumn) -> None:
        field = _mapped_fields(self.index).get(column.name)
        if field is None:
            raise sql_error(f"Column '{column.name}' is not in the search index '{self.name}'.")
        if field.is_virtual and _VIRTUAL_TYPES[field.type] is not column.type:
            raise sql_error(f"Column '{column.name}' must have the type of the virtual field.")

    def ranked(
        self, required: Sequence[Any], scope: Scope, limit: int | None
    ) -> tuple[IndexOfTable, Sequence[Any]]:
        found = conditions.vector_query_of(required, scope, limit)
        return (self, required) if found is None else (IndexOfTable(self.index, found.query), found.rest)

    def path(self, required: Sequence[Any], scope: Scope, places: range) -> IndexPath:
        if self.nearest is not None:
            return IndexPath(self.index, self.nearest, not required, (ScoreSort(),))
        candidates = conditions.candidates_of(required, scope, places)
        return IndexPath(self.index, candidates.query, candidates.is_exact)


@dataclass(frozen=True, slots=True)
class IndexPath:
    """The query of a search index (`SearchPath`). `is_exact`: it finds only rows that fulfil the WHERE."""

    index: SearchIndex
    query: Query
    is_exact: bool
    sorters: tuple[Sorter, ...] = BY_KEY

    @property
    def is_sorted(self) -> bool:
        return self.sorters != BY_KEY

    def in_order(self, tree: Any, scope: Scope, comparisons: Sequence[ColumnComparison]) -> IndexPath:
        is_possible = self.is_exact and not self.is_sorted
        sorters = _sorters_of(tree, scope, comparisons) if is_possible else ()
        return dataclasses.replace(self, sorters=sorters or BY_KEY)

    async def read(self, table: Table, wanted: Wanted, work: Work) -> list[Row]:
        if work.explains:
            work.steps.append(self._step(table, wanted))
        target, after = TableOrIndex.of(table), None
        collector = Collector(table, wanted, work, _value_of)
        visible, found_bytes, found_rows = VisibleNames(wanted.used_names), 0, 0
        while True:
            # The rows of a page are read whole, so their number depends on the size of those before.
            fitting = (
                _FIRST_ROWS if not found_rows else limits.STREAM_MAX_BYTES * found_rows // (found_bytes or 1)
            )
            page_rows = 1 if work.explains else max(1, min(fitting, limits.SQL_PAGE_ROWS))
            page = await SearchRows(
                table, self.index, self.query, self.sorters, after, limit=page_rows,
                visible_attributes=visible, timeout_ms=work.rest_ms,
            )  # fmt: skip
            size_bytes = sum(row.size_bytes for row in page.rows)
            found_rows, found_bytes = found_rows + len(page.rows), found_bytes + size_bytes
            work.add_page(target, len(page.rows), size_bytes, self.index.name)
            after = page.last
            scores = page.scores if isinstance(self.query, Nearest) else None
            if collector.add(page.rows, size_bytes, scores) or not page.has_more or after is None:
                return collector.rows

    async def aggregate(
        self,
        table: Table,
        wanted: Sequence[Aggregate],
        scope: Scope,
        used_names: frozenset[str],
        work: Work,
    ) -> list[Any] | None:
        fields = aggregated_fields(wanted, scope)
        if fields is None or not self.is_exact or isinstance(self.query, Nearest):
            return None
        return await aggregate(table, self.index, self.query, wanted, fields, used_names, work)

    def _step(self, table: Table, wanted: Wanted) -> Step:
        """Return the step of EXPLAIN."""
        most = limits.SQL_ROWS_MAX
        if wanted.most is not None and (wanted.keep is None or self.is_exact):
            most = min(wanted.most, most)
        condition = "exact" if self.is_exact else "candidates"
        if isinstance(self.query, Nearest):
            condition, most = "vectors", min(most, self.query.limit)
        elif self.is_sorted:
            condition += ", sorted"
        return Step(table.name, "search index", self.index.name, condition, most)


def _column_fields(index: SearchIndex) -> dict[str, SearchField]:
    """Return the fields of a search index that copy a column, by its name."""
    return {field.source: field for field in index.schema.fields if not field.is_virtual}


def _mapped_fields(index: SearchIndex) -> dict[str, SearchField]:
    """Return the fields that a mapping of a search index can have: those of columns, and virtual ones of plain types."""
    virtual = {
        field.name: field
        for field in index.schema.fields
        if field.is_virtual and not field.is_array and field.type in _VIRTUAL_TYPES
    }
    return virtual | _column_fields(index)


def _value_of(value: Value | None, column: SqlColumn, is_key: bool) -> Any:
    """Return a stored value in the type of its column: that of a virtual field, or else as of any column."""
    field = field_of(column)
    if value is None or field is None or not field.is_virtual:
        return value_of(value, column, is_key)
    shown = key_value_shown(value) if is_key else view(value)
    document = document_of(SearchSchema((field,)), {field.source: shown})
    return next(iter(document.get(field.name, ())), None)


def _sorters_of(tree: Any, scope: Scope, comparisons: Sequence[ColumnComparison]) -> tuple[FieldSort, ...]:
    """Return the sorters for the ORDER BY of a SELECT from one table. The list is empty if only the rows can be sorted.

    SQL sorts NULL first, unless the order is descending. A column that has a value by the conditions needs no such sorter:
    without one, a search index evaluates only its first terms.
    """
    order = tree.args.get("order")
    sorters = []
    for each in () if order is None else order.expressions:
        column = each.this
        is_alias = column.key == "column" and any(
            item.key == "alias" and item.alias.lower() == column.name.lower() for item in tree.expressions
        )
        place = scope.known_place(column.name, column.table) if column.key == "column" else None
        if place is None or is_alias:
            return ()
        found = scope.columns[place][1]
        field, is_descending = exact_field(found), bool(each.args.get("desc"))
        if field is None or field.type not in _SORTED:
            return ()
        has_value = any(name == found.name for name, _, _ in comparisons)
        sorters.append(FieldSort(field, is_descending, is_missing_first=not is_descending and not has_value))
    return tuple(sorters)


searches.installed = IndexSearches()
