"""The SQL of PostgreSQL with Citus, where plain SQL is refused, queries every node, or locks in no fixed order.

A set of rows or keys is split by shard. At a shard that the session reaches directly, the statements are those of plain
PostgreSQL. Others go through Citus, which routes a statement to one node if it has `slot = ?` for each distributed
table, or inserts one row. Such sets are sent as rows of VALUES, which Citus splits by node, or as one pipelined
statement for each member, because Citus would send arrays to all nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, cast

import psycopg

from tablegate.gateway.model.values.keys import slot_of
from tablegate.gateway.store.postgresql.database import PostgresSession
from tablegate.gateway.store.postgresql.statements import (
    LOCK_VERSIONS,
    TRANSACTION_ID,
    PostgreSQLStatements,
    columns_of,
)
from tablegate.gateway.store.rows import rows
from tablegate.gateway.store.sql.checksums import ROW_WIDTH
from tablegate.gateway.store.sql.databases import Key, KeyOccupied, Pending, Row, Session
from tablegate.gateway.store.tables import index_kinds

# Index of the slot in a row, an entry or a key: table or index, partition, sort, slot.
SLOT = 3

# Locks the copies of the table rows on the node of `slot`. An exclusive lock updates every node's copy. No row has the
# id 0, so the join yields nothing and only selects the node.
_LOCK_VERSIONS = """
SELECT t.id, t.version FROM tables t LEFT JOIN rows r ON r.table_id = 0 AND r.slot = ?
WHERE t.id = ANY(?::bigint[]) FOR SHARE OF t"""

_VERSIONS = "SELECT id, version FROM tables WHERE id = ANY(?::bigint[])"

_PREPARED = "SELECT transaction::text FROM pg_prepared_xacts WHERE database = current_database()"

# For each row that has its version: the last transaction that locked or replaced it, finished or not.
_LATER_CHANGES = """
SELECT s.xmax::text FROM unnest((SELECT ?::bigint[]), ?::bytea[], ?::bytea[], ?::smallint[], ?::bigint[])
    AS k(table_id, partition, sort, slot, modified_at)
JOIN rows s ON s.table_id = k.table_id AND s.partition = k.partition AND s.sort = k.sort AND s.slot = k.slot
    AND s.modified_at = k.modified_at"""

_CLAIM = """
INSERT INTO rows (table_id, partition, sort, slot, modified_at, size_bytes) VALUES (?, ?, ?, ?, 0, 0)
ON CONFLICT (table_id, partition, sort, slot) DO UPDATE SET size_bytes = 0 WHERE false"""


Part = tuple[Session | None, list[int]]
"""Some members of a set, by index, and the session of their shard, or None if they go through Citus."""


class DistributedStatements(PostgreSQLStatements):
    """The SQL of Citus. Statements documents the methods."""

    joins_entries = False
    # The table's row is on every node, so an exclusive lock on it is a transaction of all nodes.
    guards_partitions = True

    def versions(
        self, session: Session, table_ids: Sequence[int], lock: bool, near: bytes
    ) -> Pending[list[Row]]:
        if not lock:
            return session.ask(_VERSIONS, (table_ids,))
        answer_of_node = cast("DistributedSession", session).query_local(LOCK_VERSIONS, (table_ids,))
        if answer_of_node is not None:
            return answer_of_node
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

    def claim_rows(self, session: Session, keys: Sequence[Key]) -> None:
        for shard, part in _split(session, keys):
            if shard is not None:
                super().claim_rows(shard, part)
            else:
                _send_together(session, _CLAIM, part)

    def fetch_rows(self, session: Session, keys: Sequence[Key]) -> Pending[list[tuple[int, Row]]]:
        answers: list[tuple[list[int], Pending[list[tuple[int, Row]]]]] = []
        for shard, indexes in cast("DistributedSession", session).split(keys):
            part = [keys[at] for at in indexes]
            answer = _fetch_each(session, part) if shard is None else super().fetch_rows(shard, part)
            answers.append((indexes, answer))
        return lambda: [(indexes[at], columns) for indexes, answer in answers for at, columns in answer()]

    def look_up_rows(self, session: Session, keys: Sequence[Key]) -> Pending[list[tuple[int, Row]]]:
        answers: list[tuple[list[int], Pending[list[tuple[int, Row]]]]] = []
        for shard, indexes in cast("DistributedSession", session).split(keys):
            part = [keys[at] for at in indexes]
            answer = _look_up_each(session, part) if shard is None else super().look_up_rows(shard, part)
            answers.append((indexes, answer))

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
        for shard, part in _split(session, versions):
            if shard is None:
                return False
            answers.append((shard.ask(_PREPARED), shard.ask(_LATER_CHANGES, columns_of(part))))
        number = 0
        for prepared, later_changes in answers:
            transaction_ids = set(prepared())
            for transaction_id in later_changes():
                if transaction_id in transaction_ids:
                    return False
                number += 1
        return number == len(versions)

    def save_rows(self, session: Session, rows_to_save: Sequence[Row]) -> None:
        for shard, part in _split(session, rows_to_save):
            if shard is not None:
                super().save_rows(shard, part)
            else:
                _send_each(session, rows.SAVE, part)

    def load_rows(self, session: Session, rows_to_load: Sequence[Row]) -> None:
        try:
            super().load_rows(session, rows_to_load)
        except psycopg.errors.InternalError_:
            # Errors of another node during COPY have no code. If this is another error, it is raised again when the
            # rows are written one by one.
            raise KeyOccupied from None

    def remove_rows(self, session: Session, keys: Sequence[Key], claims: Sequence[Key]) -> None:
        for shard, part in _split(session, [*keys, *claims]):
            if shard is not None:
                super().remove_rows(shard, part, ())
            else:
                _send_each(session, rows.REMOVE, part)

    def remove_unchanged_rows(self, session: Session, versions: Sequence[Row]) -> int:
        numbers = [session.send(rows.REMOVE_UNCHANGED, version) for version in versions]
        return sum(number() for number in numbers)

    def page_count(self, session: Session, table: str) -> int:
        return 0  # each shard has its own pages

    def add_entries(self, session: Session, entries_to_add: Sequence[Row]) -> None:
        for shard, part in _split(session, entries_to_add):
            if shard is not None:
                super().add_entries(shard, part)
            else:
                _send_together(session, index_kinds.ADD_ENTRY, part)

    def remove_entries(self, session: Session, keys: Sequence[Key]) -> None:
        for shard, part in _split(session, keys):
            if shard is not None:
                super().remove_entries(shard, part)
            else:
                _send_each(session, index_kinds.REMOVE_ENTRY, part)


class DistributedSession(PostgresSession):
    """A pipeline to one node, through which Citus reaches the others. Subclasses reach some directly."""

    statements = DistributedStatements()

    def split(self, sets: Sequence[Sequence[Any]]) -> list[Part]:
        """Split rows or keys into parts for one statement each, all in the common lock order."""
        return [(None, sorted(range(len(sets)), key=lambda at: by_slot(sets[at])))]

    def query_local(self, statement: str, parameters: Sequence[Any]) -> Pending[list[Row]] | None:
        """Query this node's copy of a reference table. None if the node is unknown."""
        return None


