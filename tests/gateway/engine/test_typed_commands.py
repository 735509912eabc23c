"""Types between handlers and the engine: every command declares the type of its outcome.

`one`, `each` and `write_rows` keep it.
"""

from typing import Any, get_args, get_origin

import pytest

from tablegate.gateway.engine.single_commands import RUNS
from tablegate.gateway.exchanges import Returned, each, next_commands, one, write_rows
from tablegate.gateway.model.commands.account_commands import AccountCommand
from tablegate.gateway.model.commands.command import BaseCommand
from tablegate.gateway.model.commands.commands import AnyCommand, DefinitionCommand
from tablegate.gateway.model.commands.row_commands import WriteGroup, WriteOutcome
from tablegate.gateway.model.commands.table_commands import FindTable, ListTables, TableCommand
from tablegate.gateway.model.errors import TableMissing
from tests.support.tables import each_row

_COMMANDS = get_args(AnyCommand)


@each_row("command", _COMMANDS)
def test_every_command_declares_the_type_of_its_outcome(command: type) -> None:
    said = [
        get_args(base) for base in getattr(command, "__orig_bases__", ()) if get_origin(base) is BaseCommand
    ]
    if said:
        [[outcome]] = said
    else:
        outcome = vars(command)["outcome"].__annotations__["return"]
    assert outcome not in (Any, "Any", object)


def test_every_definition_command_is_run_by_one_module() -> None:
    of_definer = {*get_args(TableCommand | AccountCommand)}
    assert of_definer.isdisjoint(RUNS)
    assert of_definer | {*RUNS} == {*get_args(DefinitionCommand)}


def test_a_command_is_no_larger_for_its_type() -> None:
    assert not hasattr(FindTable("n", "t"), "__dict__")
    assert WriteGroup.__mro__ == (WriteGroup, tuple, object)


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
