"""The rows that a SELECT reads: of its tables and indexes, joined, as far as they fulfil its WHERE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tablegate.adapters.tablestore.sql import search_aggregates
from tablegate.adapters.tablestore.sql.aggregates import Aggregate
from tablegate.adapters.tablestore.sql.expressions import Compiler
from tablegate.adapters.tablestore.sql.plans import Access, access_by_index, access_by_key
from tablegate.adapters.tablestore.sql.reading import Wanted, read
from tablegate.adapters.tablestore.sql.scopes import Row, Scope
from tablegate.adapters.tablestore.sql.search_conditions import candidates_of
from tablegate.adapters.tablestore.sql.search_sorts import sorters_of
from tablegate.adapters.tablestore.sql.sources import Input, Source
from tablegate.adapters.tablestore.sql.sql_types import sql_error
from tablegate.adapters.tablestore.sql.sql_values import truth
from tablegate.adapters.tablestore.sql.trees import conjuncts
from tablegate.adapters.tablestore.sql.work import Work
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.call_context import CallContext
from tablegate.gateway.model.commands.commands import Exchange
from tablegate.gateway.model.search.ordering import BY_KEY, ScoreSort


def read_rows(call: CallContext, given: Input, work: Work, most: int | None) -> Exchange[list[Row]]:
    """Return the rows of a SELECT that fulfil its WHERE. `most`: only so many are needed, the first ones in its order."""
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
            access, enough = _access(call, given, at), most if given.single else None
            if enough is not None and given.tree.args.get("order") is not None:
                access = _sorted(access, given)
                enough = enough if access.sorters != BY_KEY else None
            keep = is_wanted if given.single and conditions else None
            wanted = Wanted(source.columns, given.used_names(at), keep, enough)
            found = yield from read(source.mapped.table, access, wanted, work)
        rows = (
            found
            if source.join is None
            else _joined(rows, found, source, given.scope, given.places(at), work)
        )
    return rows if given.single else [row for row in rows if is_wanted(row)]


def read_aggregates(
    call: CallContext, given: Input, work: Work, aggregates: Sequence[Aggregate]
) -> Exchange[list[Any] | None]:
    """Return the aggregates of all rows that fulfil the WHERE of a SELECT. None if only the rows can tell."""
    source = given.single
    if source is None or source.mapped is None or source.search_index is None or source.nearest is not None:
        return None
    access = _access(call, given, 0)
    fields = search_aggregates.fields_of(aggregates, given.scope)
    if fields is None or not access.is_exact:
        return None
    names = given.used_names(0)
    return (
        yield from search_aggregates.aggregate(source.mapped.table, access, aggregates, fields, names, work)
    )


def _access(call: CallContext, given: Input, at: int) -> Access:
    source = given.sources[at]
    assert source.mapped is not None
    if source.nearest is not None:
        is_exact = not given.conditions
        return Access(
            search_index=source.search_index, query=source.nearest, is_exact=is_exact, sorters=(ScoreSort(),)
        )
    if source.search_index is not None:
        conditions = [] if source.is_left else given.conditions
        candidates = candidates_of(conditions, given.scope, given.places(at))
        return Access(search_index=source.search_index, query=candidates.query, is_exact=candidates.is_exact)
    index, comparisons = source.mapped.target.index, given.comparisons(at)
    if index is not None:
        return access_by_index(index, comparisons)
    return access_by_key(call, source.mapped.table, comparisons, given.used_names(at))


def _sorted(access: Access, given: Input) -> Access:
    """Return the access with the order of the SELECT, or as it is if only the rows can be sorted."""
    is_possible = access.search_index is not None and access.is_exact and access.sorters == BY_KEY
    sorters = sorters_of(given.tree, given.scope, given.comparisons(0)) if is_possible else ()
    return access._replace(sorters=sorters or BY_KEY)


# Joins


def _joined(
    left: list[Row], right: list[Row], source: Source, scope: Scope, places: range, work: Work
) -> list[Row]:
    """Join the rows so far with those of the next table. `places`: of its columns in the scope."""
    first, end = places.start, places.stop
    on = source.join.args.get("on")
    partial = Scope(scope.columns[:end], scope.subqueries)
    condition = None if on is None else Compiler(partial).compile(on).value

    def is_match(row: Row) -> bool:
        work.check_time()
        return condition is None or truth(condition(row)) is True

    own, other = _equal_columns(on, partial, first)
    by_value: dict[Any, list[Row]] = {}
    if own is not None:
        for row in right:
            by_value.setdefault(row[own - first], []).append(row)
    nothing = [None] * (end - first)
    joined: list[Row] = []
    for row in left:
        candidates = (
            right if other is None else by_value.get(row[other], []) if row[other] is not None else []
        )
        work.add_comparisons(len(candidates))
        whole_rows = ([*row, *candidate] for candidate in candidates)
        matches = [each for each in whole_rows if is_match(each)]
        new_rows = matches or ([[*row, *nothing]] if source.is_left else [])
        work.keep(len(new_rows), end // 8 + 1, 0)
        joined += new_rows
        if len(joined) > limits.SQL_ROWS_MAX:
            raise sql_error(f"The join has more than {limits.SQL_ROWS_MAX} rows.")
    return joined


def _equal_columns(on: Any, scope: Scope, first: int) -> tuple[int | None, int | None]:
    """Return a column of the next table and an earlier one of the same type that must be equal, or None and None."""
    for part in () if on is None else conjuncts(on):
        if part.key == "eq" and part.this.key == part.expression.key == "column":
            places = [scope.known_place(column.name, column.table) for column in (part.this, part.expression)]
            if None in places:
                continue
            other, own = sorted(place for place in places if place is not None)
            if other < first <= own and scope.columns[own][1].type is scope.columns[other][1].type:
                return own, other
    return None, None
