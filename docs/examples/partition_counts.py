"""A minimal capability: the number of rows in a partition. docs/contribute/add-a-capability.md explains it."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from tablegate.gateway.engine.engine import Engine, EngineOptions
from tablegate.gateway.model.authorization.accesses import leading_keys
from tablegate.gateway.model.authorization.conditions import ConditionKey, FactValues
from tablegate.gateway.model.authorization.permissions import Permission
from tablegate.gateway.model.authorization.quotas import READ_UNITS, Cost
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.sql.positions import stored_position
from tablegate.gateway.store.store import Store


@dataclass(frozen=True, slots=True)
class CountPartition(Command[int]):
    """Count the rows of a partition, given as the bytes of its key columns. Outcome: the number."""

    table: Table
    partition: bytes

    only_reads = True
    permission = Permission.QUERY
    rate = READ_UNITS

    def fact(self, key: ConditionKey) -> FactValues:
        """Return the partition, for grants of some partitions only."""
        return (
            leading_keys(self.table.key_schema, self.partition) if key is ConditionKey.LEADING_KEYS else None
        )

    def cost(self, outcome: int) -> Cost:
        return Cost(1.0)


def count(store: Store, session: Session, command: CountPartition, now_ms: int) -> Generator[None, None, int]:
    """Count the rows in the snapshot of the session. One slice: an index has the partition."""
    partition, _, slot, _ = stored_position(Position(command.partition, b""))
    [(number,)] = session.query(
        "SELECT count(*) FROM rows WHERE table_id = ? AND partition = ? AND slot = ?",
        (command.table.id, partition, slot),
    )
    yield
    return int(number)


def install(engine: Engine, options: EngineOptions) -> None:
    """Add the command to an engine."""
    engine.register({CountPartition: count})
