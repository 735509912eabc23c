"""The SQL of PostgreSQL with Citus, where plain SQL is refused, queries every node, or locks in no fixed order.

A set of rows or keys is split by shard (DistributedSession.split). At a shard that the session reaches directly, the
statements are those of plain PostgreSQL. Others go through Citus, a statement for each member, because Citus would send
arrays to all nodes. It routes a statement to one node if it has `slot = ?` for each distributed table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import psycopg

from tablegate.gateway.model.values.keys import slot_of
from tablegate.gateway.store.postgresql.database import PostgresSession
from tablegate.gateway.store.postgresql.statements import (
    LOCK_VERSIONS,
    NUMBERS,
    TRANSACTION_ID,
    VERSIONS,
    PostgreSQLStatements,
    columns_of,
)
from tablegate.gateway.store.rows import rows
from tablegate.gateway.store.sql.checksums import ROW_WIDTH
from tablegate.gateway.store.sql.databases import Key, KeyOccupied, Pending, Row, Session

# Up to this number of members of a shard cost less as statements than as arrays.
_FEW = 3
# Index of the slot in a row, an entry or a key: table or index, partition, sort, slot.
SLOT = 3

# Locks the copies of the table rows on the node of `slot`. An exclusive lock updates every node's copy. No row has the
# id 0, so the join yields nothing and only selects the node.
_LOCK_VERSIONS = f"""
SELECT t.id, t.version FROM tables t LEFT JOIN rows r ON r.table_id = 0 AND r.slot = ?
WHERE t.id = {NUMBERS} FOR SHARE OF t"""

_PREPARED = "SELECT transaction::text FROM pg_prepared_xacts WHERE database = current_database()"

# For each row that has its version: the last transaction that locked or replaced it, finished or not.
_LATER_CHANGES = """
SELECT s.xmax::text FROM unnest((SELECT ?::bigint[]), ?::bytea[], ?::bytea[], ?::smallint[], ?::bigint[])
    AS k(table_id, partition, sort, slot, modified_at)
