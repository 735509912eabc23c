"""Text analysis: the tokens of a text by the analyzer of its field, and the places of phrases.

Source: "Tokenization" (Table Store, search index).
"""

from __future__ import annotations

import importlib.util
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tablegate.gateway.model.errors import LimitExceeded, NotInstalled

# A CJK character is a word. Other letters and digits form words.
_CHINESE = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_IDEOGRAPH = rf"\u3040-\u30ff{_CHINESE}\uac00-\ud7af"
_WORD = re.compile(rf"[{_IDEOGRAPH}]|[^\W_{_IDEOGRAPH}]+")
_DELIMITED = re.compile(rf"[{_IDEOGRAPH}]|[^\W\d_{_IDEOGRAPH}]+|\d+")
_CHINESE_RUN = re.compile(rf"([{_CHINESE}]+)|[{_IDEOGRAPH}]|[^\W_{_IDEOGRAPH}]+")

SINGLE_WORD, SPLIT, FUZZY = "single_word", "split", "fuzzy"
MIN_WORD, MAX_WORD = "min_word", "max_word"
CHINESE_ANALYZERS = frozenset({MIN_WORD, MAX_WORD})
"""Analyzers that need the package rjieba."""
FUZZY_MAX_CHARACTERS = 1024
"""Characters of a text that fuzzy uses. Others are discarded, as in the service."""


@dataclass(frozen=True, slots=True)
class Analyzer:
    """An analyzer and its parameters.

    - `delimits_words`: single_word separates letters from digits.
    - `delimiter`: the separator of split, or "" for white space.
    - `min_chars`, `max_chars`: the lengths of the tokens of fuzzy.
    """

    name: str = SINGLE_WORD
    is_case_sensitive: bool = False
    delimits_words: bool = False
    delimiter: str = ""
    min_chars: int = 1
    max_chars: int = 7


class Token(NamedTuple):
    """A token of a text, its number, and the characters that it covers."""

    text: str
    position: int
    start: int
    end: int


def tokens_of(analyzer: Analyzer, text: str) -> Iterator[Token]:
    """Yield the tokens of a text in order. Raises NotInstalled."""
    if not analyzer.is_case_sensitive:
        text = text.replace(
            "\u0130", "i"
        ).lower()  # the only character whose lower case is longer than itself
    if analyzer.name == FUZZY:
        yield from _grams(analyzer, text[:FUZZY_MAX_CHARACTERS])
        return
    if analyzer.name == SPLIT:
        spans = _parts(analyzer.delimiter, text)
    elif analyzer.name in CHINESE_ANALYZERS:
        spans = _chinese_words(analyzer.name, text)
    else:
        pattern = _DELIMITED if analyzer.delimits_words else _WORD
        spans = (match.span() for match in pattern.finditer(text))
    for position, (start, end) in enumerate(spans):
        yield Token(text[start:end], position, start, end)


def _parts(delimiter: str, text: str) -> Iterator[tuple[int, int]]:
    pattern = re.escape(delimiter) if delimiter else r"\s+"
    start = 0
    for match in re.finditer(pattern, text):
        if match.start() > start:
            yield start, match.start()
        start = match.end()
    if start < len(text):
        yield start, len(text)


def query_tokens(analyzer: Analyzer, text: str) -> list[str]:
    """Return the tokens of a query's text. Those of fuzzy are as long as possible, and overlap. Raises NotInstalled."""
    tokens = [token.text for token in tokens_of(analyzer, text)]
    if analyzer.name == FUZZY:
        longest = max(map(len, tokens), default=0)
        return [token for token in tokens if len(token) == longest]
    return tokens


def can_analyze(analyzer: Analyzer) -> bool:
    """Return True if the packages that an analyzer needs are installed."""
    return analyzer.name not in CHINESE_ANALYZERS or importlib.util.find_spec("rjieba") is not None


def _chinese_words(name: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield the words of a text: of its Chinese parts by a dictionary, of the others as single_word does."""
    try:
        from tablegate.gateway.features.search import chinese
    except ModuleNotFoundError:
        raise NotInstalled("chinese") from None
    words_of = chinese.all_words if name == MAX_WORD else chinese.words
    for match in _CHINESE_RUN.finditer(text):
        first = match.start()
        if match[1] is None:
            yield match.span()
        else:
            yield from ((first + start, first + end) for start, end in words_of(match[1]))


def _grams(analyzer: Analyzer, text: str) -> Iterator[Token]:
    for start in range(len(text)):
        for end in range(start + analyzer.min_chars, min(len(text), start + analyzer.max_chars) + 1):
            yield Token(text[start:end], start, start, end)


MOST_PHRASE_STEPS = 10_000_000
"""Maximum number of tokens that a phrase and a text are compared by."""


def phrase_starts(phrase: Sequence[str], slop: int, tokens: Iterable[Token]) -> Iterator[int]:
    """Yield the positions from which each token has a position of its own, displaced by 0 to `slop` from that in the
    phrase. Raises LimitExceeded.
    """
    places: dict[str, list[int]] = {text: [] for text in phrase}
    for token in tokens:
        if token.text in places:
            places[token.text].append(token.position)
    start = -min(slop, len(phrase))
    steps = 0
    while phrase and steps <= MOST_PHRASE_STEPS:
        used: dict[str, int] = {}
        for number, text in enumerate(phrase, 1):
            at = max(bisect_left(places[text], start + number - 1), used.get(text, 0))
            if at == len(places[text]):
                return
            late = places[text][at] - (start + number - 1 + slop)
            if late > 0:
                break
            used[text] = at + 1
        else:
            yield start
            late = 1
        start += late  # a token that is too late for this start is so for all earlier ones
        steps += number
    if phrase:
        raise LimitExceeded("search-phrase", MOST_PHRASE_STEPS, steps)
