"""Jobs: long work that a client starts and polls. Any server process continues it in the background."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Job:
    """A job.

    - `kind`: the worker that runs it.
    - `definition`: the request.
    - `progress`: the position of the worker, and figures for the client. If a worker knows the whole work, `total` is
      in the unit of `bytes` or `items`, the first of them that is there.
    - `state`: the state in terms of the dialect.
    - `cancelled`: cancellation was requested.
    - `claim`: number of the last claim. A server process with an older claim cannot change the job.

    `definition` and `progress` are plain JSON values.
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
    def done_of_total(self) -> tuple[int, int] | None:
        """The work done and the whole work. None if the whole is not known."""
        done = next((self.progress[name] for name in ("bytes", "items") if name in self.progress), None)
        total = self.progress.get("total")
        return (done, total) if isinstance(done, int) and isinstance(total, int) else None

    @property
    def place(self) -> tuple[int, int]:
        """The sort key of lists: by age."""
        return self.created_at_ms, self.id
