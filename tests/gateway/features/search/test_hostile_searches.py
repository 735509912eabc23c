"""Searches that would take exponential time or unbounded memory, and equal results of the bounded ways."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.gateway.features.search import analysis, collecting
from tablegate.gateway.features.search.aggregations import (
    Aggregation,
    GroupByFilter,
    GroupByRange,
    Grouping,
    Inner,
    Metric,
    MetricKind,
    Percentiles,
    TopRows,
)
from tablegate.gateway.features.search.analysis import Analyzer
from tablegate.gateway.features.search.collecting import Collector, Hit
from tablegate.gateway.features.search.hits import DetailsReader, Highlight, HighlightedField
from tablegate.gateway.features.search.queries import (
    Bool,
    CheckTime,
    Match,
    MatchAll,
    Nested,
    Pattern,
    Phrase,
    has_phrase,
    matches,
)
from tablegate.gateway.features.search.ranking import (
    FieldSort,
    FieldStatistics,
    GeoDistanceSort,
    order_key,
    score,
)
from tablegate.gateway.features.search.schema import FieldType, SearchField
from tablegate.gateway.model.errors import LimitExceeded
from tablegate.gateway.model.values.keys import Position

KEYWORD = SearchField("k", FieldType.KEYWORD, "k")
TEXT = SearchField("t", FieldType.TEXT, "t", analyzer=Analyzer())
VALUES = [{"k": [f"{number:03}"]} for number in range(100)]
WORDS = st.lists(st.sampled_from("abc"), min_size=1, max_size=6)


@given(st.text("ab*?", max_size=8), st.text("ab\n", max_size=8))
def test_a_wildcard_matches_as_a_regular_expression_does(pattern: str, text: str) -> None:
    plain = "".join({"*": ".*", "?": "."}.get(each, each) for each in pattern)
    is_matched = re.fullmatch(plain, text, re.DOTALL) is not None
    assert (Pattern(KEYWORD, pattern).regex.fullmatch(text) is not None) is is_matched


def has_phrase_plainly(phrase: Sequence[str], words: Sequence[str], slop: int) -> bool:
    """Try all choices of different positions."""
    choices = itertools.product(*[[at for at, word in enumerate(words) if word == token] for token in phrase])
    return any(
        len(set(chosen)) == len(chosen)
        and max(at - number for number, at in enumerate(chosen))
        - min(at - number for number, at in enumerate(chosen))
        <= slop
        for chosen in choices
    )


@given(WORDS.filter(lambda words: len(words) < 5), WORDS, st.integers(0, 4))
def test_a_phrase_is_found_by_trying_all_choices(phrase: list[str], words: list[str], slop: int) -> None:
    found = has_phrase(Phrase(TEXT, tuple(phrase), slop), " ".join(words))
    assert found is has_phrase_plainly(phrase, words, slop)


@pytest.mark.parametrize("slop", [0, 1, 1_000])
def test_a_long_phrase_is_found_in_a_long_text_in_bounded_time(slop: int) -> None:
    """2,000 tokens that are all over the text, and one that is only at its beginning."""
    phrase = Phrase(TEXT, ("a",) * 2_000 + ("b",), slop)
    assert not has_phrase(phrase, "b " + "a " * 20_000)
    assert has_phrase(phrase, "a " * 20_000 + "b")


def test_a_phrase_is_compared_in_a_bounded_number_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    phrase, text = Phrase(TEXT, ("a", "b") * 50 + ("a", "a")), "a b " * 1_000
    monkeypatch.setattr(analysis, "MOST_PHRASE_STEPS", 97_747)
    assert not has_phrase(phrase, text)
    monkeypatch.setattr(analysis, "MOST_PHRASE_STEPS", 97_746)
    with pytest.raises(LimitExceeded):
        has_phrase(phrase, text)


def nested(make: type[GroupByFilter] | type[GroupByRange], width: int, levels: int) -> Inner:
    inner = Inner()
    for _ in range(levels):
        grouping: Grouping
        if make is GroupByFilter:
            grouping = GroupByFilter("g", inner, (MatchAll(),) * width)
        else:
            grouping = GroupByRange("g", KEYWORD, inner, ((0.0, 1.0),) * width)
        inner = Inner(groups=(grouping,))
    return inner


@pytest.mark.parametrize("make", [GroupByFilter, GroupByRange])
def test_groups_of_filters_and_ranges_are_counted_before_they_are_made(
    monkeypatch: pytest.MonkeyPatch, make: type[GroupByFilter] | type[GroupByRange]
) -> None:
    """Three levels of 5 groupings with 100 ranges each would be 125 million accumulators."""
    monkeypatch.setattr(collecting, "MOST_GROUPS", 1110)
    Collector(nested(make, 10, 3))
    monkeypatch.setattr(collecting, "MOST_GROUPS", 1109)
    with pytest.raises(LimitExceeded):
        Collector(nested(make, 10, 3))


@pytest.mark.parametrize(
    ("aggregation", "each_bytes"),
    [
        (Metric("m", MetricKind.DISTINCT_COUNT, KEYWORD), 103),
        (Percentiles("p", KEYWORD, (50.0,)), 100),
        (
            TopRows("r", 10, (FieldSort(KEYWORD),)),
            100 + len(order_key((FieldSort(KEYWORD),), VALUES[0], b"")),
        ),
    ],
    ids=["distinct", "percentiles", "rows"],
)
def test_kept_values_are_counted(
    monkeypatch: pytest.MonkeyPatch, aggregation: Aggregation, each_bytes: int
) -> None:
    """Two groups keep 100 values each."""
    group = GroupByFilter("f", Inner((aggregation,)), (MatchAll(), MatchAll()))

    def add_all(most_bytes: int) -> None:
        monkeypatch.setattr(collecting, "MOST_KEPT_BYTES", most_bytes)
        collector = Collector(Inner(groups=(group,)))
        for document in VALUES:
            collector.add(Hit(document, b"", Position(b"", b"")))

    add_all(200 * each_bytes)
    with pytest.raises(LimitExceeded):
        add_all(200 * each_bytes - 1)


def test_known_values_and_dropped_rows_take_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 top rows are kept besides those of the result."""
    monkeypatch.setattr(collecting, "MOST_KEPT_BYTES", 200_000)
    top_rows = TopRows("r", 1, (FieldSort(KEYWORD),))
    collector = Collector(Inner((Metric("m", MetricKind.DISTINCT_COUNT, KEYWORD), top_rows)))
    for number in range(10_000):
        collector.add(Hit(VALUES[number % 100], b"", Position(b"", b"")))
    assert collector.result().aggregations == [100, [Position(b"", b"")]]


