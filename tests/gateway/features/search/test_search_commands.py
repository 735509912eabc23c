"""The columns that a search uses. Grants are evaluated on them."""

from __future__ import annotations

from typing import Any

from tablegate.gateway.features.search import aggregations, queries
from tablegate.gateway.features.search.hits import Highlight, HighlightedField
from tablegate.gateway.features.search.ranking import FieldSort
from tablegate.gateway.features.search.schema import FieldType, SearchField, SearchIndex, SearchSchema
from tablegate.gateway.features.search.score_functions import FieldValue
from tablegate.gateway.features.search.search_commands import SearchRows

INNER = SearchField("n.v", FieldType.LONG, "v", ancestors=("n",))
NESTED = SearchField("n", FieldType.NESTED, "n", fields=(INNER,))
A, B = (SearchField(name, FieldType.LONG, name) for name in "ab")
INDEX = SearchIndex(1, 1, "i", "test", SearchSchema((NESTED, A, B)), {}, 0)


def columns(query: queries.Query = queries.MatchAll(), **members: Any) -> set[str]:
    table: Any = None
    return set(SearchRows(table, INDEX, query, **members).columns)


def test_columns_of_all_parts_of_a_search() -> None:
    hits = queries.InnerHits((FieldSort(INNER),))
    source = aggregations.CompositeSource(aggregations.GroupByField("s", A, aggregations.NOTHING, 1))
    composite = aggregations.GroupByComposite("c", (source,), aggregations.NOTHING, 1)
    function = queries.ScoreFunction(FieldValue(A), 1.0, queries.Exists(B))
    assert columns() == set()
    assert columns(collapse=A) == {"a"}
    assert columns(sorters=(FieldSort(A, other=B),)) == {"a", "b"}
    assert columns(highlight=Highlight((HighlightedField(A),))) == {"a"}
    assert columns(aggregated=aggregations.Inner(groups=(composite,))) == {"a"}
    assert columns(queries.FunctionsScore(queries.MatchAll(), (function,))) == {"a", "b"}
    assert columns(queries.DisjunctionMax((queries.Exists(A), queries.Exists(B)))) == {"a", "b"}
    assert columns(queries.Nested(NESTED, queries.MatchAll(), inner_hits=hits)) == {"n"}
