"""Scores and the order by them."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tests.adapters.tablestore.client import Refused, TableStoreService
from tests.adapters.tablestore.search_messages import (
    Searches,
    bool_of,
    by_field,
    field,
    keys_of,
    match_all,
    nested,
    query,
    term,
    variant,
)

BY_SCORE = messages.Sort(sorter=[messages.Sorter(score_sort=messages.ScoreSort())])


@pytest.fixture
def table(service: TableStoreService) -> Searches:
    return Searches(service)


def match(text: str, **members: Any) -> messages.Query:
    return query(messages.MATCH_QUERY, messages.MatchQuery(field_name="t", text=text, **members))


def bm25(count: int, length: int, average: float, texts: int, frequency: int) -> float:
    rarity = math.log(1 + (texts - frequency + 0.5) / (frequency + 0.5))
    return rarity * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length / average))


def scores(table: Searches, wanted: messages.Query, **members: Any) -> dict[int, float]:
    answer = table.search(wanted, sort=BY_SCORE, **members)
    return dict(zip(keys_of(answer), (hit.score for hit in answer.search_hits), strict=True))


def fill(table: Searches) -> None:
    """Texts of 2, 4 and 3 tokens. Earlier texts of the rows, and those of deleted rows, do not count."""
    table.create(("t", messages.TEXT), ("l", messages.LONG))
    table.service.put({"pk": 1}, {"t": "something else altogether"})
    table.service.put({"pk": 9}, {"t": "a deleted one"})
    table.catch_up()
    table.service.delete({"pk": 9})
    for key, text in ((1, "tea time"), (2, "tea and more tea"), (3, "no time left")):
        table.service.put({"pk": key}, {"t": text, "l": key * 10})
    table.catch_up()


def test_scores_are_bm25(table: Searches) -> None:
    """Source: full_text_search_test.py of the Python SDK, which the formula of BM25 reproduces."""
    fill(table)
    found = scores(table, match("tea"))
    assert [*found] == [2, 1]
    assert found[2] == pytest.approx(bm25(2, 4, 3, 3, 2))
    assert found[1] == pytest.approx(bm25(1, 2, 3, 3, 2))
    both = scores(table, match("tea time"))
    assert both[1] == pytest.approx(2 * found[1])
    assert scores(table, match_all()) == {1: 1.0, 2: 1.0, 3: 1.0}


def test_weights_multiply_scores(table: Searches) -> None:
    """In every message of a query that has a weight."""
    table.create(
        ("t", messages.TEXT),
        ("k", messages.KEYWORD),
        field("n", messages.NESTED, field_schemas=[field("k", messages.KEYWORD)]),
    )
    table.service.put({"pk": 1}, {"t": "tea time", "k": "abc", "n": '[{"k": "x"}]'})
    table.catch_up()
    abc = variant("abc")
    inner = nested("n", term("n.k", "x"))
    made: list[tuple[int, Any]] = [
        (messages.MATCH_QUERY, messages.MatchQuery(field_name="t", text="tea")),
        (messages.MATCH_PHRASE_QUERY, messages.MatchPhraseQuery(field_name="t", text="tea time")),
        (messages.TERM_QUERY, messages.TermQuery(field_name="k", term=abc)),
        (messages.TERMS_QUERY, messages.TermsQuery(field_name="k", terms=[abc])),
        (messages.PREFIX_QUERY, messages.PrefixQuery(field_name="k", prefix="a")),
        (messages.SUFFIX_QUERY, messages.SuffixQuery(field_name="k", suffix="c")),
        (messages.WILDCARD_QUERY, messages.WildcardQuery(field_name="k", value="a*c")),
        (messages.BOOL_QUERY, messages.BoolQuery(must_queries=[match("tea"), term("k", "abc")])),
        (messages.NESTED_QUERY, messages.NestedQuery.FromString(inner.query)),
        (messages.DIS_MAX_QUERY, messages.DisMaxQuery(queries=[match("tea")])),
    ]
    made[8][1].score_mode = messages.SCORE_MODE_MAX
    for kind, message in made:
        [plain] = scores(table, query(kind, message)).values()
        assert plain > 0
        message.weight = 2.5
        assert scores(table, query(kind, message)) == {1: pytest.approx(2.5 * plain)}
        for wrong in (-1, math.nan):
            message.weight = wrong
            with pytest.raises(Refused, match="weight"):
                scores(table, query(kind, message))


def test_each_row_has_a_hit_without_an_order_by_score(table: Searches) -> None:
    """Source: SearchHit.java of the Java SDK, and alibabacloud-tablestore-for-agent-memory, which reads only hits."""
    fill(table)
    answer = table.search(match("tea"))
    assert keys_of(answer) == [1, 2]
    assert len(answer.search_hits) == 2
    assert all(math.isnan(hit.score) for hit in answer.search_hits)


def test_scores_of_compound_queries(table: Searches) -> None:
    fill(table)
    tea = scores(table, match("tea"))
    parts = {"must_queries": [match("tea")], "should_queries": [term("l", 10)]}
    found = scores(table, bool_of(**parts, filter_queries=[match("tea")]))
    assert found == {2: pytest.approx(tea[2]), 1: pytest.approx(tea[1] + 1)}
    constant = query(messages.CONST_SCORE_QUERY, messages.ConstScoreQuery(filter=match("tea")))
    assert scores(table, constant) == {1: 1.0, 2: 1.0}
    factor = messages.FunctionScoreQuery(
        query=match("tea"), field_value_factor=messages.FieldValueFactor(field_name="l")
    )
    found = scores(table, query(messages.FUNCTION_SCORE_QUERY, factor))
    assert found == {2: pytest.approx(20 * tea[2]), 1: pytest.approx(10 * tea[1])}
    factor.field_value_factor.field_name = "t"
    with pytest.raises(Refused, match="OTSParameterInvalid"):
        scores(table, query(messages.FUNCTION_SCORE_QUERY, factor))


def test_scores_of_nested_objects(table: Searches) -> None:
    table.create(
        field("n", messages.NESTED, field_schemas=[field("a", messages.LONG), field("b", messages.LONG)])
    )
    table.service.put({"pk": 1}, {"n": json.dumps([{"a": 1, "b": 1}, {"a": 1}, {"a": 2}])})
    table.catch_up()
    inner = bool_of(must_queries=[term("n.a", 1)], should_queries=[term("n.b", 1)])
    for mode, expected in (
        (messages.SCORE_MODE_AVG, 1.5),
        (messages.SCORE_MODE_MAX, 2.0),
        (messages.SCORE_MODE_MIN, 1.0),
        (messages.SCORE_MODE_TOTAL, 3.0),
        (messages.SCORE_MODE_NONE, 0.0),
    ):
        message = messages.NestedQuery(path="n", query=inner, score_mode=mode)
        assert scores(table, query(messages.NESTED_QUERY, message)) == {1: expected}
    assert table.find(nested("n", inner)) == [1]


def test_pages_in_the_order_of_scores(table: Searches) -> None:
    fill(table)
    first = table.search(match("tea time no"), sort=BY_SCORE, limit=2)
    second = table.search(match("tea time no"), token=first.next_token)
    assert keys_of(first) + keys_of(second) == [*scores(table, match("tea time no"))]
    assert len(second.search_hits) == 1


def test_a_token_comes_without_a_sort_or_with_its_own(table: Searches) -> None:
    """Source: alibabacloud-tablestore-for-agent-memory sends the sort of the first page with each token."""
    fill(table)
    token = table.search(match("tea time no"), sort=BY_SCORE, limit=2).next_token
    assert table.find(match("tea time no"), token=token, sort=BY_SCORE) == table.find(
        match("tea time no"), token=token
    )
    with pytest.raises(Refused, match="The sort can not be changed with a token"):
        table.search(match("tea time no"), token=token, sort=by_field("l"))
