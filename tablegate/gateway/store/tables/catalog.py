"""The catalogue: the SQL rows that define tables and indexes, and what capabilities do when a table changes.

A cached descriptor is verified inside the transaction that uses it (`check`). If another process changed or dropped the
table, the request is parsed again (docs/architecture.md section 4, step 1).

`Catalog.hooks` has one object of each capability that needs it (gateway/capabilities.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import orjson

from tablegate.gateway.model.tables.indexes import BaseIndex, IndexView
from tablegate.gateway.model.tables.tables import RESOURCE_POLICIES, State, Table
from tablegate.gateway.store.sql import counters, progress
from tablegate.gateway.store.sql.databases import Pending, Session
from tablegate.gateway.store.tables import descriptors, index_kinds
from tablegate.gateway.store.tables.descriptors import Cache


class TableHook:
    """The reactions of one capability to changes of tables. It overrides the methods that it needs."""

    def copied(self, session: Session, source: Table, copy: Table, now_ms: int) -> Table:
        """Return the new empty copy of a table with the capability's own rules. The caller stores it."""
        return copy

    def detach(self, session: Session, table: Table, now_ms: int) -> None:
        """Remove the links of other tables and clients to a locked table that is being dropped."""

    def retain(self, session: Session, table: Table, now_ms: int) -> bool:
        """Keep a dropped table in a reserved namespace. Return False if the capability does not need it."""
        return False

    def remove_indexes(self, session: Session, table: Table) -> None:
        """Delete the capability's indexes of a table that is being removed or moved."""

    def remove(self, session: Session, table: Table) -> None:
        """Delete what the capability stores of a table that is being removed."""

    def bytes_by_namespace(self, session: Session) -> Mapping[str, int]:
        """Return the bytes that the capability stores besides tables, for quotas."""
        return {}

    def copy_sources(self, session: Session) -> Mapping[int, int]:
        """Return the source of each table that is being filled, for quotas. The table will be about as large."""
        return {}


_INDEXES = f"SELECT table_id, {descriptors.INDEX_COLUMNS} FROM indexes"
# A table and its indexes, in one statement. The columns of the index are NULL if there is none.
_FIND = (
    f"SELECT {descriptors.qualified(descriptors.TABLE_COLUMNS, 't')}, {descriptors.qualified(descriptors.INDEX_COLUMNS, 'i')}"
    " FROM tables t LEFT JOIN indexes i ON i.table_id = t.id WHERE t.namespace = ? AND t."
)
_FIND_BY_NAME, _FIND_BY_AZURE_NAME = f"{_FIND}name = ?", f"{_FIND}azure_name_lower = ?"
_TABLES_TOGETHER = 500
# The condition of the index tables_with_policies, word for word. Otherwise each reading scans all tables.
WITH_POLICIES = (
    "SELECT namespace, name, properties FROM tables"
    f" WHERE replace(properties, '\"{RESOURCE_POLICIES}\":', '') <> properties"
)


def _indexes_of(session: Session, table_ids: list[int]) -> tuple[str, Sequence[Any]]:
    condition, parameters = session.statements.one_of("table_id", table_ids)
    return f"{_INDEXES} WHERE {condition} ORDER BY id", parameters


