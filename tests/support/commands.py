"""All commands of the product, found by their base class."""

from __future__ import annotations

import importlib
import pkgutil
from itertools import chain
from typing import Any

from tablegate.gateway import features
from tablegate.gateway.model import commands
from tablegate.gateway.model.commands.command import Command


def _classes() -> set[type[Command[Any]]]:
    packages = [pkgutil.walk_packages(each.__path__, f"{each.__name__}.") for each in (commands, features)]
    modules = chain.from_iterable(packages)
    members = [each for module in modules for each in vars(importlib.import_module(module.name)).values()]
    return {each for each in members if isinstance(each, type) and issubclass(each, Command)}


_BASES = {base for each in _classes() for base in each.__mro__[1:]}
COMMANDS = sorted(_classes() - _BASES, key=lambda command: command.__name__)
"""All classes of commands without subclasses."""
