"""Restores and backups: copies of tables as of one moment, made from their histories.

While a table has a history, the write path records each row before a change (writing.py). Background work makes a copy
in two phases. First it copies all rows, in the order of keys, while writers continue. Then it undoes later changes in
the copy, from the newest back to the moment. Each row thus ends with its value before the first of them. Changes made
after the copy has begun are always later than its moment (HistoryRule.floor).

A backup is such a copy in a table that clients cannot name. A restored table is one under its own name.
"""

from __future__ import annotations

import dataclasses

from tablegate.gateway.engine.attempts import Attempt, Runners
from tablegate.gateway.engine.scheduler import FairQueue
from tablegate.gateway.engine.tables import row_counting
from tablegate.gateway.engine.tables.table_definitions import TableDefiner
from tablegate.gateway.features.history import (
    backup_commands,
    backup_store,
    change_windows,
    history_retention,
    history_store,
)
from tablegate.gateway.features.history.backup_commands import Backup, BackupKind
from tablegate.gateway.features.history.backup_store import CopyPhase, PendingCopy
from tablegate.gateway.features.history.history_store import HistoryPoint
from tablegate.gateway.model.authorization.quotas import account_of
from tablegate.gateway.model.commands.table_commands import CreateTable
from tablegate.gateway.model.errors import TableMissing, TimeNotRetained
from tablegate.gateway.model.tables.tables import (
    RETAINED,
    HistoryRule,
    State,
    Table,
    is_reserved_namespace,
    namespace_of_backup,
)
from tablegate.gateway.model.values.rows import TICKS_PER_MS
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.tables import descriptors

_FOREVER_MS = 1 << 62
ROWS = "rows"
"""Name of the table with the rows of a copy that belongs to a job."""


# Histories


def _keep_history(attempt: Attempt, command: backup_commands.KeepHistory) -> Table:
    store, table, days, now_ms = attempt.store, command.table, command.days, attempt.now_ms
    with store.write() as session:
        current = _lock_table(store, session, table)
        if days is not None:
            current = history_retention.with_history(store, session, current, days, now_ms)
        elif (rule := current.rules.history) is not None:
            if backup_store.is_source(session, current.id):
                current = history_retention.with_rule(current, dataclasses.replace(rule, days=None))
                history_store.begin(session, rule.id, current.id, None)
            else:
                history_store.end(session, rule.id)
                current = history_retention.with_rule(current, None)
        store.catalog.update(session, current)
        table_after = store.catalog.by_id(session, table.id)
        assert table_after is not None
    store.catalog.cache.forget(table.id)
    return table_after


def _lock_table(store: Store, session: Session, table: Table) -> Table:
    current = store.catalog.lock(session, table.id)
    if current is None or current.namespace != table.namespace:
        store.catalog.cache.forget(table.id)
        raise TableMissing(table.name)
    return current


# Beginning a copy