class TooLate(Exception):
    """The time of a search is over."""


class Clock:
    """A CheckTime that ends the search at the call with a number."""

    def __init__(self, most: int) -> None:
        self.rest = most

    def __call__(self) -> None:
        self.rest -= 1
        if self.rest < 0:
            raise TooLate


NAMED = SearchField("n.k", FieldType.KEYWORD, "k", ancestors=("n",))
PLACE = SearchField("n.g", FieldType.GEO_POINT, "g", ancestors=("n",))
OBJECTS = SearchField("n", FieldType.NESTED, "n", fields=(NAMED, PLACE))
LARGE = {"n": [{"n.k": ["a"], "n.g": [[1.0, 1.0]]}] * 500, "t": ["a b"]}
NO_OBJECT = Nested(OBJECTS, Bool(must_not=(MatchAll(),)))
MANY_WORDS = Bool(should=(Match(TEXT, ("a",), 1),) * 500, minimum=1)
BY_PLACE = (GeoDistanceSort(PLACE, ((0.0, 0.0),) * 10),)


class NoStatistics:
    def of_field(self, field: SearchField) -> FieldStatistics:
        return FieldStatistics(1, 2)

    def frequency(self, field: SearchField, token: str) -> int:
        return 1


def collect(check_time: CheckTime) -> None:
    groups = GroupByFilter("f", Inner(), (MatchAll(),) * 500)
    Collector(Inner(groups=(groups,)), check_time=check_time).add(Hit(LARGE, b"", Position(b"", b"")))


def highlighted(check_time: CheckTime) -> None:
    wanted = Highlight((HighlightedField(TEXT),))
    DetailsReader(MANY_WORDS, wanted, NoStatistics(), check_time).of(LARGE)


@pytest.mark.parametrize(
    "evaluate",
    [
        lambda check_time: matches(NO_OBJECT, LARGE, check_time),
        lambda check_time: matches(MANY_WORDS, LARGE, check_time),
        lambda check_time: score(MANY_WORDS, LARGE, NoStatistics(), check_time),
        lambda check_time: order_key(BY_PLACE, LARGE, b"", check_time=check_time),
        collect,
        highlighted,
    ],
    ids=["objects", "parts", "score", "sort", "groups", "fragments"],
)
def test_a_search_ends_within_a_document(evaluate: Callable[[CheckTime], object]) -> None:
    """A search of one row with 400,000 objects took 104 s, although its timeout was 3 s."""
    evaluate(Clock(5_000))
    with pytest.raises(TooLate):
        evaluate(Clock(400))


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 2**53 + 1])
def test_percentiles_of_the_longest_integers(value: int) -> None:
    """The highest one became 2^63, and the answer was an internal error."""
    field = SearchField("l", FieldType.LONG, "l")
    collector = Collector(Inner((Percentiles("p", field, (0.0, 33.3, 50.0, 66.6, 100.0)),)))
    for _ in range(3):
        collector.add(Hit({"l": [value]}, b"", Position(b"", b"")))
    [found] = collector.result().aggregations
    assert {each for _, each in found} == {value}
