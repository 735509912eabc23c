"""Operations on whole tables: emptying them, and copying them as of one moment.

Rows are copied inside the database, by one statement for each table. A copy keeps the rows' times of modification, so
that their ETags stay equal. Its stream, if its rule has one, begins anew.
"""

from __future__ import annotations

from typing import Any

from tablegate.gateway.engine.attempts import Attempt, Runners
from tablegate.gateway.engine.streams import follower_reads
from tablegate.gateway.engine.tables import indexing
from tablegate.gateway.features.history import backup_commands, history_retention
from tablegate.gateway.features.jobs import job_runner
from tablegate.gateway.model.errors import InvalidInput, TableBusy, TableMissing
from tablegate.gateway.model.tables.tables import RETAINED, SNAPSHOTS, State, Table
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.store import accounts
from tablegate.gateway.store.rows import row_counts, rows
from tablegate.gateway.store.rows.row_counts import CountChanges
from tablegate.gateway.store.sql import progress
from tablegate.gateway.store.sql.databases import KeyOccupied, Session
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.tables import descriptors, index_kinds


def _reset(attempt: Attempt, command: backup_commands.ResetTables) -> int:
    """Empty or drop tables, each in constant time, and return their number. The rows are purged later.

    Jobs of dropped tables are removed too, and with all tables their backups. Raises TableMissing.
    """
    store, definer, now_ms = attempt.store, attempt.definer, attempt.now_ms
    with store.write() as session:
        namespaces = None if command.namespace is None else {command.namespace}
        tables = _lock_tables(store, session, namespaces, command.names)
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
            follower_reads.forget_ended(store, session, command.namespace)
    for table in tables:
        store.catalog.cache.forget(table.id)
    return len(tables)


def _copy(attempt: Attempt, command: backup_commands.CopyTables) -> int:
    """Replace the tables of some namespaces by those of others. Return their number.

    Raises TableBusy, and the errors of the command's document update.
    """
    store, definer, now_ms = attempt.store, attempt.definer, attempt.now_ms
    targets = dict(command.copies)
    with store.write() as session:
        target_namespaces = set(targets.values())
        if command.empties:
            target_namespaces |= {*_namespaces(store, session, command.empties)}
        tables_of_all = _lock_tables(store, session, {*targets, *target_namespaces}, None)
        tables = [table for table in tables_of_all if table.namespace in targets]
        old_tables = [table for table in tables_of_all if table.namespace in target_namespaces]
        for table in old_tables:
            definer.forget(session, table, now_ms)
        for table in tables:
            if not all(index.filled for index in table.all_indexes):
                raise TableBusy(table.name, State.UPDATING.value)
        new_tables = definer.recreate(
            session, [(table, targets[table.namespace]) for table in tables], now_ms
        )
        for table, new_table in zip(tables, new_tables, strict=True):
            _copy_rows(session, table, new_table)
        if command.records is not None:
            namespace, name, apply = command.records
            old_document = accounts.lock_document(session, namespace, name)
            accounts.keep_document(session, namespace, name, apply(old_document, len(tables)))
    for table in old_tables:
        store.catalog.cache.forget(table.id)
    return len(tables)


def _describe(
    attempt: Attempt, command: backup_commands.DescribeTables
) -> list[tuple[Table, dict[str, Any]]]:
    with attempt.store.read() as session:
        tables = attempt.store.catalog.all(session, "namespace = ? ORDER BY id", (command.namespace,))
    return [(table, descriptors.document_of(table)) for table in tables]


def _import_definition(attempt: Attempt, command: backup_commands.ImportDefinition) -> Table:
    """Make an empty table from a document. Its stream, if its rule has one, has not begun. Raises InvalidInput."""
    try:
        table = descriptors.table_of(command.document, attempt.store.catalog.views)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput("document", error=repr(error)) from None
    with attempt.store.write() as session:
        [new_table] = attempt.definer.recreate(session, [(table, command.namespace)], attempt.now_ms)
    return new_table


def _import_rows(attempt: Attempt, command: backup_commands.ImportRows) -> None:
    """Insert rows unchanged, with their index entries. Raises InvalidInput."""
    table = command.table
    new_rows = [Row(row.position, row.contents, row.modified_at) for row in command.rows]
    new_rows.sort(key=lambda row: row.position)
    try:
        with attempt.store.write() as session:
            rows.load(session, ((table.id, row) for row in new_rows))
            counts = CountChanges()
            for row in new_rows:
                counts.add(table.id, None, row)
            indexing.update_indexes(session, table, [(None, row) for row in new_rows], counts)
            counts.save(session, new_rows[0].position.partition if new_rows else b"")
    except KeyOccupied:
        raise InvalidInput("rows", error="a row is there twice") from None


def _list_namespaces(attempt: Attempt, command: backup_commands.ListNamespaces) -> list[str]:
    with attempt.store.read() as session:
        return _namespaces(attempt.store, session, command.prefix)


def _namespaces(store: Store, session: Session, prefix: str) -> list[str]:
    """Return the names of the namespaces that have tables and begin with a prefix."""
    return [name for name in store.catalog.namespaces(session) if name.startswith(prefix)]


def _lock_tables(
    store: Store, session: Session, namespaces: set[str] | None, names: frozenset[str] | None
) -> list[Table]:
    """Lock tables of some namespaces until the transaction ends, in the order of their ids. Return them.

    `namespaces` is None for all namespaces except the reserved ones.
    """
    if namespaces is None:
        tables = store.catalog.all(
            session,
            "namespace NOT LIKE ? AND namespace NOT LIKE ? ORDER BY id",
            (f"{SNAPSHOTS}%", f"{RETAINED}%"),
        )
    elif not namespaces:
        return []
    else:
        places = ", ".join("?" * len(namespaces))
        tables = store.catalog.all(session, f"namespace IN ({places}) ORDER BY id", sorted(namespaces))
    ids = [table.id for table in tables if names is None or table.name in names]
    locked_tables = store.catalog.lock_all(session, ids)
    return [table for table in locked_tables if table.state is not State.DELETING]


def _copy_rows(session: Session, table: Table, copy: Table) -> None:
    is_snapshot = copy.namespace.startswith(SNAPSHOTS)
    # Rows of a snapshot have no expiry time, so the sweep does not find them. It is recomputed when they are restored.
    rows.copy(session, table.id, copy.id, expires=not is_snapshot)
    row_counts.copy(session, table, copy)
    for index, copied_index in zip(table.all_indexes, copy.all_indexes, strict=True):
        index_kinds.kind_of(index).copy(session, index.id, copied_index.id)
    if not is_snapshot and copy.rules.expiry is not None:
        progress.begin_expiry_backfill(session, copy.id)


COMMANDS: Runners = {
    backup_commands.ResetTables: _reset,
    backup_commands.CopyTables: _copy,
    backup_commands.DescribeTables: _describe,
    backup_commands.ListNamespaces: _list_namespaces,
    backup_commands.ImportDefinition: _import_definition,
    backup_commands.ImportRows: _import_rows,
}