_NO_ROW = (None,) * ROW_WIDTH


def by_slot(row_or_key: Sequence[Any]) -> tuple[Any, ...]:
    """Return the sort key for locks: slot first, so that the rows of a node are together."""
    return row_or_key[SLOT], *row_or_key[:SLOT]


def _split(session: Session, sets: Sequence[Row]) -> Iterator[tuple[Session | None, list[Row]]]:
    for shard, indexes in cast("DistributedSession", session).split(sets):
        yield shard, [sets[at] for at in indexes]


def _fetch_each(session: Session, keys: Sequence[Key]) -> Pending[list[tuple[int, Row]]]:
    answers = [session.ask(rows.GET, key) for key in keys]
    return lambda: [
        (at, columns)
        for at, answer in enumerate(answers)
        for columns in answer()
        if columns[ROW_WIDTH - 1] is not None
    ]


def _look_up_each(session: Session, keys: Sequence[Key]) -> Pending[list[tuple[int, Row]]]:
    answer = _fetch_each(session, keys)
    # After the rows: a version that is unchanged now was the same while they were read.
    version_answer = session.ask(_VERSIONS, (sorted({key[0] for key in keys}),))

    def rows_with_versions() -> list[tuple[int, Row]]:
        rows_by_index = dict(answer())
        versions: dict[int, int] = dict(version_answer())
        return [
            (at, (*rows_by_index.get(at, _NO_ROW)[:ROW_WIDTH], versions[key[0]]))
            for at, key in enumerate(keys)
            if key[0] in versions
        ]

    return rows_with_versions


def _send_each(session: Session, of_one: str, sets: Sequence[Sequence[Any]]) -> None:
    for values in sets:
        session.send(of_one, values)


def _send_together(session: Session, of_one: str, sets: Sequence[Sequence[Any]]) -> None:
    session.send(_insert_of_many(of_one, len(sets)), [value for values in sets for value in values])


@lru_cache(maxsize=1024)
def _insert_of_many(of_one: str, number: int) -> str:
    head, values, tail = of_one.partition("VALUES ")
    row, closing, end = tail.partition(")")
    return head + values + ", ".join([row + closing] * number) + end
