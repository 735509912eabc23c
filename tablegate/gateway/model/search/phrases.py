"""Where a text has a phrase."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from tablegate.gateway.model.errors import LimitExceeded
from tablegate.gateway.model.search.analysis import Token

MOST_PHRASE_STEPS = 10_000_000
"""Maximum number of tokens that a phrase and a text are compared by."""


def starts_of(phrase: Sequence[str], slop: int, tokens: Iterable[Token]) -> Iterator[int]:
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
