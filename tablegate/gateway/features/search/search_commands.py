"""Commands for search indexes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tablegate.gateway.features.search.aggregations import NOTHING, Aggregations, Inner, sources_of
from tablegate.gateway.features.search.hits import (
    NO_HIGHLIGHT,
    Details,
    Highlight,
    fields_of_hits,
    has_inner_hits,
)
from tablegate.gateway.features.search.queries import (
    FunctionsScore,
    Nearest,
    Query,
    fields_of,
    min_score_of,
    parts_of,
)
from tablegate.gateway.features.search.ranking import BY_KEY, Sorter, fields_of_sorters, needs_scores
from tablegate.gateway.features.search.schema import SearchField, SearchIndex, SearchIndexState, SearchSchema
from tablegate.gateway.model.authorization.accesses import any_rows
from tablegate.gateway.model.authorization.conditions import ConditionKey, FactValues
from tablegate.gateway.model.authorization.permissions import Permission
from tablegate.gateway.model.authorization.quotas import READ_UNIT_BYTES, READ_UNITS, Cost, read_units
from tablegate.gateway.model.commands.command import AccountRead, Command, ControlCommand
from tablegate.gateway.model.commands.row_commands import VisibleAttributes, attributes_with
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import Row


@dataclass(frozen=True, slots=True)
class CreateSearchIndex(ControlCommand[Table]):
    """Create a search index, which is filled in the background. Outcome: Table.

    `dialect`: values are indexed as it shows them. `most`: the maximum number of search indexes of the table.
    `lifetime_ms`: the time to live, None if it has none. Errors: StaleTable, IndexExists, LimitExceeded.
    """

    table: Table
    name: str
    dialect: str
    schema: SearchSchema
    properties: Mapping[str, Any]
    most: int
    lifetime_ms: int | None = None

    permission = Permission.CREATE_INDEX


@dataclass(frozen=True, slots=True)
class AlterSearchIndex(ControlCommand[Table]):
    """Replace the properties and the time to live of a search index. Outcome: Table. Errors: StaleTable, IndexMissing.

    An index that gets a time to live is filled again, because its documents need the times of their rows. So is one that
    gets another schema. `schema`: that of the index with more fields at the end, or None to keep it.
    """

    table: Table
    name: str
    properties: Mapping[str, Any]
    lifetime_ms: int | None
    schema: SearchSchema | None = None

    permission = Permission.CREATE_INDEX


@dataclass(frozen=True, slots=True)
class SwapSearchIndexes(ControlCommand[Table]):
    """Exchange the names of two search indexes. Outcome: Table. Errors: StaleTable, IndexMissing."""

    table: Table
    name: str
    other: str

    permission = Permission.CREATE_INDEX


@dataclass(frozen=True, slots=True)
class DropSearchIndex(ControlCommand[Table]):
    """Drop a search index. Outcome: Table. Errors: StaleTable, IndexMissing."""

    table: Table
    name: str

    permission = Permission.DROP_INDEX


@dataclass(frozen=True, slots=True)
class ListSearchIndexes(AccountRead["list[tuple[str, SearchIndex]]"]):
    """List the search indexes of a namespace, or of one table, by name. Outcome: list of (table name, SearchIndex).

    `only_filled`: without those that do not have all existing rows yet.
    """

    namespace: str
    table_name: str = ""
    only_filled: bool = False

    permission = Permission.LIST_FEATURES


@dataclass(frozen=True, slots=True)
class DescribeSearchIndex(ControlCommand[SearchIndexState]):
    """Return the progress of a search index. Outcome: SearchIndexState. Error: IndexMissing."""

    table: Table
    name: str

    permission = Permission.DESCRIBE


class SearchPosition(NamedTuple):
    """The place after a result: its order key, and the stored columns of its primary key."""

    order_key: bytes
    partition: bytes
    sort: bytes


@dataclass(frozen=True, slots=True)
class SearchRows(Command["SearchPage"]):
    """Find rows by a search index.

    - `sorters`: the order of the results.
    - `after`: begin after this result.
    - `offset`, `limit`: the number of results to skip, and to return.
    - `counts`: count all results.
    - `aggregated`: aggregations and groups over all results.
    - `highlight`: the fields whose fragments are returned.
    - `collapse`: return only the first result of each value of this field. All of them are counted and aggregated.
    - `visible_attributes`: the attributes of the rows that the reader shows, or None for all.
    - `timeout_ms`: the time after which no other document is evaluated.
    Outcome: SearchPage. Errors: IndexMissing, LimitExceeded (search-documents, search-groups, search-inner-hits,
    search-memory, search-phrase, search-time).
    """

    table: Table
    index: SearchIndex
    query: Query
    sorters: tuple[Sorter, ...] = BY_KEY
    after: SearchPosition | None = None
    offset: int = 0
    limit: int = 10
    counts: bool = False
    aggregated: Inner = NOTHING
    highlight: Highlight = NO_HIGHLIGHT
    collapse: SearchField | None = None
    visible_attributes: VisibleAttributes | None = None
    timeout_ms: int = 30_000

    permission = Permission.SCAN  # the results can be any rows
    rate = READ_UNITS

    @property
    def needs_scores(self) -> bool:
        """True if the results, their order or their number depend on scores."""
        is_nearest = isinstance(self.query, Nearest)
        return is_nearest or needs_scores(self.sorters) or min_score_of(self.query) is not None

    @property
    def returns_scores(self) -> bool:
        """True if the reply has scores."""
        has_functions = any(isinstance(part, FunctionsScore) for part in parts_of(self.query))
        return has_functions or needs_scores(self.sorters)

    @property
    def returns_details(self) -> bool:
        """True if the reply has fragments of texts or objects of NESTED fields."""
        return bool(self.highlight.fields) or has_inner_hits(self.query)

    @property
    def columns(self) -> frozenset[str]:
        """The columns that the query and the order use."""
        schema = self.index.schema
        fields = [*fields_of(self.query), *fields_of_sorters(self.sorters), *sources_of(self.aggregated)]
        fields += [*fields_of_hits(self.query), *(each.field for each in self.highlight.fields)]
        if self.collapse is not None:
            fields.append(self.collapse)
        return frozenset(schema.top(field).source for field in fields)

    def fact(self, key: ConditionKey) -> FactValues:
        if key is ConditionKey.ATTRIBUTES:
            names = {*self.table.key_schema.names, *self.columns}
            return attributes_with(names, self.visible_attributes)
        return any_rows(key)

    def cost(self, outcome: SearchPage) -> Cost:
        evaluated = outcome.evaluated_bytes / READ_UNIT_BYTES
        return Cost(max(1.0, read_units([row.size_bytes for row in outcome.rows]) + evaluated))


class SearchPage(NamedTuple):
    """The rows that a search found.

    - `total`: the number of all results, if counted.
    - `last`: the position of the last result, None if there is none. `has_more`: others follow it.
    - `aggregations`: of all results. `top_rows`: the rows in them.
    - `scores`: the scores of the rows, 0 if the order does not depend on them. `details`: of the rows, if requested.
    - `evaluated_bytes`: the size of the documents that were evaluated to find them.
    """

    rows: list[Row]
    total: int | None
    last: SearchPosition | None
    has_more: bool
    aggregations: Aggregations = Aggregations([], [])
    top_rows: Mapping[Position, Row] = {}
    scores: Sequence[float] = ()
    details: Sequence[Details] = ()
    evaluated_bytes: int = 0
