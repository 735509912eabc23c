"""The installation of capabilities when the first command, table or background work needs one.

A start then imports none of them, and no request of a plain table waits for them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from tablegate.gateway.model.commands.command import Command

F = TypeVar("F", bound=Callable[..., Any])


class Installation:
    """Calls `install` once, before the first use of a capability. Safe to call from several threads."""

    def __init__(self, install: Callable[[], None]) -> None:
        self._install: Callable[[], None] | None = install
        self._lock = threading.RLock()
        self._is_complete = False

    def complete(self) -> None:
        """Install the capabilities, unless that has been done. Waits while another thread does it."""
        if self._is_complete:
            return
        with self._lock:
            if self._install is None:  # another thread was faster, or `install` uses what it installs
                return
            install, self._install = self._install, None
            try:
                install()
            except BaseException:
                self._install = install
                raise
            self._is_complete = True


class FunctionsOfCommands(dict[type[Command[Any]], F]):
    """The function for each type of command. One that is missing is looked up again after the installation."""

    def __init__(self, installation: Installation, functions: Mapping[type[Command[Any]], F]) -> None:
        super().__init__(functions)
        self._installation = installation

    def __missing__(self, kind: type[Command[Any]]) -> F:
        self._installation.complete()
        if kind not in self:
            raise KeyError(kind)
        return self[kind]
