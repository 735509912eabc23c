"""Operations on whole tables: emptying them, and copying them as of one moment.

Rows are copied inside the database, by one statement for each table. A copy keeps the rows' times of modification, so
that their ETags stay equal. Its stream, if its rule has one, begins anew.
"""

from __future__ import annotations

from typing import Any, assert_never

from tablegate.gateway.engine.background import job_runner
from tablegate.gateway.engine.backups import history_retention
from tablegate.gateway.engine.tables import indexing, table_dependents
from tablegate.gateway.engine.tables.table_definitions import TableDefiner
from tablegate.gateway.model.commands import snapshot_commands
from tablegate.gateway.model.errors import InvalidInput, TableBusy, TableMissing
from tablegate.gateway.model.tables.namespaces import RETAINED, SNAPSHOTS
from tablegate.gateway.model.tables.tables import State, Table
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.store.rows import entries, row_counts, rows, vectors
from tablegate.gateway.store.rows.row_counts import CountChanges
from tablegate.gateway.store.sql.databases import KeyOccupied, Session
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.tables import descriptors, expiry_backfills, namespace_documents


def run(store: Store, definer: TableDefiner, command: snapshot_commands.SnapshotCommand, now_ms: int) -> Any:
    """Return the outcome of a command about whole namespaces."""
    match command:
        case snapshot_commands.ResetTables():
            return _reset(store, definer, command, now_ms)
        case snapshot_commands.CopyTables():
            return _copy(store, definer, command, now_ms)
        case snapshot_commands.DescribeTables(namespace):
            return _described(store, namespace)
        case snapshot_commands.ListNamespaces(prefix):
            return _namespaces(store, prefix)
        case snapshot_commands.ImportDefinition():
            return _import_definition(store, definer, command, now_ms)
        case snapshot_commands.ImportRows():
            return _import_rows(store, command)
    assert_never(command)


def _reset(store: Store, definer: TableDefiner, command: snapshot_commands.ResetTables, now_ms: int) -> int:
    """Empty or drop tables, each in constant time, and return their number. The rows are purged later.

    Jobs of dropped tables are removed too, and with all tables their backups. Raises TableMissing.
    """
    with store.write() as session:
        among = None if command.namespace is None else {command.namespace}
        tables = _locked(store, session, among, command.names)
        for name in sorted((command.names or frozenset()) - {table.name for table in tables}):
            raise TableMissing(name)
        for table in tables:
            definer.forget(session, table, now_ms)
        if command.keeps_definitions:
            definer.recreate(session, [(table, table.namespace) for table in tables], now_ms)
        else:
            job_runner.forget_jobs(store, session, command.namespace, command.names)
        if command.names is None and not command.keeps_definitions:
            history_retention.forget_backups(store, session, command.namespace)
            table_dependents.forget_ended(store, session, command.namespace)
    for table in tables:
        store.catalog.cache.forget(table.id)
    return len(tables)


def _copy(store: Store, definer: TableDefiner, command: snapshot_commands.CopyTables, now_ms: int) -> int:
    """Replace the tables of some namespaces by those of others. Return their number.

    Raises TableBusy, and the errors of the command's document update.
    """
    targets = dict(command.copies)
    with store.write() as session:
        emptied = {*targets.values(), *_namespaces_with_prefix(store, session, command.empties)}
        locked = _locked(store, session, {*targets, *emptied}, None)
        tables = [table for table in locked if table.namespace in targets]
        replaced = [table for table in locked if table.namespace in emptied]
        for table in replaced:
            definer.forget(session, table, now_ms)
        for table in tables:
            if not all(index.filled for index in table.all_indexes):
                raise TableBusy(table.name, State.UPDATING.value)
        made = definer.recreate(session, [(table, targets[table.namespace]) for table in tables], now_ms)
        for table, copied in zip(tables, made, strict=True):
            _copy_rows(session, table, copied)
        if command.records is not None:
            namespace, name, apply = command.records
            known = namespace_documents.lock(session, namespace, name)
            namespace_documents.keep(session, namespace, name, apply(known, len(tables)))
    for table in replaced:
        store.catalog.cache.forget(table.id)
    return len(tables)


