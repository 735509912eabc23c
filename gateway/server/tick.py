"""The tick: the commands of all requests that are ready in one turn of the event loop go to the database as one list.

A request is an exchange (model/commands/commands.py): a generator that yields commands, is sent their outcomes and returns its
reply. If one command is enough, it is that command and a function that makes the reply of its outcome (dialect.ReplyStep). All
that are ready are begun, and their commands go to `engine.run` together. Each receives its own outcomes. Those that yield again
join the next tick. One transaction and one fsync serve all requests that arrived while the last list was running. A server
process has no other concurrency.

The engine is called in a lane: in the event loop (`inline`), or on the one database thread (`thread`). With `split`, requests
that only read take the first and the others the second. With replicas, reads that may be old have a lane of their own, so that no
other request waits for a replica. A list is all reads or all writes: when `run` raises, nothing of such a list was committed, so
each request is run again alone and only the one at fault fails. Other commands (the control plane) run alone from the start.

Reads go first and are answered while the writes run. Where pages and other commands wait, they take turns (sliced_reads.py).

Commands that the engine answers with Contended are run again alone, without waiting for locks, for a few seconds. Meanwhile other
requests go on.

Knows neither HTTP nor SQL nor dialects.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from time import monotonic, perf_counter
from typing import Any, cast

from tablegate.gateway.dialect import Handler, ReplyStep
from tablegate.gateway.engine.engine import Engine, contended
from tablegate.gateway.engine.rows.reading import Reading
from tablegate.gateway.engine.rows.reading_replicas import may_be_old
from tablegate.gateway.exchanges import MOST_ATTEMPTS
from tablegate.gateway.http import Reply
from tablegate.gateway.model.commands.commands import AnyCommand, Exchange
from tablegate.gateway.model.commands.row_commands import Get, Read, ReadAll, WriteGroup
from tablegate.gateway.model.commands.table_commands import FindTable, ListTables
from tablegate.gateway.model.commands.vector_commands import SearchVectors
from tablegate.gateway.model.errors import Busy, Contended, StaleTable
from tablegate.gateway.observability import metrics
from tablegate.gateway.security.gate import admit, complete
from tablegate.gateway.server.pending_request import Answered, LockRetry, PendingRequest
from tablegate.gateway.server.sliced_reads import SlicedReads

_READS = {Get, Read, ReadAll, SearchVectors}
_IN_SLICES = {Read, SearchVectors}
_WRITES = {WriteGroup}
_FINDING = {FindTable, ListTables}
_MOST_ALONE = 8
# Time in a tick for commands that met a lock.
_RETRIES_S = 0.05

Answer = Callable[[PendingRequest, Reply], None]
Refuse = Callable[[PendingRequest, Exception], Reply]
Traced = Callable[[Callable[[list[PendingRequest]], Any]], Callable[[list[PendingRequest]], Any]]
Forward = Callable[[PendingRequest], None]


@dataclass(frozen=True, slots=True)
class TickLimits:
    """A tick takes at most so many requests and so many bytes of their bodies, but always one."""

    requests: int
    bytes: int


class Ticker:
    """Runs the requests of one event loop. All methods are for that loop's thread."""

    def __init__(
        self,
        engine: Engine,
        limits: TickLimits,
        lane: str,
        answer: Answer,
        refuse: Refuse,
        forward: Forward | None = None,
        traced: Traced | None = None,
    ) -> None:
        """
        lane: inline, thread or split.
        answer: called once for each request.
        refuse: makes the reply to a request whose handler raised.
        forward: where this process does not write, takes requests that do more than read. Nothing of them has been done by then.
        traced: wraps the function that runs a list of requests.
        """
        self._loop = asyncio.get_running_loop()
        self._answer = answer
        self._refuse = refuse
        self._forward = forward
        self._arrived: deque[PendingRequest] = deque()
        self._is_turn_due = False
        inline = _DatabaseQueue(engine, limits, self)
        threaded = (
            inline if lane == "inline" else _DatabaseQueue(engine, limits, self, thread_name="database")
        )
        self._write_lane = threaded
        self._read_lane = threaded if lane == "thread" else inline
        self._lanes = [inline] if threaded is inline else [inline, threaded]
        self._replica_lane: _DatabaseQueue | None = None
        if engine.replicas is not None:
            self._replica_lane = _DatabaseQueue(
                engine, limits, self, thread_name="replicas", is_of_replicas=True
            )
            self._lanes.append(self._replica_lane)
        if traced is not None:
            for each in self._lanes:
                each.trace(traced)
        self._queue_of = self._queues()

    def _queues(self) -> dict[type, deque[PendingRequest]]:
        """Type -> the queue of requests whose only command is of this type, if the type alone decides."""
        queues: dict[type, deque[PendingRequest]] = {}
        if self._forward is None:
            queues[WriteGroup] = self._write_lane.writes
        if self._replica_lane is None:
            queues |= dict.fromkeys(_READS - _IN_SLICES, self._read_lane.reads)
            queues |= dict.fromkeys(_IN_SLICES, self._read_lane.pages)
        return queues

    def submit(self, pending: PendingRequest, handler: Handler) -> None:
        """Have a request handled. It is answered once, in a later turn of the loop."""
        pending.handler = handler
        self._arrived.append(pending)
        if not self._is_turn_due:
            self.wake()

    def wake(self) -> None:
        """Run a tick in the next turn of the loop."""
        if not self._is_turn_due:
            self._is_turn_due = True
            self._loop.call_soon(self._turn)

    def close(self) -> None:
        """Let the threads end after the list that they run. Does not wait for them."""
        for lane in self._lanes:
            lane.close()

    def _turn(self) -> None:
        self._is_turn_due = False
        arrived, self._arrived = self._arrived, deque()
        for pending in arrived:
            self._begin(pending)
        for lane in self._lanes:
            lane.flush()
        if metrics.is_counting:
            metrics.count_if_enough()

    def _begin(self, pending: PendingRequest) -> None:
        try:
            begun = pending.handler(pending)
            if type(begun) is ReplyStep:
                command, pending.finish = begun
                pending.commands = [command]
            elif type(begun) is Reply:
                self._answer(pending, begun)
                return
            else:
                pending.exchange = cast(Exchange[Reply], begun)
                pending.commands = next(pending.exchange)
        except StopIteration as end:
            self._answer(pending, end.value)
        except Exception as error:
            self._answer(pending, self._refuse(pending, error))
        else:
            self._enqueue(pending)

    def _enqueue(self, pending: PendingRequest) -> None:
        """Put a request into the queue for its commands, if it may run them."""
        commands = pending.commands
        if pending.authorization is not None:
            refusal = admit(pending.authorization, commands)
            if refusal is not None:
                self._advance(pending, refusal)
                return
        queue = self._queue_of.get(type(commands[0])) if len(commands) == 1 else None
        if queue is not None:
            queue.append(pending)
            return
        kinds = {type(command) for command in commands}
        if kinds <= _READS:
            lane = self._read_lane
            if self._replica_lane is not None and may_be_old(cast(list[Reading], commands)):
                lane = self._replica_lane
            (lane.reads if _IN_SLICES.isdisjoint(kinds) else lane.pages).append(pending)
        elif self._forward is not None and not kinds <= _FINDING:
            self._forget_steps(pending)
            self._forward(pending)
        elif kinds == _WRITES:
            self._write_lane.writes.append(pending)
        else:
            self._write_lane.others.append(pending)

    def deliver(self, answers: list[Answered]) -> None:
        """Send each pending request what the engine had for it."""
        for pending, outcomes in answers:
            if isinstance(outcomes, Exception):
                # Its handler may put that into its dialect's words.
                pending.lock_retry = None
                self._advance(pending, outcomes)
                continue
            kinds = (type(outcomes[0]),) if len(outcomes) == 1 else {*map(type, outcomes)}
            if StaleTable in kinds:
                self._restart(pending)
            elif pending.lock_retry is not None or Contended in kinds:
                self._retry_later(pending, outcomes)
            else:
                self._advance(pending, outcomes)

    def _retry_later(self, pending: PendingRequest, outcomes: list[Any]) -> None:
        """Run the commands that met a lock again after a pause, until none is left or the time is over."""
        lock_retry = pending.lock_retry
        if lock_retry is None:
            lock_retry = pending.lock_retry = LockRetry(outcomes, contended(outcomes))
        else:
            lock_retry.merge(outcomes)
        if lock_retry.is_over:
            pending.lock_retry = None
            self._advance(pending, lock_retry.outcomes)
        else:
            self._loop.call_later(next(lock_retry.pauses), self._retry, pending)

    def _retry(self, pending: PendingRequest) -> None:
        self._write_lane.retries.append(pending)
        self.wake()

    def _advance(self, pending: PendingRequest, outcomes: list[Any] | Exception) -> None:
        """Give a request its outcomes. It returns its reply or more commands."""
        exchange = pending.exchange
        if (
            pending.authorization is not None
            and pending.authorization.needs_review
            and not isinstance(outcomes, Exception)
        ):
            outcomes = complete(pending.authorization, pending.commands, outcomes)
        try:
            if exchange is None:
                # It holds the request: no circle is left behind.
                finish, pending.finish = pending.finish, None
                assert finish is not None
                reply = finish(outcomes if isinstance(outcomes, Exception) else outcomes[0])
            elif isinstance(outcomes, Exception):
                pending.commands = exchange.throw(outcomes)
            else:
                pending.commands = exchange.send(outcomes)
        except StopIteration as end:
            reply = end.value
        except Exception as error:
            reply = self._refuse(pending, error)
        else:
            if exchange is not None:
                self._enqueue(pending)
                self.wake()
                return
        self._answer(pending, reply)

    def _restart(self, pending: PendingRequest) -> None:
        """Begin a request again, because a table was stale."""
        self._forget_steps(pending)
        pending.restarts += 1
        pending.lock_retry = None
        if pending.restarts < MOST_ATTEMPTS:
            self._arrived.append(pending)
            self.wake()
        else:
            self._answer(pending, self._refuse(pending, Busy("tables keep changing")))

    def _forget_steps(self, pending: PendingRequest) -> None:
        if pending.exchange is not None:
            pending.exchange.close()
        pending.exchange = pending.finish = None


