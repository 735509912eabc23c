"""Histories: their recording and retention, and the rows of dropped tables.

This module begins, records and ends histories, retains the rows of a dropped table that has one, and deletes what has
expired. Copies of tables as of a moment are in restoring.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from tablegate.gateway.engine.rows.writing import WriteBatch, WriteHook
from tablegate.gateway.engine.tables import row_counting
from tablegate.gateway.features.history import backup_store, history_store
from tablegate.gateway.features.history.backup_commands import RECOVERY_DAYS, Backup, BackupKind
from tablegate.gateway.model.commands.row_commands import RowKey
from tablegate.gateway.model.errors import BackupBusy, BackupMissing
from tablegate.gateway.model.tables.tables import RETAINED, HistoryRule, Rules, State, Table
from tablegate.gateway.model.values.rows import TICKS_PER_MS
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.tables import descriptors
from tablegate.gateway.store.tables.catalog import TableHook

_DAY_MS = 86_400_000


# Histories


def with_history(store: Store, session: Session, table: Table, days: int | None, now_ms: int) -> Table:
    """Return a table with a history kept for this number of days. None keeps it until the running copies are done.

    An existing history continues. The caller stores the table.
    """
    rule = table.rules.history
    if rule is None:
        rule = HistoryRule(days, now_ms, store.catalog.next_id(session))
    elif days is not None:
        since_ms = now_ms if rule.days is None else rule.since_ms
        rule = dataclasses.replace(rule, days=days, since_ms=since_ms)
    history_store.begin(session, rule.id, table.id, rule.days)
    return with_rule(table, rule)


def with_rule(table: Table, rule: HistoryRule | None) -> Table:
    """Return a table with another history rule, or None for no history."""
    return dataclasses.replace(table, rules=dataclasses.replace(table.rules, history=rule))


def release(store: Store, session: Session, source_id: int) -> None:
    """Remove a history or retained table that existed for copies only, once the last copy of the table is done."""
    if backup_store.is_source(session, source_id):
        return
    source = store.catalog.lock(session, source_id)
    if source is None:
        return
    rule = source.rules.history
    is_retained = source.namespace.startswith(RETAINED)
    if is_retained and backup_store.backup_of_copy(session, store.catalog.defined, source_id) is None:
        store.catalog.remove(session, source)
    elif rule is not None and (is_retained or rule.days is None):
        history_store.end(session, rule.id)
        store.catalog.update(session, with_rule(source, None))


def bare(rules: Rules) -> Rules:
    """Return the rules that a table without clients keeps."""
    return Rules(max_versions=rules.max_versions, stamped=rules.stamped)


# Recording


class HistoryRecorder(WriteHook):
    """Keeps the old rows of a batch in the histories of their tables.

    They get one time for the whole transaction, so that no moment shows a part of a group. It is later than any
    previous change in these histories, independent of the clocks of other servers. The rows are locked, so their
    changes are committed.
    """

    features = frozenset({"history"})

    def __init__(self, batch: WriteBatch) -> None:
        super().__init__(batch)
        self._rules = {
            table.id: rule for table in batch.tables.values() if (rule := table.rules.history) is not None
        }

    def read(self, session: Session, keys: Sequence[RowKey]) -> None:
        self._latest_change = history_store.latest_change(session, [rule.id for rule in self._rules.values()])

    def save(self, session: Session) -> None:
        before, rules = self.batch.before, self._rules
        changes = [
            ((rules[key[0]].id, key[1]), before.get(key))
            for key, new in self.batch.after.items()
            if key[0] in rules and new is not before.get(key)
        ]
        if changes:
            floors = (rule.floor + 1 for rule in rules.values())
            history_store.record(session, changes, max(self.batch.now, self._latest_change() + 1, *floors))


# Tables


class HistoryHook(TableHook):
    """Ends the history of a removed table, gives a copy of a table its own, and retains the rows of dropped tables."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def copied(self, session: Session, source: Table, copy: Table, now_ms: int) -> Table:
        """Return a copy with a history of its own if clients have enabled that of the source."""
        rule = source.rules.history
        if rule is None or rule.days is None:
            return copy
        return with_history(self._store, session, copy, rule.days, now_ms)

    def retain(self, session: Session, table: Table, now_ms: int) -> bool:
        """Make a system backup of a table with a history. A table that is being copied stays until the copies are
        done."""
        catalog, rule = self._store.catalog, table.rules.history
        is_copied = backup_store.is_source(session, table.id)
        is_kept = rule is not None and rule.days is not None
        if not is_kept and not is_copied:
            return False
        if is_kept:
            count = row_counting.of_table(session, table)
            backup = Backup(
                catalog.next_id(session),
                table.namespace,
                table.name,
                "",
                BackupKind.SYSTEM,
                table.id,
                table,
                count.rows,
                count.size_bytes,
                True,
                now_ms,
                now_ms + RECOVERY_DAYS * _DAY_MS,
            )
            backup_store.add_backup(session, backup, descriptors.definition(table))
        rules = dataclasses.replace(bare(table.rules), history=rule if is_copied else None)
        if rule is not None and not is_copied:
            history_store.end(session, rule.id)
        catalog.update(session, dataclasses.replace(table, rules=rules, state=State.ACTIVE, busy_until_ms=0))
        catalog.move(session, table, f"{RETAINED}{table.id}")
        return True

    def remove(self, session: Session, table: Table) -> None:
        if table.rules.history is not None:
            history_store.end(session, table.rules.history.id)

    def bytes_by_namespace(self, session: Session) -> Mapping[str, int]:
        """Return the bytes of backups."""
        return backup_store.backup_bytes_by_namespace(session)

    def copy_sources(self, session: Session) -> Mapping[int, int]:
        return backup_store.sources_of_copies(session)


