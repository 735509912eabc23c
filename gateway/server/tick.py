"""The tick: what is ready in the same turn of the event loop goes to the database as one list.

A request is an exchange (model/commands/commands.py): a generator that yields commands, is sent their outcomes and returns its
reply. If one command is enough, it is that command and a function that makes the reply of its outcome (dialect.ReplyStep). All
that are ready are begun, their commands go to `engine.run` together, each is told its own outcomes; those that yield again join
the next tick. One transaction and one fsync serve all requests that arrived while the last list was running. A server
process has no other concurrency.

Where the engine is called is a lane: in the event loop (`inline`), or on the one database thread (`thread`). With `split`,
requests that only read take the first and the others the second. With replicas, reads that may be old form lists of their own
in a lane of their own, so that no other request waits for a replica. A list is all reads or all writes: when `run` raises,
rather than answers, nothing of such a list was committed, so each request is run again alone and the one at fault fails
alone. What is neither (the control plane) goes alone from the start.

Of what is ready, those who read go first and are answered while the others are written: they take little, and one who reads
waits for no commit but the one that is under way.

Pages are read in slices, for some milliseconds at a time; where anything else is to be done, every other tick is for that.
So those who scan do not hold up those who want one row. A list of pages keeps its snapshot until the last is read.

What the engine answers with Contended waits aside, while others go on, and is run again alone, without waiting for locks, for a
few seconds. Only those commands of a request that were not done are run again.

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
from tablegate.gateway.model.commands.commands import Exchange
from tablegate.gateway.model.commands.row_commands import Get, Read, ReadAll, WriteGroup
from tablegate.gateway.model.commands.table_commands import FindTable, ListTables
from tablegate.gateway.model.commands.vector_commands import SearchVectors
from tablegate.gateway.model.errors import Busy, Contended, StaleTable
from tablegate.gateway.observability import metrics
from tablegate.gateway.security.gate import admit, complete
from tablegate.gateway.server.pending_request import LockRetry, PendingRequest

_READS = {Get, Read, ReadAll, SearchVectors}
_IN_SLICES = {Read, SearchVectors}
_WRITES = {WriteGroup}
_FINDING = {FindTable, ListTables}
_MOST_ALONE = 8
# What was put aside may take so much of a tick from the others.
_ASIDE_S = 0.05
# Slices of pages that follow each other until somebody else has a turn; and how many snapshots are open for them at most.
_PAGES_S = 0.005
_MOST_SNAPSHOTS = 4

Answer = Callable[[PendingRequest, Reply], None]
Refuse = Callable[[PendingRequest, Exception], Reply]
Traced = Callable[[Callable[[list[PendingRequest]], Any]], Callable[[list[PendingRequest]], Any]]
HandOn = Callable[[PendingRequest], None]


@dataclass(frozen=True, slots=True)
class TickLimits:
    """A tick takes at most so many requests and so many bytes of their bodies, but always one."""

    requests: int
    bytes: int


Answered = tuple[PendingRequest, list[Any] | Exception]
"""A pending request and its own outcomes, or what the engine raised for it alone."""


class Ticker:
    """Takes requests in one event loop and answers them there. All methods are for that loop's thread."""

    def __init__(
        self,
        engine: Engine,
        limits: TickLimits,
        lane: str,
        answer: Answer,
        refuse: Refuse,
        hand_on: HandOn | None = None,
        traced: Traced | None = None,
    ) -> None:
        """`lane`: inline, thread or split. `answer` is called once for each request; `refuse` words the reply to an exchange
        that raised. `hand_on`: what becomes of a request that wants more than to read, where this process does not write;
        nothing of it has been done by then, since a handler does nothing but ask. `traced` stands around what runs a list of
        requests."""
        self._hand_on = hand_on
        self._loop = asyncio.get_running_loop()
        self._answer = answer
        self._refuse = refuse
        self._arrived: deque[PendingRequest] = deque()
        self._is_turn_due = False
        inline = _Lane(engine, limits, self)
        self._thread = ThreadPoolExecutor(1, "database") if lane != "inline" else None
        threaded = _Lane(engine, limits, self, self._thread) if self._thread else inline
        self._write_lane = threaded
        self._read_lane = threaded if lane == "thread" else inline
        self._lanes = (inline,) if threaded is inline else (inline, threaded)
        # Where single commands wait; lists of several are looked at (_enqueue).
        self._waiting_of: dict[type, deque[PendingRequest]] = {
            Get: self._read_lane.reads,
            ReadAll: self._read_lane.reads,
            Read: self._read_lane.pages,
            SearchVectors: self._read_lane.pages,
            WriteGroup: self._write_lane.writes,
        }
        if hand_on is not None:
            del self._waiting_of[WriteGroup]
        self._old_lane: _Lane | None = None
        if engine.replicas is not None:
            # Then every read is looked at.
            self._waiting_of = {WriteGroup: self._write_lane.writes}
            self._old_thread = ThreadPoolExecutor(1, "replicas")
            self._old_lane = _Lane(engine, limits, self, self._old_thread, is_of_replicas=True)
            self._lanes = (*self._lanes, self._old_lane)

        if traced is not None:
            for each in self._lanes:
                each.trace(traced)

    def submit(self, pending: PendingRequest, handler: Handler) -> None:
        """Have a request handled. It is answered once, in a later turn of the loop."""
        pending.handler = handler
        self._arrived.append(pending)
        if not self._is_turn_due:
            self.wake()

    def wake(self) -> None:
        """Do something in the next turn of the loop."""
        if not self._is_turn_due:
            self._is_turn_due = True
            self._loop.call_soon(self._turn)

    def close(self) -> None:
        """Let the database thread end, after what it has in hand; nobody waits for that here."""
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)
        if self._old_lane is not None:
            self._old_thread.shutdown(wait=False, cancel_futures=True)

    def _turn(self) -> None:
        self._is_turn_due = False
        arrived, self._arrived = self._arrived, deque()
        for pending in arrived:
            self._begin(pending)
        for lane in self._lanes:
            lane.flush()
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
            commands = pending.commands
            if pending.authorization is not None:
                refusal = admit(pending.authorization, commands)
                if refusal is not None:
                    self._advance(pending, refusal)
                    return
            waiting = self._waiting_of.get(type(commands[0])) if len(commands) == 1 else None
            if waiting is not None:
                waiting.append(pending)
            else:
                self._enqueue(pending)

    def _enqueue_if_allowed(self, pending: PendingRequest) -> None:
        """Let the commands of a request that may not do everything go on, or tell its handler that they may not."""
        assert pending.authorization is not None
        refusal = admit(pending.authorization, pending.commands)
        if refusal is None:
            self._enqueue(pending)
        else:
            self._advance(pending, refusal)

    def _enqueue(self, pending: PendingRequest) -> None:
        kinds = {type(command) for command in pending.commands}
        if kinds <= _READS:
            lane = self._read_lane
            if self._old_lane is not None and may_be_old(cast(list[Reading], pending.commands)):
                lane = self._old_lane
            (lane.reads if _IN_SLICES.isdisjoint(kinds) else lane.pages).append(pending)
        elif self._hand_on is not None and not kinds <= _FINDING:
            if pending.exchange is not None:
                pending.exchange.close()
            pending.exchange = pending.finish = None
            self._hand_on(pending)
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
                self._put_aside(pending, outcomes)
            else:
                self._advance(pending, outcomes)

    def _put_aside(self, pending: PendingRequest, outcomes: list[Any]) -> None:
        lock_retry = pending.lock_retry
        if lock_retry is None:
            lock_retry = pending.lock_retry = LockRetry(outcomes, contended(outcomes))
        else:
            lock_retry.merge(outcomes)
        if lock_retry.is_over:
            pending.lock_retry = None
            self._advance(pending, lock_retry.outcomes)
        else:
            self._loop.call_later(next(lock_retry.pauses), self._try_again, pending)

    def _try_again(self, pending: PendingRequest) -> None:
        self._write_lane.aside.append(pending)
        self.wake()

    def _advance(self, pending: PendingRequest, outcomes: list[Any] | Exception) -> None:
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
                if pending.authorization is not None:
                    self._enqueue_if_allowed(pending)
                else:
                    self._enqueue(pending)
                self.wake()
                return
        self._answer(pending, reply)

    def _restart(self, pending: PendingRequest) -> None:
        if pending.exchange is not None:
            pending.exchange.close()
        pending.exchange = pending.finish = None
        pending.restarts += 1
        pending.lock_retry = None
        if pending.restarts < MOST_ATTEMPTS:
            self._arrived.append(pending)
            self.wake()
        else:
            self._answer(pending, self._refuse(pending, Busy("tables keep changing")))


