"""The control plane: create, alter, drop, find, list and count tables.

A change of a table updates its row, and so its version, in a transaction of its own. A writer with the old descriptor
detects the change under the lock and parses its request again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import partial

from tablegate.gateway.engine.scheduler import Scheduler, Work
from tablegate.gateway.engine.streams import follower_reads, streaming
from tablegate.gateway.model import errors
from tablegate.gateway.model.authorization.quotas import TABLES, TableLimit
from tablegate.gateway.model.commands import table_commands
from tablegate.gateway.model.tables.indexes import BaseIndex, Index
from tablegate.gateway.model.tables.tables import (
    FOLLOWED,
    SNAPSHOTS,
    Rules,
    State,
    StreamRule,
    Table,
    azure_name_for,
)
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.store.rows import row_counts
from tablegate.gateway.store.sql import progress
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.streams import changes
from tablegate.gateway.store.tables import index_kinds


class TableDefiner:
    """Runs control-plane commands.

    `delay_ms` is how long tables stay creating, updating and deleting (0 for no delay). `stream_shards` is the number
    of shards of a new stream.
    """

    def __init__(self, store: Store, delay_ms: int = 0, stream_shards: int = 1) -> None:
        self._store = store
        self._catalog = store.catalog
        self._delay_ms = delay_ms
        self._stream_shards = stream_shards

    def find_all(
        self, commands: Sequence[table_commands.FindTable], now_ms: int
    ) -> list[Table | errors.TableMissing | errors.NotInstalled]:
        """Return the table of each command, in one round trip to the database.

        The error is NotInstalled if the table has an index of a kind that this server does not have.
        """
        names = [(command.namespace, command.name, command.by_azure_name) for command in commands]
        with self._store.database.read_one() as session:
            tables = self._catalog.find_all(session, names)
        found: list[Table | errors.TableMissing | errors.NotInstalled] = []
        for command, table in zip(commands, tables, strict=True):
            if table is None or _is_deleted(table, now_ms):
                found.append(errors.TableMissing(command.name))
            elif (unknown := index_kinds.unknown_index(table)) is not None:
                found.append(errors.NotInstalled(unknown.member))
            else:
                self._catalog.cache.keep(table)
                found.append(table)
        return found

    def list_tables(self, command: table_commands.ListTables, now_ms: int) -> list[Table]:
        with self._store.read() as session:
            tables = self._catalog.page(
                session, command.namespace, command.after, command.limit, command.by_azure_name
            )
        return [table for table in tables if not _is_deleted(table, now_ms)]

    def create(self, command: table_commands.CreateTable, now_ms: int) -> Table:
        """Create a table. Raises TableExists, TableBusy, QuotaExceeded."""
        with self._store.write() as session:
            table = self.make(session, command, self._busy_until_ms(now_ms), now_ms)
        self._catalog.cache.keep(table)
        return table

    def make(
        self,
        session: Session,
        command: table_commands.CreateTable,
        busy_until_ms: int,
        now_ms: int,
        table_id: int | None = None,
    ) -> Table:
        """Insert a new table, which is CREATING until `busy_until_ms`. `table_id`: an id reserved for it, or None.

        Raises TableExists, TableBusy, QuotaExceeded.
        """
        self._refuse_existing(session, command, now_ms)
        self.check_bounds(session, command.bounds, now_ms)
        is_taken = self._catalog.azure_name_taken(session, command.namespace)
        if command.ignoring_case and is_taken(command.name.lower()):
            raise errors.TableExists(command.name)
        table = Table(
            id=self._catalog.next_id(session) if table_id is None else table_id,
            namespace=command.namespace,
            name=command.name,
            azure_name=azure_name_for(command.name, is_taken),
            key_schema=command.key_schema,
            indexes=(),
            rules=command.rules,
            properties=dict(command.properties),
            state=State.CREATING,
            busy_until_ms=busy_until_ms,
            version=1,
            created_at_ms=now_ms,
        )
        indexes = tuple(
            self._index(session, new, command.key_schema, command.dialect, busy_until_ms)
            for new in command.indexes
        )
        other_indexes = tuple(
            self._other_index(session, new, command.key_schema, command.dialect, busy_until_ms)
            for new in command.other_indexes
        )
        table = dataclasses.replace(table, indexes=indexes, other_indexes=other_indexes)
        table = self._with_stream(session, None, table, now_ms)
        if not self._catalog.insert(session, table)():
            raise errors.TableExists(command.name)
        row_counts.begin(session, table)
        return table

    def check_bounds(self, session: Session, bounds: Sequence[TableLimit], now_ms: int) -> None:
        """Raise QuotaExceeded if a limit on the number of tables is reached. Locks out other transactions that create
        tables."""
        if bounds:
            self._catalog.lock_ids(session)
        for owner, scope, limit in bounds:
            if self._catalog.count(session, scope, now_ms) >= limit:
                raise errors.QuotaExceeded(TABLES, limit, owner)

    def forget(self, session: Session, table: Table, now_ms: int) -> None:
        """Remove a table that the session has locked. The caller clears the cache after the transaction."""
        self._catalog.remove(
            session, follower_reads.detach(self._store, session, table, now_ms, delivers=False)
        )

    def recreate(self, session: Session, copies: Sequence[tuple[Table, str]], now_ms: int) -> list[Table]:
        """Insert an empty copy of each definition, under the same name in a namespace that does not have it yet.

        A stream in the rules begins now. In a snapshot the rule is only stored.
        """
        ids = iter(self._catalog.next_ids(session, sum(1 + len(table.all_indexes) for table, _ in copies)))
        tables = [self._recreate(session, table, namespace, ids, now_ms) for table, namespace in copies]
        insertions = [self._catalog.insert(session, table) for table in tables]
        for table, is_inserted in zip(tables, insertions, strict=True):
            if not is_inserted():
                raise errors.TableExists(table.name)
            row_counts.begin(session, table)
        return tables

    def _recreate(
        self, session: Session, table: Table, namespace: str, ids: Iterator[int], now_ms: int
    ) -> Table:
        indexes = tuple(
            dataclasses.replace(index, id=next(ids), filled=True, busy_until_ms=0) for index in table.indexes
        )
        other_indexes = tuple(
            dataclasses.replace(index, id=next(ids), filled=True, busy_until_ms=0)
            for index in table.other_indexes
        )
        copy = dataclasses.replace(
            table,
            id=next(ids),
            namespace=namespace,
            indexes=indexes,
            other_indexes=other_indexes,
            rules=table.rules.independent(),
            state=State.ACTIVE,
            busy_until_ms=0,
            version=1,
            created_at_ms=now_ms,
        )
        for hook in self._catalog.hooks:
            copy = hook.copied(session, table, copy, now_ms)
        return copy if namespace.startswith(SNAPSHOTS) else self._with_stream(session, None, copy, now_ms)

    def _with_stream(self, session: Session, old_rules: Rules | None, table: Table, now_ms: int) -> Table:
        """Return a table after beginning, ending or changing its stream by its rules."""
        new_rules = table.rules
        if old_rules is not None and old_rules.stream is not None and streaming.is_over(old_rules, new_rules):
            changes.end_stream(session, old_rules.stream.id, now_ms)
        rule = new_rules.stream
        if rule is not None and streaming.is_new(old_rules, new_rules):
            stream = changes.stream_of(table, rule, self._catalog.next_id(session), now_ms)
            rule = streaming.begin(session, stream, self._stream_shards, now_ms)
        elif (
            rule is not None
            and old_rules is not None
            and old_rules.stream is not None
            and rule != old_rules.stream
        ):
            rule = dataclasses.replace(rule, id=old_rules.stream.id, shards=old_rules.stream.shards)
            changes.update_rule(session, rule)
        return self.with_log(
            session, dataclasses.replace(table, rules=dataclasses.replace(new_rules, stream=rule)), now_ms
        )

    def with_log(self, session: Session, table: Table, now_ms: int) -> Table:
        """Return a table with a change log if it has followers and no client stream. Otherwise without one."""
        rules = table.rules
        is_needed = rules.followed and not (rules.stream is not None and rules.stream.enabled)
        log = rules.log
        if log is not None and not is_needed:
            changes.end_stream(session, log.id, now_ms)
            log = None
        elif log is None and is_needed:
            stream_id = self._catalog.next_id(session)
            rule = StreamRule(str(stream_id), True, "", 0, now_ms)
            stream = changes.stream_of(table, rule, stream_id, now_ms)
            hidden_stream = dataclasses.replace(stream, namespace=FOLLOWED + table.namespace)
            log = streaming.begin(session, hidden_stream, self._stream_shards, now_ms)
        return dataclasses.replace(table, rules=dataclasses.replace(rules, log=log))

    def _busy_until_ms(self, now_ms: int) -> int:
        """Return the end of a change. 0 without a delay, so that a clock set back cannot prolong it."""
        return now_ms + self._delay_ms if self._delay_ms else 0

    def _refuse_existing(self, session: Session, command: table_commands.CreateTable, now_ms: int) -> None:
        old_table = self._catalog.find(session, command.namespace, command.name)
        if old_table is None:
            return
        if _is_deleted(old_table, now_ms):
            _remove(self._store, session, old_table, now_ms)
        elif old_table.state_at(now_ms) is State.DELETING:
            raise errors.TableBusy(old_table.name, State.DELETING.value)
        else:
            raise errors.TableExists(old_table.name)

    def _index(
        self,
        session: Session,
        new: table_commands.NewIndex,
        table_keys: KeySchema,
        dialect: str,
        busy_until_ms: int,
        filled: bool = True,
    ) -> Index:
        return Index(
            id=self._catalog.next_id(session),
            name=new.name,
            key_schema=new.key_schema,
            projection=new.projection,
            table_keys=table_keys.names,
            included=new.included,
            local=new.local,
            filled=filled,
            busy_until_ms=busy_until_ms,
            properties=dict(new.properties),
            dialect=new.dialect or dialect,
            view=self._catalog.views.get(new.dialect or dialect),
        )

    def _other_index(
        self,
        session: Session,
        new: BaseIndex,
        table_keys: KeySchema,
        dialect: str,
        busy_until_ms: int,
        filled: bool = True,
    ) -> BaseIndex:
        return dataclasses.replace(
            new,
            id=self._catalog.next_id(session),
            table_keys=table_keys.names,
            filled=filled,
            busy_until_ms=busy_until_ms,
            dialect=new.dialect or dialect,
            view=self._catalog.views.get(new.dialect or dialect),
        )

    def alter_all(self, commands: Sequence[table_commands.AlterTable], now_ms: int) -> tuple[Table, ...]:
        """Alter tables in one transaction. Raises StaleTable, TableBusy, IndexMissing."""
        with self._store.write() as session:
            altered_tables = self.alter(session, commands, now_ms)
        for table in altered_tables:
            self._catalog.cache.keep(table)
        return altered_tables

    def alter(
        self, session: Session, commands: Sequence[table_commands.AlterTable], now_ms: int
    ) -> tuple[Table, ...]:
        """Lock tables in the order of their ids and alter them. Raises StaleTable, TableBusy, IndexMissing."""
        altered_tables = {
            command.table.id: self._alter(session, command, now_ms)
            for command in sorted(commands, key=lambda command: command.table.id)
        }
        return tuple(altered_tables[command.table.id] for command in commands)

    def _alter(self, session: Session, command: table_commands.AlterTable, now_ms: int) -> Table:
        table = follower_reads.lock_current(self._store, session, command.table)
        state, busy_until_ms = self._state_after(command, table, now_ms)
        old_rules = table.rules
        self._alter_indexes(session, command, table, busy_until_ms)
        table = dataclasses.replace(
            table,
            rules=table.rules if command.rules is None else _with_engine_rules(command.rules, table.rules),
            properties={**table.properties, **(command.properties or {})},
            state=state,
            busy_until_ms=busy_until_ms,
        )
        table = self._with_stream(session, old_rules, table, now_ms)
        if command.rules is not None and command.rules.expiry not in (None, old_rules.expiry):
            progress.begin_expiry_backfill(session, table.id)
        return follower_reads.save_table(self._store, session, table)

    def _alter_indexes(
        self, session: Session, command: table_commands.AlterTable, table: Table, busy_until_ms: int
    ) -> None:
        """Add, drop and change indexes. Raises IndexMissing."""
        for new_index in command.add_indexes:
            index = self._index(
                session,
                new_index,
                table.key_schema,
                command.dialect,
                busy_until_ms,
                filled=not new_index.fill,
            )
            self._catalog.insert_index(session, table.id, index)
        for new in command.add_other_indexes:
            other_index = self._other_index(
                session, new, table.key_schema, command.dialect, busy_until_ms, filled=False
            )
            self._catalog.insert_index(session, table.id, other_index)
        for name in command.drop_indexes:
            index_to_drop = next((index for index in table.all_indexes if index.name == name), None)
            if index_to_drop is None:
                raise errors.IndexMissing(table.name, name)
            self._catalog.remove_index(session, index_to_drop)
        for name, properties in command.index_properties.items():
            index_to_change = table.index(name)
            if index_to_change is None:
                raise errors.IndexMissing(table.name, name)
            self._catalog.update_index(
                session, dataclasses.replace(index_to_change, properties=dict(properties))
            )

    def _state_after(
        self, command: table_commands.AlterTable, table: Table, now_ms: int
    ) -> tuple[State, int]:
        """Return (state, its end) of an altered table. Raises TableBusy if it cannot be altered now."""
        state = table.state_at(now_ms)
        if command.instant and state in (State.ACTIVE, State.UPDATING):
            return table.state, table.busy_until_ms
        if state is not State.ACTIVE:
            raise errors.TableBusy(table.name, state.value)
        return State.UPDATING, self._busy_until_ms(now_ms)

    def drop_table(self, command: table_commands.DropTable, now_ms: int) -> Table:
        """Drop a table, in constant time. Raises TableMissing, TableBusy."""
        table, delay_ms = command.table, max(command.delay_ms, self._delay_ms)
        with self._store.write() as session:
            locked_table = self._catalog.lock(session, table.id)
            if locked_table is None or _is_deleted(locked_table, now_ms):
                raise errors.TableMissing(table.name)
            state = locked_table.state_at(now_ms)
            if state is not State.ACTIVE:
                raise errors.TableBusy(locked_table.name, state.value)
            locked_table = self.drop(session, locked_table, delay_ms, now_ms)
        self._catalog.cache.forget(locked_table.id)
        return locked_table

    def drop(self, session: Session, table: Table, delay_ms: int, now_ms: int) -> Table:
        """Drop a table that the session has locked, and return it. The caller clears the cache after the transaction."""
        table = follower_reads.detach(self._store, session, table, now_ms, delivers=True)
        if not delay_ms:
            _remove(self._store, session, table, now_ms)
            return table
        table = dataclasses.replace(
            table, state=State.DELETING, busy_until_ms=now_ms + delay_ms, version=table.version + 1
        )
        self._catalog.update(session, table)
        return table


def _with_engine_rules(new: Rules, old: Rules) -> Rules:
    """Return the requested rules with the engine's own fields of the stored ones."""
    return dataclasses.replace(new, followed=old.followed, log=old.log, replication=old.replication)


