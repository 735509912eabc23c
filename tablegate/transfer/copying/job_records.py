"""Records of a copy in its job file: pages, rejected rows, segments and changed keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tablegate.gateway.model.values.keys import Position
from tablegate.transfer.endpoints.endpoint import JSON


class Rejected(NamedTuple):
    """A row that could not be copied.

    It has the position in the source, the reason, the key for display and the body.
    """

    position: Position
    code: str
    reason: str
    shown_key: str
    body: bytes


class DonePages(NamedTuple):
    """Pages of a segment that are in the target, except for their rejects.

    - `resume`: the position after them, None if the segment is done.
    - `written`: the positions of the written rows in the source, and `copies` those in the target.
    """

    resume: JSON | None
    written: Sequence[Position]
    copies: Sequence[Position]
    rejects: Sequence[Rejected]
    size_bytes: int


class KeyRepeated(Exception):
    """Two rows have one key: a position in the target, or that of rejected rows in the source."""

    def __init__(self, position: Position, is_rejected: bool) -> None:
        self.position = position
        self.is_rejected = is_rejected


class SegmentState(NamedTuple):
    """A segment and its progress."""

    number: int
    segment: JSON
    resume: JSON | None
    is_done: bool


class ChangedKey(NamedTuple):
    """A row that has changed at the source. `sequence` distinguishes a change from a later one of the same row."""

    position: Position
    sequence: int
