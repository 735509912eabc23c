"""Page reads in slices, so that a scan does not delay a request for one row.

Several lists of reads run at a time, each in its own snapshot. They advance in turns, for some milliseconds of each
tick. A list keeps its snapshot until its last page is read, or until no client waits for it.
"""

from __future__ import annotations

from collections import deque
from time import perf_counter
from typing import Any

from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.model.errors import Busy
from tablegate.gateway.observability import metrics
from tablegate.gateway.server.pending_request import PendingRequest, RequestOutcomes

_TURN_S = 0.005
_MAX_SNAPSHOTS = 4


class SlicedReads:
    """The lists of reads of one lane.

    - `running`: the lists in progress, empty if there is nothing to do
    - `free_readers`: reader numbers, one for each further list that may start
    """

    def __init__(self, engine: Engine) -> None:
        self.running: deque[_SlicedList] = deque()
        self._engine = engine
        self.free_readers = [*range(1, _MAX_SNAPSHOTS + 1)]

    def begin(self, pending_requests: list[PendingRequest], log_position: int) -> None:
        """Start reading the pages of these requests. A standby must have reached `log_position`."""
        self.running.append(
            _SlicedList(self._engine, pending_requests, self.free_readers.pop(), log_position)
        )

    def run(self) -> list[RequestOutcomes]:
        """Read slices for one turn. Return the complete requests."""
        answers: list[RequestOutcomes] = []
        began = perf_counter()
        while self.running and perf_counter() - began < _TURN_S:
            reads = self.running.popleft()
            answers += reads.advance()
            if reads.is_over:
                self.free_readers.append(reads.reader)
            else:
                self.running.append(reads)
        metrics.record_tick((len(answers), perf_counter() - began))
        return answers


class _SlicedList:
    """The reads of several requests, in one snapshot."""

    def __init__(
        self, engine: Engine, pending_requests: list[PendingRequest], reader: int, log_position: int
    ) -> None:
        self.reader = reader
        self.is_over = False
        self._owners = [pending for pending in pending_requests for _ in pending.commands]  # of each command
        self._missing = {pending: len(pending.commands) for pending in pending_requests}
        self._outcomes: dict[int, Any] = {}
        commands = [command for pending in pending_requests for command in pending.commands]
        self._slices = engine.run_in_slices(commands, self._outcomes, reader, log_position)

    def advance(self) -> list[RequestOutcomes]:
        """Read another slice. Return the requests that became complete, or all if every client has closed its connection."""
        if self._missing and all(pending.is_abandoned_read for pending in self._missing):
            self._slices.close()
            self.is_over = True
            return [(pending, Busy("the client has closed the connection")) for pending in self._missing]
        number = len(self._outcomes)
        try:
            next(self._slices)
        except StopIteration:
            self.is_over = True
        except Exception as error:
            self.is_over = True
            return [(pending, error) for pending in self._missing]
        answers: list[RequestOutcomes] = []
        for at in [*self._outcomes][number:]:
            pending = self._owners[at]
            self._missing[pending] -= 1
            if not self._missing[pending]:
                del self._missing[pending]
                first = self._owners.index(pending)
                answers.append((pending, [self._outcomes[first + n] for n in range(len(pending.commands))]))
        return answers
