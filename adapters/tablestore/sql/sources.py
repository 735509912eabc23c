"""The rows that a SELECT reads: tables, indexes, subqueries, and their joins."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tablegate.adapters.tablestore import DIALECT
from tablegate.adapters.tablestore.sql import mappings, search_aggregates
from tablegate.adapters.tablestore.sql.aggregates import Aggregate
from tablegate.adapters.tablestore.sql.expressions import Compiler
from tablegate.adapters.tablestore.sql.mapped_tables import (
    MappedTable,
    column_fields,
    find_mapped,
    with_fields,
)
from tablegate.adapters.tablestore.sql.plans import (
    Access,
    access_by_index,
    access_by_key,
    conditions_of,
    fixes_partition,
)
from tablegate.adapters.tablestore.sql.reading import Wanted, read
from tablegate.adapters.tablestore.sql.scopes import Row, Scope, SubqueryResult
from tablegate.adapters.tablestore.sql.search_conditions import candidates_of
from tablegate.adapters.tablestore.sql.search_sorts import sorters_of
from tablegate.adapters.tablestore.sql.sql_types import sql_error
from tablegate.adapters.tablestore.sql.sql_values import truth
from tablegate.adapters.tablestore.sql.trees import conjuncts, own_nodes
from tablegate.adapters.tablestore.sql.work import Work
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.call_context import CallContext
from tablegate.gateway.exchanges import one
from tablegate.gateway.model.commands.commands import Exchange
from tablegate.gateway.model.commands.search_commands import ListSearchIndexes
from tablegate.gateway.model.search.ordering import FieldSort
from tablegate.gateway.model.search.schema import SearchIndex


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """A table, an index or a subquery of a FROM.

    - `name`: its alias or name.
    - `mapped`: the table or index. None: a subquery, with these `rows`.
    - `join`: the tree of its join, None for the first source.
    - `search_index`: the search index that finds the rows. None: they are read by a key.
    """

    name: str
    columns: mappings.Mapping
    join: Any
    mapped: MappedTable | None = None
    rows: Sequence[Row] = ()
    search_index: SearchIndex | None = None

    @property
    def is_left(self) -> bool:
        """True if rows without a match stay (LEFT JOIN)."""
        return self.join is not None and self.join.side == "LEFT"


def find_sources(
    call: CallContext,
    tree: Any,
    run_derived: Callable[[Any], Exchange[tuple[mappings.Mapping, Sequence[Row]]]],
) -> Exchange[list[Source]]:
    """Look up the tables of a SELECT, and run the subqueries of its FROM. Raises ServiceError, TableMissing."""
    first, joins = tree.args.get("from_"), tree.args.get("joins") or []
    if first is None:
        return []
    if len(joins) > limits.SQL_JOINS_MAX:
        raise sql_error(f"The number of joined tables exceeds {limits.SQL_JOINS_MAX + 1}.")
    sources: list[Source] = []
    for part, join in [(first.this, None), *((join.this, join) for join in joins)]:
        _check_join(part, join)
        if part.key == "subquery":
            columns, rows = yield from run_derived(part)
            source = Source(part.alias, columns, join, rows=rows)
        else:
            mapped = yield from find_mapped(call, part.name)
            source = Source(part.alias or part.name, mapped.columns, join, mapped, (), mapped.search_index)
        if any(each.name.lower() == source.name.lower() for each in sources):
            raise sql_error(f"Not unique table or alias: '{source.name}'.")
        sources.append(source)
    return (yield from _with_search_indexes(call, sources, tree))


def _check_join(part: Any, join: Any) -> None:
    if part.key not in ("table", "subquery") or _parts(part) - {"this", "alias"}:
        raise sql_error("Only tables and subqueries can be selected from.")
    if part.key == "subquery" and not part.alias:
        raise sql_error("Every derived table must have its own alias.")
    if join is not None:
        is_known = join.side in ("", "LEFT") and join.kind in ("", "INNER", "CROSS", "OUTER")
        if not is_known or _parts(join) - {"this", "side", "kind", "on"}:
            raise sql_error(
                "Unsupported SQL expression: this kind of JOIN. Use INNER JOIN or LEFT JOIN with ON."
            )


def _parts(tree: Any) -> set[str]:
    return {name for name, value in tree.args.items() if value not in (None, [], False)}


def scope_of(sources: Sequence[Source], subqueries: Mapping[int, SubqueryResult] | None = None) -> Scope:
    """Return the columns of all sources, in the order in which the joined rows have them."""
    return Scope([(source.name, column) for source in sources for column in source.columns], subqueries)


def _places(sources: Sequence[Source], at: int) -> range:
    first = sum(len(source.columns) for source in sources[:at])
    return range(first, first + len(sources[at].columns))


# Search indexes


def _with_search_indexes(call: CallContext, sources: list[Source], tree: Any) -> Exchange[list[Source]]:
    """Select a search index for each table that has one with all columns that the statement uses."""
    scope, where = scope_of(sources), tree.args.get("where")
    used = _used_places(tree, scope)
    selected = []
    for at, source in enumerate(sources):
        index, mapped = source.search_index, source.mapped
        if mapped is not None and mapped.target.index is None and index is None:
            places = _places(sources, at)
            conditions = [] if source.is_left else conditions_of(where, scope, places)
            is_strong = bool(mapped.table.properties.get(mappings.IS_STRONG_PROPERTY))
            if not is_strong and not fixes_partition(conditions, mapped.table.key_schema):
                names = _names_at(used, scope, places)
                index = yield from _covering_search_index(call, mapped, names)
                if index is not None:
                    columns = with_fields(source.columns, index)
                    source = dataclasses.replace(source, search_index=index, columns=columns)
        selected.append(source)
    return selected


def _covering_search_index(
    call: CallContext, mapped: MappedTable, names: frozenset[str]
) -> Exchange[SearchIndex | None]:
    """Return a search index that copies these columns of all rows. One with a time to live does not have all rows."""
    table = mapped.table
    indexes = yield from one(ListSearchIndexes(table.namespace, table.name, only_filled=True))
    covering = [
        index
        for _, index in indexes
        if index.dialect == DIALECT and index.lifetime_ms is None and names <= column_fields(index).keys()
    ]
    return covering[0] if covering else None


def _used_places(tree: Any, scope: Scope) -> set[int]:
    """Return the places of the columns that a statement mentions. A star mentions all."""
    used: set[int] = set()
    for node in own_nodes(tree):
        is_count = node.key == "star" and node.parent is not None and node.parent.key == "anonymous"
        if node.key == "star" and not is_count:
            return set(range(len(scope.columns)))
        if node.key == "column" and node.this.key != "star":
            name = node.name.lower()
            names = {name, name.partition(".")[0]}  # a field of a nested column
            used |= {at for at, (_, column) in enumerate(scope.columns) if column.name.lower() in names}
    return used


def _names_at(used: set[int], scope: Scope, places: range) -> frozenset[str]:
    return frozenset(scope.columns[at][1].name for at in places if at in used)


# Rows


def read_rows(
    call: CallContext, sources: Sequence[Source], tree: Any, scope: Scope, work: Work, most: int | None
) -> Exchange[list[Row]]:
    """Return the rows of a SELECT that fulfil its WHERE. `most`: only so many are needed, the first ones in its order."""
    where = tree.args.get("where")
    condition = None if where is None else Compiler(scope).compile(where.this).value

    def is_wanted(row: Row) -> bool:
        work.check_time()
        return condition is None or truth(condition(row)) is True

    if not sources:
        return [row for row in [()] if is_wanted(row)]
    used = _used_places(tree, scope)
    is_single = len(sources) == 1 and sources[0].mapped is not None
    rows: list[Row] = []
    for at, source in enumerate(sources):
        places = _places(sources, at)
        if source.mapped is None:
            found = list(source.rows)
        else:
            names = _names_at(used, scope, places)
            keep = is_wanted if is_single and where is not None else None
            access = _access(call, source, None if source.is_left else where, scope, places, names)
            enough = most if is_single else None
            if enough is not None and tree.args.get("order") is not None:
                sorters = _sorters(access, tree, scope, places)
                access, enough = (access._replace(sorters=sorters), enough) if sorters else (access, None)
            wanted = Wanted(source.columns, names, keep, enough)
            found = yield from read(source.mapped.table, access, wanted, work)
        rows = found if source.join is None else _joined(rows, found, source, scope, places, work)
    return rows if is_single else [row for row in rows if is_wanted(row)]


def _sorters(access: Access, tree: Any, scope: Scope, places: range) -> tuple[FieldSort, ...]:
    if access.search_index is None or not access.is_exact:
        return ()
    return sorters_of(tree, scope, conditions_of(tree.args.get("where"), scope, places))


def read_aggregates(
    call: CallContext,
    sources: Sequence[Source],
    tree: Any,
    scope: Scope,
    work: Work,
    aggregates: Sequence[Aggregate],
) -> Exchange[list[Any] | None]:
    """Return the aggregates of all rows that fulfil the WHERE of a SELECT. None if only the rows can tell."""
    if len(sources) != 1 or sources[0].mapped is None or sources[0].search_index is None:
        return None
    [source] = sources
    assert source.mapped is not None
    places = range(len(source.columns))
    names = _names_at(_used_places(tree, scope), scope, places)
    access = _access(call, source, tree.args.get("where"), scope, places, names)
    fields = search_aggregates.fields_of(aggregates, scope)
    if fields is None or not access.is_exact:
        return None
    return (
        yield from search_aggregates.aggregate(source.mapped.table, access, aggregates, fields, names, work)
    )


def _access(
    call: CallContext, source: Source, where: Any, scope: Scope, places: range, used_names: frozenset[str]
) -> Access:
    assert source.mapped is not None
    if source.search_index is not None:
        candidates = candidates_of(where, scope, places)
        return Access(search_index=source.search_index, query=candidates.query, is_exact=candidates.is_exact)
    conditions = conditions_of(where, scope, places)
    index = source.mapped.target.index
    if index is not None:
        return access_by_index(index, conditions)
    return access_by_key(call, source.mapped.table, conditions, used_names)


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
