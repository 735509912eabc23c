"""Commands with a transaction of their own: definitions, streams, backups, jobs, bulk loads and local transactions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tablegate.gateway.engine.background import job_runner
from tablegate.gateway.engine.backups import restoring
from tablegate.gateway.engine.replication import replication
from tablegate.gateway.engine.rows import loading, local_transactions
from tablegate.gateway.engine.search import search_definitions
from tablegate.gateway.engine.streams import following, tunnels
from tablegate.gateway.engine.tables import table_copies
from tablegate.gateway.engine.tables.table_definitions import TableDefiner
from tablegate.gateway.engine.transactions import Transactions
from tablegate.gateway.model.commands import job_commands, row_commands, transaction_commands
from tablegate.gateway.model.commands.account_commands import AccountCommand
from tablegate.gateway.model.commands.commands import DefinitionCommand, SingleCommand
from tablegate.gateway.model.commands.table_commands import FindTable, TableCommand
from tablegate.gateway.model.errors import GatewayError, StaleTable
from tablegate.gateway.model.values.rows import TICKS_PER_MS
from tablegate.gateway.store.sql.databases import RetryableFailure
from tablegate.gateway.store.store import Store

RUNS: Mapping[type, Callable[[Store, TableDefiner, Any, int], Any]] = {
    command: module.run
    for module in (following, job_runner, replication, restoring, search_definitions, table_copies, tunnels)
    for command in module.COMMANDS
}
"""The function of each type of command, except those of `TableDefiner.run`. Its last argument is the time in ticks since
1970."""


class SingleCommands:
    """Runs each command in a transaction of its own. `now` returns nanoseconds since 1970."""

    def __init__(
        self, store: Store, transactions: Transactions, definer: TableDefiner, now: Callable[[], int]
    ) -> None:
        self._store = store
        self._transactions = transactions
        self._definer = definer
        self._now = now

    def run(self, command: SingleCommand) -> Any:
        """Run a command and return its outcome."""
        if isinstance(command, row_commands.BulkLoad):
            return self._load(command)
        if isinstance(command, transaction_commands.TransactionCommand):
            return self._transact(command)
        return self._transactions.with_retries(self._define, command)

    def find_tables(self, commands: Sequence[FindTable]) -> list[Any]:
        """Return the table of each command, or its GatewayError."""
        now_ms = self._now() // 1_000_000
        answer = self._transactions.with_retries(self._definer.find_all, commands, now_ms)
        return [answer] * len(commands) if isinstance(answer, GatewayError) else answer

    def _define(self, command: DefinitionCommand) -> Any:
        """Return the outcome of one attempt. Raises GatewayError, RetryableFailure."""
        now = self._now() // 100
        if isinstance(command, job_commands.AdvanceJob):
            step = job_runner.JobStep(self._store, self._definer, command, now)
            self._transactions.run_transaction(step.run)
            return step.outcome
        if isinstance(command, TableCommand | AccountCommand):
            return self._definer.run(command, now // TICKS_PER_MS)
        return RUNS[type(command)](self._store, self._definer, command, now)

    def _transact(self, command: transaction_commands.TransactionCommand) -> Any:
        with_retries, store = self._transactions.with_retries, self._store
        now_ms = self._now() // 1_000_000
        match command:
            case transaction_commands.BeginTransaction():
                return with_retries(local_transactions.begin, store, command, now_ms)
            case transaction_commands.StageWrites():
                return with_retries(lambda: local_transactions.stage(store, command, self._now() // 100))
            case transaction_commands.FindTransaction(transaction):
                return with_retries(local_transactions.find_locked_partition, store, transaction, now_ms)
            case transaction_commands.AbortTransaction():
                return with_retries(local_transactions.end, store, command, now_ms)
            case transaction_commands.CommitTransaction(transaction):
                answer = with_retries(self._commit, transaction, now_ms)
        return answer if isinstance(answer, GatewayError) else None

    def _commit(self, transaction: str, now_ms: int) -> Any:
        """Make one attempt to commit a local transaction, and return its outcomes or its error.

        Each attempt reads the staged writes again, as more may have been added. Raises RetryableFailure,
        TransactionMissing.
        """
        [answer] = self._transactions.write_once(
            [local_transactions.commit_group(self._store, transaction, now_ms)]
        )
        if isinstance(answer, StaleTable):
            raise RetryableFailure("the table changed during the commit of a local transaction")
        return answer

    def _load(self, command: row_commands.BulkLoad) -> GatewayError | None:
        result = self._transactions.with_retries(lambda: self._load_once(command))
        if result is not False:
            return result if isinstance(result, GatewayError) else None
        [answer] = self._transactions.write([loading.puts_of(command)])
        return answer if isinstance(answer, GatewayError) else None

    def _load_once(self, command: row_commands.BulkLoad) -> bool:
        is_loaded = True

        def load() -> None:
            nonlocal is_loaded
            is_loaded = loading.load(self._store, command, self._now() // 100)

        self._transactions.run_transaction(load)
        return is_loaded
