"""Coroutines that await commands, and the loop that runs one of them.

The handlers of all dialects are such coroutines. `await Get(table, position)` gives the outcome of a command, or raises its
GatewayError. `all_of` runs several commands as one list. No event loop of asyncio is involved: a coroutine yields lists of
commands and is sent their outcomes. The server's tick runs the commands of many requests together (server/tick.py). `drive`
runs those of one request.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Coroutine, Generator, Sequence
from typing import Any

from tablegate.gateway.model.commands.command import Command, R
from tablegate.gateway.model.errors import Busy, GatewayError, StaleTable

MAX_ATTEMPTS = 8
"""Maximum attempts at a request whose tables change meanwhile. After them the request fails with Busy."""

Run = Callable[[list[Command[Any]]], list[Any]]
"""Run commands and return their outcomes, or raise."""


@types.coroutine
def all_of(commands: Sequence[Command[R]]) -> Generator[Any, Any, list[R | GatewayError]]:
    """Return the outcome or the GatewayError of every command, in order. An empty list runs nothing."""
    if not commands:
        return []
    outcomes: list[R | GatewayError] = yield list(commands)
    return outcomes


@types.coroutine
def next_tick() -> Generator[Any, Any, None]:
    """Let other requests run. The coroutine continues in a later tick of the server."""
    yield []


def drive(begin: Callable[[], Coroutine[Any, Any, R]], run: Run) -> R:
    """Run a coroutine to its end and return its value. It is restarted if one of its tables was stale.

    Raises Busy if the tables keep changing.
    """
    for _ in range(MAX_ATTEMPTS):
        coroutine = begin()
        try:
            commands = coroutine.send(None)
            while True:
                try:
                    outcomes = run(commands)
                except Exception as error:
                    commands = coroutine.throw(error)
                    continue
                if any(isinstance(outcome, StaleTable) for outcome in outcomes):
                    break
                commands = coroutine.send(outcomes)
        except StopIteration as end:
            value: R = end.value
            return value
        finally:
            coroutine.close()
    raise Busy("tables keep changing")
