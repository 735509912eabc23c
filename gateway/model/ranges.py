"""Ranges of keys: always half-open over positions."""

from __future__ import annotations

from typing import NamedTuple

from gateway.model.keys import HIGHEST, LOWEST, Position


class KeyRange(NamedTuple):
    """Positions with lower <= position < upper. Direction is the reader's business."""

    lower: Position
    upper: Position

    @property
    def is_empty(self) -> bool:
        return self.lower >= self.upper

    def after(self, position: Position) -> KeyRange:
        """What is left of the range above a position."""
        return KeyRange(max(self.lower, position.after), self.upper)

    def before(self, position: Position) -> KeyRange:
        """What is left of the range below a position."""
        return KeyRange(self.lower, min(self.upper, position))


EVERYTHING = KeyRange(Position(LOWEST, LOWEST), Position(HIGHEST, LOWEST))


def within(partition: bytes, lower: bytes = LOWEST, upper: bytes = HIGHEST) -> KeyRange:
    """The rows of one partition whose sort bytes are in lower <= sort < upper."""
    return KeyRange(Position(partition, lower), Position(partition, upper))


def prefix(head: bytes) -> tuple[bytes, bytes]:
    """Bounds of all bytes that begin with `head` (which begins with a column's tag, so it has a successor)."""
    stem = head.rstrip(b"\xff")
    return head, stem[:-1] + bytes((stem[-1] + 1,))
