"""Text analysis: the tokens of a text, by the analyzer of its field.

Source: "Tokenization" (Table Store, search index).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

# A CJK character is a word. Other letters and digits form words.
_IDEOGRAPH = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
_WORD = re.compile(rf"[{_IDEOGRAPH}]|[^\W_{_IDEOGRAPH}]+")
_DELIMITED = re.compile(rf"[{_IDEOGRAPH}]|[^\W\d_{_IDEOGRAPH}]+|\d+")

SINGLE_WORD, SPLIT, FUZZY = "single_word", "split", "fuzzy"


@dataclass(frozen=True, slots=True)
class Analyzer:
    """An analyzer and its parameters.

    - `delimits_words`: single_word separates letters from digits.
    - `delimiter`: the separator of split. Empty: white space.
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
    """Yield the tokens of a text in order."""
    if not analyzer.is_case_sensitive:
        text = text.lower()
    if analyzer.name == FUZZY:
        yield from _grams(analyzer, text)
        return
    if analyzer.name == SPLIT:
        spans = _parts(analyzer.delimiter, text)
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


def _grams(analyzer: Analyzer, text: str) -> Iterator[Token]:
    for start in range(len(text)):
        for end in range(start + analyzer.min_chars, min(len(text), start + analyzer.max_chars) + 1):
            yield Token(text[start:end], start, start, end)
