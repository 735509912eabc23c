"""Words of Chinese texts, by the dictionary of jieba.

rjieba has its dictionary in the library. It reads no file and writes no cache, unlike the package jieba. Importing it
takes a third of a second and 33 MB, so this module is imported with the first text (analysis.py).
"""

from __future__ import annotations

from collections.abc import Iterator

import rjieba

# The scores that the Python SDK's full_text_search_test.py expects count all words but these two.
_STOP_WORDS = frozenset("的是")
# Characters of a text that are searched for words at a time, so that a long text does not take much memory. Words of the
# dictionary are shorter than _LONGEST, and depend on no other character.
_CHUNK, _LONGEST = 4096, 32


def words(text: str) -> Iterator[tuple[int, int]]:
    """Yield the most plausible words of a text of Chinese characters, as beginning and end."""
    start = 0
    for word in rjieba.cut(text, hmm=False):
        yield start, start + len(word)
        start += len(word)


def all_words(text: str) -> Iterator[tuple[int, int]]:
    """Yield all words of the dictionary in a text, also overlapping ones, and the characters that no word has."""
    covered = 0
    for first in range(0, len(text), _CHUNK):
        ends = _ends_of_words(text[first : first + _CHUNK + _LONGEST])
        for start in range(first, min(first + _CHUNK, len(text))):
            for end in ends.get(start - first, ()):
                yield start, first + end
                covered = max(covered, first + end)
            if covered <= start and text[start] not in _STOP_WORDS:
                yield start, start + 1


def _ends_of_words(text: str) -> dict[int, list[int]]:
    """Return the ends of the words of several characters, by their beginning."""
    ends: dict[int, list[int]] = {}
    start, length = 0, 0
    # The list has the words that begin at each character, from the shortest to the longest.
    for word in rjieba.cut_all(text):
        if len(word) <= length or not text.startswith(word, start):
            start = text.find(word, start + 1)
        length = len(word)
        if length > 1:
            ends.setdefault(start, []).append(start + length)
    return ends
