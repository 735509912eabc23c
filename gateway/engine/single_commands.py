"""Commands with a transaction of their own: definitions, streams, backups, jobs, bulk loads and local transactions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tablegate.gateway.engine.background import job_runner
from tablegate.gateway.engine.backups import restoring
from tablegate.gateway.engine.replication import replication
from tablegate.gateway.engine.rows import loading, local_transactions
from tablegate.gateway.engine.search import search_definitions
from tablegate.gateway.engine.streams import following, streaming, tunnels
from tablegate.gateway.engine.tables import table_copies
from tablegate.gateway.engine.tables.table_definitions import TableDefiner
from tablegate.gateway.engine.transactions import Transactions
from tablegate.gateway.model.commands import (
    job_commands,
    row_commands,
    stream_commands,
    transaction_commands,
)
from tablegate.gateway.model.commands.account_commands import AccountCommand
from tablegate.gateway.model.commands.backup_commands import BackupCommand
from tablegate.gateway.model.commands.commands import DefinitionCommand, SingleCommand
from tablegate.gateway.model.commands.job_commands import JobCommand
from tablegate.gateway.model.commands.search_commands import SearchCommand
from tablegate.gateway.model.commands.snapshot_commands import SnapshotCommand
from tablegate.gateway.model.commands.stream_commands import StreamCommand
from tablegate.gateway.model.commands.table_commands import FindTable, TableCommand
from tablegate.gateway.model.commands.transaction_commands import TransactionCommand
from tablegate.gateway.model.commands.tunnel_commands import TunnelCommand
from tablegate.gateway.model.errors import GatewayError, StaleTable
from tablegate.gateway.store.sql.databases import RetryableFailure
from tablegate.gateway.store.store import Store


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
        if isinstance(command, TransactionCommand):
            return self._transact(command)
        return self._transactions.with_retries(self._define, command)

    def find_tables(self, commands: Sequence[FindTable]) -> list[Any]:
        """Return the table of each command, or its GatewayError."""
        now_ms = self._now() // 1_000_000
        answer = self._transactions.with_retries(self._definer.find_all, commands, now_ms)
        return [answer] * len(commands) if isinstance(answer, GatewayError) else answer

    def _define(self, command: DefinitionCommand) -> Any:
        """Return the outcome of one attempt. Raises GatewayError, RetryableFailure."""
        now_ns = self._now()
        now, now_ms = now_ns // 100, now_ns // 1_000_000
        if isinstance(command, TableCommand | AccountCommand):
            return self._definer.run(command, now_ms)
        if isinstance(command, StreamCommand):
            return self._run_on_streams(command, now_ms)
        if isinstance(command, SearchCommand):
            return search_definitions.run(self._store, self._definer, command, now_ms)
        if isinstance(command, SnapshotCommand):
            return table_copies.run(self._store, self._definer, command, now_ms)
        if isinstance(command, BackupCommand):
            return restoring.run(self._store, self._definer, command, now)
        if isinstance(command, JobCommand):
            if isinstance(command, job_commands.AdvanceJob):
                return self._advance(command)
            return job_runner.run(self._store, self._definer, command, now)
        if isinstance(command, TunnelCommand):
            return tunnels.run(self._store, self._definer, command, now_ms)
        return replication.run(self._store, self._definer, command, now_ms)

    def _run_on_streams(self, command: StreamCommand, now_ms: int) -> Any:
        match command:
            case stream_commands.Reshard():
                return streaming.reshard(self._store, command, now_ms)
            case stream_commands.Follow():
                return following.follow(self._store, self._definer, command, now_ms)
            case stream_commands.Unfollow():
                return following.unfollow(self._store, command, now_ms)
            case stream_commands.ListFollowers():
                return following.targets(self._store, command)
            case _:
                return streaming.read(self._store, command)

    def _advance(self, command: job_commands.AdvanceJob) -> Any:
        step = job_runner.JobStep(self._store, self._definer, command, self._now() // 100)
        self._transactions.run_transaction(step.run)
        return step.outcome

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
