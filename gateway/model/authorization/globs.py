"""Patterns in which `*` stands for any run of characters and `?` for one, matched in a time that is linear in the text.

What a value has put into a pattern (a caller's name, say) is literal: its own `*` is no wildcard. Knows nothing of what is named.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

MANY, ANY_ONE = "*", "?"


@dataclass(frozen=True, slots=True)
class Glob:
    """A pattern as a sequence of literal characters and wildcards: (character, whether it is a wildcard). `stops_at`: a character
    that no wildcard stands for."""

    steps: tuple[tuple[str, bool], ...]
    stops_at: str = ""
    _parts: tuple[str, ...] | None = field(init=False, repr=False, compare=False)
    """The texts between runs of any characters, where these are the only wildcards and stop at nothing."""
    _pieces: tuple[Glob, ...] = field(init=False, repr=False, compare=False)
    """The patterns between the characters at which wildcards stop. Empty if they stop at nothing."""

    def __post_init__(self) -> None:
        parts = None if self.stops_at else _parts_of(self.steps)
        pieces = _pieces_of(self.steps, self.stops_at) if self.stops_at else ()
        object.__setattr__(self, "_parts", parts)
        object.__setattr__(self, "_pieces", pieces)

    @classmethod
    def of(cls, text: str, stops_at: str = "") -> Glob:
        """The pattern that a text is, its wildcards being wildcards."""
        return cls(tuple(_steps(text)), stops_at)

    @classmethod
    def literal(cls, text: str) -> Glob:
        """The pattern that only this text matches."""
        return cls(tuple((character, False) for character in text))

    def __add__(self, other: Glob) -> Glob:
        return Glob(self.steps + other.steps, self.stops_at)

    def matches(self, text: str) -> bool:
        """Whether the pattern stands for all of a text."""
        if self.stops_at:
            # No wildcard crosses that character, so the text has it exactly where the pattern has it.
            found = text.split(self.stops_at, len(self._pieces))
            return len(found) == len(self._pieces) and all(map(Glob.matches, self._pieces, found))
        parts = self._parts
        if parts is None:
            return len(self.steps) in self._after(text)
        if len(parts) == 1:
            return text == parts[0]
        first, last = parts[0], parts[-1]
        if not text.startswith(first) or not text.endswith(last) or len(text) < len(first) + len(last):
            return False
        at, end = len(first), len(text) - len(last)
        for part in parts[1:-1]:
            at = text.find(part, at, end)
            if at < 0:
                return False
            at += len(part)
        return True

    def _after(self, text: str) -> set[int]:
        """How many steps may be behind us once a text has been read. One step at a time for each place: the work is at most
        the product of both lengths, whatever the pattern."""
        reached = self._closed({0})
        for character in text:
            following = set()
            for at in reached:
                if at == len(self.steps):
                    continue
                step, is_wildcard = self.steps[at]
                if is_wildcard and step == MANY:
                    following.add(at)
                elif is_wildcard or step == character:
                    following.add(at + 1)
            reached = self._closed(following)
            if not reached:
                break
        return reached

    def _closed(self, reached: set[int]) -> set[int]:
        """With the places behind wildcards that stand for nothing."""
        for at in tuple(reached):
            while at < len(self.steps) and self.steps[at] == (MANY, True):
                at += 1
                reached.add(at)
        return reached


def _parts_of(steps: tuple[tuple[str, bool], ...]) -> tuple[str, ...] | None:
    parts = [""]
    for step, is_wildcard in steps:
        if is_wildcard and step == ANY_ONE:
            return None
        if is_wildcard:
            parts.append("")
        else:
            parts[-1] += step
    return tuple(parts)


def _pieces_of(steps: tuple[tuple[str, bool], ...], stops_at: str) -> tuple[Glob, ...]:
    pieces: list[list[tuple[str, bool]]] = [[]]
    for step in steps:
        if step == (stops_at, False):
            pieces.append([])
        else:
            pieces[-1].append(step)
    return tuple(Glob(tuple(piece)) for piece in pieces)


def _steps(text: str) -> Iterator[tuple[str, bool]]:
    previous = ""
    for character in text:
        if not (character == previous == MANY):  # several in a row are one
            yield character, character in (MANY, ANY_ONE)
        previous = character


EVERY = Glob.of(MANY)
