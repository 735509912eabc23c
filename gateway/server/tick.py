"""The tick: the commands of all requests that are ready in one iteration of the event loop form one list for the
database.

A request is an exchange (model/commands/commands.py): a generator that yields commands, is sent their outcomes and
returns its reply. If one command is enough, it is that command and a function from its outcome to the reply
(dialect.ReplyStep). The commands of all ready requests go to `engine.run` together, and each request receives its own
outcomes. Requests that yield again join the next tick. One transaction and one fsync serve all requests that arrived
while the previous list was running. A server process has no other concurrency.

The engine is called in a lane: in the event loop (`inline`), or on the one database thread (`thread`). With `split`,
requests that only read use the loop and others the thread. Reads that may be stale have a lane of their own if there
are standbys, so that no other request waits for a standby.

A list is all reads, all writes, or all look-ups of tables that are not cached. When `run` raises, nothing of the list was
committed. Each request is then run again alone, so only the failing one gets the error. Other commands (the control plane)
always run alone.

Reads go first and are answered while the writes run. Waiting pages and other commands take turns (sliced_reads.py).

Contended commands are run again alone, without waiting for locks, for a few seconds. Meanwhile other requests continue.

This module does not depend on HTTP, SQL or dialects.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import monotonic, perf_counter
from typing import Any, cast

from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.dialect import Handler, ReplyStep
from tablegate.gateway.engine.engine import Engine, contended
from tablegate.gateway.engine.rows.reading_replicas import may_be_old
from tablegate.gateway.exchanges import MAX_ATTEMPTS
from tablegate.gateway.http import Reply
from tablegate.gateway.model.commands.commands import READS, AnyCommand, Exchange, ReadCommand
from tablegate.gateway.model.commands.row_commands import Read, WriteGroup
from tablegate.gateway.model.commands.table_commands import FindTable, ListTables
from tablegate.gateway.model.commands.vector_commands import SearchVectors
from tablegate.gateway.model.errors import Busy, Contended, StaleTable
from tablegate.gateway.observability import metrics
from tablegate.gateway.server.pending_request import LockRetry, PendingRequest, RequestOutcomes
from tablegate.gateway.server.sliced_reads import SlicedReads

_SLICED = {Read, SearchVectors}
_WRITES = {WriteGroup}
_LOOKUPS = {FindTable, ListTables}
_MAX_SINGLE_COMMANDS = 8
# Time in a tick for retries of contended commands.
_RETRIES_S = 0.05

Answer = Callable[[PendingRequest, Reply], None]
Refuse = Callable[[PendingRequest, Exception], Reply]
Tracer = Callable[[Callable[[list[PendingRequest]], Any]], Callable[[list[PendingRequest]], Any]]
Forward = Callable[[PendingRequest], None]


class Ticker:
    """Runs the requests of one event loop. All methods must be called in that loop's thread."""

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        lane: str,
        answer: Answer,
        refuse: Refuse,
        forward: Forward | None = None,
        trace: Tracer | None = None,
    ) -> None:
        """Create the lanes of the setting.

        - `lane`: inline, thread or split
        - `answer`: called once for each request
        - `refuse`: returns the reply to a request after an error of its handler
        - `forward`: takes requests that do more than read, in a process that does not write. No step of them has run
        - `trace`: wraps the function that runs a list of requests
        """
        self._loop = asyncio.get_running_loop()
        self._answer = answer
        self._refuse = refuse
        self._forward = forward
        self._arrived: deque[PendingRequest] = deque()
        self._is_turn_due = False
        new_lane = partial(_Lane, engine, settings, self, trace)
        inline = new_lane()
        database_lane = inline if lane == "inline" else new_lane(thread_name="database")
        self._write_lane = database_lane
        self._read_lane = database_lane if lane == "thread" else inline
        self._lanes = [inline] if database_lane is inline else [inline, database_lane]
        self._replica_lane: _Lane | None = None
        if engine.replicas is not None:
            self._replica_lane = new_lane(thread_name="replicas", uses_replicas=True)
            self._lanes.append(self._replica_lane)
        self._queue_of = self._queues()

    def _queues(self) -> dict[type, deque[PendingRequest]]:
        """Map command types to the queue of requests with one such command, for types that decide the queue alone."""
        queues: dict[type, deque[PendingRequest]] = {}
        if self._forward is None:
            queues[WriteGroup] = self._write_lane.writes
        queues[FindTable] = self._write_lane.look_ups
        if self._replica_lane is None:
            queues |= dict.fromkeys(READS - _SLICED, self._read_lane.reads)
            queues |= dict.fromkeys(_SLICED, self._read_lane.pages)
        return queues

    def submit(self, pending: PendingRequest, handler: Handler) -> None:
        """Start handling a request. It is answered once, in a later iteration of the loop."""
        pending.handler = handler
        self._arrived.append(pending)
        if not self._is_turn_due:
            self.wake()

    def wake(self) -> None:
        """Schedule a tick for the next iteration of the loop."""
        if not self._is_turn_due:
            self._is_turn_due = True
            self._loop.call_soon(self._turn)

    def close(self) -> None:
        """Stop the threads after their current list, without waiting."""
        for lane in self._lanes:
            lane.close()

    def _turn(self) -> None:
        self._is_turn_due = False
        requests, self._arrived = self._arrived, deque()
        for pending in requests:
            self._begin(pending)
        for lane in self._lanes:
            lane.flush()
        if metrics.is_counting:
            metrics.count_if_enough()

    def _begin(self, pending: PendingRequest) -> None:
        try:
            result = pending.handler(pending)
            if type(result) is ReplyStep:
                command, pending.finish = result
                pending.commands = [command]
            elif type(result) is Reply:
                self._answer(pending, result)
                return
            else:
                pending.exchange = cast("Exchange[Reply]", result)
                pending.commands = next(pending.exchange)
        except StopIteration as end:
            self._answer(pending, end.value)
        except Exception as error:
            self._answer(pending, self._refuse(pending, error))
        else:
            self._enqueue(pending)

    def _enqueue(self, pending: PendingRequest) -> None:
        """Admit a request's commands against quotas, and put it into the queue for them."""
        commands = pending.commands
        if pending.authorization is not None:
            refusal = pending.authorization.refusal(commands)
            if refusal is not None:
                self._advance(pending, refusal)
                return
        queue = self._queue_of.get(type(commands[0])) if len(commands) == 1 else None
        if queue is not None:
            queue.append(pending)
            return
        kinds = {type(command) for command in commands}
        if kinds <= READS:
            lane = self._read_lane
            if self._replica_lane is not None and may_be_old(cast("list[ReadCommand]", commands)):
                lane = self._replica_lane
            (lane.reads if _SLICED.isdisjoint(kinds) else lane.pages).append(pending)
        elif self._forward is not None and not kinds <= _LOOKUPS:
            self._forget_steps(pending)
            self._forward(pending)
        elif kinds == _WRITES:
            self._write_lane.writes.append(pending)
        else:
            self._write_lane.others.append(pending)

    def deliver(self, answers: list[RequestOutcomes]) -> None:
        """Pass the outcomes of the engine to each request."""
        for pending, outcomes in answers:
            if isinstance(outcomes, Exception):
                # Its handler may turn the error into one of its dialect.
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
        """Run the contended commands again after a pause, until none is left or the time is over."""
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
        """Pass outcomes to a request, which returns its reply or further commands."""
        exchange = pending.exchange
        if (
            pending.authorization is not None
            and pending.authorization.needs_review
            and not isinstance(outcomes, Exception)
        ):
            outcomes = pending.authorization.review(pending.commands, outcomes)
        try:
            if exchange is None:
                # `finish` refers to the request, so drop it to leave no reference cycle.
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
        """Start a request again, because a table was stale."""
        self._forget_steps(pending)
        pending.restarts += 1
        pending.lock_retry = None
        if pending.restarts < MAX_ATTEMPTS:
            self._arrived.append(pending)
            self.wake()
        else:
            self._answer(pending, self._refuse(pending, Busy("tables keep changing")))

    def _forget_steps(self, pending: PendingRequest) -> None:
        if pending.exchange is not None:
            pending.exchange.close()
        pending.exchange = pending.finish = None


