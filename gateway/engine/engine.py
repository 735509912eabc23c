"""The one door for adapters: commands in, outcomes out; transaction boundaries, retry and the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from gateway.model.commands import Command, Exchange
from gateway.model.errors import Busy, GatewayError, StaleTable
from gateway.model.tables import Table


class Engine:
    """Runs commands against one store. Safe to call from several threads."""

    def __init__(self, store: Any, now: Callable[[], int] = time.time_ns) -> None:
        self._store = store
        self._now = now

    def run(self, commands: list[Command]) -> list[Any]:
        """For each command its outcome, or the GatewayError it met. One call is one write transaction at most."""
        raise NotImplementedError

    def cached_table(self, namespace: str, name: str) -> Table | None:
        """A table's descriptor without any I/O, or None: then ask with FindTable."""
        raise NotImplementedError

    def chores(self) -> float:
        """Do a bounded piece of background work (backfill, expiry, purging). Returns seconds until it wants to be called."""
        raise NotImplementedError

    def close(self) -> None:
        """Give back connections."""


def drive(engine: Engine, begin: Callable[[], Exchange]) -> Any:
    """Run an exchange to its end, alone: how Flask handles a request. The server drives many at once (server.py)."""
    for _ in range(8):
        exchange = begin()
        commands = next_commands(exchange, None)
        while isinstance(commands, list):
            outcomes = engine.run(commands)
            if any(isinstance(outcome, StaleTable) for outcome in outcomes):
                exchange.close()
                break
            commands = next_commands(exchange, outcomes)
        else:
            return commands
    raise Busy("tables keep changing")


def next_commands(exchange: Exchange, outcomes: list[Any] | None) -> Any:
    """The exchange's next list of commands, or what it returned (never a list)."""
    try:
        return exchange.send(outcomes) if outcomes is not None else next(exchange)
    except StopIteration as end:
        return end.value


def one(command: Command) -> Exchange:
    """For use with `yield from`: the outcome of a single command; its GatewayError is raised."""
    [outcome] = yield [command]
    if isinstance(outcome, GatewayError):
        raise outcome
    return outcome
