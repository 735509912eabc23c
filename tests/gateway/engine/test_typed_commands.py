"""Types between handlers and the engine: every command declares the type of its outcome, which `await` returns."""

import sys
from collections.abc import Awaitable
from typing import Any, get_args, get_origin

import pytest

from tablegate.gateway.dialects.coroutines import all_of, drive, next_tick
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.commands.row_commands import WriteGroup
from tablegate.gateway.model.commands.table_commands import FindTable, ListTables
from tablegate.gateway.model.errors import TableMissing
from tests.support.commands import COMMANDS
from tests.support.tables import each_row


@each_row("command", COMMANDS)
def test_every_command_declares_the_type_of_its_outcome(command: type[Command[Any]]) -> None:
    [outcome] = [
        get_args(base)[0]
        for base in vars(command)["__orig_bases__"]
        if issubclass(get_origin(base) or object, Command)
    ]
    assert outcome not in (Any, "Any", object)


def test_a_command_is_no_larger_for_its_type() -> None:
    assert not hasattr(FindTable("n", "t"), "__dict__")
    assert not hasattr(WriteGroup(()), "__dict__")
    assert sys.getsizeof(WriteGroup(())) == sys.getsizeof(((), None, ""))


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def _value(awaitable: Awaitable[Any], *outcomes: Any) -> tuple[Any, list[Any]]:
    """Return the value of an awaitable, and the lists of commands that it ran. Each list has these outcomes."""
    lists: list[list[Any]] = []

    def run(commands: list[Any]) -> list[Any]:
        lists.append(commands)
        return [*outcomes]

    return drive(lambda: _awaited(awaitable), run), lists


@each_row("command", [FindTable("n", "t"), WriteGroup(())])
def test_await_gives_the_outcome_of_a_command(command: Any) -> None:
    assert _value(command, "found") == ("found", [[command]])


def test_await_raises_the_error_of_a_command() -> None:
    with pytest.raises(TableMissing):
        _value(FindTable("n", "t"), TableMissing("t"))


def test_all_of_gives_outcomes_and_errors_in_order() -> None:
    commands, missing = [ListTables("n"), ListTables("m")], TableMissing("t")
    assert _value(all_of(commands), [], missing) == ([[], missing], [commands])


def test_all_of_no_commands_does_not_call_the_engine() -> None:
    assert _value(all_of([])) == ([], [])


def test_next_tick_runs_an_empty_list() -> None:
    assert _value(next_tick()) == (None, [[]])
