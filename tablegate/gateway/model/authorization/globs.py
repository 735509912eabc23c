"""Glob patterns, matched in a time that is linear in the text.

`*` matches any sequence of characters and `?` one character. Substituted values, such as the name of a caller, are
literal: a `*` in them is no wildcard.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

MANY, ANY_ONE = "*", "?"


@dataclass(frozen=True, slots=True)
class Glob:
    """A pattern as a sequence of (character, is wildcard). `stops_at`: a character that wildcards do not match."""

    steps: tuple[tuple[str, bool], ...]
    stops_at: str = ""
    _parts: tuple[str, ...] | None = field(init=False, repr=False, compare=False)
    """The literal texts between `*` wildcards. None if the pattern has other wildcards or `stops_at`."""
    _pieces: tuple[Glob, ...] = field(init=False, repr=False, compare=False)
    """The patterns between the `stops_at` characters. Empty without `stops_at`."""

    def __post_init__(self) -> None:
        parts = None if self.stops_at else _parts_of(self.steps)
        pieces = _pieces_of(self.steps, self.stops_at) if self.stops_at else ()
        object.__setattr__(self, "_parts", parts)
        object.__setattr__(self, "_pieces", pieces)

    @classmethod
    def of(cls, text: str, stops_at: str = "") -> Glob:
        """Parse a pattern."""
        return cls(tuple(_steps(text)), stops_at)

    @classmethod
    def literal(cls, text: str) -> Glob:
        """Return the pattern that matches only this text."""
        return cls(tuple((character, False) for character in text))

    def __add__(self, other: Glob) -> Glob:
        return Glob(self.steps + other.steps, self.stops_at)

    def matches(self, text: str) -> bool:
        """Return True if the pattern matches the whole text."""
        if self.stops_at:
            # No wildcard matches that character, so the text has it exactly where the pattern has it.
            pieces = text.split(self.stops_at, len(self._pieces))
            return len(pieces) == len(self._pieces) and all(map(Glob.matches, self._pieces, pieces))
        parts = self._parts
        if parts is None:
            return len(self.steps) in self._positions_after(text)
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

    def _positions_after(self, text: str) -> set[int]:
        """Return the numbers of steps that may be matched after the whole text.

        The simulation needs at most len(pattern) * len(text) steps.
        """
        positions = self._closure({0})
        for character in text:
            next_positions = set()
            for at in positions:
                if at == len(self.steps):
                    continue
                step, is_wildcard = self.steps[at]
                if is_wildcard and step == MANY:
                    next_positions.add(at)
                elif is_wildcard or step == character:
                    next_positions.add(at + 1)
            positions = self._closure(next_positions)
            if not positions:
                break
        return positions

    def _closure(self, positions: set[int]) -> set[int]:
        """Add the positions after `*` wildcards that match nothing."""
        for at in tuple(positions):
            while at < len(self.steps) and self.steps[at] == (MANY, True):
                at += 1
                positions.add(at)
        return positions


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
        if not (character == previous == MANY):
            yield character, character in (MANY, ANY_ONE)
        previous = character


EVERY = Glob.of(MANY)
