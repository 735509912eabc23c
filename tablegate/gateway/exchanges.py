"""The steps in which an operation uses the engine: an exchange, or a single step.

An exchange is a generator that yields lists of commands, is sent their outcomes, and returns a value
(model/commands/commands.py). A single step is one command and the function that makes the value of its outcome. It costs less
than a generator, and most operations on one row or one page need no more.

Handlers of all dialects are written with `one`, `each`, `write_rows` and `after`. The server's tick runs the steps of many
requests together (server/tick.py). `drive` runs those of one request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar, cast

from tablegate.gateway.model.commands import command, row_commands
from tablegate.gateway.model.commands.command import Command, R
from tablegate.gateway.model.commands.commands import Exchange
from tablegate.gateway.model.commands.writes import Write
from tablegate.gateway.model.errors import Busy, GatewayError, StaleTable

MAX_ATTEMPTS = 8
"""Maximum attempts at a request whose tables change meanwhile. After them the request fails with Busy."""

T = TypeVar("T")


class SingleStep(NamedTuple):
    """One command that an operation needs.

    - `answer`: returns the operation's value for the command's outcome.
    - `error_of`: returns the exception to raise for the command's GatewayError. None raises that error.
    Both can raise.
    """

    command: Command[Any]
    answer: Callable[[Any], Any]
    error_of: Callable[[GatewayError], Exception] | None = None

    def result(self, outcome: Any) -> Any:
        """Return the value for an outcome. Raises the exception for an outcome that is one."""
        if isinstance(outcome, Exception):
            if self.error_of is None or not isinstance(outcome, GatewayError):
                raise outcome
            raise self.error_of(outcome) from None
        return self.answer(outcome)


Steps = SingleStep | Exchange[R]
"""What the handler of an operation returns."""


def exchange_of(steps: Steps[R]) -> Exchange[R]:
    """Return the steps of an operation as an exchange."""
    if not isinstance(steps, SingleStep):
        return (yield from steps)
    [outcome] = yield [steps.command]
    return cast(R, steps.result(outcome))


def after(look_up: Exchange[T], steps_of: Callable[[T], Steps[R]]) -> Exchange[R]:
    """Return the exchange of an operation that begins with a look-up, whose result is passed to `steps_of`."""
    return (yield from exchange_of(steps_of((yield from look_up))))


@dataclass(frozen=True, slots=True)
class Returned(Generic[R]):
    """The value that an exchange returned."""

    value: R


Run = Callable[[list[Command[Any]]], list[Any]]
"""Run commands and return their outcomes, or raise."""


def drive(begin: Callable[[], Exchange[R]], run: Run) -> R:
    """Run an exchange to its end and return its value. It is restarted if one of its tables was stale.

    Raises Busy if the tables keep changing.
    """
    for _ in range(MAX_ATTEMPTS):
        exchange = begin()
        commands = next_commands(exchange, None)
        while not isinstance(commands, Returned):
            try:
                outcomes = run(commands)
            except Exception as error:
                commands = next_commands(exchange, error)
                continue
            if any(isinstance(outcome, StaleTable) for outcome in outcomes):
                exchange.close()
                break
            commands = next_commands(exchange, outcomes)
        else:
            return commands.value
    raise Busy("tables keep changing")


def next_commands(
    exchange: Exchange[R], outcomes: list[Any] | Exception | None
) -> list[Command[Any]] | Returned[R]:
    """Return the next list of commands of an exchange, or its value. An exception of the engine is raised inside it."""
    try:
        if isinstance(outcomes, Exception):
            return exchange.throw(outcomes)
        return exchange.send(outcomes) if outcomes is not None else next(exchange)
    except StopIteration as end:
        return Returned(end.value)


# For use with `yield from`. Outcomes get the types that the commands declare.


def one(command: command.Command[R]) -> Exchange[R]:
    """Return the outcome of one command. Raises its GatewayError."""
    [outcome] = yield [command]
    if isinstance(outcome, GatewayError):
        raise outcome
    return outcome


def each(commands: Sequence[command.Command[R]]) -> Exchange[list[R | GatewayError]]:
    """Return the outcome or the GatewayError of every command, in order. An empty list runs nothing."""
    if not commands:
        return []
    return (yield list(commands))


def write_rows(*writes: Write) -> Exchange[list[row_commands.WriteOutcome]]:
    """Return the outcomes of an atomic group of writes, in order. Raises the group's GatewayError."""
    [outcomes] = yield [row_commands.WriteGroup(writes)]
    if isinstance(outcomes, GatewayError):
        raise outcomes
    return outcomes