class Catalog:
    """Reads and writes descriptors.

    - `cache_bytes`: the memory of cached descriptors
    - `views`: by dialect, the function that reads the key columns of its indexes
    """

    def __init__(self, cache_bytes: int) -> None:
        self.cache = Cache(cache_bytes)
        self.views: dict[str, IndexView] = {}
        self._hooks: list[TableHook] = []
        self._install: Callable[[], None] = lambda: None

    def renew_hooks(self, install: Callable[[], None]) -> None:
        """Forget all hooks. `install` adds those of capabilities, and is called before the first use of one."""
        self._hooks, self._install = [], install

    def add_hook(self, hook: TableHook) -> None:
        """Add the hook of a capability."""
        self._hooks.append(hook)

    @property
    def hooks(self) -> Sequence[TableHook]:
        """The hooks of capabilities, in the order of their calls."""
        self._install()
        return self._hooks

    def resource_policies(self, session: Session) -> dict[tuple[str, str], Any]:
        """Return the resource policies by (namespace, table), for tables that have some."""
        rows = session.query(WITH_POLICIES)
        return {
            (namespace, table): policies
            for namespace, table, properties in rows
            if (policies := orjson.loads(properties).get(RESOURCE_POLICIES))
        }

    # Reading

    def find(self, session: Session, namespace: str, name: str) -> Table | None:
        """Return the table with this name, or None."""
        return self.find_all(session, [(namespace, name, False)])[0]

    def find_all(self, session: Session, names: Iterable[tuple[str, str, bool]]) -> list[Table | None]:
        """Return the table of each (namespace, name, is Azure name), or None. Azure names are compared without case.

        Each table is read by a statement of its own, so `session` needs no transaction.
        """
        answers = [self._ask_for(session, *name) for name in names]
        return [self._joined(answer()) for answer in answers]

    def _ask_for(
        self, session: Session, namespace: str, name: str, is_azure_name: bool
    ) -> Pending[list[tuple[Any, ...]]]:
        if "\0" in name:  # no name has a NUL, and PostgreSQL accepts no text with one
            return list
        if is_azure_name:
            return session.ask(_FIND_BY_AZURE_NAME, (namespace, name.lower()))
        return session.ask(_FIND_BY_NAME, (namespace, name))

    def _joined(self, rows: list[tuple[Any, ...]]) -> Table | None:
        """Return the table of the rows of _FIND."""
        if not rows:
            return None
        width = descriptors.TABLE_WIDTH
        indexes = sorted([row[width:] for row in rows if row[width] is not None])
        return descriptors.table_of_columns(rows[0][:width], indexes, self.views)

    def by_id(self, session: Session, table_id: int) -> Table | None:
        """Return the table with this id, or None."""
        tables = self.all(session, "id = ?", (table_id,))
        return tables[0] if tables else None

    def all(self, session: Session, where: str = "1 = 1", parameters: Sequence[Any] = ()) -> list[Table]:
        """Return all tables that match a SQL condition."""
        rows = session.query(f"SELECT {descriptors.TABLE_COLUMNS} FROM tables WHERE {where}", parameters)
        indexes: dict[int, list[tuple[Any, ...]]] = {}
        for at in range(0, len(rows), _TABLES_TOGETHER):
            ids = [columns[0] for columns in rows[at : at + _TABLES_TOGETHER]]
            for table_id, *index in session.query(*_indexes_of(session, ids)):
                indexes.setdefault(table_id, []).append(tuple(index))
        return [
            descriptors.table_of_columns(columns, indexes.get(columns[0], []), self.views) for columns in rows
        ]

    def names(self, session: Session) -> frozenset[str]:
        """Return the names and Azure names of all tables."""
        rows = session.query("SELECT name, azure_name FROM tables")
        return frozenset(name for row in rows for name in row)

    def namespaces(self, session: Session) -> list[str]:
        """Return the namespaces that have tables, in order."""
        rows = session.query("SELECT DISTINCT namespace FROM tables ORDER BY namespace")
        return [namespace for (namespace,) in rows]

    def page(
        self, session: Session, namespace: str, after: str, limit: int | None, by_azure_name: bool = False
    ) -> list[Table]:
        """Return up to `limit` tables of a namespace after a name, in name order."""
        after = after.partition("\0")[0]  # no name lies between the two
        column, above = ("azure_name_lower", after.lower()) if by_azure_name else ("name", after)
        tail = f" ORDER BY {column}" + (" LIMIT ?" if limit is not None else "")
        parameters: list[Any] = [namespace, above]
        if limit is not None:
            parameters.append(limit)
        return self.all(session, f"namespace = ? AND {column} > ?{tail}", parameters)

    def check(
        self, session: Session, tables: Iterable[Table], lock: bool, near: bytes = b""
    ) -> Pending[set[int]]:
        """Return the ids of the tables with stale descriptors.

        With `lock`, the tables are share-locked until the transaction ends. `near`: see Statements.versions. If two
        versions of a table are given, at least one is stale.
        """
        versions: dict[int, int] = {}
        conflicting: set[int] = set()
        for table in tables:
            if versions.setdefault(table.id, table.version) != table.version:
                conflicting.add(table.id)
        answer = session.statements.versions(session, sorted(versions), lock, near)

        def stale_ids() -> set[int]:
            current: set[int] = set()
            for table_id, version, *transaction_id in answer():
                if version == versions[table_id]:
                    current.add(table_id)
                if transaction_id:
                    [session.transaction_id] = transaction_id
            return (versions.keys() - current) | conflicting

        return stale_ids

    # Writing

    def next_id(self, session: Session) -> int:
        """Return a new id for a table or an index."""
        return self.next_ids(session, 1)[0]

    def next_ids(self, session: Session, number: int) -> range:
        """Return a range of new ids."""
        last = counters.advance(session, "ids", number) if number else 0
        return range(last - number + 1, last + 1)

    def lock_ids(self, session: Session) -> None:
        """Block other transactions from drawing ids until this one ends, so that none creates a table."""
        counters.advance(session, "ids", 0)

    def count(self, session: Session, scope: str, now_ms: int) -> int:
        """Return the number of tables in a scope (model/authorization/quotas.py) with names in use."""
        [(number,)] = session.query(
            "SELECT count(*) FROM tables WHERE (namespace = ? OR (namespace >= ? AND namespace < ?))"
            " AND NOT (state = ? AND busy_until_ms <= ?)",
            # "0" is the character after "/".
            (scope, f"{scope}/", f"{scope}0", State.DELETING.value, now_ms),
        )
        return int(number)

    def lock(self, session: Session, table_id: int) -> Table | None:
        """Return the current table, locked exclusively until the transaction ends, or None."""
        tables = self.lock_all(session, [table_id])
        return tables[0] if tables else None

    def lock_all(self, session: Session, table_ids: Sequence[int]) -> list[Table]:
        """Lock those of some tables that exist, as `lock` does. Return them in the order of their ids."""
        condition, parameters = session.statements.one_of("id", table_ids)
        in_order = f"{condition} ORDER BY id"
        session.statements.lock_rows(session, "tables", "id", table_ids)
        return self.all(session, in_order, parameters)

    def azure_name_taken(self, session: Session, namespace: str) -> Callable[[str], bool]:
        """Return a function that is True for lower-case Azure names in use in a namespace."""
        return lambda lower: bool(
            session.query(
                "SELECT 1 FROM tables WHERE namespace = ? AND azure_name_lower = ?", (namespace, lower)
            )
        )

    def insert(self, session: Session, table: Table) -> Pending[bool]:
        """Insert a new table and its indexes.

        The result is False if its name has been taken. The transaction must then be rolled back.
        """
        count = session.send(
            f"INSERT INTO tables ({descriptors.TABLE_COLUMNS}, azure_name_lower) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT DO NOTHING",
            (*descriptors.columns_of_table(table), table.azure_name.lower()),
        )
        for index in table.all_indexes:
            self.insert_index(session, table.id, index)
        return lambda: count() == 1

    def update(self, session: Session, table: Table) -> None:
        """Update a table's rules, properties and state, and increment its version."""
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

    def insert_index(self, session: Session, table_id: int, index: BaseIndex) -> None:
        """Insert a new index."""
        session.send(
            "INSERT INTO indexes (id, table_id, name, definition, properties, filled, busy_until_ms)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (index.id, table_id, *descriptors.columns_of_index(index)[1:]),
        )

    def update_index(self, session: Session, index: BaseIndex) -> None:
        """Update an index's properties and its fill state."""
        _, _, _, properties, filled, busy_until_ms = descriptors.columns_of_index(index)
        session.execute(
            "UPDATE indexes SET properties = ?, filled = ?, busy_until_ms = ? WHERE id = ?",
            (properties, filled, busy_until_ms, index.id),
        )

    def remove_index(self, session: Session, index: BaseIndex) -> None:
        """Delete an index. Its entries are purged later."""
        session.send("DELETE FROM indexes WHERE id = ?", (index.id,))
        progress.forget(session, progress.INDEX_BACKFILL, index.id)
        kind = index_kinds.kind_of(index).name
        session.send("INSERT INTO purges (kind, id) VALUES (?, ?)", (kind, index.id))

    def remove(self, session: Session, table: Table) -> None:
        """Delete a table in constant time. Its rows and entries are purged later, and its id is never reused."""
        self._remove_indexes(session, table)
        session.send("DELETE FROM tables WHERE id = ?", (table.id,))
        progress.finish_expiry_backfill(session, table.id)
        session.send("INSERT INTO purges (kind, id) VALUES ('table', ?)", (table.id,))
        for hook in self.hooks:
            hook.remove(session, table)

    def filled_up_to(self, session: Session, index_id: int) -> bytes | None:
        """Return the mark up to which an index is filled, as given to `save_progress`."""
        rows = session.query("SELECT filled_up_to FROM indexes WHERE id = ?", (index_id,))
        return rows[0][0] if rows else None

    def save_progress(self, session: Session, index_id: int, mark: bytes, number: int) -> None:
        """Save the mark up to which an index is filled, and add `number` to the rows done."""
        session.execute("UPDATE indexes SET filled_up_to = ? WHERE id = ?", (mark, index_id))
        progress.advance(session, progress.INDEX_BACKFILL, index_id, number)

    def move(self, session: Session, table: Table, namespace: str) -> None:
        """Move a table to another namespace, which must not have its names. The new version invalidates cached
        descriptors."""
        session.execute(
            "UPDATE tables SET namespace = ?, version = version + 1 WHERE id = ?", (namespace, table.id)
        )
        self._remove_indexes(session, table)

    def _remove_indexes(self, session: Session, table: Table) -> None:
        for index in table.all_indexes:
            self.remove_index(session, index)
        for hook in self.hooks:
            hook.remove_indexes(session, table)

    def defined(self, definition: str) -> Table:
        """Return the table of a definition (descriptors.definition), which may no longer exist."""
        return descriptors.defined(definition, self.views)