# Backups


def free(store: Store, session: Session, backup_id: int) -> Backup:
    """Lock a complete backup that no restore is using. Raises BackupMissing, BackupBusy."""
    backup = backup_store.backup_by_id(session, store.catalog.defined, backup_id, lock=True)
    if backup is None:
        raise BackupMissing()
    if not backup.ready:
        raise BackupBusy(is_creating=True)
    if backup_store.is_source(session, backup.copy_id):
        raise BackupBusy(is_creating=False)
    return backup


def delete(store: Store, session: Session, backup_id: int) -> Backup:
    """Delete a backup. Its rows are purged later. Raises BackupMissing, BackupBusy."""
    backup = free(store, session, backup_id)
    _forget(store, session, [backup])
    return backup


def forget_backups(store: Store, session: Session, namespace: str | None) -> None:
    """Remove the backups of a namespace (None for all), even during restores. Their rows are purged later.

    Running copies end when their source is missing. The cache has no such tables, because clients cannot name them.
    """
    _forget(store, session, backup_store.backups_of_namespace(session, store.catalog.defined, namespace))


def _forget(store: Store, session: Session, deleted_backups: list[Backup]) -> None:
    """Remove backups with their tables, in a constant number of round trips."""
    if not deleted_backups:
        return
    for backup in deleted_backups:
        backup_store.remove_backup(session, backup.copy_id)
    for table in store.catalog.lock_all(session, [backup.copy_id for backup in deleted_backups]):
        store.catalog.remove(session, table)


def delete_expired(store: Store, now_ms: int, limit: int) -> int | None:
    """Delete at most `limit` expired history entries, and expired backups. Return the number deleted, or None."""
    with store.read() as session:
        histories = history_store.with_retention(session)
        expired_backups = backup_store.expired_backups(session, store.catalog.defined, now_ms)
    count = 0
    for history_id, days, copied_at in histories:
        until = (now_ms - days * _DAY_MS) * TICKS_PER_MS if days is not None else 0
        until = until if copied_at is None else min(until, copied_at)
        with store.write() as session:
            count += history_store.trim(session, history_id, until, limit)
        if count >= limit:
            return count
    for backup in expired_backups:
        with store.write() as session:
            try:
                delete(store, session, backup.id)
                count += 1
            except (BackupBusy, BackupMissing):
                continue
    return count or None
