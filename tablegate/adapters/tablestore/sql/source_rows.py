"""The rows that a SELECT reads: of its tables and indexes, joined, as far as they fulfil its WHERE.

A subquery that uses columns of the outer statement is read once, as far as those columns do not matter. Its other
conditions are evaluated on pairs of its rows and those of the outer statement.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from tablegate.adapters.tablestore.sql.accesses import AccessPath, access_by_index, access_by_key
from tablegate.adapters.tablestore.sql.aggregates import Aggregate
from tablegate.adapters.tablestore.sql.expressions import Compiler
from tablegate.adapters.tablestore.sql.reading import Wanted, read
from tablegate.adapters.tablestore.sql.scopes import Row, Scope, places_of
from tablegate.adapters.tablestore.sql.searches import SearchPath
from tablegate.adapters.tablestore.sql.sources import Input
from tablegate.adapters.tablestore.sql.sql_types import sql_error
from tablegate.adapters.tablestore.sql.sql_values import truth
from tablegate.adapters.tablestore.sql.trees import conjuncts
from tablegate.adapters.tablestore.sql.work import Work
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.call_context import CallContext
from tablegate.gateway.model.values.values import hash_key


async def read_rows(call: CallContext, given: Input, work: Work, most: int | None) -> list[Row]:
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
                found = await read(source.mapped.table, _access(call, given, at), wanted, work)
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
