"""Commands that run by themselves: definitions, streams, backups, jobs, bulk loads and local transactions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_never

from tablegate.gateway.engine.background import working
from tablegate.gateway.engine.backups import restoring
from tablegate.gateway.engine.replication import replicating
from tablegate.gateway.engine.rows import loading, local_transactions
from tablegate.gateway.engine.streams import following, streaming
from tablegate.gateway.engine.tables import duplicating
from tablegate.gateway.engine.tables.defining import Definer
from tablegate.gateway.engine.transactions import Transactions
from tablegate.gateway.model.commands import commands as c
from tablegate.gateway.model.commands.commands import DefinitionCommand, SingleCommand
from tablegate.gateway.model.errors import GatewayError, StaleTable
from tablegate.gateway.model.values.rows import TICKS_PER_MS
from tablegate.gateway.store.sql.databases import Retry
from tablegate.gateway.store.store import Store


class SingleCommands:
    """Runs each of these commands in a transaction of its own. `now` gives nanoseconds since 1970."""

    def __init__(
        self, store: Store, transactions: Transactions, definer: Definer, now: Callable[[], int]
    ) -> None:
        self._store = store
        self._transactions = transactions
        self._definer = definer
        self._now = now

    def run(self, command: SingleCommand) -> Any:
        """Return the outcome of a command that runs by itself."""
        match command:
            case c.Load():
                return self._load(command)
            case (
                c.BeginTransaction() | c.Stage() | c.FindTransaction() | c.CommitTransaction() | c.AbortTransaction()
            ):  # fmt: skip
                return self._transact(command)
            case _:
                return self._transactions.with_retries(self._define, command)

    def _define(self, command: DefinitionCommand) -> Any:
        """Return the outcome of one attempt. Raises GatewayError, Retry."""
        store, definer = self._store, self._definer
        now = self._now() // 100
        now_ms = now // TICKS_PER_MS
        match command:
            case (
                c.FindTable() | c.ListTables() | c.CreateTable() | c.AlterTable() | c.DropTable() | c.CountRows()
                | c.GetProperties() | c.PutProperties()
            ):  # fmt: skip
                return definer.run(command, now_ms)
            case c.FindPosition() | c.FindStream() | c.ListShards() | c.ListStreams() | c.ReadChanges():
                return streaming.read(store, command)
            case c.Reshard():
                return streaming.reshard(store, command, now_ms)
            case c.Follow() | c.Unfollow() | c.ListFollowers() | c.AddReplicas() | c.RemoveReplicas():
                return self._depend(command, now_ms)
            case c.ResetTables():
                return duplicating.reset(store, definer, command, now_ms)
            case c.CopyTables():
                return duplicating.copy(store, definer, command, now_ms)
            case c.DescribeTables(namespace):
                return duplicating.described(store, namespace)
            case c.ListNamespaces(prefix):
                return duplicating.namespaces(store, prefix)
            case c.ImportDefinition():
                return duplicating.import_definition(store, definer, command, now_ms)
            case c.ImportRows():
                return duplicating.import_rows(store, command)
            case c.CreateBackup() | c.DeleteBackup() | c.KeepHistory() | c.ListBackups() | c.RestoreTable():
                return restoring.run(store, definer, command, now)
            case c.CancelJob() | c.ListJobs() | c.ListUnfinishedJobs() | c.StartJob():
                return working.run(store, definer, command, now)
            case c.AdvanceJob():
                return self._advance(command)
        assert_never(command)

    def _depend(
        self, command: c.Follow | c.Unfollow | c.ListFollowers | c.AddReplicas | c.RemoveReplicas, now_ms: int
    ) -> Any:
        """The outcome of a command about followers and replicas."""
        match command:
            case c.Follow():
                return following.follow(self._store, self._definer, command, now_ms)
            case c.Unfollow():
                return following.unfollow(self._store, command, now_ms)
            case c.ListFollowers():
                return following.targets(self._store, command)
            case c.AddReplicas():
                return replicating.add(self._store, self._definer, command, now_ms)
            case c.RemoveReplicas():
                return replicating.remove(self._store, self._definer, command, now_ms)

    def _advance(self, command: c.AdvanceJob) -> Any:
        step = working.Step(self._store, self._definer, command, self._now() // 100)
        self._transactions.carry_out(step.run)
        return step.outcome

    def _transact(self, command: c.TransactionCommand) -> Any:
        """The outcome of a command of local transactions."""
        with_retries, store = self._transactions.with_retries, self._store
        now_ms = self._now() // 1_000_000
        match command:
            case c.BeginTransaction():
                return with_retries(local_transactions.begin, store, command, now_ms)
            case c.Stage():
                return with_retries(lambda: local_transactions.stage(store, command, self._now() // 100))
            case c.FindTransaction(transaction):
                return with_retries(local_transactions.held_by, store, transaction, now_ms)
            case c.AbortTransaction():
                return with_retries(local_transactions.end, store, command, now_ms)
            case c.CommitTransaction(transaction):
                answer = with_retries(self._commit, transaction, now_ms)
        return answer if isinstance(answer, GatewayError) else None

    def _commit(self, transaction: str, now_ms: int) -> Any:
        """One attempt to commit a local transaction: its outcomes or its error. Raises Retry, TransactionMissing; each attempt
        reads anew what is staged, which may have grown."""
        [answer] = self._transactions.write_once(
            [local_transactions.commit_group(self._store, transaction, now_ms)]
        )
        if isinstance(answer, StaleTable):
            raise Retry("the table changed under a transaction that is being committed")
        return answer

    def _load(self, command: c.Load) -> GatewayError | None:
        loaded = self._transactions.with_retries(lambda: self._load_once(command))
        if loaded is not False:
            return loaded if isinstance(loaded, GatewayError) else None
        [answer] = self._transactions.write([loading.puts_of(command)])
        return answer if isinstance(answer, GatewayError) else None

    def _load_once(self, command: c.Load) -> bool:
        is_loaded = True

        def load() -> None:
            nonlocal is_loaded
            is_loaded = loading.load(self._store, command, self._now() // 100)

        self._transactions.carry_out(load)
        return is_loaded