Work = Callable[[], list[Answered]]


class _Pages:
    """Pending requests whose pages are read in slices, in one snapshot."""

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
        """Read another slice; the requests that have all that they asked for now."""
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


class _Lane:
    """Pending requests that wait for the database, and the one call of it that is under way."""

    def __init__(
        self,
        engine: Engine,
        limits: TickLimits,
        ticker: Ticker,
        thread: ThreadPoolExecutor | None = None,
        is_of_replicas: bool = False,
    ) -> None:
        self.reads: deque[PendingRequest] = deque()
        self.pages: deque[PendingRequest] = deque()
        self.writes: deque[PendingRequest] = deque()
        self.others: deque[PendingRequest] = deque()
        self.aside: deque[PendingRequest] = deque()
        self._engine = engine
        self._is_of_replicas = is_of_replicas
        self._notes_written = engine.replicas is not None and engine.replicas.wait_s > 0
        self._has_nodes = engine.has_nodes
        self._limits = limits
        self._ticker = ticker
        self._thread = thread
        self._loop = asyncio.get_running_loop()
        self._is_running = False
        self._is_turn_of_pages = False
        self._begun: deque[_Pages] = deque()
        self._slots = [*range(1, _MOST_SNAPSHOTS + 1)]

    def trace(self, traced: Traced) -> None:
        """From now on something stands around what runs a list of requests."""
        self._run_list = traced(self._run_list)  # type: ignore[assignment,method-assign]

    def flush(self) -> None:
        """Run a tick, unless one is under way: then what waits goes with the next."""
        if self._is_running or not self._is_awaited:
            return
        works = self._next()
        if self._thread is not None:
            self._is_running = True
            self._thread.submit(self._run_on_thread, works)
            return
        for work in works[:-1]:
            self._ticker.deliver(work())
        answers = works[-1]()
        if self._is_awaited:
            self._ticker.wake()
        self._ticker.deliver(answers)

    @property
    def _is_awaited(self) -> bool:
        return bool(self.reads or self.writes or self.pages or self._begun or self.others or self.aside)

    def _next(self) -> list[Work]:
        """The next tick, in parts whose requests are answered as soon as each is done. Where pages and others wait, they take
        turns."""
        has_pages = self.pages or self._begun
        if has_pages and (
            self._is_turn_of_pages or not (self.writes or self.reads or self.others or self.aside)
        ):
            self._is_turn_of_pages = False
            if self.pages and self._slots:
                pending_requests = self._take_some(self.pages)
                written = _written(pending_requests) if self._is_of_replicas else 0
                self._begun.append(_Pages(self._engine, pending_requests, self._slots.pop(), written))
            return [self._run_pages]
        self._is_turn_of_pages = bool(has_pages)
        return self._take()

    def _take(self) -> list[Work]:
        """What goes to the engine in this tick: lists of pending requests, each to be one call of it."""
        works: list[Work] = []
        if self.reads:
            works.append(partial(self._run_list, self._take_some(self.reads)))
        if self.writes:
            taken = self._take_some(self.writes)
            for together in self._node_by_node(taken) if self._has_nodes else [taken]:
                works.append(partial(self._run_list, together))
        for _ in range(min(len(self.others), _MOST_ALONE)):
            works.append(partial(self._run_list, [self.others.popleft()]))
        if self.aside or not works:
            works.append(self._run_all_aside)
        return works

    def _take_some(self, waiting: deque[PendingRequest]) -> list[PendingRequest]:
        pending_requests: list[PendingRequest] = []
        left_bytes = self._limits.bytes
        while waiting and len(pending_requests) < self._limits.requests:
            left_bytes -= len(waiting[0].body)
            if left_bytes < 0 and pending_requests:
                break
            pending_requests.append(waiting.popleft())
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
        self._loop.call_soon_threadsafe(self._settle, works[-1]())

    def _settle(self, answers: list[Answered]) -> None:
        self._is_running = False
        self.flush()  # the database first: it works while replies are made
        self._ticker.deliver(answers)
        metrics.count_if_enough()

    def _run_pages(self) -> list[Answered]:
        answers: list[Answered] = []
        began = perf_counter()
        while self._begun and perf_counter() - began < _PAGES_S:
            pages = self._begun.popleft()
            answers += pages.advance()
            if pages.is_over:
                self._slots.append(pages.reader)
            else:
                self._begun.append(pages)
        metrics.ticked((len(answers), perf_counter() - began))
        return answers

    def _run_all_aside(self) -> list[Answered]:
        answers: list[Answered] = []
        until = monotonic() + _ASIDE_S
        while self.aside and monotonic() < until:
            answers.append(self._run_aside(self.aside.popleft()))
        return answers

    def _run_aside(self, pending: PendingRequest) -> Answered:
        assert pending.lock_retry is not None
        try:
            commands = [pending.commands[at] for at in pending.lock_retry.waiting]
            outcomes = self._engine.run(commands, nowait=True)
            if self._notes_written:
                self._note_written([pending])
            return pending, outcomes
        except Exception as error:
            return pending, error

    def _run_list(self, pending_requests: list[PendingRequest]) -> list[Answered]:
        began = perf_counter()
        try:
            commands = [command for pending in pending_requests for command in pending.commands]
            if self._is_of_replicas:
                outcomes = self._engine.run(commands, written=_written(pending_requests))
            else:
                outcomes = self._engine.run(commands)
            if self._notes_written:
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
        """Remember, for what is read later on their connections, how far the database's log is after requests that wrote."""
        written = self._engine.written_up_to
        for pending in pending_requests:
            if not {type(command) for command in pending.commands} <= _READS:
                pending.connection.written_up_to = written


def _written(pending_requests: list[PendingRequest]) -> int:
    """How far the database's log was after the last write on any of the connections of these requests."""
    return max([pending.connection.written_up_to for pending in pending_requests])
