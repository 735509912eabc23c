"""Aggregates that a search index computes: of all rows that fulfil a WHERE, without reading them.

The values are those of the index, which follows the table with a delay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tablegate.adapters.tablestore.search.sql.conditions import exact_field
from tablegate.adapters.tablestore.sql.aggregates import Aggregate
from tablegate.adapters.tablestore.sql.scopes import Scope
from tablegate.adapters.tablestore.sql.sql_types import SqlType
from tablegate.adapters.tablestore.sql.sql_values import checked
from tablegate.adapters.tablestore.sql.work import Step, Work
from tablegate.adapters.tablestore.wire.call_context import TableOrIndex
from tablegate.gateway.features.search.aggregations import Inner, Metric, MetricKind
from tablegate.gateway.features.search.queries import Query
from tablegate.gateway.features.search.schema import SearchField, SearchIndex
from tablegate.gateway.features.search.search_commands import SearchRows
from tablegate.gateway.model.commands.row_commands import VisibleNames
from tablegate.gateway.model.tables.tables import Table

_NUMBERS = frozenset({SqlType.LONG, SqlType.DOUBLE})
_EXACT_INTEGERS = 2**53
"""Search indexes return the lowest and the highest value as doubles, which have all integers below this one."""


def fields_of(aggregates: Sequence[Aggregate], scope: Scope) -> list[SearchField | None] | None:
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
