"""SELECT and EXPLAIN: read and join the rows of a statement and of its subqueries, and return the result.

A subquery that uses columns of the outer statement is read once, as far as those columns do not matter. Its other
conditions are evaluated on pairs of its rows and those of the outer statement.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from tablegate.adapters.tablestore.call import CallContext
from tablegate.adapters.tablestore.features.sql.accesses import (
    AccessPath,
    Wanted,
    access_by_index,
    access_by_key,
    read_by_key,
)
from tablegate.adapters.tablestore.features.sql.expressions import Compiler
from tablegate.adapters.tablestore.features.sql.mappings import Mapping as Columns
from tablegate.adapters.tablestore.features.sql.parsing import Select
from tablegate.adapters.tablestore.features.sql.result_rows import Aggregate, Selection
from tablegate.adapters.tablestore.features.sql.scopes import (
    PreparedSelect,
    Row,
    Scope,
    conjuncts,
    own_nodes,
    places_of,
)
from tablegate.adapters.tablestore.features.sql.searches import SearchPath
from tablegate.adapters.tablestore.features.sql.sources import Input, columns_of, find_sources, input_of
from tablegate.adapters.tablestore.features.sql.sql_values import (
    ResultColumn,
    SqlColumn,
    SqlType,
    sql_error,
    truth,
)
from tablegate.adapters.tablestore.features.sql.work import Work
from tablegate.adapters.tablestore.wire import limits
from tablegate.gateway.model.values.values import hash_key


async def read_rows(call: CallContext, given: Input, work: Work, most: int | None) -> list[Row]:
    """Return the rows of a SELECT that fulfil its WHERE. `most`: the number of needed rows, the first ones in its order."""
    conditions = [Compiler(given.scope).compile(each).value for each in given.conditions]

    def is_wanted(row: Row) -> bool:
        work.check_time()
        return all(truth(condition(row)) for condition in conditions)

    if not given.sources:
        return [row for row in [()] if is_wanted(row)]
    rows: list[Row] = []
    for at, source in enumerate(given.sources):
        if source.mapped is None:
            found = list(source.rows)
        else:
            path, enough = _search_path(given, at), most if given.single else None
            if enough is not None and given.tree.args.get("order") is not None:
                if path is not None:
                    path = path.in_order(given.tree, given.scope, given.comparisons(0))
                enough = enough if path is not None and path.is_sorted else None
            keep = is_wanted if given.single and conditions else None
            wanted = Wanted(source.columns, given.used_names(at), keep, enough)
            if path is not None:
                found = await path.read(source.mapped.table, wanted, work)
            else:
                found = await read_by_key(source.mapped.table, _access(call, given, at), wanted, work)
        rows = found if source.join is None else _joined(rows, found, given, at, work)
    return rows if given.single else [row for row in rows if is_wanted(row)]


async def read_aggregates(
    call: CallContext, given: Input, work: Work, aggregates: Sequence[Aggregate]
) -> list[Any] | None:
    """Return the aggregates of all rows that fulfil the WHERE of a SELECT. None if only the rows can tell."""
    source = given.single
    path = None if source is None else _search_path(given, 0)
    if source is None or source.mapped is None or path is None:
        return None
    return await path.aggregate(source.mapped.table, aggregates, given.scope, given.used_names(0), work)


def _search_path(given: Input, at: int) -> SearchPath | None:
    """Return the access path of a source by its search index, None if its rows are read by a key."""
    index = given.sources[at].search_index
    return None if index is None else index.path(given.required(at), given.scope, given.places(at))


def _access(call: CallContext, given: Input, at: int) -> AccessPath:
    mapped = given.sources[at].mapped
    assert mapped is not None
    index, comparisons = mapped.target.index, given.comparisons(at)
    if index is not None:
        return access_by_index(index, comparisons)
    return access_by_key(call, mapped.table, comparisons, given.used_names(at))


# Pairs of rows


def _joined(left: list[Row], right: list[Row], given: Input, at: int, work: Work) -> list[Row]:
    """Join the rows so far with those of the source at a number."""
    source, places = given.sources[at], given.places(at)
    on = source.join.args.get("on")
    scope = Scope(given.scope.columns[: places.stop], given.scope.subqueries, None, work.check_time)
    conditions = [] if on is None else list(conjuncts(on))
    if any(place >= places.stop for each in conditions for place in places_of(each, scope)):
        raise sql_error("A subquery of an ON can use the columns of the tables before it only.")
    pairs = _Pairs(right, places, conditions, scope, work)
    joined: list[Row] = []

    def add(rows: list[Row]) -> None:
        work.keep(len(rows), places.stop // 8 + 1, 0)
        joined.extend(rows)
        if len(joined) > limits.SQL_ROWS_MAX:
            raise sql_error(f"The join has more than {limits.SQL_ROWS_MAX} rows.")

    matched: set[int] = set()
    for row in left:
        matches = [other for other in pairs.candidates(row, 0) if pairs.is_match([*row, *other])]
        add([[*row, *other] for other in matches or ([[None] * len(places)] if source.is_left else [])])
        matched.update(map(id, matches) if source.is_right else ())
    if source.is_right:
        add([[*([None] * places.start), *other] for other in right if id(other) not in matched])
    return joined


async def read_correlated(call: CallContext, given: Input, work: Work) -> Callable[[Row], list[Row]]:
    """Read the rows of a subquery once. Return the function of those that fulfil its WHERE for an outer row."""
    scope = given.scope
    own: list[Any] = []
    others: list[Any] = []
    for condition in given.conditions:
        is_own = all(place in scope.own for place in places_of(condition, scope))
        (own if is_own else others).append(condition)
    rows = await read_rows(call, given._replace(conditions=own), work, None)
    pairs = _Pairs(rows, scope.own, others, scope, work)

    def rows_of(outer: Row) -> list[Row]:
        whole_rows = ([*row, *outer] for row in pairs.candidates(outer, len(scope.own)))
        return [row for row in whole_rows if pairs.is_match(row)]

    return rows_of


class _Pairs:
    """The pairs of rows that fulfil conditions: `rows`, which have the values at `places`, and other rows."""

    def __init__(
        self, rows: Sequence[Row], places: range, conditions: Sequence[Any], scope: Scope, work: Work
    ) -> None:
        self._rows = rows
        self._work = work
        self._conditions = [Compiler(scope).compile(each).value for each in conditions]
        own, self._other = _equal_places(conditions, scope, places)
        self._by_value: dict[Hashable, list[Row]] = {}
        if own is not None:
            for row in rows:
                self._by_value.setdefault(hash_key(row[own - places.start]), []).append(row)

    def candidates(self, other: Row, start: int) -> Sequence[Row]:
        """Return the rows that can match another row, which has the values from place `start` on."""
        found: Sequence[Row] = self._rows
        if self._other is not None:
            value = other[self._other - start]
            found = self._by_value.get(hash_key(value), ()) if value is not None else ()
        self._work.add_comparisons(max(1, len(found)))
        return found

    def is_match(self, row: Row) -> bool:
        """Return True if both rows of a pair, as one, fulfil the conditions."""
        self._work.check_time()
        return all(truth(condition(row)) for condition in self._conditions)


def _equal_places(conditions: Sequence[Any], scope: Scope, places: range) -> tuple[int | None, int | None]:
    """Return one of `places` and another place, of the same type, that must be equal, or None and None."""
    for part in conditions:
        if part.key == "eq" and part.this.key == part.expression.key == "column":
            found = [scope.known_place(column.name, column.table) for column in (part.this, part.expression)]
            for own, other in (found, found[::-1]):
                if own is None or other is None or own not in places or other in places:
                    continue
                if scope.columns[own][1].type is scope.columns[other][1].type:
                    return own, other
    return None, None


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
