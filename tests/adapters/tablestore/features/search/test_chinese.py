"""The analyzers for Chinese words, max_word and min_word, and the limit of fuzzy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.gateway.features.search import chinese
from tests.adapters.tablestore.client import Refused, TableStoreService
from tests.adapters.tablestore.search_messages import Searches, field, query, schema

# Titles and factors of aliyun-tablestore-python-sdk, tests/full_text_search_test.py.
TITLES = {
    1: ("求推荐几款菊花茶店铺", 25),
    2: ("秋天最适合饮用的几种花茶", 30),
    3: ("苕溪边上有一大片野生菊花", 100),
    4: ("菊花茶是一款大部分人都适合的经典花茶", 120),
}


@pytest.fixture
def table(service: TableStoreService) -> Searches:
    return Searches(service)


def fill(table: Searches, analyzer: str) -> None:
    table.create(field("title", messages.TEXT, analyzer=analyzer), ("pv", messages.LONG))
    for key, (title, pv) in TITLES.items():
        table.service.put({"pk": key}, {"title": title, "pv": pv})
    table.catch_up()


def match(text: str, **members: Any) -> messages.Query:
    return query(messages.MATCH_QUERY, messages.MatchQuery(field_name="title", text=text, **members))


def phrase(text: str) -> messages.Query:
    return query(messages.MATCH_PHRASE_QUERY, messages.MatchPhraseQuery(field_name="title", text=text))


def test_max_word_finds_all_words(table: Searches) -> None:
    """Source: aliyun-tablestore-python-sdk, tests/full_text_search_test.py."""
    fill(table, "max_word")
    described = table.service.call("DescribeSearchIndex", table_name="t", index_name="i")
    assert described.schema.field_schemas[0].analyzer == "max_word"
    for wanted, number in (
        (match("菊花茶"), 4),
        (match("梨花茶"), 3),
        (match("花茶"), 3),
        (match("菊花"), 3),
        (match("饮用花茶", operator=messages.AND), 1),
        (match("饮用花茶", operator=messages.OR), 3),
        (match("饮用花茶", minimum_should_match=2), 1),
        (phrase("野生菊花"), 1),
        (phrase("秋天菊花"), 0),
    ):
        assert len(table.find(wanted)) == number
    factor = messages.FunctionScoreQuery(
        query=match("花茶"), field_value_factor=messages.FieldValueFactor(field_name="pv")
    )
    by_score = messages.Sort(sorter=[messages.Sorter(score_sort=messages.ScoreSort())])
    answer = table.search(query(messages.FUNCTION_SCORE_QUERY, factor), sort=by_score)
    assert [int(hit.score) for hit in answer.search_hits] == [53, 11, 9]


def test_min_word_does_not_find_parts_of_words(table: Searches) -> None:
    fill(table, "min_word")
    assert table.find(match("菊花茶")) == [1, 4]
    assert table.find(match("花茶")) == [2, 4]
    assert table.find(match("菊花")) == [3]


def test_fuzzy_uses_the_first_1024_characters(table: Searches) -> None:
    """Source: "Tokenization" (2026): length limit."""
    table.create(field("title", messages.TEXT, analyzer="fuzzy"))
    table.service.put({"pk": 1}, {"title": "a" * 1023 + "b"})
    table.service.put({"pk": 2}, {"title": "a" * 1024 + "b"})
    table.catch_up()
    assert table.find(match("ab")) == [1]
    assert table.find(match("aa")) == [1, 2]


def test_a_server_without_rjieba_says_so(table: Searches, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(table, "max_word")
    monkeypatch.setitem(sys.modules, "tablegate.gateway.features.search.chinese", None)
    monkeypatch.delattr("tablegate.gateway.features.search.chinese")
    with pytest.raises(Refused, match=r"tablegate\[chinese\]"):
        table.find(match("花茶"))
    monkeypatch.setattr(
        "tablegate.adapters.tablestore.features.search.index_schemas.can_analyze", lambda analyzer: False
    )
    fields = schema(field("title", messages.TEXT, analyzer="min_word"))
    with pytest.raises(Refused, match=r"tablegate\[chinese\]"):
        table.service.call("CreateSearchIndex", table_name="t", index_name="j", schema=fields)


@given(st.text("菊花茶哈的是人都\u4dae\uf900", max_size=20))
def test_every_character_is_in_a_word(text: str) -> None:
    """Two of these characters are in no dictionary."""
    for words, left_out in ((chinese.all_words, "的是"), (chinese.words, "")):
        spans = [*words(text)]
        assert [start for start, _ in spans] == sorted(start for start, _ in spans)
        found = {at for start, end in spans for at in range(start, end)}
        assert found >= {at for at, character in enumerate(text) if character not in left_out}
        assert found <= {*range(len(text))}


@given(st.text("菊花茶哈的是人都大部分", max_size=40))
def test_a_text_has_the_same_words_in_chunks(text: str) -> None:
    whole = [*chinese.all_words(text)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chinese, "_CHUNK", 3)
        assert [*chinese.all_words(text)] == whole


_ONE_TEXT = """
import os, sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
from tablegate.gateway.features.search.analysis import Analyzer, tokens_of
assert [token.text for token in tokens_of(Analyzer(), "菊花 tea")] == ["菊", "花", "tea"]
assert "rjieba" not in sys.modules
assert [token.text for token in tokens_of(Analyzer("max_word"), "菊花茶 tea")] == ["菊花", "菊花茶", "花茶", "tea"]
assert "rjieba" in sys.modules and "jieba" not in sys.modules
assert not [path for path in opened if path.startswith(os.environ["TMPDIR"])], opened
"""


def test_the_dictionary_is_no_file_of_a_shared_folder(tmp_path: Path) -> None:
    """The package jieba loads `jieba.cache` from the temporary folder by marshal, and saves it there."""
    planted = tmp_path / "jieba.cache"
    planted.write_bytes(b"not a cache")
    environment = {"PYTHONPATH": str(Path(__file__).parents[4]), "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", _ONE_TEXT], check=True, env=environment)
    assert [*tmp_path.iterdir()] == [planted]
    assert planted.read_bytes() == b"not a cache"
