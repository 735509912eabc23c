"""Attempts to run commands, and the functions that the engine's parts of capabilities register for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tablegate.gateway.engine.tables.table_definitions import TableDefiner
from tablegate.gateway.engine.transactions import Transactions
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.values.rows import TICKS_PER_MS
from tablegate.gateway.store.store import Store


class Attempt(NamedTuple):
    """One attempt to run a command. `now` is in ticks since 1970."""

    store: Store
    transactions: Transactions
    definer: TableDefiner
    now: int

    @property
    def now_ms(self) -> int:
        return self.now // TICKS_PER_MS


Runner = Callable[[Attempt, Any], Any]
"""Runs a command. Returns its outcome, or raises the errors that it documents, RetryableFailure or CommitInterrupted."""
Runners = Mapping[type[Command[Any]], Runner]