def _is_deleted(table: Table, now_ms: int) -> bool:
    """Return True if a deleted table is no longer visible. Background work removes it."""
    return table.state is State.DELETING and now_ms >= table.busy_until_ms


def _remove(store: Store, session: Session, table: Table, now_ms: int) -> None:
    """Remove a dropped table, in constant time, unless a capability retains it. The caller clears the cache."""
    if not any(hook.retain(session, table, now_ms) for hook in store.catalog.hooks):
        store.catalog.remove(session, table)


def add_works(background: Scheduler) -> None:
    """Register the works of this module."""
    background.add(Work("dropped_names", partial(remove_deleted, background.store)))


def remove_deleted(store: Store, now_ms: int, limit: int) -> int | None:
    """Free the names of at most `limit` tables that are no longer visible. Return their number, or None if there is
    none."""
    # The literal state matches the condition of the partial index on such tables.
    condition = f"state = '{State.DELETING.value}' AND busy_until_ms <= ? ORDER BY busy_until_ms LIMIT ?"
    with store.read() as session:
        tables = store.catalog.all(session, condition, (now_ms, limit))
    if not tables:
        return None
    with store.write() as session:
        for table in store.catalog.all(session, condition, (now_ms, limit)):
            _remove(store, session, table, now_ms)
    return len(tables)