Work = Callable[[], list[RequestOutcomes]]


class _Lane:
    """A thread that calls the engine, the requests that wait for it, and the call that is running."""

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        ticker: Ticker,
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
        self._queues = (
            *(self.reads, self.pages, self.writes, self.look_ups, self.others, self.retries),
            self._sliced_reads.running,
        )
        self._engine = engine
        self._uses_replicas = uses_replicas
        self._tracks_lsn = engine.replicas is not None and engine.replicas.wait_s > 0
        self._is_distributed = engine.is_distributed
        self._settings = settings
        self._ticker = ticker
        self._run_list = self._run_together if trace is None else trace(self._run_together)
        self._thread = ThreadPoolExecutor(1, thread_name) if thread_name else None
        self._loop = asyncio.get_running_loop()
        self._is_running = False
        self._is_turn_of_pages = False

    def close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)

    def flush(self) -> None:
        """Run a tick, unless one is running. Waiting requests then join the next one."""
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
        """Take the next tick from the queues. Return its engine calls, each for requests that are answered after it."""
        has_pages = self.pages or self._sliced_reads.running
        if has_pages and (
            self._is_turn_of_pages
            or not (self.writes or self.reads or self.look_ups or self.others or self.retries)
        ):
            self._is_turn_of_pages = False
            if self.pages and self._sliced_reads.free_readers:
                requests = self._take(self.pages)
                self._sliced_reads.begin(
                    requests, _latest_log_position(requests) if self._uses_replicas else 0
                )
            return [self._sliced_reads.run]
        self._is_turn_of_pages = bool(has_pages)
        works: list[Work] = []
        if self.reads:
            works.append(partial(self._run_list, self._take(self.reads)))
        if self.writes:
            requests = self._take(self.writes)
            for group in self._by_node(requests) if self._is_distributed else [requests]:
                works.append(partial(self._run_list, group))
        if self.look_ups:
            works.append(partial(self._run_list, self._take(self.look_ups)))
        for _ in range(min(len(self.others), _MAX_SINGLE_COMMANDS)):
            works.append(partial(self._run_list, [self.others.popleft()]))
        if self.retries:
            works.append(self._run_retries)
        return works

    def _take(self, queue: deque[PendingRequest]) -> list[PendingRequest]:
        """Take requests up to the limits of a tick, but at least one."""
        pending_requests: list[PendingRequest] = []
        left_bytes = self._settings.tick_bytes
        while queue and len(pending_requests) < self._settings.tick_requests:
            left_bytes -= len(queue[0].body)
            if left_bytes < 0 and pending_requests:
                break
            pending_requests.append(queue.popleft())
        return pending_requests

    def _by_node(self, pending_requests: list[PendingRequest]) -> list[list[PendingRequest]]:
        """Group writing requests by node. Requests that write at several nodes form one group."""
        by_node: dict[Hashable, list[PendingRequest]] = {}
        for pending in pending_requests:
            by_node.setdefault(self._engine.node_of(pending.commands), []).append(pending)
        return [*by_node.values()]

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
        if any(self._queues):
            self._ticker.wake()
        if metrics.is_counting:
            metrics.count_if_enough()

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
        commands: list[AnyCommand] = []
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
            if not {type(command) for command in pending.commands} <= READS:
                pending.connection.written_up_to = position


def _latest_log_position(pending_requests: list[PendingRequest]) -> int:
    return max([pending.connection.written_up_to for pending in pending_requests])
