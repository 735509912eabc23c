"""Every command says what the core asks of it, and a capability registers the function that runs it (issue 47, point 1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.model.authorization.permissions import ACCOUNT_PERMISSIONS
from tablegate.gateway.model.authorization.quotas import READ_UNITS, WRITE_UNITS
from tablegate.gateway.model.commands.command import AccountRead, Command, ControlCommand
from tablegate.gateway.model.commands.row_commands import Get, Read, ReadAll, WriteGroup
from tablegate.gateway.store.opening import open_database
from tablegate.gateway.store.store import Store
from tests.support.commands import COMMANDS
from tests.support.tables import each_row

RUN_TOGETHER = {Get, Read, ReadAll, WriteGroup}
"""The commands that the engine runs as one list, in one snapshot or one transaction."""


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    made = new_engine(Store(open_database("sqlite://")))
    made.install_capabilities()
    yield made
    made.close()


def declared(command: type[Command[Any]]) -> set[str]:
    """Return the members that a command does not have from the common bases."""
    common = {Command, ControlCommand, AccountRead, *Command.__mro__}
    return {name for base in command.__mro__ if base not in common for name in vars(base)}


@each_row("command", COMMANDS)
def test_every_command_declares_its_accesses(command: type[Command[Any]]) -> None:
    members = declared(command)
    assert members & {"accesses", "permission"}
    if "accesses" not in members and command.permission not in ACCOUNT_PERMISSIONS:
        assert "table" in members


@each_row("command", COMMANDS)
def test_every_command_declares_its_cost(command: type[Command[Any]]) -> None:
    if issubclass(command, ControlCommand):
        assert command.rate is None
    else:
        assert "rate" in declared(command)
    if command.rate is not None or command.only_reads:
        assert command.rate in (READ_UNITS, WRITE_UNITS)
        assert "cost" in declared(command)


@each_row("command", COMMANDS)
def test_every_command_is_run_by_one_function(engine: Engine, command: type[Command[Any]]) -> None:
    found = [
        commands
        for commands in (RUN_TOGETHER, engine._transactions.readers, engine._command_runner.runners)
        if command in commands
    ]
    assert len(found) == 1


def test_a_command_that_no_capability_has_registered_is_not_run(engine: Engine) -> None:
    class Unregistered(Command[None]):
        """A command of a capability that is not installed."""

    with pytest.raises(KeyError):
        engine.run([Unregistered()])
