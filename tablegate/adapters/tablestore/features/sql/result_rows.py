"""The rows of a result: the columns, groups, aggregates, order and limits of a SELECT."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from tablegate.adapters.tablestore.features.sql.expressions import Compiler
from tablegate.adapters.tablestore.features.sql.parsing import Select
from tablegate.adapters.tablestore.features.sql.scopes import (
    SCORE,
    SUBQUERIES,
    Compiled,
    Row,
    Scope,
    function_name,
    own_nodes,
)
from tablegate.adapters.tablestore.features.sql.sources import rows_in_clause
from tablegate.adapters.tablestore.features.sql.sql_values import (
    SqlType,
    checked,
    compare,
    converted,
    sort_key,
    sql_error,
    to_number,
    truth,
)
from tablegate.adapters.tablestore.features.sql.work import Work
from tablegate.adapters.tablestore.wire import limits
from tablegate.gateway.model.values.values import distinct, hash_key

NAMES = frozenset({"COUNT", "SUM", "AVG", "MIN", "MAX"})


class Aggregate(NamedTuple):
    """An aggregate of a group.

    `values`: its arguments (empty: COUNT(*)). `place`: that of its argument, None if that is no column.
    """

    name: str
    values: tuple[Callable[[Row], Any], ...]
    is_distinct: bool
    place: int | None

    def result(self, rows: Sequence[Row], keep: Callable[[Any], Any]) -> Any:
        """Return the result for the rows of a group. NULL values do not count. `keep` counts each value."""
        if not self.values:
            return len(rows)
        found = []
        for row in rows:
            given = tuple([keep(value(row)) for value in self.values])
            if None not in given:
                found.append(given)
        if self.is_distinct:
            found = distinct(found)
        return _REDUCERS[self.name]([given[0] for given in found])


class GroupCompiler(Compiler):
    """Compiles expressions of groups. The row of a group is its first row, followed by the results of `aggregates`."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self.aggregates: list[Aggregate] = []
        self._rows = Compiler(scope)

    def _anonymous(self, tree: Any) -> Compiled:
        name = str(tree.this).upper()
        if name not in NAMES:
            return super()._anonymous(tree)
        parts = list(tree.expressions)
        is_distinct = len(parts) == 1 and parts[0].key == "distinct"
        if is_distinct:
            parts = list(parts[0].expressions)
        is_all = name == "COUNT" and len(parts) == 1 and parts[0].key == "star" and not is_distinct
        if not is_all and (not parts or (len(parts) > 1 and not (name == "COUNT" and is_distinct))):
            raise sql_error(f"Incorrect parameter count in the call to function '{name}'.")
        arguments = [] if is_all else [self._rows.compile(part) for part in parts]
        kind = arguments[0].type if name in ("MIN", "MAX") else SqlType.DOUBLE
        if name == "COUNT":
            kind = SqlType.LONG
        is_column = len(parts) == 1 and parts[0].key == "column"
        argument = self.scope.known_place(parts[0].name, parts[0].table) if is_column else None
        self.aggregates.append(
            Aggregate(name, tuple(each.value for each in arguments), is_distinct, argument)
        )
        place = len(self.scope.columns) + len(self.aggregates) - 1
        return Compiled(kind, operator.itemgetter(place))


def has_aggregate(tree: Any) -> bool:
    """Return True if a tree of sqlglot has a call of an aggregate."""
    return any(function_name(node) in NAMES for node in own_nodes(tree))


def has_bare_column(tree: Any) -> bool:
    """Return True if a tree of sqlglot names a column outside of its aggregates."""
    nodes = tree.walk(prune=lambda node: function_name(node) in NAMES or node.key in SUBQUERIES)
    return any(node.key in ("column", "star") for node in nodes)


def _total(values: list[Any]) -> Any:
    """Return the sum of values, which is exact for integers."""
    return sum(to_number(value) or 0 for value in values)


def _sum(values: list[Any]) -> float | None:
    return float(checked(float(_total(values)))) if values else None


def _average(values: list[Any]) -> float | None:
    return float(checked(_total(values) / len(values))) if values else None


def _extreme(wanted: int) -> Callable[[list[Any]], Any]:
    def reduce(values: list[Any]) -> Any:
        best = values[0] if values else None
        for value in values[1:]:
            if compare(value, best) == wanted:
                best = value
        return best

    return reduce


_REDUCERS: dict[str, Callable[[list[Any]], Any]] = {
    "COUNT": len,
    "SUM": _sum,
    "AVG": _average,
    "MIN": _extreme(-1),
    "MAX": _extreme(1),
}


