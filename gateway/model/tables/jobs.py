"""Jobs: long work that a client started and asks after, carried on in the background by whoever comes next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Job:
    """A job. `kind`: who carries it on; `definition`: what was asked for; `progress`: how far it has come, and what is told of
    it; `state`: as its dialect calls it. Plain JSON values all of them.

    `cancelled`: it is to end. `claim`: the number of the claim that a server has on it; a server whose claim is
    not the last one can change nothing.
    """

    id: int
    kind: str
    namespace: str
    table_name: str
    definition: Mapping[str, Any]
    progress: Mapping[str, Any]
    state: str
    created_at_ms: int
    ended_at_ms: int | None = None
    cancelled: bool = False
    claim: int = 0

    @property
    def place(self) -> tuple[int, int]:
        """Where it stands in lists: by age."""
        return self.created_at_ms, self.id
