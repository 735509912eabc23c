"""Modules that are loaded when one of their functions is first called: rooms that most servers never enter.

    if TYPE_CHECKING:
        from adapters.dynamodb.jobs import exports
    else:
        exports = LateModule("adapters.dynamodb.jobs.exports")

What reads the code - people, type checkers, the tests of who may import whom - sees an ordinary import; a test compares the two
names. Whoever writes `exports.list_exports`, in a table or in a call, has a function that loads its module when it is
called. For what belongs to hot operations this is wrong: no request should wait for a module to be loaded that most need.

This is in the model because all rooms may import the model. It knows no other module.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


class LateModule:
    """Stands for a module of which nothing but functions is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, function: str) -> LateFunction:
        return LateFunction(self._name, function)


class LateFunction:
    """Stands for a function of a late module."""

    __slots__ = ("_found", "_module", "_name")

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name
        self._found: Callable[..., Any] | None = None

    def load(self) -> Callable[..., Any]:
        """The function itself, whose module is loaded now, if it was not before."""
        if self._found is None:
            self._found = getattr(importlib.import_module(self._module), self._name)
        return self._found

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.load()(*arguments, **named)
