"""Commands for the replicas of a global table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tablegate.gateway.model.authorization.accesses import Access, on_table
from tablegate.gateway.model.authorization.permissions import Permission, Purpose
from tablegate.gateway.model.authorization.quotas import TableLimit
from tablegate.gateway.model.commands.command import ControlCommand
from tablegate.gateway.model.commands.table_commands import AlterTable, CreateTable
from tablegate.gateway.model.tables.tables import Table


@dataclass(frozen=True, slots=True)
class NewReplica:
    """A replica to create, and its name within the group of replicas."""

    name: str
    definition: CreateTable


@dataclass(frozen=True, slots=True)
class AddReplicas(ControlCommand[Table]):
    """Create replicas of a table. Each then follows the changes of the others. Outcome: the Table.

    - `name`: the name of the table itself within the group.
    - `strong`, `witness`: as in ReplicationRule.
    - `alterations`: changes of the existing replicas in the same transaction.
    Errors: StaleTable, TableExists, TableBusy.
    """

    table: Table
    name: str
    replicas: tuple[NewReplica, ...]
    strong: bool = False
    witness: str = ""
    alterations: tuple[AlterTable, ...] = ()

    def accesses(self, purpose: Purpose) -> Iterable[Access]:
        yield on_table(self, self.table, Permission.ALTER, purpose)
        for command in (*self.alterations, *(replica.definition for replica in self.replicas)):
            yield from command.accesses(purpose)

    def with_bounds(self, bounds: tuple[TableLimit, ...]) -> AddReplicas:
        replicas = [
            replace(replica, definition=replica.definition.with_bounds(bounds)) for replica in self.replicas
        ]
        return replace(self, replicas=tuple(replicas))


@dataclass(frozen=True, slots=True)
class RemoveReplicas(ControlCommand[Table]):
    """Drop replicas of a table by name. Outcome: the Table. Error: StaleTable.

    `keeps`: only detach them. `alterations`: changes of the remaining replicas in the same transaction.
    """

    table: Table
    names: tuple[str, ...]
    keeps: bool = False
    alterations: tuple[AlterTable, ...] = ()

    def accesses(self, purpose: Purpose) -> Iterable[Access]:
        """Return the accesses to the remaining table and, under the same name, to the dropped ones.

        All replicas have the same table name, and their namespaces belong to one account.
        """
        yield on_table(self, self.table, Permission.ALTER, purpose)
        for alteration in self.alterations:
            yield from alteration.accesses(purpose)
        if not self.keeps:
            yield on_table(self, self.table, Permission.DROP, purpose)