JOIN rows s ON s.table_id = k.table_id AND s.partition = k.partition AND s.sort = k.sort AND s.slot = k.slot
    AND s.modified_at = k.modified_at"""

Part = tuple[Session, list[int]]
"""A session for some members of a set, and their indexes."""


class DistributedStatements(PostgreSQLStatements):
    """The SQL of Citus. Statements documents the methods."""

    joins_entries = False
    # The table's row is on every node, so an exclusive lock on it is a transaction of all nodes.
    guards_partitions = True

    def versions(
        self, session: Session, table_ids: Sequence[int], lock: bool, near: bytes
    ) -> Pending[list[Row]]:
        statement = LOCK_VERSIONS if lock else VERSIONS
        answer_of_node = cast("DistributedSession", session).query_copy(statement, (table_ids,), near)
        if answer_of_node is not None:
            return answer_of_node
        if not lock:
            return session.ask(VERSIONS, (table_ids,))
        # A separate statement, because the id is that of the entered node and the lock may be on another.
        ask_id = session.ask(f"SELECT {TRANSACTION_ID}")
        answer = session.ask(_LOCK_VERSIONS, (slot_of(near), table_ids))

        def versions() -> list[Row]:
            rows = answer()
            [(transaction_id,)] = ask_id()
            return [(*columns, transaction_id) for columns in rows]

        return versions

    def lock_rows(self, session: Session, table: str, column: str, row_ids: Sequence[int]) -> None:
        # Citus serializes changes to reference tables, so the order does not matter.
        condition, parameters = self.one_of(column, row_ids)
        session.send(f"UPDATE {table} SET {column} = {column} WHERE {condition}", parameters)

    def fetch_rows(self, session: Session, keys: Sequence[Key]) -> Pending[list[tuple[int, Row]]]:
        answers = [
            (indexes, super(DistributedStatements, self).fetch_rows(shard, [keys[at] for at in indexes]))
            for shard, indexes in _statements_of(session, keys)
        ]
        return lambda: [(indexes[at], columns) for indexes, answer in answers for at, columns in answer()]

    def look_up_rows(self, session: Session, keys: Sequence[Key]) -> Pending[list[tuple[int, Row]]]:
        answers = [
            (indexes, super(DistributedStatements, self).look_up_rows(shard, [keys[at] for at in indexes]))
            for shard, indexes in _statements_of(session, keys)
        ]

        def rows_with_versions() -> list[tuple[int, Row]]:
            found = [(indexes[at], columns) for indexes, answer in answers for at, columns in answer()]
            # A change of a table reaches one node after the other. Until all have it, the version is unknown.
            versions: dict[int, set[int]] = {}
            for at, columns in found:
                versions.setdefault(keys[at][0], set()).add(columns[ROW_WIDTH])
            return [(at, columns) for at, columns in found if len(versions[keys[at][0]]) == 1]

        return rows_with_versions

    def are_unchanged(self, session: Session, versions: Sequence[Row]) -> bool:
        """Verify that each row still has its version, and that no prepared transaction has changed one.

        So every row was valid from its first reading to the second. If a transaction of several nodes has committed at
        one of them in between, then at the others it is prepared, or its changes are visible. Its prepared
        transactions are therefore listed before the rows are read again.
        """
        answers = []
        for shard, indexes in _parts(session, versions):
            if shard is session:
                return False  # through Citus, which can send the two statements to different nodes
            part = columns_of([versions[at] for at in indexes])
            answers.append((shard.ask(_PREPARED), shard.ask(_LATER_CHANGES, part)))
        number = 0
        for prepared, later_changes in answers:
            transaction_ids = set(prepared())
            for transaction_id in later_changes():
                if transaction_id in transaction_ids:
                    return False
                number += 1
        return number == len(versions)

    def load_rows(self, session: Session, rows_to_load: Sequence[Row]) -> None:
        try:
            super().load_rows(session, rows_to_load)
        except psycopg.errors.InternalError_:
            # Errors of another node during COPY have no code. If this is another error, it is raised again when the
            # rows are written one by one.
            raise KeyOccupied from None

    def remove_unchanged_rows(self, session: Session, versions: Sequence[Row]) -> int:
        numbers = [session.send(rows.REMOVE_UNCHANGED, version) for version in versions]
        return sum(number() for number in numbers)

    def page_count(self, session: Session, table: str) -> int:
        return 0  # each shard has its own pages

    def _send_set(self, session: Session, of_one: str, of_many: str, sets: Sequence[tuple[Any, ...]]) -> None:
        for shard, indexes in _statements_of(session, sets):
            super()._send_set(shard, of_one, of_many, [sets[at] for at in indexes])


class DistributedSession(PostgresSession):
    """A pipeline to one node, through which Citus reaches the others. Subclasses reach some directly."""

    statements = DistributedStatements()

    def split(self, sets: Sequence[Sequence[Any]]) -> Iterator[Part]:
        """Split rows or keys into parts for one statement each, all in the common lock order."""
        for at in sorted(range(len(sets)), key=lambda at: by_slot(sets[at])):
            yield self, [at]

    def query_copy(self, statement: str, parameters: Sequence[Any], near: bytes) -> Pending[list[Row]] | None:
        """Query a node's copy of a reference table: at the entered node, or near a partition. None if it is unknown."""
        return None


def by_slot(row_or_key: Sequence[Any]) -> tuple[Any, ...]:
    """Return the sort key for locks: slot first, so that the rows of a node are together."""
    return row_or_key[SLOT], *row_or_key[:SLOT]


def _parts(session: Session, sets: Sequence[Sequence[Any]]) -> Iterator[Part]:
    return cast("DistributedSession", session).split(sets)


def _statements_of(session: Session, sets: Sequence[Sequence[Any]]) -> Iterator[Part]:
    """Split into parts for one statement each."""
    for shard, indexes in _parts(session, sets):
        if len(indexes) > _FEW:
            yield shard, indexes
        else:
            yield from ((shard, [at]) for at in indexes)
