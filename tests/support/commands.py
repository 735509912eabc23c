"""All commands of the product, found by their base class."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from tablegate.gateway.model import commands
from tablegate.gateway.model.commands.command import Command


def _classes() -> set[type[Command[Any]]]:
    modules = pkgutil.iter_modules(commands.__path__, f"{commands.__name__}.")
    members = [each for module in modules for each in vars(importlib.import_module(module.name)).values()]
    return {each for each in members if isinstance(each, type) and issubclass(each, Command)}


_BASES = {base for each in _classes() for base in each.__mro__[1:]}
COMMANDS = sorted(_classes() - _BASES, key=lambda command: command.__name__)
"""All classes of commands without subclasses."""