def _namespaces(store: Store, prefix: str) -> list[str]:
    """Return the sorted names of the namespaces that have tables and begin with a prefix."""
    with store.read() as session:
        return [name for name in store.catalog.namespaces(session) if name.startswith(prefix)]


def _described(store: Store, namespace: str) -> list[tuple[Table, dict[str, Any]]]:
    """Return all tables of a namespace with the documents that recreate them."""
    with store.read() as session:
        tables = store.catalog.all(session, "namespace = ? ORDER BY id", (namespace,))
    return [(table, descriptors.document_of(table)) for table in tables]


def _import_definition(
    store: Store, definer: TableDefiner, command: snapshot_commands.ImportDefinition, now_ms: int
) -> Table:
    """Make an empty table from a document. Its stream, if its rule has one, has not begun. Raises InvalidInput."""
    try:
        table = descriptors.table_of(command.document, store.catalog.views)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput("document", error=repr(error)) from None
    with store.write() as session:
        [made] = definer.recreate(session, [(table, command.namespace)], now_ms)
    return made


def _import_rows(store: Store, command: snapshot_commands.ImportRows) -> None:
    """Insert rows unchanged, with their index entries. Raises InvalidInput."""
    table = command.table
    made = [Row(row.position, row.contents, row.modified_at) for row in command.rows]
    made.sort(key=lambda row: row.position)
    try:
        with store.write() as session:
            rows.load(session, ((table.id, row) for row in made))
            counts = CountChanges()
            for row in made:
                counts.add(table.id, None, row)
            indexing.update_indexes(session, table, [(None, row) for row in made], counts)
            counts.save(session, made[0].position.partition if made else b"")
    except KeyOccupied:
        raise InvalidInput("rows", error="a row is there twice") from None


def _namespaces_with_prefix(store: Store, session: Session, prefix: str) -> list[str]:
    """Return the namespaces that have tables and begin with a prefix. An empty prefix matches none."""
    return [name for name in store.catalog.namespaces(session) if name.startswith(prefix)] if prefix else []


def _locked(
    store: Store, session: Session, among: set[str] | None, names: frozenset[str] | None
) -> list[Table]:
    """Lock tables of some namespaces until the transaction ends, in the order of their ids. Return them.

    `among` is None for all namespaces except the reserved ones.
    """
    if among is None:
        found = store.catalog.all(
            session,
            "namespace NOT LIKE ? AND namespace NOT LIKE ? ORDER BY id",
            (f"{SNAPSHOTS}%", f"{RETAINED}%"),
        )
    elif not among:
        return []
    else:
        places = ", ".join("?" * len(among))
        found = store.catalog.all(session, f"namespace IN ({places}) ORDER BY id", sorted(among))
    wanted = [table.id for table in found if names is None or table.name in names]
    locked = store.catalog.lock_all(session, wanted)
    return [table for table in locked if table.state is not State.DELETING]


def _copy_rows(session: Session, table: Table, made: Table) -> None:
    is_kept = made.namespace.startswith(SNAPSHOTS)
    # Rows of a snapshot have no expiry time, so the sweep does not find them. It is recomputed when they are restored.
    rows.copy(session, table.id, made.id, expires=not is_kept)
    row_counts.copy(session, table, made)
    for index in table.indexes:
        copied = made.index(index.name)
        assert copied is not None
        entries.copy(session, index.id, copied.id)
    for vector_index in table.vector_indexes:
        made_index = made.vector_index(vector_index.name)
        assert made_index is not None
        vectors.copy(session, vector_index.id, made_index.id)
    if not is_kept and made.rules.expiry is not None:
        expiry_backfills.begin(session, made.id)
