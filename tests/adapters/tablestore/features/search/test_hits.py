"""Fragments of texts, and the objects of nested fields that match.

Sources: the HighlightParameter and InnerHits pages of the service, aliyun-tablestore-go-sdk,
tablestore/search_api_test.go (TestSearchQueryWithHighlight, TestSearchQueryWithNestedHighlight), and
aliyun-tablestore-python-sdk, tests/full_text_search_test.py.
"""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.gateway.features.search import hits
from tests.adapters.tablestore.client import Refused, TableStoreService
from tests.adapters.tablestore.search_messages import (
    Searches,
    between,
    bool_of,
    field,
    keys_of,
    match_all,
    prefix,
    query,
    term,
    terms,
    wildcard,
)

TEXTS = [
    "dengcai <em>street</em> & more",
    "xihu district, hangzhou",
    "one two three four five six seven eight nine ten two",
    "no match",
]


@pytest.fixture
def table(service: TableStoreService) -> Searches:
    made = Searches(service)
    level2 = field("m", messages.NESTED, field_schemas=[field("t", messages.TEXT, enable_highlighting=True)])
    level1 = [field("t", messages.TEXT, enable_highlighting=True), field("l", messages.LONG), level2]
    made.create(
        field("t", messages.TEXT, enable_highlighting=True),
        field("f", messages.TEXT, analyzer="fuzzy", enable_highlighting=True),
        field("a", messages.TEXT, is_array=True, enable_highlighting=True),
        ("p", messages.TEXT),
        field("n", messages.NESTED, field_schemas=level1),
    )
    for number, text in enumerate(TEXTS):
        objects = [
            {"t": f"{text} {each}", "l": each, "m": [{"t": text}, {"t": "other"}]} for each in range(5)
        ]
        cells = {"t": text, "p": text, "f": text[:20], "a": json.dumps([text, "two and two"])}
        service.put({"pk": number}, {**cells, "n": json.dumps(objects)})
    made.catch_up()
    return made


def match(text: str, name: str = "t", **members: Any) -> messages.Query:
    return query(messages.MATCH_QUERY, messages.MatchQuery(field_name=name, text=text, **members))


def phrase(text: str, **members: Any) -> messages.Query:
    message = messages.MatchPhraseQuery(field_name="t", text=text, **members)
    return query(messages.MATCH_PHRASE_QUERY, message)


def parameter(name: str = "t", **members: Any) -> messages.HighlightParameter:
    return messages.HighlightParameter(field_name=name, **members)


def fragments(table: Searches, wanted: messages.Query, *parameters: Any, **members: Any) -> list[list[str]]:
    """Return the fragments of the first field in each result."""
    highlight = messages.Highlight(highlight_parameters=parameters or [parameter()], **members)
    found = table.search(wanted, highlight=highlight).search_hits
    return [
        list(hit.highlight_result.highlight_fields[0].field_fragments)
        if hit.highlight_result.highlight_fields
        else []
        for hit in found
    ]


def test_found_tokens_are_marked(table: Searches) -> None:
    assert fragments(table, match("DENGCAI xihu")) == [
        ["<em>dengcai</em> <em>street</em> & more"],
        ["<em>xihu</em> district, hangzhou"],
    ]
    tags = parameter(pre_tag="<b>", post_tag="</b>")
    assert fragments(table, match("dengcai"), tags) == [["<b>dengcai</b> <em>street</em> & more"]]
    encoded = fragments(table, match("dengcai"), tags, highlight_encoder=messages.HTML_MODE)
    assert encoded == [["<b>dengcai</b> &lt;em&gt;street&lt;&#x2F;em&gt; &amp; more"]]


def test_marks_after_a_character_that_is_longer_in_lower_case(service: TableStoreService) -> None:
    """The lower case of U+0130 is two characters in Python. The SDK's language has one."""
    table = Searches(service)
    table.create(field("t", messages.TEXT, enable_highlighting=True))
    service.put({"pk": 1}, {"t": "\u0130zmir, \u0130stanbul and Ankara"})
    table.catch_up()
    assert fragments(table, match("ankara")) == [["\u0130zmir, \u0130stanbul and <em>Ankara</em>"]]
    assert fragments(table, match("istanbul")) == [["\u0130zmir, <em>\u0130stanbul</em> and Ankara"]]


