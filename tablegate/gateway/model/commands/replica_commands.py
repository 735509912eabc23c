"""Commands for the replicas of a global table."""

from __future__ import annotations

from dataclasses import dataclass

from tablegate.gateway.model.commands.command import BaseCommand
from tablegate.gateway.model.commands.table_commands import AlterTable, CreateTable
from tablegate.gateway.model.tables.tables import Table


@dataclass(frozen=True, slots=True)
class NewReplica:
    """A replica to create, and its name within the group of replicas."""

    name: str
    definition: CreateTable


@dataclass(frozen=True, slots=True)
class AddReplicas(BaseCommand[Table]):
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


@dataclass(frozen=True, slots=True)
class RemoveReplicas(BaseCommand[Table]):
    """Drop replicas of a table by name. Outcome: the Table. Error: StaleTable.

    `keeps`: only detach them. `alterations`: changes of the remaining replicas in the same transaction.
    """

    table: Table
    names: tuple[str, ...]
    keeps: bool = False
    alterations: tuple[AlterTable, ...] = ()


ReplicaCommand = AddReplicas | RemoveReplicas
