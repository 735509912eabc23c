"""A lane of the tick: the queues of requests that wait for one thread's calls of the engine (tick.py).

Reads go first and are answered while the writes run. Waiting pages and other commands take turns. A write that takes long runs
on the thread for such work. Until its end the lane reads, and does not write.

Pages are read in slices, so that a scan does not delay a request for one row. Several lists of reads run at a time, each in its
own snapshot. They advance in turns, for some milliseconds of each tick. A list keeps its snapshot until its last page is read,
or until no client waits for it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import monotonic, perf_counter
from typing import Any, Protocol, TypeVar

from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.model.commands.command import Command
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


_MAX_SINGLE_COMMANDS = 8
# Time in a tick for retries of contended commands.
_RETRIES_S = 0.05

T = TypeVar("T")
Tracer = Callable[[Callable[[list[PendingRequest]], Any]], Callable[[list[PendingRequest]], Any]]
Work = Callable[[], list[RequestOutcomes]]


class Tick(Protocol):
    """The part of the ticker that its lanes call."""

    def deliver(self, answers: list[RequestOutcomes]) -> None:
        """Pass the outcomes of the engine to each request."""

    def drop(self, pending: PendingRequest) -> None:
        """End a request without a reply, because its client has closed the connection."""

    def wake(self) -> None:
        """Schedule a tick for the next iteration of the loop."""

    def run_slowly(self, work: Callable[[], T], then: Callable[[T], None], is_write: bool = False) -> None:
        """Run work on a thread for what takes long, then `then` with its result in the loop."""


class Lane:
    """The requests that wait for the engine, the thread that calls it for them, and the call that is running."""

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        ticker: Tick,
        trace: Tracer | None,
        thread_name: str = "",
        uses_replicas: bool = False,
    ) -> None:
        """`thread_name`: the thread in which the engine is called. Empty for the event loop's."""
        self.reads: deque[PendingRequest] = deque()
        self.pages: deque[PendingRequest] = deque()
        self.writes: deque[PendingRequest] = deque()
        self.look_ups: deque[PendingRequest] = deque()
        self.others: deque[PendingRequest] = deque()
        self.retries: deque[PendingRequest] = deque()
        self._sliced_reads = SlicedReads(engine)
        self._reading_queues = (self.reads, self.pages, self._sliced_reads.running)
        self._writing_queues = (self.writes, self.look_ups, self.others, self.retries)
        self._engine = engine
        self._uses_replicas = uses_replicas
        self._tracks_lsn = engine.replicas is not None and engine.replicas.wait_s > 0
        self._settings = settings
        self._ticker = ticker
        self._run_list = self._run_together if trace is None else trace(self._run_together)
        self._thread = ThreadPoolExecutor(1, thread_name) if thread_name else None
        self._loop = asyncio.get_running_loop()
        self._is_running = False
        self._is_turn_of_pages = False
        self._writes_slowly = False

    def close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)

    def append(self, pending: PendingRequest) -> None:
        """Add a request whose commands all write rows, or all read."""
        kinds = {type(command) for command in pending.commands}
        if not all(kind.only_reads for kind in kinds):
            self.writes.append(pending)
        else:
            (self.pages if any(kind.is_sliced for kind in kinds) else self.reads).append(pending)

    def _is_ready(self) -> bool:
        """Return True if a queue has requests that can run now. A slow write delays what may write."""
        return any(self._reading_queues) or (any(self._writing_queues) and not self._writes_slowly)

    def flush(self) -> None:
        """Run a tick, unless one is running. Waiting requests then join the next one."""
        if self._is_running or not self._is_ready():
            return
        works = self._next()
        if not works:  # a slow write has begun, or all requests were dropped
            if self._is_ready():
                self._ticker.wake()
            return
        if self._thread is not None:
            self._is_running = True
            self._thread.submit(self._run_on_thread, works)
            return
        for work in works[:-1]:
            self._ticker.deliver(work())
        answers = works[-1]()
        if self._is_ready():
            self._ticker.wake()
        self._ticker.deliver(answers)

    def _next(self) -> list[Work]:
        """Take the next tick from the queues. Return its engine calls, each for requests that are answered after it."""
        has_pages = self.pages or self._sliced_reads.running
        may_write = any(self._writing_queues) and not self._writes_slowly
        if has_pages and (self._is_turn_of_pages or not (self.reads or may_write)):
            self._is_turn_of_pages = False
            if self.pages and self._sliced_reads.free_readers:
                requests = self._take(self.pages)
                if requests:
                    position = _latest_log_position(requests) if self._uses_replicas else 0
                    self._sliced_reads.begin(requests, position)
            return [self._sliced_reads.run]
        self._is_turn_of_pages = bool(has_pages)
        works: list[Work] = []
        if requests := self._take(self.reads):
            works.append(partial(self._run_list, requests))
        if not may_write:
            return works
        if self.writes and self.writes[0].takes_long:
            pending = self.writes.popleft()
            if pending.may_be_dropped:
                self._ticker.drop(pending)
                return works
            self._writes_slowly = True
            slow_write = partial(self._run_list, [pending])
            self._ticker.run_slowly(slow_write, self._finish_slow_write, is_write=True)
            return works
        if requests := self._take(self.writes):
            works.append(partial(self._run_list, requests))
        if requests := self._take(self.look_ups):
            works.append(partial(self._run_list, requests))
        for _ in range(min(len(self.others), _MAX_SINGLE_COMMANDS)):
            works.append(partial(self._run_list, [self.others.popleft()]))
        if self.retries:
            works.append(self._run_retries)
        return works

    def _take(self, queue: deque[PendingRequest]) -> list[PendingRequest]:
        """Take requests up to the limits of a tick, the first one at any size. Drop those that `may_be_dropped`."""
        pending_requests: list[PendingRequest] = []
        left_bytes = self._settings.tick_bytes
        while queue and len(pending_requests) < self._settings.tick_requests:
            left_bytes -= len(queue[0].body)
            if (left_bytes < 0 and pending_requests) or (queue is self.writes and queue[0].takes_long):
                break
            pending = queue.popleft()
            if pending.connection.is_lost and pending.may_be_dropped:
                self._ticker.drop(pending)
            else:
                pending_requests.append(pending)
        return pending_requests

    def _run_on_thread(self, works: list[Work]) -> None:
        for work in works[:-1]:
            self._loop.call_soon_threadsafe(self._ticker.deliver, work())
        self._loop.call_soon_threadsafe(self._finish, works[-1]())

    def _finish(self, answers: list[RequestOutcomes]) -> None:
        """Deliver answers, and begin the next tick in the next iteration of the loop.

        It then includes the requests that arrive meanwhile. An earlier tick would not begin earlier, because the thread
        needs the interpreter lock.
        """
        self._is_running = False
        self._ticker.deliver(answers)
        if self._is_ready():
            self._ticker.wake()
        if metrics.is_counting:
            metrics.count_if_enough()

    def _finish_slow_write(self, answers: list[RequestOutcomes]) -> None:
        self._writes_slowly = False
        self._ticker.deliver(answers)
        self._ticker.wake()

    def _run_retries(self) -> list[RequestOutcomes]:
        answers: list[RequestOutcomes] = []
        deadline = monotonic() + _RETRIES_S
        while self.retries and monotonic() < deadline:
            pending = self.retries.popleft()
            assert pending.lock_retry is not None
            commands = [pending.commands[at] for at in pending.lock_retry.waiting]
            try:
                outcomes = self._engine.run(commands, nowait=True)
                if self._tracks_lsn:
                    self._record_log_position([pending])
            except Exception as error:
                answers.append((pending, error))
            else:
                answers.append((pending, outcomes))
        return answers

    def _run_together(self, pending_requests: list[PendingRequest]) -> list[RequestOutcomes]:
        """Run the commands of requests as one list. If that raises, run each request alone."""
        began = perf_counter()
        commands: list[Command[Any]] = []
        for pending in pending_requests:
            commands += pending.commands
        try:
            if self._uses_replicas:
                outcomes = self._engine.run(commands, log_position=_latest_log_position(pending_requests))
            else:
                outcomes = self._engine.run(commands)
            if self._tracks_lsn:
                self._record_log_position(pending_requests)
        except Exception as error:
            if len(pending_requests) == 1:
                return [(pending_requests[0], error)]
            return [answer for pending in pending_requests for answer in self._run_list([pending])]
        metrics.record_tick((len(pending_requests), perf_counter() - began))
        answers: list[RequestOutcomes] = []
        start = 0
        for pending in pending_requests:
            end = start + len(pending.commands)
            answers.append((pending, outcomes[start:end]))
            start = end
        return answers

    def _record_log_position(self, pending_requests: list[PendingRequest]) -> None:
        """Record the log position on the connections of requests that wrote, for their later reads."""
        position = self._engine.written_up_to
        for pending in pending_requests:
            if not all(command.only_reads for command in pending.commands):
                pending.connection.written_up_to = position


def _latest_log_position(pending_requests: list[PendingRequest]) -> int:
    return max([pending.connection.written_up_to for pending in pending_requests])