class _Item(NamedTuple):
    """A selected expression and the name of its column."""

    label: str
    compiled: Compiled
    has_aggregate: bool = False


class Selection:
    """The columns, groups and order of a SELECT, compiled for the rows of a scope."""

    def __init__(self, select: Select, scope: Scope, work: Work) -> None:
        self._work = work
        tree = select.tree
        group, having, order = tree.args.get("group"), tree.args.get("having"), tree.args.get("order")
        if group is not None and any(value for name, value in group.args.items() if name != "expressions"):
            raise sql_error("Unsupported clause of SELECT: GROUP BY with a modifier.")
        self.is_grouped = group is not None or has_aggregate(tree)
        self._scope = scope
        self._compiler = GroupCompiler(self._scope) if self.is_grouped else Compiler(self._scope)
        self._select = select
        self.items = self._selected()
        self._groups = [self._grouping(each) for each in group.expressions] if group is not None else []
        self.having = None if having is None else self._named(having.this)
        self.order = [] if order is None else [self._ordered(each) for each in order.expressions]
        self.is_distinct = bool(tree.args.get("distinct"))
        self.limit = rows_in_clause(tree, "limit")
        self.offset = rows_in_clause(tree, "offset") or 0

    @property
    def aggregates(self) -> list[Aggregate]:
        """The aggregates of each group."""
        return self._compiler.aggregates if isinstance(self._compiler, GroupCompiler) else []

    @property
    def is_one_group(self) -> bool:
        """True if the result depends only on aggregates of all rows."""
        tree = self._select.tree
        parts = [*tree.expressions, *filter(None, (tree.args.get("having"), tree.args.get("order")))]
        reads_row = any(map(has_bare_column, parts)) or any(
            subquery.outer_places for subquery in self._scope.subqueries.values()
        )
        return self.is_grouped and not self._groups and not reads_row

    # Compilation

    def _selected(self) -> list[_Item]:
        items: list[_Item] = []
        labels = self._select.labels
        for at, tree in enumerate(self._select.tree.expressions):
            if tree.key == "star" or (tree.key == "column" and tree.this.key == "star"):
                items += self._starred(tree.table if tree.key == "column" else "")
                continue
            is_alias = tree.key == "alias"
            self._check_selected(tree.this if is_alias else tree)
            label = tree.alias if is_alias else _name_of(tree) or labels[at]
            items.append(
                _Item(label, self._compiler.compile(tree.this if is_alias else tree), has_aggregate(tree))
            )
        if not 1 <= len(items) <= limits.COLUMNS_MAX:
            raise sql_error(f"The number of columns must be in range: [1, {limits.COLUMNS_MAX}].")
        return items

    def _check_selected(self, tree: Any) -> None:
        place = self._scope.known_place(tree.name, tree.table) if tree.key == "column" else None
        if place is not None and self._scope.columns[place][1].is_virtual:
            raise sql_error(
                f"The virtual column '{tree.name[:255]}' can be in conditions and aggregates only."
            )

    def _starred(self, source: str) -> list[_Item]:
        items = []
        for at in self._scope.own:
            name, column = self._scope.columns[at]
            is_selected = name.lower() == source.lower() if source else not column.is_hidden
            if is_selected and column != SCORE and not column.is_virtual:
                items.append(_Item(column.name, Compiled(column.type, _reader(at))))
        if not items:
            raise sql_error("No table is selected from.")
        return items

    def _named(self, tree: Any, hides_columns: bool = True) -> Compiled:
        """Compile an expression in which a column may be the alias of a selected expression.

        `hides_columns`: also if a table has a column of that name.
        """
        own = set(self._scope.own)
        items = [
            item for item in self.items if hides_columns or own.isdisjoint(self._scope.places(item.label))
        ]
        if tree.key == "column" and not tree.table:
            for item in items:
                if item.label.lower() == tree.name.lower():
                    return item.compiled
        return _AliasCompiler(self._compiler, items).compile(tree)

    def _by_place(self, tree: Any, hides_columns: bool = True) -> Compiled:
        """Compile an expression that may be the number of a selected one."""
        if tree.key == "literal" and not tree.is_string:
            if not (tree.this.isascii() and tree.this.isdigit() and 1 <= int(tree.this) <= len(self.items)):
                raise sql_error(f"Unknown column '{tree.this[:40]}'.")
            return self.items[int(tree.this) - 1].compiled
        return self._named(tree, hides_columns)

    def _grouping(self, tree: Any) -> Compiled:
        """Compile an expression of GROUP BY, in which no aggregate can be.

        A column of a table is preferred to an alias. Source: "SELECT Statement" (MySQL 8).
        """
        compiled = self._by_place(tree, hides_columns=False)
        names = {node.name.lower() for node in own_nodes(tree) if node.key == "column"}
        used = [item for item in self.items if item.compiled is compiled or item.label.lower() in names]
        if has_aggregate(tree) or any(item.has_aggregate for item in used):
            raise sql_error("Invalid use of group function.")
        return compiled

    def _ordered(self, tree: Any) -> tuple[Callable[[Row], Any], bool]:
        is_descending = bool(tree.args.get("desc"))
        if bool(tree.args.get("nulls_first")) is is_descending:
            raise sql_error("Unsupported clause of SELECT: NULLS FIRST and NULLS LAST.")
        return self._by_place(tree.this).value, is_descending

    # Results

    def results(self, rows: list[Row], outer: Row = ()) -> Sequence[Row]:
        """Return the rows of the result for the rows that fulfil the WHERE. `outer`: the row of the outer statement."""
        return self._results(
            self._grouped(rows, outer) if self.is_grouped else list(filter(self._is_kept, rows))
        )

    def results_of_group(self, aggregates: Sequence[Any]) -> Sequence[Row]:
        """Return the rows of the result for the aggregates of the only group."""
        row = [*([None] * len(self._scope.columns)), *aggregates]
        return self._results([row] if self._is_kept(row) else [])

    def _is_kept(self, row: Row) -> bool:
        """Return True if a row, or that of a group, fulfils the HAVING."""
        return self.having is None or truth(self.having.value(row)) is True

    def _results(self, rows: list[Row]) -> Sequence[Row]:
        for value, is_descending in reversed(self.order):
            rows = sorted(rows, key=self._key_of(value), reverse=is_descending)
        end = None if self.limit is None else self.offset + self.limit
        if not self.is_distinct:
            rows = rows[self.offset : end]
        results = [[self._result_of(item, row) for item in self.items] for row in rows]
        if self.is_distinct:
            results = distinct(results)[self.offset : end]
        return results

    def _result_of(self, item: _Item, row: Row) -> Any:
        return self._work.keep_value(converted(item.compiled.value(row), item.compiled.type))

    def _key_of(self, value: Callable[[Row], Any]) -> Callable[[Row], tuple[int, Any]]:
        return lambda row: sort_key(self._work.keep_value(value(row)))

    def _grouped(self, rows: list[Row], outer: Row) -> list[Row]:
        assert isinstance(self._compiler, GroupCompiler)
        keep = self._work.keep_value
        groups: dict[Hashable, list[Row]] = {}
        for row in rows:
            key = hash_key([keep(part.value(row)) for part in self._groups])
            groups.setdefault(key, []).append(row)
        if not groups and not self._groups:
            groups[()] = []
        width = len(self._scope.columns)
        nothing = [*([None] * len(self._scope.own)), *outer]
        results: list[Row] = []
        for members in groups.values():
            first = members[0] if members else nothing
            unused = [None] * (width - len(first))  # columns of an outer statement
            row = [
                *first,
                *unused,
                *(aggregate.result(members, keep) for aggregate in self._compiler.aggregates),
            ]
            if self._is_kept(row):
                results.append(row)
        return results


def _name_of(tree: Any) -> str:
    """Return the name of a column, or the value of a literal. "" for other expressions, which have their source text."""
    if tree.key in ("null", "boolean"):
        return str(tree.sql())
    return str(tree.name) if tree.key == "column" or (tree.key == "literal" and tree.is_string) else ""


class _AliasCompiler(Compiler):
    """Compiles an expression with another compiler, except for the aliases of selected expressions in it."""

    def __init__(self, compiler: Compiler, items: Sequence[_Item]) -> None:
        super().__init__(compiler.scope)
        self._compiler = compiler
        self._items = {item.label.lower(): item.compiled for item in items}

    def _column(self, tree: Any) -> Compiled:
        item = None if tree.table else self._items.get(tree.name.lower())
        return super()._column(tree) if item is None else item

    def _anonymous(self, tree: Any) -> Compiled:
        return self._compiler.compile(tree) if function_name(tree) in NAMES else super()._anonymous(tree)


def _reader(place: int) -> Callable[[Row], Any]:
    return lambda row: row[place]
