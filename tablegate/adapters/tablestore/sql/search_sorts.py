"""The order of a SELECT by a search index, so that its LIMIT bounds the rows that are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tablegate.adapters.tablestore.sql.accesses import ColumnComparison
from tablegate.adapters.tablestore.sql.scopes import Scope
from tablegate.adapters.tablestore.sql.search_conditions import exact_field
from tablegate.gateway.model.search.ordering import FieldSort
from tablegate.gateway.model.search.schema import FieldType

_SORTED = frozenset({FieldType.LONG, FieldType.DOUBLE, FieldType.KEYWORD})


def sorters_of(tree: Any, scope: Scope, comparisons: Sequence[ColumnComparison]) -> tuple[FieldSort, ...]:
    """Return the sorters for the ORDER BY of a SELECT from one table. Empty: only the rows can be sorted.

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
