"""A search of a search index as code for the Python SDK of Table Store, for the console."""

from __future__ import annotations

from tablegate.adapters.tablestore.detection import client_code
from tablegate.gateway.features.search.index_search import RANGES, Comparison, IndexCondition, IndexSearch
from tablegate.gateway.features.search.schema import FieldType
from tablegate.gateway.model.commands.row_search import Endpoint

_SDK = "tablestore"
_LITERALS = frozenset({FieldType.LONG, FieldType.DOUBLE, FieldType.BOOLEAN})
_QUERIES = {
    Comparison.EQ: "TermQuery", Comparison.PREFIX: "PrefixQuery", Comparison.PATTERN: "WildcardQuery",
    Comparison.MATCH: "MatchQuery", Comparison.PHRASE: "MatchPhraseQuery",
}  # fmt: skip


def search_code(search: IndexSearch, endpoint: Endpoint) -> dict[str, str]:
    """Return a search as code: name of the SDK -> code."""
    conditions = [_query(each) for each in search.conditions]
    query = (
        f"tablestore.BoolQuery(must_queries=[{', '.join(conditions)}])"
        if conditions
        else "tablestore.MatchAllQuery()"
    )
    return {
        _SDK: f"""import tablestore

client = {client_code(search.table, endpoint)}
query = {query}
sort = tablestore.Sort(sorters=[{_sorter(search)}])
token = b""
while token is not None:
    page = tablestore.SearchQuery(
        query, sort=None if token else sort, next_token=token or None, limit=100, get_total_count=True
    )
    found = client.search(
        {search.table.name!r}, {search.index.name!r}, page,
        tablestore.ColumnsToGet(return_type=tablestore.ColumnReturnType.ALL),
    )
    for key, columns in found.rows:
        print(key, columns)
    token = found.next_token or None
"""
    }


def _sorter(search: IndexSearch) -> str:
    order = f"tablestore.SortOrder.{'DESC' if search.descending else 'ASC'}"
    if search.by_score:
        return "tablestore.ScoreSort()"
    return (
        f"tablestore.PrimaryKeySort({order})"
        if search.sort is None
        else f"tablestore.FieldSort({search.sort.name!r}, {order})"
    )


def _query(condition: IndexCondition) -> str:
    name = repr(condition.field.name)
    value = repr(condition.value if condition.field.type in _LITERALS else condition.text)
    if condition.comparison is Comparison.EXISTS:
        query = f"tablestore.ExistsQuery({name})"
    elif condition.comparison in RANGES:
        side = "to" if condition.comparison in (Comparison.LT, Comparison.LE) else "from"
        bound = "upper" if side == "to" else "lower"
        includes = condition.comparison in (Comparison.LE, Comparison.GE)
        query = f"tablestore.RangeQuery({name}, range_{side}={value}, include_{bound}={includes})"
    else:
        query = f"tablestore.{_QUERIES[condition.comparison]}({name}, {value})"
    for path in reversed(condition.field.ancestors):
        query = f"tablestore.NestedQuery({path!r}, {query})"
    return query