def begin_copy(
    store: Store,
    definer: TableDefiner,
    session: Session,
    source: Table,
    namespace: str,
    at: int | None,
    now: int,
) -> int:
    """Begin to copy a table with a history, as of a moment, into a reserved namespace. Return the moment.

    Raises TableMissing, TimeNotRetained.
    """
    moment = _moment(store, session, source, at, now)
    target = definer.make(session, _bare(source, namespace, ROWS), _FOREVER_MS, now // TICKS_PER_MS)
    backup_store.add_copy(session, PendingCopy(target.id, source.id, moment))
    return moment.at


def begin_window(
    store: Store,
    definer: TableDefiner,
    session: Session,
    source: Table,
    namespace: str,
    window: tuple[int, int],
    now: int,
) -> None:
    """Begin to gather the changes of a table in a window of time, in tables of a reserved namespace.

    `window`: (first moment, moment after the last). Raises TableMissing, TimeNotRetained.
    """
    since, until = window
    _moment(store, session, source, since, now)
    moment = _moment(store, session, source, until - 1, now)._replace(at=since - 1)
    for name in (change_windows.BEFORE, change_windows.AFTER):
        definer.make(session, _bare(source, namespace, name), 0, now // TICKS_PER_MS)
    definition = dataclasses.replace(
        _bare(source, namespace, change_windows.CHANGED),
        properties={change_windows.CHANGED: {"until": until}},
    )
    target = definer.make(session, definition, _FOREVER_MS, now // TICKS_PER_MS)
    backup_store.add_copy(
        session,
        PendingCopy(target.id, source.id, moment, CopyPhase.GATHERING, change_windows.beginning(until)),
    )


def _bare(source: Table, namespace: str, name: str) -> CreateTable:
    return CreateTable("", namespace, name, source.key_schema, rules=history_retention.bare(source.rules))


def _restore(attempt: Attempt, command: backup_commands.RestoreTable) -> Table:
    store, definer, source, now = attempt.store, attempt.definer, command.source, attempt.now
    moment: HistoryPoint | None = None
    with store.write() as session:
        if isinstance(source, Backup):
            source_id = history_retention.free(store, session, source.id).copy_id
        else:
            source_id, moment = source.id, _moment(store, session, source, command.at, now)
        target = definer.make(session, command.definition, _FOREVER_MS, attempt.now_ms)
        backup_store.add_copy(session, PendingCopy(target.id, source_id, moment))
    store.catalog.cache.forget(source_id)
    store.catalog.cache.forget(target.id)
    return target


def _moment(store: Store, session: Session, source: Table, at: int | None, now: int) -> HistoryPoint:
    """Return the moment of a copy, fixed so that no change is added before it. Raises TableMissing, TimeNotRetained."""
    current = _lock_table(store, session, source)
    rule = current.rules.history
    if rule is None or rule.days is None:
        raise TimeNotRetained(current.name)
    if at is None:
        return _fix_moment(
            store, session, current, rule, max(now, history_store.latest_change(session, [rule.id])())
        )
    earliest_ms = rule.earliest_ms(now // TICKS_PER_MS)
    if not earliest_ms * TICKS_PER_MS <= at <= now:
        raise TimeNotRetained(current.name, earliest_ms, now // TICKS_PER_MS)
    return _fix_moment(store, session, current, rule, at)


def _fix_moment(store: Store, session: Session, table: Table, rule: HistoryRule, at: int) -> HistoryPoint:
    """Fix a moment of a locked table. Later writes get later times, as the new version rejects writers with the old
    descriptor."""
    rule = dataclasses.replace(rule, floor=max(rule.floor, at))
    store.catalog.update(session, history_retention.with_rule(table, rule))
    return HistoryPoint(rule.id, at)


def _back_up(attempt: Attempt, command: backup_commands.CreateBackup) -> Backup:
    store, now, now_ms = attempt.store, attempt.now, attempt.now_ms
    with store.write() as session:
        source = _lock_table(store, session, command.table)
        if source.state_at(now_ms) is State.CREATING:
            raise TableMissing(source.name)
        source_with_history = history_retention.with_history(store, session, source, None, now_ms)
        rule = source_with_history.rules.history
        assert rule is not None
        moment = _fix_moment(
            store,
            session,
            source_with_history,
            rule,
            max(now, rule.floor, history_store.latest_change(session, [rule.id])()),
        )
        count = row_counting.of_table(session, source)
        backup_id = store.catalog.next_id(session)
        bare = _bare(source, namespace_of_backup(backup_id), source.name)
        target = attempt.definer.make(session, bare, _FOREVER_MS, now_ms)
        backup_store.add_copy(session, PendingCopy(target.id, source.id, moment))
        backup = Backup(
            backup_id,
            source.namespace,
            source.name,
            command.name,
            BackupKind.USER,
            target.id,
            source,
            count.rows,
            count.size_bytes,
            False,
            now_ms,
        )
        backup_store.add_backup(session, backup, descriptors.definition(source))
    store.catalog.cache.forget(source.id)
    return backup


def _list(attempt: Attempt, command: backup_commands.ListBackups) -> list[Backup]:
    with attempt.store.read() as session:
        return backup_store.page_of_backups(session, attempt.store.catalog.defined, command)


def _delete(attempt: Attempt, command: backup_commands.DeleteBackup) -> Backup:
    with attempt.store.write() as session:
        return history_retention.delete(attempt.store, session, command.backup.id)


# Carrying it on


def advance(store: Store, turns: FairQueue, limit: int) -> int | None:
    """Carry one copy on by a batch of at most `limit` rows. Return the number of processed rows, or None if no copy
    waits."""
    with store.read() as session:
        pending_copies = backup_store.waiting_copies(session)
        piece = next(
            turns.order([(_owner_of(*names), target_id) for target_id, *names in pending_copies]), None
        )
        if piece is None:
            return None
        turns.take(*piece)
        copy = backup_store.copy_to(session, piece[1])
        if copy is None:
            return 0  # another server has finished it
        source = store.catalog.by_id(session, copy.source_id)
        target = store.catalog.by_id(session, copy.target_id)
    if source is None or target is None:
        _give_up(store, copy)
        return 0
    if copy.phase >= CopyPhase.GATHERING:
        return _advance_window(store, copy, source, target, limit)
    with store.read() as session:
        if copy.phase is CopyPhase.UNDOING and copy.moment is not None:
            part = history_store.changes_before(
                session, copy.moment, copy.mark or history_store.NEWEST, limit
            )
        else:
            part = history_store.rows_after(session, copy.source_id, copy.mark, limit)
    with store.write() as session:
        if (
            backup_store.lock_copy(session, copy.target_id) != copy
            or store.catalog.check(session, [target], lock=True)()
        ):
            return 0  # another server has advanced it
        change_windows.keep(session, target, part.rows, is_new=copy.phase is CopyPhase.COPYING)
        if part.mark is not None:
            backup_store.save_copy_progress(session, copy._replace(mark=part.mark), part.length)
        elif copy.moment is not None and copy.phase is CopyPhase.COPYING:
            backup_store.save_copy_progress(
                session, copy._replace(phase=CopyPhase.UNDOING, mark=None), part.length
            )
        else:
            _finish(store, session, copy, target)
    if part.mark is None:
        store.catalog.cache.forget(copy.target_id)
        store.catalog.cache.forget(copy.source_id)
    return part.length


def _owner_of(target: str | None, source: str | None) -> str:
    names = [name for name in (target, source) if name is not None and not is_reserved_namespace(name)]
    return account_of(names[0]) if names else RETAINED


def _advance_window(store: Store, copy: PendingCopy, source: Table, target: Table, limit: int) -> int:
    """Carry on by one batch the gathering of changes in a window (change_windows.py)."""
    with store.write() as session:
        if (
            backup_store.lock_copy(session, copy.target_id) != copy
            or store.catalog.check(session, [target], lock=True)()
        ):
            return 0  # another server has advanced it
        next_copy, length = change_windows.advance(store, session, copy, source, target, limit)
        if next_copy is not None:
            backup_store.save_copy_progress(session, next_copy, length)
        else:
            _finish(store, session, copy, target)
    if next_copy is None:
        store.catalog.cache.forget(copy.target_id)
        store.catalog.cache.forget(copy.source_id)
    return length


def open_table(store: Store, session: Session, table: Table) -> None:
    """End the CREATING state of a table. The caller clears the cache."""
    store.catalog.lock(session, table.id)
    for index in table.all_indexes:
        store.catalog.update_index(session, dataclasses.replace(index, busy_until_ms=0))
    store.catalog.update(session, dataclasses.replace(table, state=State.ACTIVE, busy_until_ms=0))


def _finish(store: Store, session: Session, copy: PendingCopy, target: Table) -> None:
    open_table(store, session, target)
    backup_store.remove_copy(session, copy.target_id)
    backup_store.set_backup_ready(session, copy.target_id)
    history_retention.release(store, session, copy.source_id)


def _give_up(store: Store, copy: PendingCopy) -> None:
    """Remove a copy after its source or target was removed."""
    with store.write() as session:
        backup_store.remove_copy(session, copy.target_id)
        backup_store.remove_backup(session, copy.target_id)
        target = store.catalog.lock(session, copy.target_id)
        if target is not None:
            store.catalog.remove(session, target)
        history_retention.release(store, session, copy.source_id)
    store.catalog.cache.forget(copy.target_id)
    store.catalog.cache.forget(copy.source_id)


COMMANDS: Runners = {
    backup_commands.KeepHistory: _keep_history,
    backup_commands.RestoreTable: _restore,
    backup_commands.CreateBackup: _back_up,
    backup_commands.ListBackups: _list,
    backup_commands.DeleteBackup: _delete,
}
