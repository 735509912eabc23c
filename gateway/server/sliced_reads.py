"""Reads of pages in slices, so that a scan does not hold up a request for one row.

Several lists of reads are under way at a time, each in a snapshot of its own. They are advanced in turn, for some milliseconds
of each tick. A list keeps its snapshot until its last page is read.
"""

from __future__ import annotations

from collections import deque
from time import perf_counter
from typing import Any, cast

from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.engine.rows.reading import Reading
from tablegate.gateway.observability import metrics
from tablegate.gateway.server.pending_request import Answered, PendingRequest

_TURN_S = 0.005
_MOST_SNAPSHOTS = 4


class SlicedReads:
    """The lists of reads of one lane.

    under_way: the lists that have begun, empty if there is nothing to do.
    free_readers: numbers of snapshots, one for each further list that may begin.
    """

    def __init__(self, engine: Engine) -> None:
        self.under_way: deque[_SlicedList] = deque()
        self._engine = engine
        self.free_readers = [*range(1, _MOST_SNAPSHOTS + 1)]

    def begin(self, pending_requests: list[PendingRequest], written: int) -> None:
        """Begin to read the pages of these requests. `written`: the position of the log that a replica must have reached."""
        self.under_way.append(_SlicedList(self._engine, pending_requests, self.free_readers.pop(), written))

    def run(self) -> list[Answered]:
        """Read slices for one turn. Return the requests that are complete."""
        answers: list[Answered] = []
        began = perf_counter()
        while self.under_way and perf_counter() - began < _TURN_S:
            reads = self.under_way.popleft()
            answers += reads.advance()
            if reads.is_over:
                self.free_readers.append(reads.reader)
            else:
                self.under_way.append(reads)
        metrics.ticked((len(answers), perf_counter() - began))
        return answers


class _SlicedList:
    """The reads of some requests, in one snapshot."""

    def __init__(
        self, engine: Engine, pending_requests: list[PendingRequest], reader: int, written: int
    ) -> None:
        self.reader = reader
        self.is_over = False
        self._owners = [pending for pending in pending_requests for _ in pending.commands]  # of each command
        self._missing = {pending: len(pending.commands) for pending in pending_requests}
        self._outcomes: dict[int, Any] = {}
        commands = [command for pending in pending_requests for command in pending.commands]
        self._slices = engine.run_in_slices(cast(list[Reading], commands), self._outcomes, reader, written)

    def advance(self) -> list[Answered]:
        """Read another slice. Return the requests whose outcomes are complete now."""
        known = len(self._outcomes)
        try:
            next(self._slices)
        except StopIteration:
            self.is_over = True
        except Exception as error:
            self.is_over = True
            return [(pending, error) for pending in self._missing]
        answers: list[Answered] = []
        for at in [*self._outcomes][known:]:
            pending = self._owners[at]
            self._missing[pending] -= 1
            if not self._missing[pending]:
                del self._missing[pending]
                first = self._owners.index(pending)
                answers.append((pending, [self._outcomes[first + n] for n in range(len(pending.commands))]))
        return answers
