"""Searches of a search index by conditions on single fields, as the console offers them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from tablegate.gateway.features.search import field_values, queries
from tablegate.gateway.features.search.analysis import query_tokens
from tablegate.gateway.features.search.documents import query_value_of
from tablegate.gateway.features.search.queries import Query
from tablegate.gateway.features.search.ranking import FieldSort, KeySort, ScoreSort, Sorter
from tablegate.gateway.features.search.schema import FieldType, SearchField, SearchIndex
from tablegate.gateway.model.commands.row_search import Endpoint
from tablegate.gateway.model.tables.tables import Table


class Comparison(Enum):
    """A comparison of a field with a text."""

    EQ = "="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    PREFIX = "begins with"
    PATTERN = "is like"
    MATCH = "matches"
    PHRASE = "has the phrase"
    EXISTS = "exists"


RANGES = frozenset({Comparison.LT, Comparison.LE, Comparison.GT, Comparison.GE})
_TEXTS = frozenset({Comparison.PREFIX, Comparison.PATTERN})
_ANY = frozenset({Comparison.EXISTS})
COMPARISONS: Mapping[FieldType, frozenset[Comparison]] = {
    **{
        kind: _ANY | {Comparison.EQ} | RANGES
        for kind in (FieldType.LONG, FieldType.DOUBLE, FieldType.DATE, FieldType.IP)
    },
    FieldType.BOOLEAN: _ANY | {Comparison.EQ},
    FieldType.KEYWORD: _ANY | {Comparison.EQ} | RANGES | _TEXTS,
    FieldType.TEXT: _ANY | _TEXTS | {Comparison.MATCH, Comparison.PHRASE},
    FieldType.GEO_POINT: _ANY,
    FieldType.NESTED: _ANY,
    FieldType.VECTOR: _ANY,
}
"""The comparisons of each type of field."""


class IndexCondition(NamedTuple):
    """A condition on one field. The text fits the field (`fits`)."""

    field: SearchField
    comparison: Comparison
    text: str = ""

    @property
    def fits(self) -> bool:
        """True if the type of the field has the comparison, and the text is a value of it."""
        if self.comparison not in COMPARISONS[self.field.type]:
            return False
        is_compared = self.comparison is Comparison.EQ or self.comparison in RANGES
        return not is_compared or self.value is not None or self.block is not None

    @property
    def value(self) -> Any:
        """The value of the text, None if it is none."""
        return query_value_of(self.field, self.text)

    @property
    def block(self) -> tuple[str, str] | None:
        """The block of addresses that the text is, None if it is none."""
        is_block = self.field.type is FieldType.IP and self.comparison is Comparison.EQ
        return field_values.address_block(self.text) if is_block else None

    @property
    def query(self) -> Query:
        """The condition as a query. It is about one object of the NESTED fields around the field."""
        return queries.within_objects(self.field, self._plain)

    @property
    def _plain(self) -> Query:
        field, text = self.field, self.text
        match self.comparison:
            case Comparison.EXISTS:
                return queries.Exists(field)
            case Comparison.PREFIX:
                return queries.Prefix(field, text)
            case Comparison.PATTERN:
                return queries.Pattern(field, text)
            case Comparison.MATCH:
                return queries.Match(field, tuple(dict.fromkeys(_tokens(field, text))), 1)
            case Comparison.PHRASE:
                return queries.Phrase(field, tuple(_tokens(field, text)))
            case Comparison.LT | Comparison.LE:
                return queries.Range(field, upper=self.value, includes_upper=self.comparison is Comparison.LE)
            case Comparison.GT | Comparison.GE:
                return queries.Range(field, lower=self.value, includes_lower=self.comparison is Comparison.GE)
        block = self.block
        if block is not None:
            return queries.Range(field, *block, includes_lower=True, includes_upper=True)
        return queries.Terms(field, (self.value,))


def _tokens(field: SearchField, text: str) -> list[str]:
    assert field.analyzer is not None
    return query_tokens(field.analyzer, text)


@dataclass(frozen=True, slots=True)
class IndexSearch:
    """The rows for which all conditions hold, by a field, by score or by the primary key."""

    table: Table
    index: SearchIndex
    conditions: tuple[IndexCondition, ...] = ()
    sort: SearchField | None = None
    by_score: bool = False
    descending: bool = False

    @property
    def query(self) -> Query:
        parts = tuple(condition.query for condition in self.conditions)
        return queries.Bool(must=parts) if parts else queries.MatchAll()

    @property
    def sorters(self) -> tuple[Sorter, ...]:
        if self.by_score:
            return (ScoreSort(),)
        return (KeySort(self.descending),) if self.sort is None else (FieldSort(self.sort, self.descending),)


CODES: dict[str, Callable[[IndexSearch, Endpoint], dict[str, str]]] = {}
"""Dialect -> the function that returns a search as code of SDKs for a server: name of the SDK -> code."""
