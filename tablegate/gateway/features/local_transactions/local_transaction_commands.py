"""Commands for local transactions: Table Store's transactions on one partition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tablegate.gateway.model.authorization.accesses import ANYWHERE, Access, leading_keys, on_table
from tablegate.gateway.model.authorization.conditions import EVERYTHING, ConditionKey, FactValues
from tablegate.gateway.model.authorization.permissions import Permission, Purpose
from tablegate.gateway.model.authorization.quotas import READ_UNITS, WRITE_UNITS, Cost
from tablegate.gateway.model.commands.command import Command, ControlCommand, R
from tablegate.gateway.model.commands.row_commands import GroupOutcome, WriteGroup, cost_of_writes
from tablegate.gateway.model.tables.tables import Table


class LockedPartition(NamedTuple):
    """The partition that a local transaction has locked. `partition`: None if the key is too long to be returned."""

    table: Table
    partition: bytes | None


def _on_locked(
    command: Any, locked: LockedPartition | None, permission: Permission, purpose: Purpose
) -> Access:
    """Return the access of a commit or an abort.

    Writes are authorized when they are staged. Ending needs its own permission, because a known transaction id must not
    be enough to end a transaction on a foreign table or partition.
    """
    if locked is None:
        return Access(permission, purpose.channel, "", ANYWHERE, command)
    return on_table(command, locked.table, permission, purpose)


def _locked_fact(locked: LockedPartition | None, key: ConditionKey) -> FactValues:
    if key is not ConditionKey.LEADING_KEYS:
        return None
    if locked is None or locked.partition is None:
        return EVERYTHING
    return leading_keys(locked.table.key_schema, locked.partition)


@dataclass(frozen=True, slots=True)
class BeginTransaction(ControlCommand[None]):
    """Lock a partition of a table for a local transaction. Outcome: None. Errors: PartitionLocked, StaleTable.

    All other writes to the partition fail until the transaction ends or its lifetime is over. The id `transaction` is
    new and unguessable. It ends in four hexadecimal digits, the slot of the partition (model/values/keys.py), which
    locate the transaction.
    """

    table: Table
    partition: bytes
    transaction: str
    lifetime_ms: int

    permission = Permission.BEGIN

    def fact(self, key: ConditionKey) -> FactValues:
        return _locked_fact(LockedPartition(self.table, self.partition), key)


@dataclass(frozen=True, slots=True)
class StageWrites(Command[list[GroupOutcome]]):
    """Write inside a local transaction. Conditions are evaluated on the rows with its earlier writes applied.

    Outcome: for each group the outcome or error of a WriteGroup, or InvalidInput `other-partition` or `auto-increment`,
    or LimitExceeded `transaction-bytes`. Errors: TransactionMissing, StaleTable.
    """

    transaction: str
    groups: tuple[WriteGroup, ...]
    limit_bytes: int

    rate = WRITE_UNITS

    def accesses(self, purpose: Purpose) -> Iterable[Access]:
        for group in self.groups:
            yield from group.accesses(purpose)

    def min_added_bytes(self) -> int:
        return int(any(group.min_added_bytes() for group in self.groups))

    def cost(self, outcome: list[GroupOutcome]) -> Cost:
        return cost_of_writes([write for answer in outcome if isinstance(answer, list) for write in answer])


@dataclass(frozen=True, slots=True)
class ReadInTransaction(Command[R]):
    """Run a Get or a Read that sees the staged writes of a local transaction. Outcome: that of the read. Error:
    TransactionMissing."""

    transaction: str
    read: Command[R]

    only_reads = True
    is_sliced = True
    rate = READ_UNITS

    @property
    def table(self) -> Table:
        table: Table = self.read.table  # type: ignore[attr-defined]
        return table

    def accesses(self, purpose: Purpose) -> Iterable[Access]:
        return self.read.accesses(purpose)

    def cost(self, outcome: R) -> Cost:
        return self.read.cost(outcome)


@dataclass(frozen=True, slots=True)
class FindTransaction(ControlCommand[LockedPartition]):
    """Look up the partition of an open local transaction. Outcome: LockedPartition. Error: TransactionMissing."""

    transaction: str

    def accesses(self, purpose: Purpose) -> Iterable[Access]:
        """Return none. The transaction is authorized when it ends."""
        return ()


@dataclass(frozen=True, slots=True)
class CommitTransaction(ControlCommand[None]):
    """Apply the staged writes of a local transaction atomically. Outcome: None. Error: TransactionMissing.

    `locked_partition`: the locked partition, used for authorization. If None, only unrestricted callers may commit.
    """

    transaction: str
    locked_partition: LockedPartition | None = None

    def accesses(self, purpose: Purpose) -> Iterable[Access]:
        yield _on_locked(self, self.locked_partition, Permission.COMMIT, purpose)

    def fact(self, key: ConditionKey) -> FactValues:
        return _locked_fact(self.locked_partition, key)


@dataclass(frozen=True, slots=True)
class AbortTransaction(ControlCommand[None]):
    """Discard the staged writes of a local transaction. Outcome: None. Error: TransactionMissing.

    `locked_partition`: as in CommitTransaction.
    """

    transaction: str
    locked_partition: LockedPartition | None = None

    def accesses(self, purpose: Purpose) -> Iterable[Access]:
        yield _on_locked(self, self.locked_partition, Permission.ABORT, purpose)

    def fact(self, key: ConditionKey) -> FactValues:
        return _locked_fact(self.locked_partition, key)
