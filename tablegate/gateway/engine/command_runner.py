"""Commands with a transaction of their own, and the functions of those about tables and accounts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tablegate.gateway.engine.attempts import Attempt, Runner, Runners
from tablegate.gateway.engine.installation import FunctionsOfCommands, Installation
from tablegate.gateway.engine.rows import loading
from tablegate.gateway.engine.streams import following
from tablegate.gateway.engine.tables import row_counting
from tablegate.gateway.engine.tables.table_definitions import TableDefiner
from tablegate.gateway.engine.transactions import Transactions
from tablegate.gateway.model.commands import table_commands
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.commands.table_commands import GetProperties, PutProperties
from tablegate.gateway.model.errors import GatewayError
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.store import accounts
from tablegate.gateway.store.store import Store


def _get_properties(attempt: Attempt, command: GetProperties) -> dict[str, Any] | None:
    with attempt.store.read() as session:
        return accounts.find_document(session, command.namespace, command.name)


def _put_properties(attempt: Attempt, command: PutProperties) -> None:
    with attempt.store.write() as session:
        accounts.keep_document(session, command.namespace, command.name, command.document)


def _find(attempt: Attempt, command: table_commands.FindTable) -> Table | GatewayError:
    return attempt.definer.find_all([command], attempt.now_ms)[0]


def _alter(attempt: Attempt, command: table_commands.AlterTable) -> Table:
    return attempt.definer.alter_all([command], attempt.now_ms)[0]


def _alter_all(attempt: Attempt, command: table_commands.AlterTables) -> tuple[Table, ...]:
    return attempt.definer.alter_all(command.alterations, attempt.now_ms)


def _count(attempt: Attempt, command: table_commands.CountRows) -> table_commands.TableStatistics:
    return row_counting.statistics(attempt.store, command.table, attempt.now_ms, command.again)


def _defined(method: Callable[[TableDefiner, Any, int], Any]) -> Runner:
    return lambda attempt, command: method(attempt.definer, command, attempt.now_ms)


COMMANDS: Runners = {
    table_commands.FindTable: _find,
    table_commands.ListTables: _defined(TableDefiner.list_tables),
    table_commands.CreateTable: _defined(TableDefiner.create),
    table_commands.AlterTable: _alter,
    table_commands.AlterTables: _alter_all,
    table_commands.DropTable: _defined(TableDefiner.drop_table),
    table_commands.CountRows: _count,
    GetProperties: _get_properties,
    PutProperties: _put_properties,
}


class CommandRunner:
    """Runs each command in a transaction of its own. `now` returns nanoseconds since 1970."""

    def __init__(
        self,
        store: Store,
        transactions: Transactions,
        definer: TableDefiner,
        now: Callable[[], int],
        installation: Installation,
    ) -> None:
        self._store = store
        self._transactions = transactions
        self._definer = definer
        self._now = now
        self.runners: FunctionsOfCommands[Runner] = FunctionsOfCommands(
            installation, {**COMMANDS, **loading.COMMANDS, **following.COMMANDS}
        )
        """The function of each type of command, to which capabilities add theirs."""

    def run(self, command: Command[Any]) -> Any:
        """Run a command and return its outcome or its GatewayError."""
        return self._transactions.with_retries(self._run_once, command)

    def _run_once(self, command: Command[Any]) -> Any:
        attempt = Attempt(self._store, self._transactions, self._definer, self._now() // 100)
        return self.runners[type(command)](attempt, command)

    def find_tables(self, commands: Sequence[table_commands.FindTable]) -> list[Any]:
        """Return the table of each command, or its GatewayError."""
        now_ms = self._now() // 1_000_000
        answer = self._transactions.with_retries(self._definer.find_all, commands, now_ms)
        return [answer] * len(commands) if isinstance(answer, GatewayError) else answer
