"""Commands for local transactions: Table Store's transactions on one partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tablegate.gateway.model.commands.command import BaseCommand
from tablegate.gateway.model.commands.row_commands import GroupOutcome, WriteGroup
from tablegate.gateway.model.tables.tables import Table


@dataclass(frozen=True, slots=True)
class BeginTransaction(BaseCommand[None]):
    """Lock a partition of a table for a local transaction. Outcome: None. Errors: PartitionLocked, StaleTable.

    All other writes to the partition fail until the transaction ends or its lifetime is over. The id `transaction` is
    new and unguessable. It ends in four hexadecimal digits, the slot of the partition (model/values/keys.py), which
    locate the transaction.
    """

    table: Table
    partition: bytes
    transaction: str
    lifetime_ms: int


@dataclass(frozen=True, slots=True)
class StageWrites(BaseCommand[list[GroupOutcome]]):
    """Write inside a local transaction. Conditions are evaluated on the rows with its earlier writes applied.

    Outcome: for each group the outcome or error of a WriteGroup, or InvalidInput `other-partition` or `auto-increment`,
    or LimitExceeded `transaction-bytes`. Errors: TransactionMissing, StaleTable.
    """

    transaction: str
    groups: tuple[WriteGroup, ...]
    limit_bytes: int


class LockedPartition(NamedTuple):
    """The partition that a local transaction has locked. `partition`: None if the key is too long to be returned."""

    table: Table
    partition: bytes | None


@dataclass(frozen=True, slots=True)
class FindTransaction(BaseCommand[LockedPartition]):
    """Look up the partition of an open local transaction. Outcome: LockedPartition. Error: TransactionMissing."""

    transaction: str


@dataclass(frozen=True, slots=True)
class CommitTransaction(BaseCommand[None]):
    """Apply the staged writes of a local transaction atomically. Outcome: None. Error: TransactionMissing.

    `locked_partition`: the locked partition, used for authorization. If None, only unrestricted callers may commit.
    """

    transaction: str
    locked_partition: LockedPartition | None = None


@dataclass(frozen=True, slots=True)
class AbortTransaction(BaseCommand[None]):
    """Discard the staged writes of a local transaction. Outcome: None. Error: TransactionMissing.

    `locked_partition`: as in CommitTransaction.
    """

    transaction: str
    locked_partition: LockedPartition | None = None


TransactionCommand = BeginTransaction | StageWrites | FindTransaction | CommitTransaction | AbortTransaction
