"""Interleaved rounds: in each, every contestant has a slice of every workload at every number of connections.

All servers stay up from beginning to end, idle but for their own slices, so that what disturbs the machine for a while
disturbs all alike. A slice is a number of requests, chosen so that it lasts about as long as it should.
"""

from __future__ import annotations

import statistics
import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.contestants import Contestant, Running
from benchmarks.generator import Aim, Generator, Slice
from benchmarks.signing import Client
from benchmarks.workloads import Unsupported, Workload

_FIRST_GUESS = 40
# Where a guess was wrong, a slice ends after this many times what it should have lasted.
_LONGEST_SLICE = 2
_MOST_BYTES = 256 << 20
_REASON_LENGTH = 160


class WrongAnswer(Exception):
    """A server answered otherwise than the workload must have it."""


@dataclass(slots=True)
class Figures:
    """What one contestant did in one workload at one number of connections, over all rounds."""

    rates: list[float] = field(default_factory=list)
    latencies_us: array[int] = field(default_factory=lambda: array("I"))
    requests: int = 0
    cpu_seconds: float = 0.0

    def add(self, taken: Slice, cpu_seconds: float) -> None:
        """One more slice."""
        self.rates.append(taken.completed / taken.seconds)
        self.latencies_us.extend(taken.latencies_us)
        self.requests += taken.completed
        self.cpu_seconds += cpu_seconds

    @property
    def rate(self) -> float:
        """Requests a second, median of the rounds."""
        return statistics.median(self.rates)

    @property
    def cpu(self) -> float:
        """Microseconds of CPU time for one request, over all rounds: the kernel counts in steps of 10 ms."""
        return max(self.cpu_seconds, 0.01) / self.requests * 1e6

    def percentile_ms(self, share: float) -> float:
        """Latency that this share of all requests did not exceed."""
        ordered = sorted(self.latencies_us)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] / 1000


@dataclass(frozen=True, slots=True)
class Plan:
    """How much: `seconds` is about how long a slice lasts."""

    rounds: int
    connections: tuple[int, ...]
    seconds: float


class Player:
    """One contestant in the field: its running server, and how far it has come in each workload."""

    def __init__(self, contestant: Contestant, running: Running) -> None:
        self.contestant = contestant
        self.running = running
        self.figures: dict[tuple[str, int], Figures] = {}
        self.absent: dict[str, str] = {}
        self.memory: tuple[float, float] = (0.0, 0.0)
        self._prepared: dict[object, str] = {}
        self._number = 0
        self._rates: dict[tuple[str, int], float] = {}
        self._pools: dict[str, list[bytes]] = {}

    def prepare(self, workload: Workload) -> bool:
        """Make what a workload needs, once for all that need the same; False if this server cannot have it."""
        if workload.prepare not in self._prepared:
            client = Client(self.running.port)
            try:
                workload.prepare(client)
                self._prepared[workload.prepare] = ""
            except Unsupported as refusal:
                self._prepared[workload.prepare] = str(refusal)
            client.close()
        reason = self._prepared[workload.prepare]
        if reason:
            self.absent[workload.name] = reason
        return not reason

    def play(self, generator: Generator, workload: Workload, connections: int, seconds: float) -> None:
        """One slice, measured. The first of its kind is for warming up and to see how fast it is, and not counted."""
        at = (workload.name, connections)
        if at not in self._rates:
            count = _FIRST_GUESS
            for _ in range(3):
                taken = self._slice(generator, workload, connections, count, seconds)
                self._rates[at] = taken.completed / taken.seconds
                if taken.seconds > seconds / 4:
                    break
                count = int(max(connections * 2, self._rates[at] * seconds / 2))
        count = int(max(connections * 2, self._rates[at] * seconds))
        before = self.running.tree.cpu_seconds()
        taken = self._slice(generator, workload, connections, count, seconds)
        cpu_seconds = self.running.tree.cpu_seconds() - before
        self._rates[at] = taken.completed / taken.seconds
        self.figures.setdefault(at, Figures()).add(taken, cpu_seconds)
        _say(f"{self.contestant.name} {workload.name} c{connections}: {self._rates[at]:,.0f}/s")

    def _slice(
        self, generator: Generator, workload: Workload, connections: int, count: int, seconds: float
    ) -> Slice:
        requests = self._requests(workload, count)
        limit_s = seconds * _LONGEST_SLICE
        taken = generator.run(requests, Aim(self.running.port, connections, workload.status, seconds=limit_s))
        if taken.unexpected or taken.broken or not taken.completed:
            raise WrongAnswer(
                f"{self.contestant.name}, {workload.name}: {taken.unexpected} of {taken.completed} with another status, "
                f"{taken.broken} broken off: {taken.refusals[:1]}"
            )
        for _, body in taken.samples:
            if not workload.holds(body):
                raise WrongAnswer(f"{self.contestant.name}, {workload.name}: {body[:300]!r}")
        return taken

    def _requests(self, workload: Workload, count: int) -> Sequence[bytes]:
        port = self.running.port
        if workload.pool:
            pool = self._pools.get(workload.name)
            if pool is None:
                pool = self._pools[workload.name] = [
                    workload.request(port, at) for at in range(workload.pool)
                ]
            return (pool * (count // len(pool) + 1))[:count]
        first = workload.request(port, self._number)
        count = min(count, _MOST_BYTES // len(first))
        start, self._number = self._number, self._number + count
        return [first, *(workload.request(port, at) for at in range(start + 1, start + count))]


def play_all(generator: Generator, players: list[Player], workloads: Sequence[Workload], plan: Plan) -> None:
    """All rounds. The order of contestants turns from round to round, so that none always follows the same."""
    for number in range(plan.rounds):
        for workload in workloads:
            for connections in plan.connections:
                for each in players[number % len(players) :] + players[: number % len(players)]:
                    if each.prepare(workload):
                        _play(each, generator, workload, connections, plan.seconds)
        for each in players:
            each.memory = each.running.tree.memory_mb()
        _say(f"round {number + 1} of {plan.rounds} done")


def _play(player: Player, generator: Generator, workload: Workload, connections: int, seconds: float) -> None:
    """A slice; who answers wrongly is out of this workload for the rest of the run."""
    if workload.name not in player.absent:
        try:
            player.play(generator, workload, connections, seconds)
        except WrongAnswer as reason:
            player.absent[workload.name] = str(reason)[:_REASON_LENGTH]
            _say(f"wrong: {reason}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