Work = Callable[[], list[Answered]]


class _DatabaseQueue:
    """Requests that wait for the database, and the one call of it that is under way."""

    def __init__(
        self,
        engine: Engine,
        limits: TickLimits,
        ticker: Ticker,
        thread_name: str = "",
        is_of_replicas: bool = False,
    ) -> None:
        """`thread_name`: the thread in which the engine is called; empty: the event loop's."""
        self.reads: deque[PendingRequest] = deque()
        self.pages: deque[PendingRequest] = deque()
        self.writes: deque[PendingRequest] = deque()
        self.others: deque[PendingRequest] = deque()
        self.retries: deque[PendingRequest] = deque()
        self._sliced_reads = SlicedReads(engine)
        self._queues = (
            *(self.reads, self.pages, self.writes, self.others, self.retries),
            self._sliced_reads.under_way,
        )
        self._engine = engine
        self._is_of_replicas = is_of_replicas
        self._tracks_lsn = engine.replicas is not None and engine.replicas.wait_s > 0
        self._is_distributed = engine.is_distributed
        self._limits = limits
        self._ticker = ticker
        self._thread = ThreadPoolExecutor(1, thread_name) if thread_name else None
        self._loop = asyncio.get_running_loop()
        self._is_running = False
        self._is_turn_of_pages = False

    def trace(self, traced: Traced) -> None:
        """Wrap the function that runs a list of requests."""
        self._run_list = traced(self._run_list)  # type: ignore[assignment,method-assign]

    def close(self) -> None:
        """Let the thread end after the list that it runs."""
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)

    def flush(self) -> None:
        """Run a tick, unless one is under way: then what waits goes with the next."""
        if self._is_running or not any(self._queues):
            return
        works = self._next()
        if self._thread is not None:
            self._is_running = True
            self._thread.submit(self._run_on_thread, works)
            return
        for work in works[:-1]:
            self._ticker.deliver(work())
        answers = works[-1]()
        if any(self._queues):
            self._ticker.wake()
        self._ticker.deliver(answers)

    def _next(self) -> list[Work]:
        """Take the next tick from the queues. Return its calls of the engine, each for requests that are answered after it."""
        has_pages = self.pages or self._sliced_reads.under_way
        if has_pages and (
            self._is_turn_of_pages or not (self.writes or self.reads or self.others or self.retries)
        ):
            self._is_turn_of_pages = False
            if self.pages and self._sliced_reads.free_readers:
                taken = self._take(self.pages)
                self._sliced_reads.begin(taken, _written(taken) if self._is_of_replicas else 0)
            return [self._sliced_reads.run]
        self._is_turn_of_pages = bool(has_pages)
        works: list[Work] = []
        if self.reads:
            works.append(partial(self._run_list, self._take(self.reads)))
        if self.writes:
            taken = self._take(self.writes)
            for together in self._node_by_node(taken) if self._is_distributed else [taken]:
                works.append(partial(self._run_list, together))
        for _ in range(min(len(self.others), _MOST_ALONE)):
            works.append(partial(self._run_list, [self.others.popleft()]))
        if self.retries:
            works.append(self._run_retries)
        return works

    def _take(self, queue: deque[PendingRequest]) -> list[PendingRequest]:
        """Take as many requests as the limits allow."""
        pending_requests: list[PendingRequest] = []
        left_bytes = self._limits.bytes
        while queue and len(pending_requests) < self._limits.requests:
            left_bytes -= len(queue[0].body)
            if left_bytes < 0 and pending_requests:
                break
            pending_requests.append(queue.popleft())
        return pending_requests

    def _node_by_node(self, pending_requests: list[PendingRequest]) -> list[list[PendingRequest]]:
        """Requests that write as a list for each node; those that write at several nodes together."""
        by_node: dict[Hashable, list[PendingRequest]] = {}
        for pending in pending_requests:
            by_node.setdefault(self._engine.node_of(pending.commands), []).append(pending)
        return [*by_node.values()]

    def _run_on_thread(self, works: list[Work]) -> None:
        for work in works[:-1]:
            self._loop.call_soon_threadsafe(self._ticker.deliver, work())
        self._loop.call_soon_threadsafe(self._finish, works[-1]())

    def _finish(self, answers: list[Answered]) -> None:
        self._is_running = False
        self.flush()  # the database first: it works while replies are made
        self._ticker.deliver(answers)
        if metrics.is_counting:
            metrics.count_if_enough()

    def _run_retries(self) -> list[Answered]:
        answers: list[Answered] = []
        until = monotonic() + _RETRIES_S
        while self.retries and monotonic() < until:
            answers.append(self._run_retry(self.retries.popleft()))
        return answers

    def _run_retry(self, pending: PendingRequest) -> Answered:
        assert pending.lock_retry is not None
        try:
            commands = [pending.commands[at] for at in pending.lock_retry.waiting]
            outcomes = self._engine.run(commands, nowait=True)
            if self._tracks_lsn:
                self._note_written([pending])
            return pending, outcomes
        except Exception as error:
            return pending, error

    def _run_list(self, pending_requests: list[PendingRequest]) -> list[Answered]:
        """Run the commands of some requests as one list. If that raises, run each request alone."""
        began = perf_counter()
        commands: list[AnyCommand] = []
        for pending in pending_requests:
            commands += pending.commands
        try:
            if self._is_of_replicas:
                outcomes = self._engine.run(commands, written=_written(pending_requests))
            else:
                outcomes = self._engine.run(commands)
            if self._tracks_lsn:
                self._note_written(pending_requests)
        except Exception as error:
            if len(pending_requests) == 1:
                return [(pending_requests[0], error)]
            return [answered for pending in pending_requests for answered in self._run_list([pending])]
        metrics.ticked((len(pending_requests), perf_counter() - began))
        answers: list[Answered] = []
        start = 0
        for pending in pending_requests:
            end = start + len(pending.commands)
            answers.append((pending, outcomes[start:end]))
            start = end
        return answers

    def _note_written(self, pending_requests: list[PendingRequest]) -> None:
        """Note the database's position in the log on the connections of requests that wrote, for their later reads."""
        written = self._engine.written_up_to
        for pending in pending_requests:
            if not {type(command) for command in pending.commands} <= _READS:
                pending.connection.written_up_to = written


def _written(pending_requests: list[PendingRequest]) -> int:
    """The position in the database's log after the last write on any connection of these requests."""
    return max([pending.connection.written_up_to for pending in pending_requests])
