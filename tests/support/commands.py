"""All commands of the product, found by their base class."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from tablegate.gateway.model import commands
from tablegate.gateway.model.commands.command import AccountRead, Command, ControlCommand
from tablegate.gateway.model.commands.tunnel_commands import ClientCommand

_BASES = {Command, ControlCommand, AccountRead, ClientCommand}


def _members() -> list[Any]:
    modules = pkgutil.iter_modules(commands.__path__, f"{commands.__name__}.")
    return [member for module in modules for member in vars(importlib.import_module(module.name)).values()]


COMMANDS: list[type[Command[Any]]] = sorted(
    {member for member in _members() if isinstance(member, type) and issubclass(member, Command)} - _BASES,
    key=lambda command: command.__name__,
)