MARKED = [
    (term("t", "xihu"), "<em>xihu</em> district, hangzhou"),
    (terms("t", "xihu", "district"), "<em>xihu</em> <em>district</em>, hangzhou"),
    (prefix("t", "hang"), "xihu district, <em>hangzhou</em>"),
    (wildcard("t", "dist*t"), "xihu <em>district</em>, hangzhou"),
    (between("t", "xa", "xz"), "<em>xihu</em> district, hangzhou"),
    (phrase("district hangzhou"), "xihu <em>district</em>, <em>hangzhou</em>"),
    (phrase("hangzhou xihu", slop=3), "<em>xihu</em> district, <em>hangzhou</em>"),
    (bool_of(filter_queries=[match("xihu")]), "<em>xihu</em> district, hangzhou"),
    (
        query(messages.CONST_SCORE_QUERY, messages.ConstScoreQuery(filter=match("xihu"))),
        "<em>xihu</em> district, hangzhou",
    ),
    (
        bool_of(must_queries=[match("xihu")], must_not_queries=[match("one")]),
        "<em>xihu</em> district, hangzhou",
    ),
]


def test_queries_that_mark_tokens(table: Searches) -> None:
    for wanted, expected in MARKED:
        assert fragments(table, wanted) == [[expected]]


def test_a_phrase_marks_only_its_places(table: Searches) -> None:
    found = fragments(table, phrase("two three"))
    assert found == [["one <em>two</em> <em>three</em> four five six seven eight nine ten two"]]


def test_queries_that_mark_nothing(table: Searches) -> None:
    assert fragments(table, match_all()) == [[]] * 4
    assert fragments(table, match("xihu", "p")) == [[]]
    [hit] = table.search(match("xihu")).search_hits
    assert not hit.highlight_result.highlight_fields


def test_overlapping_tokens_have_one_mark(table: Searches) -> None:
    assert fragments(table, match("xihu", "f"), parameter("f")) == [["<em>xihu</em> district, hangz"]]


def test_sizes_numbers_and_orders_of_fragments(table: Searches) -> None:
    """A fragment ends before a token that it would split. Of several ones, those with most tokens are returned."""
    small = {"fragment_size": 12, "number_of_fragments": 5}
    wanted = match("two three nine ten")
    in_order = [
        "one <em>two</em> ",
        "<em>three</em> four f",
        "n eight <em>nine</em>",
        " <em>ten</em> <em>two</em>",
    ]
    assert fragments(table, wanted, parameter(**small)) == [in_order]
    by_score = parameter(**small, fragments_order=messages.SCORE)
    assert fragments(table, wanted, by_score) == [[in_order[3], *in_order[:3]]]
    small["number_of_fragments"] = 1
    assert fragments(table, wanted, parameter(**small)) == [in_order[3:]]
    tiny = parameter(fragment_size=1, number_of_fragments=2)
    assert fragments(table, match("two three"), tiny) == [["<em>two</em>", "<em>three</em>"]]
    arrays = fragments(table, match("two", "a"), parameter("a"))
    marked = TEXTS[2].replace("two", "<em>two</em>")
    assert arrays[2] == [marked, "<em>two</em> and <em>two</em>"]


def test_marks_are_in_the_first_characters_of_a_text(
    table: Searches, monkeypatch: pytest.MonkeyPatch
) -> None:
    for characters, expected in ((4, ["<em>xihu</em> district, hangzhou"]), (3, [])):
        monkeypatch.setattr(hits, "MOST_CHARACTERS", characters)
        assert fragments(table, match("xihu")) == [expected]


