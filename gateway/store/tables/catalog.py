"""The catalogue: the rows of SQL that define tables and indexes.

A cached descriptor is checked inside the transaction that uses it (`check`): a request about a table that another process
changed or dropped is then parsed again (docs/architecture.md section 4, step 1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import orjson

from tablegate.gateway.model.tables.indexes import Index, IndexView, VectorIndex
from tablegate.gateway.model.tables.tables import State, Table
from tablegate.gateway.store.sql import counters, progress
from tablegate.gateway.store.sql.databases import Pending, Session
from tablegate.gateway.store.tables import descriptors, expiry_backfills, history
from tablegate.gateway.store.tables.descriptor_cache import Cache

_INDEXES = f"SELECT table_id, {descriptors.INDEX_COLUMNS} FROM indexes"
_TABLES_TOGETHER = 500


def _indexes_of(session: Session, table_ids: list[int]) -> tuple[str, Sequence[Any]]:
    """A statement, and its parameters, that gives the indexes of some tables."""
    condition, parameters = session.statements.one_of("table_id", table_ids)
    return f"{_INDEXES} WHERE {condition} ORDER BY id", parameters


class Catalog:
    """Reads and writes descriptors. `views`: dialect -> how it reads the key columns of its indexes."""

    def __init__(self) -> None:
        self.cache = Cache()
        self.views: dict[str, IndexView] = {}

    def with_property(self, session: Session, name: str) -> dict[tuple[str, str], Any]:
        """What the tables have that have something of a property, by namespace and table."""
        found = session.query(
            "SELECT namespace, name, properties FROM tables WHERE properties LIKE ?", (f'%"{name}":%',)
        )
        read = ((namespace, table, orjson.loads(document)) for namespace, table, document in found)
        return {(namespace, table): known[name] for namespace, table, known in read if known.get(name)}

    # Reading

    def find(self, session: Session, namespace: str, name: str, by_azure_name: bool = False) -> Table | None:
        """The table of that name; an Azure name is compared without case."""
        if "\0" in name:  # no name has one, and PostgreSQL takes no text that has
            return None
        column, wanted = ("azure_name_lower", name.lower()) if by_azure_name else ("name", name)
        tables = self._load(session, f"namespace = ? AND {column} = ?", (namespace, wanted))
        return tables[0] if tables else None

    def by_id(self, session: Session, table_id: int) -> Table | None:
        """The table of that id."""
        tables = self._load(session, "id = ?", (table_id,))
        return tables[0] if tables else None

    def all(self, session: Session, where: str = "1 = 1", parameters: Sequence[Any] = ()) -> list[Table]:
        """All tables that meet a condition in SQL, for background work and the command line."""
        return self._load(session, where, parameters)

    def names(self, session: Session) -> frozenset[str]:
        """The names and Azure names of all tables."""
        rows = session.query("SELECT name, azure_name FROM tables")
        return frozenset(name for row in rows for name in row)

    def namespaces(self, session: Session) -> list[str]:
        """The namespaces that have tables, in order."""
        found = session.query("SELECT DISTINCT namespace FROM tables ORDER BY namespace")
        return [namespace for (namespace,) in found]

    def page(
        self, session: Session, namespace: str, after: str, limit: int | None, by_azure_name: bool = False
    ) -> list[Table]:
        """Tables of a namespace in name order, after a name; `limit` at most (None: all)."""
        after = after.partition("\0")[0]  # between the two there is no name
        column, above = ("azure_name_lower", after.lower()) if by_azure_name else ("name", after)
        tail = f" ORDER BY {column}" + (" LIMIT ?" if limit is not None else "")
        parameters: list[Any] = [namespace, above]
        if limit is not None:
            parameters.append(limit)
        return self._load(session, f"namespace = ? AND {column} > ?{tail}", parameters)

    def _load(self, session: Session, where: str, parameters: Sequence[Any]) -> list[Table]:
        found = session.query(f"SELECT {descriptors.TABLE_COLUMNS} FROM tables WHERE {where}", parameters)
        indexes: dict[int, list[tuple[Any, ...]]] = {}
        for at in range(0, len(found), _TABLES_TOGETHER):
            ids = [columns[0] for columns in found[at : at + _TABLES_TOGETHER]]
            for table_id, *index in session.query(*_indexes_of(session, ids)):
                indexes.setdefault(table_id, []).append(tuple(index))
        return [
            descriptors.table_of_columns(columns, indexes.get(columns[0], []), self.views)
            for columns in found
        ]

    def check(
        self, session: Session, tables: Iterable[Table], lock: bool, near: bytes = b""
    ) -> Pending[set[int]]:
        """Return the ids of those tables whose descriptor is out of date. With `lock` none of them can change until the end.
        `near`: a partition that the transaction will write to (Statements.versions). Of a table that is there in two versions
        one is out of date, whichever the database has."""
        expected: dict[int, int] = {}
        several: set[int] = set()
        for table in tables:
            if expected.setdefault(table.id, table.version) != table.version:
                several.add(table.id)
        answer = session.statements.versions(session, sorted(expected), lock, near)

        def outdated() -> set[int]:
            current: set[int] = set()
            for table_id, version, *transaction_id in answer():
                if version == expected[table_id]:
                    current.add(table_id)
                if transaction_id:
                    [session.transaction_id] = transaction_id
            return (expected.keys() - current) | several

        return outdated

    # Writing

    def next_id(self, session: Session) -> int:
        """An id that was never given before, to a table or an index."""
        return self.next_ids(session, 1)[0]

    def next_ids(self, session: Session, number: int) -> range:
        """So many ids that were never given before."""
        last = counters.advance(session, "ids", number) if number else 0
        return range(last - number + 1, last + 1)

    def lock_ids(self, session: Session) -> None:
        """Let no other transaction draw an id until this one ends. So no other makes a table."""
        counters.advance(session, "ids", 0)

    def count(self, session: Session, scope: str, now_ms: int) -> int:
        """The number of tables in a scope (model/authorization/quotas.py) whose names are not free."""
        [(number,)] = session.query(
            "SELECT count(*) FROM tables WHERE (namespace = ? OR (namespace >= ? AND namespace < ?))"
            " AND NOT (state = ? AND busy_until_ms <= ?)",
            # "0" is the character behind "/".
            (scope, f"{scope}/", f"{scope}0", State.DELETING.value, now_ms),
        )
        return int(number)

    def lock(self, session: Session, table_id: int) -> Table | None:
        """The table as it is now, locked against everybody else until the transaction ends."""
        found = self.lock_all(session, [table_id])
        return found[0] if found else None

    def lock_all(self, session: Session, table_ids: Sequence[int]) -> list[Table]:
        """Those of some tables that there are, as `lock` has them, in the order of their ids."""
        condition, parameters = session.statements.one_of("id", table_ids)
        in_order = f"{condition} ORDER BY id"
        session.statements.lock_rows(session, "tables", "id", table_ids)
        return self._load(session, in_order, parameters)

    def azure_name_taken(self, session: Session, namespace: str) -> Callable[[str], bool]:
        """A function that says whether an Azure name, given in lower case, is in use in a namespace."""
        return lambda lower: bool(
            session.query(
                "SELECT 1 FROM tables WHERE namespace = ? AND azure_name_lower = ?", (namespace, lower)
            )
        )

    def insert(self, session: Session, table: Table) -> Pending[bool]:
        """Store a new table and its indexes. False if its name was taken in the meantime: the transaction must not be
        committed."""
        inserted = session.send(
            f"INSERT INTO tables ({descriptors.TABLE_COLUMNS}, azure_name_lower) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT DO NOTHING",
            (*descriptors.columns_of_table(table), table.azure_name.lower()),
        )
        for index in table.all_indexes:
            self.insert_index(session, table.id, index)
        return lambda: inserted() == 1

    def update(self, session: Session, table: Table) -> None:
        """Store a table's rules, properties and state; its version grows by one."""
        session.execute(
            "UPDATE tables SET rules = ?, properties = ?, state = ?, busy_until_ms = ?, version = version + 1 WHERE id = ?",
            (
                descriptors.rules_json(table.rules),
                descriptors.json_of(table.properties),
                table.state.value,
                table.busy_until_ms,
                table.id,
            ),
        )

    def insert_index(self, session: Session, table_id: int, index: Index | VectorIndex) -> None:
        """Store a new index."""
        session.send(
            "INSERT INTO indexes (id, table_id, name, definition, properties, filled, busy_until_ms)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (index.id, table_id, *descriptors.columns_of_index(index)[1:]),
        )

    def update_index(self, session: Session, index: Index | VectorIndex) -> None:
        """Store an index's properties, and whether it is filled."""
        _, _, _, properties, filled, busy_until_ms = descriptors.columns_of_index(index)
        session.execute(
            "UPDATE indexes SET properties = ?, filled = ?, busy_until_ms = ? WHERE id = ?",
            (properties, filled, busy_until_ms, index.id),
        )

    def remove_index(self, session: Session, index: Index | VectorIndex) -> None:
        """Forget an index; its entries are purged later."""
        session.send("DELETE FROM indexes WHERE id = ?", (index.id,))
        progress.forget(session, progress.INDEX_BACKFILL, index.id)
        kind = "vectors" if isinstance(index, VectorIndex) else "index"
        session.send("INSERT INTO purges (kind, id) VALUES (?, ?)", (kind, index.id))

    def remove(self, session: Session, table: Table) -> None:
        """Forget a table, in constant time; its rows and entries are purged later. Its id is never used again."""
        for index in table.all_indexes:
            self.remove_index(session, index)
        session.send("DELETE FROM tables WHERE id = ?", (table.id,))
        expiry_backfills.finish(session, table.id)
        session.send("INSERT INTO purges (kind, id) VALUES ('table', ?)", (table.id,))
        if table.rules.history is not None:
            history.end(session, table.rules.history.id)

    def filled_up_to(self, session: Session, index_id: int) -> bytes | None:
        """How far the filling of an index has come: an opaque mark of `save_progress`."""
        rows = session.query("SELECT filled_up_to FROM indexes WHERE id = ?", (index_id,))
        return rows[0][0] if rows else None

    def save_progress(self, session: Session, index_id: int, mark: bytes, number: int) -> None:
        """Remember how far the filling of an index has come, by so many rows more."""
        session.execute("UPDATE indexes SET filled_up_to = ? WHERE id = ?", (mark, index_id))
        progress.advance(session, progress.INDEX_BACKFILL, index_id, number)

    def move(self, session: Session, table: Table, namespace: str) -> None:
        """Move a table to another namespace, which must have no table of its names. Its new version invalidates cached
        descriptors."""
        session.execute(
            "UPDATE tables SET namespace = ?, version = version + 1 WHERE id = ?", (namespace, table.id)
        )
        for index in table.all_indexes:
            self.remove_index(session, index)

    def defined(self, definition: str) -> Table:
        """Return the table of a definition (descriptors.definition). It may be gone."""
        return descriptors.defined(definition, self.views)
