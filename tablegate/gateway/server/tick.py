"""The tick: the commands of all requests that are ready in one iteration of the event loop form one list for the
database.

A request is a coroutine (coroutines.py): it yields the commands that it awaits, is sent their outcomes and returns its
reply. The commands of all ready requests go to `engine.run` together, and each request receives its own outcomes.
Requests that await again join the next tick. One transaction and one fsync serve all requests that arrived while the
previous list was running. A server process has no other concurrency.

The engine is called in a lane: in the event loop (`inline`), or on the one database thread (`thread`). With `split`,
requests that only read use the loop and others the thread. Reads that may be stale have a lane of their own if there
are standbys, so that no other request waits for a standby.

A list is all reads, all writes, or all look-ups of tables that are not cached. When `run` raises, nothing of the list was
committed. Each request is then run again alone, so only the failing one gets the error. Other commands (the control plane)
always run alone.

Reads go first and are answered while the writes run. Waiting pages and other commands take turns (lane.py).

Contended commands are run again alone, without waiting for locks, for a few seconds. Meanwhile other requests continue.

The steps of requests that take long (`PendingRequest.takes_long`) run on threads. So do their writes, one at a time. The
interpreter switches between these threads and the loop. Meanwhile the loop answers reads, and other writes wait.

A request is dropped at its next step if its client has closed the connection, unless it has written or may have.

This module does not depend on HTTP, SQL or dialects.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar, cast

from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.dialects.coroutines import MAX_ATTEMPTS
from tablegate.gateway.dialects.dialect import Handler
from tablegate.gateway.engine.engine import Engine, contended
from tablegate.gateway.engine.rows.reading_replicas import may_be_old
from tablegate.gateway.http.messages import Reply
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.commands.row_commands import Get, Read, ReadAll, WriteGroup
from tablegate.gateway.model.commands.table_commands import FindTable, ListTables
from tablegate.gateway.model.errors import Busy, Contended, StaleTable
from tablegate.gateway.observability import metrics
from tablegate.gateway.server.lane import Lane, Tracer
from tablegate.gateway.server.pending_request import ABANDONED, LockRetry, PendingRequest, RequestOutcomes

_WRITES = {WriteGroup}
_LOOKUPS = {FindTable, ListTables}

# Each further thread that computes delays the event loop by its turns. With two, one statement of seconds does not stop
# the others.
_SLOW_THREADS = 2

Answer = Callable[[PendingRequest, Reply], None]
Refuse = Callable[[PendingRequest, Exception], Reply]
Forward = Callable[[PendingRequest], None]
T = TypeVar("T")


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
        new_lane = partial(Lane, engine, settings, self, trace)
        inline = new_lane()
        database_lane = inline if lane == "inline" else new_lane(thread_name="database")
        self._write_lane = database_lane
        self._read_lane = database_lane if lane == "thread" else inline
        self._lanes = [inline] if database_lane is inline else [inline, database_lane]
        self._replica_lane: Lane | None = None
        if engine.replicas is not None:
            self._replica_lane = new_lane(thread_name="replicas", uses_replicas=True)
            self._lanes.append(self._replica_lane)
        self._queue_of = self._queues()
        # The lanes of the nodes of a distributed database.
        self._node_lanes: dict[Hashable, Lane] = {}
        self._node_of = engine.node_of if engine.is_distributed else None
        self._new_lane = new_lane
        self._slow_threads = ThreadPoolExecutor(_SLOW_THREADS, "slow")
        # Other writes wait for a slow one, so it must not wait for other slow requests.
        self._slow_writer = ThreadPoolExecutor(1, "slow-writes")

    def _queues(self) -> dict[type, deque[PendingRequest]]:
        """Map command types to the queue of requests with one such command, for types that decide the queue alone."""
        queues: dict[type, deque[PendingRequest]] = {}
        if self._forward is None:
            queues[WriteGroup] = self._write_lane.writes
        queues[FindTable] = self._write_lane.look_ups
        if self._replica_lane is None:
            queues[Get] = queues[ReadAll] = self._read_lane.reads
            queues[Read] = self._read_lane.pages
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
        for threads in (self._slow_threads, self._slow_writer):
            threads.shutdown(wait=False, cancel_futures=True)

    def run_slowly(self, work: Callable[[], T], then: Callable[[T], None], is_write: bool = False) -> None:
        """Run work on a thread for what takes long, then `then` with its result in the loop. It must not raise."""

        def run() -> None:
            self._loop.call_soon_threadsafe(then, work())

        (self._slow_writer if is_write else self._slow_threads).submit(run)

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
        if pending.takes_long:
            self.run_slowly(partial(self._start, pending), partial(self._continue, pending))
        elif (reply := self._start(pending)) is None:
            self._enqueue(pending)
        else:
            self._answer(pending, reply)

    def _start(self, pending: PendingRequest) -> Reply | None:
        """Call the handler of a request. Return its reply, or None if it has commands now."""
        if pending.connection.is_lost and pending.may_be_dropped:
            return ABANDONED
        try:
            coroutine = pending.coroutine = pending.handler(pending)
            pending.commands = coroutine.send(None)
        except StopIteration as end:
            return cast(Reply, end.value)
        except Exception as error:
            return self._refuse(pending, error)
        return None

    def _continue(self, pending: PendingRequest, reply: Reply | None) -> None:
        """Answer a request, or put its further commands into the next tick."""
        if reply is None:
            self._enqueue(pending)
            self.wake()
        else:
            self._answer(pending, reply)

    def _enqueue(self, pending: PendingRequest) -> None:
        """Admit a request's commands against quotas, and put it into the queue for them."""
        commands = pending.commands
        if pending.authorization is not None:
            refusal = pending.authorization.refusal(commands)
            if refusal is not None:
                self._advance(pending, refusal)
                return
        node_lane = self._node_lane(commands)
        if node_lane is not None:
            node_lane.append(pending)
            return
        queue = self._queue_of.get(type(commands[0])) if len(commands) == 1 else None
        if queue is not None:
            queue.append(pending)
            return
        kinds = {type(command) for command in commands}
        if all(kind.only_reads for kind in kinds):
            lane = self._read_lane
            if self._replica_lane is not None and may_be_old(commands):
                lane = self._replica_lane
            lane.append(pending)
        elif self._forward is not None and not kinds <= _LOOKUPS:
            pending.coroutine.close()
            self._forward(pending)
        elif kinds == _WRITES:
            self._write_lane.append(pending)
        else:
            self._write_lane.others.append(pending)

    def _node_lane(self, commands: list[Command[Any]]) -> Lane | None:
        """Return the lane of the node that can run these commands alone, or None if there is none."""
        node = None if self._node_of is None else self._node_of(commands)
        if node is None:
            return None
        lane = self._node_lanes.get(node)
        if lane is None:
            lane = self._node_lanes[node] = self._new_lane(thread_name=f"node {len(self._node_lanes)}")
            self._lanes.append(lane)
        return lane

    def drop(self, pending: PendingRequest) -> None:
        """End a request without a reply, because its client has closed the connection."""
        pending.coroutine.close()
        self._answer(pending, ABANDONED)

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
        (self._node_lane(pending.commands) or self._write_lane).retries.append(pending)
        self.wake()

    def _advance(self, pending: PendingRequest, outcomes: list[Any] | Exception) -> None:
        """Pass outcomes to a request, which returns its reply or further commands."""
        if pending.takes_long:
            self.run_slowly(partial(self._resume, pending, outcomes), partial(self._continue, pending))
        elif (reply := self._resume(pending, outcomes)) is None:
            self._enqueue(pending)
            self.wake()
        else:
            self._answer(pending, reply)

    def _resume(self, pending: PendingRequest, outcomes: list[Any] | Exception) -> Reply | None:
        """Pass outcomes to the handler of a request. Return its reply, or None if it has further commands."""
        pending.has_run = True
        if pending.connection.is_lost and pending.is_abandoned_read:
            pending.coroutine.close()
            return ABANDONED
        if (
            pending.authorization is not None
            and pending.authorization.needs_review
            and not isinstance(outcomes, Exception)
        ):
            outcomes = pending.authorization.review(pending.commands, outcomes)
        try:
            if isinstance(outcomes, Exception):
                pending.commands = pending.coroutine.throw(outcomes)
            else:
                pending.commands = pending.coroutine.send(outcomes)
        except StopIteration as end:
            return cast(Reply, end.value)
        except Exception as error:
            return self._refuse(pending, error)
        return None

    def _restart(self, pending: PendingRequest) -> None:
        """Start a request again, because a table was stale."""
        pending.coroutine.close()
        pending.restarts += 1
        pending.lock_retry = None
        if pending.restarts < MAX_ATTEMPTS:
            self._arrived.append(pending)
            self.wake()
        else:
            self._answer(pending, self._refuse(pending, Busy("tables keep changing")))
