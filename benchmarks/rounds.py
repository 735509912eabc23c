"""Interleaved rounds: in each one, all contestants have a short slice of the same workload, one after the other.

All servers run from beginning to end and are idle outside their slices. So a disturbance of the machine affects all
alike. The number of requests in a slice is chosen for the wanted duration.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.comparisons import Slices
from benchmarks.contestants import Contestant, Running
from benchmarks.generator import Aim, Generator, Slice
from benchmarks.signing import Client
from benchmarks.workloads import Unsupported, Workload

_FIRST_GUESS = 40
# Limit of a slice's duration, as a multiple of the wanted one.
_LONGEST_SLICE = 2
_BYTES_MAX = 256 << 20
_REASON_LENGTH = 160


class WrongAnswer(Exception):
    """A server sent a reply that the workload does not expect."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The extent of a run. `seconds` is the approximate duration of a slice."""

    rounds: int
    connections: tuple[int, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class AtRound:
    """The number of a round and the approximate duration of its slices."""

    number: int
    seconds: float


class Player:
    """A contestant's running server with its results for each workload."""

    def __init__(self, contestant: Contestant, running: Running) -> None:
        self.contestant = contestant
        self.running = running
        self.slices: dict[tuple[str, int], Slices] = {}
        self.absent: dict[str, str] = {}
        self.memory: tuple[float, float] = (0.0, 0.0)
        self._prepared: dict[object, str] = {}
        self._number = 0
        self._rates: dict[tuple[str, int], float] = {}
        self._pools: dict[str, list[bytes]] = {}

    def prepare(self, workload: Workload) -> bool:
        """Prepare a workload once for all with the same preparation. False if the server does not support it."""
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

    def play(self, generator: Generator, workload: Workload, connections: int, at_round: AtRound) -> None:
        """Run and measure one slice. The first slice of a kind is a warm-up, which determines the rate and is not
        counted."""
        seconds = at_round.seconds
        at = (workload.name, connections)
        if at not in self._rates:
            count = _FIRST_GUESS
            for _ in range(3):
                measurement = self._slice(generator, workload, connections, count, seconds)
                self._rates[at] = measurement.completed / measurement.seconds
                if measurement.seconds > seconds / 4:
                    break
                count = int(max(connections * 2, self._rates[at] * seconds / 2))
        count = int(max(connections * 2, self._rates[at] * seconds))
        before = self.running.tree.cpu_seconds()
        measurement = self._slice(generator, workload, connections, count, seconds)
        cpu_seconds = self.running.tree.cpu_seconds() - before
        self._rates[at] = measurement.completed / measurement.seconds
        self.slices.setdefault(at, {})[at_round.number] = (
            measurement.completed / measurement.seconds,
            cpu_seconds / measurement.completed * 1e6,
        )

    def _slice(
        self, generator: Generator, workload: Workload, connections: int, count: int, seconds: float
    ) -> Slice:
        requests = self._requests(workload, count)
        limit_s = seconds * _LONGEST_SLICE
        measurement = generator.run(
            requests, Aim(self.running.port, connections, workload.status, seconds=limit_s)
        )
        if measurement.unexpected or measurement.broken or not measurement.completed:
            raise WrongAnswer(
                f"{self.contestant.name}, {workload.name}: {measurement.unexpected} of {measurement.completed} with "
                f"another status, {measurement.broken} broken off: {measurement.refusals[:1]}"
            )
        for _, body in measurement.samples:
            if not workload.holds(body):
                raise WrongAnswer(f"{self.contestant.name}, {workload.name}: {body[:300]!r}")
        return measurement

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
        count = min(count, _BYTES_MAX // len(first))
        start, self._number = self._number, self._number + count
        return [first, *(workload.request(port, at) for at in range(start + 1, start + count))]


def play_all(generator: Generator, players: list[Player], workloads: Sequence[Workload], plan: Plan) -> None:
    """Run all rounds of a workload, then the next, so that the slices of a pair are within a second.

    The order of players rotates, so that none always follows the same one.
    """
    for workload in workloads:
        for connections in plan.connections:
            for number in range(plan.rounds):
                at_round = AtRound(number, plan.seconds)
                for player in players[number % len(players) :] + players[: number % len(players)]:
                    if player.prepare(workload):
                        _play(player, generator, workload, connections, at_round)
            _print_progress(f"{workload.name}, {connections}: {plan.rounds} rounds done")
    for player in players:
        player.memory = player.running.tree.memory_mb()


def _play(
    player: Player, generator: Generator, workload: Workload, connections: int, at_round: AtRound
) -> None:
    """Run a slice. After a wrong reply the server no longer takes part in this workload."""
    if workload.name not in player.absent:
        try:
            player.play(generator, workload, connections, at_round)
        except WrongAnswer as reason:
            player.absent[workload.name] = str(reason)[:_REASON_LENGTH]
            _print_progress(f"wrong: {reason}")


def _print_progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
