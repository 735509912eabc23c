"""Changes of a stream."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.model.rows import Row
from gateway.model.updates import Action


@dataclass(frozen=True, slots=True)
class Change:
    """One recorded write: `sequence` rises within its shard in commit order; `kind` is put, update or delete.

    `actions`: an update's, in request order. Insert, modify or remove follows from old and new.
    """

    shard: int
    sequence: int
    kind: str
    old: Row | None
    new: Row | None
    actions: tuple[Action, ...]
    actor: str
    at_ms: int