def test_invalid_highlights(table: Searches) -> None:
    accepted = [
        parameter(number_of_fragments=limits.FRAGMENTS_MAX, fragment_size=limits.FRAGMENT_SIZE_MAX),
        parameter(pre_tag="<" * limits.TAG_MAX_CHARACTERS),
    ]
    for each in accepted:
        assert fragments(table, match("xihu"), each) != [[]]
    assert fragments(table, match("xihu"), *[parameter()] * limits.HIGHLIGHTED_FIELDS_MAX) != [[]]
    with pytest.raises(Refused, match=r"highlighting is not supported for field\[p\]"):
        fragments(table, match("xihu"), parameter("p"))
    for refused in (
        parameter("none"),
        parameter("n.l"),
        parameter(number_of_fragments=limits.FRAGMENTS_MAX + 1),
        parameter(number_of_fragments=0),
        parameter(fragment_size=limits.FRAGMENT_SIZE_MAX + 1),
        parameter(fragment_size=0),
        parameter(pre_tag="<" * (limits.TAG_MAX_CHARACTERS + 1)),
        parameter(post_tag="</b onclick>"),
    ):
        with pytest.raises(Refused, match="OTSParameterInvalid"):
            fragments(table, match("xihu"), refused)
    with pytest.raises(Refused, match="number of highlight parameters"):
        fragments(table, match("xihu"), *[parameter()] * (limits.HIGHLIGHTED_FIELDS_MAX + 1))


# Inner hits


def nested(path: str, inner: messages.Query, **members: Any) -> messages.Query:
    inner_hits = messages.InnerHits(**members)
    return query(messages.NESTED_QUERY, messages.NestedQuery(path=path, query=inner, inner_hits=inner_hits))


def places(table: Searches, **members: Any) -> list[int]:
    """Return the places of the objects in the second row that match."""
    hit = table.search(nested("n", match("xihu", "n.t"), **members)).search_hits[0]
    [inner] = hit.search_inner_hits
    assert inner.path == "n"
    return [each.nested_doc_offset for each in inner.search_hits]


def sorted_by(name: str, **members: Any) -> messages.Sort:
    order = messages.FieldSort(field_name=name, order=messages.SORT_ORDER_DESC, **members)
    return messages.Sort(sorter=[messages.Sorter(field_sort=order)])


def test_objects_that_match_are_returned(table: Searches) -> None:
    assert places(table) == [0, 1, 2]
    assert places(table, limit=2, offset=3) == [3, 4]
    assert places(table, sort=sorted_by("n.l"), limit=2) == [4, 3]
    documents = messages.Sort(
        sorter=[messages.Sorter(doc_sort=messages.DocSort(order=messages.SORT_ORDER_DESC))]
    )
    assert places(table, sort=documents, limit=1) == [4]
    assert places(table, limit=limits.INNER_HITS_MAX) == [0, 1, 2, 3, 4]
    for refused in (
        {"limit": limits.INNER_HITS_MAX + 1},
        {"limit": 1, "offset": limits.INNER_HITS_MAX},
        {"offset": -1},
        {"sort": sorted_by("pk")},
        {"sort": sorted_by("t")},
    ):
        with pytest.raises(Refused, match="OTSParameterInvalid"):
            places(table, **refused)


def test_objects_inside_objects_with_fragments(table: Searches) -> None:
    tags = {"pre_tag": "<b>", "post_tag": "</b>"}
    inner = nested(
        "n.m",
        match("xihu dengcai", "n.m.t"),
        highlight=messages.Highlight(highlight_parameters=[parameter("n.m.t", **tags)]),
    )
    outer = nested(
        "n",
        bool_of(should_queries=[match("xihu dengcai", "n.t"), inner]),
        highlight=messages.Highlight(highlight_parameters=[parameter("n.t")]),
        limit=1,
    )
    answer = table.search(outer)
    assert keys_of(answer) == [0, 1]
    for hit, start in zip(answer.search_hits, ("dengcai", "xihu"), strict=True):
        assert math.isnan(hit.score)
        [[level1]] = [each.search_hits for each in hit.search_inner_hits]
        [shown] = level1.highlight_result.highlight_fields
        assert shown.field_name == "n.t"
        assert shown.field_fragments[0].startswith(f"<em>{start}</em> ")
        [[level2]] = [each.search_hits for each in level1.search_inner_hits]
        [shown] = level2.highlight_result.highlight_fields
        assert shown.field_fragments[0].startswith(f"<b>{start}</b> ")
        assert level2.nested_doc_offset == 0
        assert level1.score > 0
        assert level2.score > 0


def test_the_number_of_inner_hits_is_limited(table: Searches, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hits, "MOST_INNER_HITS", 5)
    assert places(table, limit=5) == [0, 1, 2, 3, 4]
    monkeypatch.setattr(hits, "MOST_INNER_HITS", 4)
    assert places(table, limit=4) == [0, 1, 2, 3]
    with pytest.raises(Refused, match="too many inner hits"):
        places(table, limit=5)
