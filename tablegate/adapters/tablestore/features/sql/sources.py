"""The sources of a SELECT: the tables, indexes and subqueries of its FROM, and the search indexes that find their rows.

The name of a source is that of a table, of a secondary index, or of a mapping of a search index.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tablegate.adapters.tablestore import DIALECT
from tablegate.adapters.tablestore.call import CallContext, TableOrIndex
from tablegate.adapters.tablestore.features.sql import mappings, searches
from tablegate.adapters.tablestore.features.sql.accesses import (
    ColumnComparison,
    comparisons_of,
    fixes_partition,
)
from tablegate.adapters.tablestore.features.sql.scopes import SCORE, Row, Scope, conjuncts, places_of
from tablegate.adapters.tablestore.features.sql.searches import SearchedIndex
from tablegate.adapters.tablestore.features.sql.sql_values import SqlColumn, sql_error
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.names import check_table_name
from tablegate.gateway.model.commands.table_commands import FindTable, ListTables
from tablegate.gateway.model.errors import NotPermitted, TableMissing
from tablegate.gateway.model.tables.tables import Table


@dataclass(frozen=True, slots=True)
class MappedTable:
    """A table or a secondary index with its columns in SQL. `search_index`: rows are read by this search index only."""

    name: str
    target: TableOrIndex
    columns: mappings.Mapping
    search_index: SearchedIndex | None = None

    @property
    def table(self) -> Table:
        return self.target.table


async def find_mapped(call: CallContext, name: str) -> MappedTable:
    """Return what a name stands for. Raises TableMissing, ServiceError."""
    table = await find_owner(call, name)
    index = None if table.name == name else table.index(name)
    if table.name == name or index is not None:
        target = TableOrIndex.of(table, index)
        return MappedTable(name, target, mappings.mapping_of(target))
    mapping = mappings.search_mappings(table)[name]
    search_index = await searches.installed.find(table, mapping.search_index)
    columns = search_index.with_fields(mapping.columns, has_virtual=True)
    return MappedTable(name, TableOrIndex.of(table), columns, search_index)


def check_database(call: CallContext, name: str) -> None:
    """Raise ServiceError if a statement names a database that is not the instance."""
    if name and name != call.caller.instance:
        raise sql_error(f"Unknown database '{name[:64]}'.")


async def find_owner(call: CallContext, name: str) -> Table:
    """Return the table with a name, or else that with an index or a mapping of the name. Raises TableMissing,
    ServiceError."""
    namespace = call.caller.namespace
    try:
        return await FindTable(namespace, name)
    except (TableMissing, NotPermitted) as unknown:
        owners = await _owners(call, name)
        if not owners:
            if isinstance(unknown, TableMissing):
                check_table_name(name)
            raise unknown
        return await FindTable(namespace, owners[0].name)


async def _owners(call: CallContext, name: str) -> list[Table]:
    """Return the tables with an index or a mapping of that name. The permission is checked when it is read."""
    tables = await ListTables(call.caller.namespace)
    return [
        table
        for table in tables
        if (name in mappings.search_mappings(table) and call.reaches(table))
        or (
            (index := table.index(name)) is not None
            and index.dialect == DIALECT
            and (call.reaches(table, name) or call.reaches(table))
        )
    ]


def mapped_names(table: Table) -> Iterator[str]:
    """Yield the names under which CREATE TABLE has mapped a table and its indexes."""
    if mappings.has_mapping(table):
        yield table.name
    searched = mappings.search_mappings(table)
    yield from (name for name in mappings.index_mappings(table) if name in searched or table.index(name))


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """A table, an index or a subquery of a FROM.

    - `name`: its alias or name.
    - `mapped`: the table or index, or None for a subquery, with these `rows`.
    - `join`: the tree of its join, None for the first source.
    - `search_index`: the search index that finds the rows, or None if they are read by a key.
    """

    name: str
    columns: mappings.Mapping
    join: Any
    mapped: MappedTable | None = None
    rows: Sequence[Row] = ()
    search_index: SearchedIndex | None = None

    @property
    def is_left(self) -> bool:
        """True if the rows before it stay without a match (LEFT JOIN)."""
        return self.join is not None and self.join.side == "LEFT"

    @property
    def is_right(self) -> bool:
        """True if its own rows stay without a match (RIGHT JOIN)."""
        return self.join is not None and self.join.side == "RIGHT"


async def find_sources(
    call: CallContext,
    tree: Any,
    run_derived: Callable[[Any], Awaitable[tuple[mappings.Mapping, Sequence[Row]]]],
) -> list[Source]:
    """Return the sources of a SELECT. `run_derived` runs a subquery. Raises ServiceError, TableMissing."""
    first, joins = tree.args.get("from_"), tree.args.get("joins") or []
    if first is None or (not joins and _is_dual(first.this)):
        return []
    if len(joins) > limits.SQL_JOINS_MAX:
        raise sql_error(f"The number of joined tables exceeds {limits.SQL_JOINS_MAX + 1}.")
    sources: list[Source] = []
    for part, join in [(first.this, None), *((join.this, join) for join in joins)]:
        _check_join(part, join)
        if part.key == "subquery":
            columns, rows = await run_derived(part)
            source = Source(part.alias, columns, join, rows=rows)
        else:
            check_database(call, part.db)
            mapped = await find_mapped(call, part.name)
            source = Source(part.alias or part.name, mapped.columns, join, mapped, (), mapped.search_index)
        if any(each.name.lower() == source.name.lower() for each in sources):
            raise sql_error(f"Not unique table or alias: '{source.name}'.")
        if join is not None and join.args.get("using"):
            sources, source = _joined_by_names(sources, source)
        sources.append(source)
    if len(sources) == 1 and searches.installed.has_scores(tree):
        return [dataclasses.replace(sources[0], columns=(*sources[0].columns, SCORE))]
    return sources


def _joined_by_names(sources: Sequence[Source], source: Source) -> tuple[list[Source], Source]:
    """Give a join the ON of its USING. Return the sources before it, and it, with one visible column of each name.

    In a RIGHT JOIN that is the column of the joined table, because the other one can be NULL.
    """
    from sqlglot import exp

    conditions, changed = [], [*sources, source]
    for identifier in source.join.args["using"]:
        name = identifier.name
        place = Scope(columns_of(sources)).place(name)
        Scope(columns_of([source])).place(name)
        other = columns_of(sources)[place][0]
        conditions.append(exp.EQ(this=exp.column(name, other), expression=exp.column(name, source.name)))
        hidden = other if source.is_right else source.name
        changed = [_with_hidden(each, name) if each.name == hidden else each for each in changed]
    source.join.set("using", None)
    source.join.set("on", exp.and_(*conditions, copy=False))
    return changed[:-1], changed[-1]


def _with_hidden(source: Source, name: str) -> Source:
    columns = tuple(
        dataclasses.replace(column, is_hidden=column.is_hidden or column.name.lower() == name.lower())
        for column in source.columns
    )
    return dataclasses.replace(source, columns=columns)


def _is_dual(part: Any) -> bool:
    """Return True for the name of no table, which MySQL permits after FROM."""
    return (
        part.key == "table"
        and _parts(part) == {"this"}
        and not part.this.quoted
        and part.name.lower() == "dual"
    )


def _check_join(part: Any, join: Any) -> None:
    if part.key not in ("table", "subquery") or _parts(part) - {"this", "alias", "db"}:
        raise sql_error("Only tables and subqueries can be selected from.")
    if part.key == "subquery" and not part.alias:
        raise sql_error("Every derived table must have its own alias.")
    if join is not None:
        is_known = join.side in ("", "LEFT", "RIGHT") and join.kind in ("", "INNER", "CROSS", "OUTER")
        if (
            not is_known
            or join.args.get("using") == []
            or _parts(join) - {"this", "side", "kind", "on", "using"}
        ):
            raise sql_error(
                "Unsupported SQL expression: this kind of JOIN. Use INNER, LEFT or RIGHT JOIN with ON or USING."
            )


def _parts(tree: Any) -> set[str]:
    return {name for name, value in tree.args.items() if value not in (None, [], False)}


def columns_of(sources: Sequence[Source]) -> list[tuple[str, SqlColumn]]:
    """Return the columns of all sources, in the order in which the joined rows have them."""
    return [(source.name, column) for source in sources for column in source.columns]


class Input(NamedTuple):
    """The input of a SELECT, `tree`: its sources, their columns, and the conditions that its WHERE requires."""

    tree: Any
    sources: Sequence[Source]
    scope: Scope
    conditions: Sequence[Any]

    @property
    def single(self) -> Source | None:
        """The table or index of a SELECT that reads nothing else."""
        return self.sources[0] if len(self.sources) == 1 and self.sources[0].mapped is not None else None

    def places(self, at: int) -> range:
        """Return the places of the columns of a source in the scope."""
        first = sum(len(source.columns) for source in self.sources[:at])
        return range(first, first + len(self.sources[at].columns))

    def used_names(self, at: int) -> frozenset[str]:
        """Return the names of the stored columns of a source that the statement uses."""
        places = places_of(self.tree, self.scope).intersection(self.places(at))
        columns = [self.scope.columns[place][1] for place in places]
        return frozenset(column.stored_name for column in columns if column != SCORE)

    def comparisons(self, at: int) -> list[ColumnComparison]:
        """Return the comparisons with literals that the WHERE requires of the columns of a source."""
        return comparisons_of(self.required(at), self.scope, self.places(at))

    def required(self, at: int) -> Sequence[Any]:
        """Return the conditions that a source can be searched by: none if rows without a match have NULL instead."""
        is_optional = self.sources[at].is_left or any(each.is_right for each in self.sources[at + 1 :])
        return [] if is_optional else self.conditions


async def input_of(call: CallContext, tree: Any, sources: Sequence[Source], scope: Scope) -> Input:
    """Return what a SELECT reads, with a search index for each table that has one with all columns in use."""
    where = tree.args.get("where")
    conditions = [] if where is None else list(conjuncts(where.this))
    given = Input(tree, sources, scope, conditions)
    selected = []
    for at, source in enumerate(sources):
        index = await _search_index_for(given, at)
        if index is not None and source.search_index is None:
            columns = index.with_fields(source.columns, has_virtual=False)
            source = dataclasses.replace(source, search_index=index, columns=columns)
        selected.append(source)
    scope = Scope(columns_of(selected), scope.subqueries, scope.outer, scope.check_time)
    if len(selected) == 1 and selected[0].search_index is not None:
        index, rest = selected[0].search_index.ranked(conditions, scope, rows_in_clause(tree, "limit"))
        return Input(tree, [dataclasses.replace(selected[0], search_index=index)], scope, rest)
    return Input(tree, selected, scope, conditions)


def rows_in_clause(tree: Any, name: str) -> int | None:
    """Return the number of the LIMIT or OFFSET of a SELECT, None without one. Raises ServiceError."""
    clause = tree.args.get(name)
    if clause is None:
        return None
    literal = clause.expression
    if literal.key != "literal" or not (literal.this.isascii() and literal.this.isdigit()):
        raise sql_error("LIMIT must have whole numbers.")
    return int(literal.this[:18])


# Search indexes


async def _search_index_for(given: Input, at: int) -> SearchedIndex | None:
    """Return the search index that finds the rows of a source, None if they are read by a key."""
    source = given.sources[at]
    mapped = source.mapped
    if mapped is None or mapped.target.index is not None or source.search_index is not None:
        return source.search_index
    is_strong = bool(mapped.table.properties.get(mappings.IS_STRONG_PROPERTY))
    if is_strong or fixes_partition(given.comparisons(at), mapped.table.key_schema):
        return None
    return await searches.installed.covering(mapped.table, given.used_names(at))
