"""The write path. All changes of rows for clients go through `WriteBatch`: lock, fetch, apply, save.

A list of groups becomes one transaction (docs/architecture.md section 4). What only some tables or groups need, such as
tokens, streams and everything that a capability adds, is a `WriteHook`. The engine has one list of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence, Set
from typing import ClassVar, NamedTuple, cast

from tablegate.gateway.engine.tables import indexing
from tablegate.gateway.model import errors
from tablegate.gateway.model.commands.row_commands import (
    ReplayedOutcome,
    RowKey,
    WriteGroup,
    WriteOutcome,
    apply_group,
    defects_of_group,
)
from tablegate.gateway.model.commands.writes import Write
from tablegate.gateway.model.tables.tables import BUSY_STATES, Table
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.store.rows import rows
from tablegate.gateway.store.rows.row_counts import CountChanges
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.store import Store

log = logging.getLogger(__name__)

Answer = list[WriteOutcome] | ReplayedOutcome | errors.GatewayError


class RowChange(NamedTuple):
    """A completed write: the row before and after it."""

    write: Write
    old: Row | None
    new: Row | None


class WriteHook:
    """An addition to the transaction of a list of groups by a part of the engine. One object serves one attempt.

    A batch calls each method for all hooks of the list, in their order. The methods stand in the order of the calls.
    """

    features: ClassVar[frozenset[str]]
    """The hook is called if a table of the batch has one of these (Table.features), or a group has a "token" or a
    "transaction"."""

    def __init__(self, batch: WriteBatch) -> None:
        """Begin an attempt, before its transaction. May add tables to the batch."""
        self.batch = batch

    def lock(self, session: Session) -> None:
        """Take locks before those of rows. May answer groups, change their writes, and add rows to lock."""

    def read(self, session: Session, keys: Sequence[RowKey]) -> None:
        """Send queries that need the locks of these rows, without a round trip."""

    def begin(self) -> None:
        """Take the results of `read`. May move the time of the batch forward."""

    def answer(self, group: WriteGroup, writes: Sequence[Write]) -> Answer | None:
        """Return the answer of a group that must not be applied, otherwise None."""
        return None

    def applied(
        self, session: Session, group: WriteGroup, writes: Sequence[Write], outcomes: Sequence[WriteOutcome]
    ) -> None:
        """Take note of a group that has been applied to the view."""

    def save(self, session: Session) -> None:
        """Write what follows from all groups. The rows and index entries have been saved."""


class WriteBatch:
    """One attempt to write a list of groups. `answers` are complete before the commit.

    `hooks` returns all hooks of the engine, given the features of the tables. `before_commit` runs last in the
    transaction. With it, tables that are still CREATING can be filled.
    """

    def __init__(
        self,
        store: Store,
        hooks: Callable[[Set[str]], Sequence[type[WriteHook]]],
        groups: Sequence[WriteGroup],
        now: int,
        nowait: bool = False,
        before_commit: Callable[[Session, list[Answer]], None] | None = None,
    ) -> None:
        self.store = store
        self.now = now
        """The time of the writes, in ticks of 100 ns since 1970."""
        self.now_ms = now // 10_000
        self.groups = groups
        self.unanswered: dict[int, Sequence[Write]] = {at: group.writes for at, group in enumerate(groups)}
        """The writes of the groups that have no answer yet, by the index of the group."""
        self.tables: dict[int, Table] = {}
        self.other_keys: set[RowKey] = set()
        """Rows to lock and fetch besides those of the writes."""
        self.before: dict[RowKey, Row] = {}
        self.after: dict[RowKey, Row | None] = {}
        """The rows with all groups applied so far. An absent row is None."""
        self.changes: list[RowChange] = []
        """Completed writes for the streams of their tables."""
        self._hooks_for_features = hooks
        self._hooks: list[WriteHook] = []
        self._nowait = nowait
        self._before_commit = before_commit
        self._features: set[str] = set()
        self._parsed: list[Table] = []
        """The table of each write, as parsed by its group. Groups may have seen different versions of a table."""
        self._counts = CountChanges()
        self.answers = cast("list[Answer]", [None] * len(groups))
        first_writes = groups[0].writes if groups else ()
        self._near = first_writes[0].key.position.partition if first_writes else b""
        for group in groups:
            if group.token is not None:
                self._features.add("token")
            if group.transaction:
                self._features.add("transaction")
            for write in group.writes:
                self._parsed.append(write.table)
                self.tables[write.table.id] = write.table
        for table in self.tables.values():
            self._features |= table.features

    def add_table(self, table: Table) -> None:
        """Add a table, since the batch also writes rows of it."""
        self._parsed.append(table)
        self.tables[table.id] = table
        self._features |= table.features

    def answer(self, at: int, answer: Answer) -> None:
        """Answer a group, which is then not applied. The first answer counts."""
        if self.unanswered.pop(at, None) is not None:
            self.answers[at] = answer

    def run(self) -> None:
        """Write everything in one transaction. Raises RetryableFailure, CommitInterrupted, Busy, DatabaseFailed.

        If one table is stale, nothing is written and all requests are parsed again. Groups of one request may be in the
        same list, and must not be written twice when the request is repeated.
        """
        if self._features:
            for hook in self._hooks_for_features(self._features):
                if not hook.features.isdisjoint(self._features):
                    self._hooks.append(hook(self))
        # A job's batch may also create a table, which involves all nodes.
        entry_partition = self._near if self._before_commit is None else b""
        try:
            with self.store.write(self._nowait, entry_partition) as session:
                # On PostgreSQL all queries up to the first used result are one round trip.
                stale_ids = self.store.catalog.check(session, self._parsed, lock=True, near=self._near)
                keys = self._lock(session)
                self._fetch(session, keys, stale_ids)
                self._apply(session)
                self._save(session, keys)
                if self._before_commit is not None:
                    self._before_commit(session, self.answers)
        except _StaleTables as stale:
            for table_id in stale.tables:
                self.store.catalog.cache.forget(table_id)
            self.answers = [errors.StaleTable() for _ in self.groups]
        finally:
            self._hooks.clear()  # a cycle of references would keep all rows until a garbage collection

    def _lock(self, session: Session) -> list[RowKey]:
        """Take the locks before those of rows. Return the rows of the groups that are left, in the order of locks."""
        # Replicas and imports fill their tables before clients can write to them.
        if self._before_commit is None:
            self._refuse_while_busy()
        for hook in self._hooks:
            hook.lock(session)
        keys = {
            (write.table.id, write.key.position) for writes in self.unanswered.values() for write in writes
        }
        return sorted(keys | self.other_keys if self.other_keys else keys)

    def _refuse_while_busy(self) -> None:
        """Refuse the groups that write to a table that is being created or deleted."""
        busy: dict[int, errors.TableBusy] = {}
        for table in self.tables.values():
            state = table.state_at(self.now_ms)
            if state in BUSY_STATES:
                busy[table.id] = errors.TableBusy(table.name, state.value)
        if not busy:
            return
        for at, group in enumerate(self.groups):
            for write in group.writes:
                if write.table.id in busy and write.stamp is None:
                    self.answer(at, busy[write.table.id])

    def _fetch(self, session: Session, keys: list[RowKey], stale_ids: Callable[[], set[int]]) -> None:
        """Lock and fetch the rows. Raises _StaleTables."""
        fetch = rows.claim_and_fetch(session, keys)
        for hook in self._hooks:
            hook.read(session, keys)
        stale = stale_ids()
        if stale:
            raise _StaleTables(stale)
        self.before = fetch()
        self.after = {**self.before}
        for hook in self._hooks:
            hook.begin()

    def _apply(self, session: Session) -> None:
        """Apply the groups to the view in order, each completely or not at all."""
        for at, writes in self.unanswered.items():
            group = self.groups[at]
            for hook in self._hooks:
                answer = hook.answer(group, writes)
                if answer is not None:
                    self.answers[at] = answer
                    break
            else:
                self.answers[at] = outcomes = apply_group(writes, self.after, self.now)
                if isinstance(outcomes, errors.GatewayError):
                    for defect in defects_of_group(outcomes):
                        log.error("a write could not be applied", exc_info=defect)
                    continue
                for hook in self._hooks:
                    hook.applied(session, group, writes, outcomes)

    def _save(self, session: Session, keys: list[RowKey]) -> None:
        new_rows: list[tuple[int, Row]] = []
        removed_keys: list[RowKey] = []
        unused_keys: list[RowKey] = []
        pairs_by_table: dict[int, list[tuple[Row | None, Row | None]]] = {}
        for key in keys:
            old, new = self.before.get(key), self.after.get(key)
            if new is None:
                (unused_keys if old is None else removed_keys).append(key)
            elif new is not old:
                new_rows.append((key[0], new))
            if new is old:
                continue
            self._counts.add(key[0], old, new)
            table = self.tables[key[0]]
            if table.indexes or table.other_indexes:
                pairs_by_table.setdefault(key[0], []).append((old, new))
        rows.save_many(session, new_rows)
        rows.remove_many(session, removed_keys, claims=unused_keys)
        for table_id, pairs in pairs_by_table.items():
            indexing.update_indexes(session, self.tables[table_id], pairs, self._counts)
        for hook in self._hooks:
            hook.save(session)
        self._counts.save(session, self._near)


class _StaleTables(Exception):
    """Some tables have other versions than the requests were parsed with."""

    def __init__(self, tables: set[int]) -> None:
        super().__init__(tables)
        self.tables = tables
