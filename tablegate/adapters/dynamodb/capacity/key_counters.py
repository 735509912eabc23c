"""The counters of accesses to keys. Handlers call them for tables with contributor insights (properties.INSIGHTS)."""

from __future__ import annotations

from typing import Any, Protocol

from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.commands.row_commands import Get, Read, WriteOutcome
from tablegate.gateway.model.commands.writes import Write


class KeyCounter(Protocol):
    """Counts the accesses to keys of a capability."""

    def count_read(self, get: Get) -> None: ...

    def count_write(self, write: Write, outcome: WriteOutcome) -> None: ...

    def count_query(self, read: Read) -> None: ...

    def count_throttled(self, command: Command[Any]) -> None: ...


KEY_COUNTERS: list[KeyCounter] = []
"""The counters of all capabilities. capabilities.py fills the list."""
