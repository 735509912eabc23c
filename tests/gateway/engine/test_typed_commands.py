"""Types between handlers and the engine: every command declares the type of its outcome.

`one`, `each` and `write_rows` keep it.
"""

import sys
from typing import Any, get_args, get_origin

import pytest

from tablegate.gateway.exchanges import Returned, each, next_commands, one, write_rows
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.commands.row_commands import WriteGroup, WriteOutcome
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


def test_one_gives_the_outcome_or_raises_the_error() -> None:
    command = FindTable("n", "t")
    exchange = one(command)
    assert next_commands(exchange, None) == [command]
    assert next_commands(exchange, ["found"]) == Returned("found")
    exchange = one(command)
    next(exchange)
    with pytest.raises(TableMissing):
        exchange.send([TableMissing("t")])


def test_each_gives_outcomes_and_errors_in_order() -> None:
    commands = [ListTables("n"), ListTables("m")]
    exchange = each(commands)
    assert next_commands(exchange, None) == commands
    missing = TableMissing("t")
    assert next_commands(exchange, [[], missing]) == Returned([[], missing])


def test_each_of_no_commands_does_not_call_the_engine() -> None:
    assert next_commands(each([]), None) == Returned([])


def test_write_rows_is_one_group_without_a_token() -> None:
    exchange = write_rows()
    [group] = next(exchange)
    assert group == WriteGroup(())
    assert next_commands(exchange, [[WriteOutcome(None, None)]]) == Returned([WriteOutcome(None, None)])
