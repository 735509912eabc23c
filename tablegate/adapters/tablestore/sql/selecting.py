"""SELECT and EXPLAIN: read the rows of a statement and of its subqueries, and return the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from tablegate.adapters.tablestore.sql.mappings import Mapping as Columns
from tablegate.adapters.tablestore.sql.parsing import Select
from tablegate.adapters.tablestore.sql.result_rows import Selection
from tablegate.adapters.tablestore.sql.scopes import PreparedSelect, Row, Scope, places_of
from tablegate.adapters.tablestore.sql.source_rows import read_aggregates, read_correlated, read_rows
from tablegate.adapters.tablestore.sql.sources import Input, columns_of, find_sources, input_of
from tablegate.adapters.tablestore.sql.sql_types import ResultColumn, SqlColumn, SqlType, sql_error
from tablegate.adapters.tablestore.sql.trees import own_nodes
from tablegate.adapters.tablestore.sql.work import Work
from tablegate.adapters.tablestore.wire.call_context import CallContext

_SUPPORTED = frozenset(
    {
        "expressions",
        "from_",
        "joins",
        "where",
        "group",
        "having",
        "order",
        "limit",
        "offset",
        "distinct",
        "kind",
        "hint",
    }
)


class Result(NamedTuple):
    """The columns and rows of a statement. The read units by table or index, and by table and search index."""

    columns: list[ResultColumn]
    rows: Sequence[Row]
    units: Mapping[str, int] = MappingProxyType({})
    search_units: Mapping[tuple[str, str], int] = MappingProxyType({})


async def run_select(call: CallContext, select: Select) -> Result:
    """Run a SELECT. Raises ServiceError, TableMissing."""
    work = Work(call.hold, call.check_client)
    prepared = await _prepare(call, select, work)
    return Result(prepared.columns, prepared.rows_for(()), work.units, work.search_units)


async def explain(call: CallContext, select: Select) -> Result:
    """Return the accesses of a SELECT, in their order. Raises ServiceError, TableMissing.

    Each access reads one row, so the caller needs the same permissions as for the statement.
    """
    work = Work(call.hold, call.check_client, explains=True)
    await _prepare(call, select, work)
    columns = [ResultColumn(name, SqlType.STRING) for name in ("Table", "Access", "Index", "Condition")]
    return Result([*columns, ResultColumn("Rows_max", SqlType.LONG)], work.steps)


async def _prepare(
    call: CallContext, select: Select, work: Work, outer: Scope | None = None
) -> PreparedSelect:
    """Read what a SELECT needs. `outer`: the columns of the statement around it, which it may use."""
    tree = select.tree
    _check_supported(tree)

    async def run_derived(part: Any) -> tuple[Columns, Sequence[Row]]:
        derived = await _prepare_subquery(call, part, work, None)
        columns = tuple(SqlColumn(column.name, column.type, "") for column in derived.columns)
        return columns, derived.rows_for(())

    sources = await find_sources(call, tree, run_derived)
    scope = Scope(columns_of(sources), None, outer)
    subqueries = await _subqueries(call, tree, work, scope)
    scope = Scope(columns_of(sources), subqueries, outer, work.check_time)
    given = await input_of(call, tree, sources, scope)
    selection = Selection(select, given.scope, work)
    columns = [ResultColumn(item.label, item.compiled.type) for item in selection.items]
    own = len(given.scope.own)
    outer_places = frozenset(place - own for place in places_of(tree, given.scope) if place >= own)
    if outer_places:
        rows_of = await read_correlated(call, given, work)
        width = len(given.scope.columns) - own

        def results_for(row: Row) -> Sequence[Row]:
            outer_values = row[:width]  # the row of a group has its aggregates besides
            return selection.results(rows_of(outer_values), outer_values)

        return PreparedSelect(columns, outer_places, results_for)
    results = await _results(call, given, selection, work)
    return PreparedSelect(columns, outer_places, lambda row: results)


async def _results(call: CallContext, given: Input, selection: Selection, work: Work) -> Sequence[Row]:
    """Return the rows of a SELECT that uses no column of an outer statement."""
    if selection.is_one_group:
        aggregates = await read_aggregates(call, given, work, selection.aggregates)
        if aggregates is not None:
            return selection.results_of_group(aggregates)
    drops_rows = selection.is_grouped or selection.is_distinct or selection.having is not None
    is_enough = selection.limit is not None and not drops_rows
    most = selection.offset + (selection.limit or 0) if is_enough else None
    rows = await read_rows(call, given, work, most)
    return selection.results(rows)


async def _subqueries(call: CallContext, tree: Any, work: Work, scope: Scope) -> dict[int, PreparedSelect]:
    """Prepare the subqueries in the expressions of a SELECT."""
    subqueries: dict[int, PreparedSelect] = {}
    for node in own_nodes(tree):
        is_derived = (
            node.parent is not None and node.parent.key in ("from", "join") and node.arg_key == "this"
        )
        if node is not tree and node.key in ("subquery", "exists") and not is_derived:
            subqueries[id(node)] = await _prepare_subquery(call, node, work, scope)
    return subqueries


async def _prepare_subquery(call: CallContext, node: Any, work: Work, outer: Scope | None) -> PreparedSelect:
    work.add_subquery()
    tree = node.this
    while tree.key == "subquery" and not tree.alias:
        tree = tree.this
    if tree.key != "select":
        raise sql_error(f"Unsupported SQL expression: {tree.key}.")
    labels = tuple(each.sql(dialect="mysql") for each in tree.expressions)
    prepared = await _prepare(call, Select(tree, labels), work, outer)
    if not prepared.outer_places:
        work.keep(len(prepared.rows_for(())), len(prepared.columns), 0)
    return prepared


def _check_supported(tree: Any) -> None:
    given = {name for name, value in tree.args.items() if value not in (None, [], False)}
    unknown = sorted(given - _SUPPORTED)
    if unknown:
        raise sql_error(f"Unsupported clause of SELECT: {unknown[0].strip('_').upper()}.")
    for node in own_nodes(tree):
        if node is not tree and node.key in ("select", "union", "window"):
            raise sql_error(f"Unsupported SQL expression: {node.key}.")
