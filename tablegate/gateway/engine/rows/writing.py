"""The write path. All changes of rows for clients go through `WriteBatch`.

A list of groups becomes one transaction (docs/architecture.md section 4): tables, tokens, claims, old rows, `apply` for
each group in order of arrival, save, commit. Locks are always taken in the order tables, tokens, rows by key, counters.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import orjson

from tablegate.gateway.engine.replication import replica_writes
from tablegate.gateway.engine.rows import numbering
from tablegate.gateway.engine.streams import streaming
from tablegate.gateway.engine.streams.streaming import RowChange
from tablegate.gateway.engine.tables import indexing
from tablegate.gateway.model import errors
from tablegate.gateway.model.commands.row_commands import ReplayedOutcome, WriteGroup, WriteOutcome
from tablegate.gateway.model.commands.write_groups import RowKey, apply_group, defects
from tablegate.gateway.model.commands.writes import Write
from tablegate.gateway.model.tables.tables import BUSY_STATES, HistoryRule, Table
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.store.rows import rows
from tablegate.gateway.store.rows.row_counts import CountChanges
from tablegate.gateway.store.sql.databases import RetryableFailure, Session
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.tables import history
from tablegate.gateway.store.transactions import local_transactions, tokens

log = logging.getLogger(__name__)

Answer = list[WriteOutcome] | ReplayedOutcome | errors.GatewayError


class _StaleTables(Exception):
    """Some tables have other versions than the requests were parsed with."""

    def __init__(self, tables: set[int]) -> None:
        super().__init__(tables)
        self.tables = tables


class WriteBatch:
    """One attempt to write a list of groups. `answers` are complete before the commit.

    `before_commit` runs last in the transaction. With it, tables that are still CREATING can be filled.
    """

    def __init__(
        self,
        store: Store,
        groups: Sequence[WriteGroup],
        now: int,
        nowait: bool = False,
        before_commit: Callable[[Session, list[Answer]], None] | None = None,
    ) -> None:
        self._store = store
        self._groups = groups
        self._now = now
        self._now_ms = now // 10_000
        self._nowait = nowait
        self._before_commit = before_commit
        self._parsed: list[Table] = []
        """The table of each write, as parsed by its group. Groups may have seen different versions of a table."""
        self._tables: dict[int, Table] = {}
        self._features: set[str] = set()
        """The union of Table.features of these tables."""
        self._has_tokens = self._is_commit = False
        self._mirrors: dict[int, list[Table]] = {}
        self._deleted: replica_writes.DeletionTimes | None = None
        self._records: list[RowChange] = []
        self._counts = CountChanges()
        self.answers: list[Answer] = []
        for group in groups:
            self._has_tokens = self._has_tokens or group.token is not None
            self._is_commit = self._is_commit or bool(group.transaction)
            for write in group.writes:
                self._parsed.append(write.table)
                self._tables[write.table.id] = write.table
        for table in self._tables.values():
            self._features |= table.features

    def run(self) -> None:
        """Write everything in one transaction. Raises RetryableFailure, CommitInterrupted, Busy, DatabaseFailed.

        If one table is stale, nothing is written and all requests are parsed again. Groups of one request may be in the
        same list, and must not be written twice when the request is repeated.
        """
        if "replication" in self._features:
            self._add_mirrors()
        first_writes = self._groups[0].writes if self._groups else ()
        near = first_writes[0].key.position.partition if first_writes else b""
        # A job's batch may also create a table, which involves all nodes.
        entry_partition = near if self._before_commit is None else b""
        try:
            with self._store.write(self._nowait, entry_partition) as session:
                # On PostgreSQL all queries up to the first used result are one round trip.
                stale_ids = self._store.catalog.check(session, self._parsed, lock=True, near=near)
                self._decide(session, stale_ids)
                self._counts.save(session, near)
                if self._before_commit is not None:
                    self._before_commit(session, self.answers)
        except _StaleTables as stale:
            for table_id in stale.tables:
                self._store.catalog.cache.forget(table_id)
            self.answers = [errors.StaleTable() for _ in self._groups]

    def _add_mirrors(self) -> None:
        """Add the strong replicas of the tables, which receive the same writes."""
        self._mirrors = replica_writes.mirrors(self._store, self._tables)
        for peers in self._mirrors.values():
            for peer in peers:
                self._parsed.append(peer)
                self._tables[peer.id] = peer
                self._features |= peer.features

    def _decide(self, session: Session, stale_ids: Callable[[], set[int]]) -> None:
        """Lock and read the rows, apply the groups in order, and save. Skip steps for features that are not in use."""
        answers: list[Answer | None] = [None] * len(self._groups)
        # Replicas and imports fill their tables before clients can write to them.
        if self._before_commit is None:
            self._refuse_while_busy(answers)
        stored_answers = self._take_tokens(session, answers) if self._has_tokens else {}
        writes: dict[int, Sequence[Write]] = {
            at: group.writes for at, group in enumerate(self._groups) if answers[at] is None
        }
        if "auto_increment" in self._features:
            writes = numbering.draw(session, writes, self._now)
        if self._is_commit or "has_local_transactions" in self._features:
            self._check_partition_locks(session, answers)
            writes = {at: writes[at] for at in writes if answers[at] is None}
        row_keys = {
            (write.table.id, write.key.position) for of_group in writes.values() for write in of_group
        }
        if self._mirrors:
            row_keys |= {(peer.id, key[1]) for key in row_keys for peer in self._mirrors.get(key[0], ())}
        keys = sorted(row_keys)
        fetch = rows.claim_and_fetch(session, keys)
        histories = self._histories() if "history" in self._features else {}
        history_ids = [rule.id for rule in histories.values()]
        latest = history.latest_change(session, history_ids) if history_ids else None
        stale = stale_ids()
        if stale:
            raise _StaleTables(stale)
        before = fetch()
        if "replication" in self._features:
            self._deleted = replica_writes.DeletionTimes(session, self._tables, keys)
            self._now = max(self._now, self._deleted.latest + 1)
        view: dict[RowKey, Row | None] = dict(before)
        for at, of_group in writes.items():
            answers[at] = self._apply(session, self._groups[at], of_group, view, stored_answers)
            if self._groups[at].transaction and isinstance(answers[at], list):
                local_transactions.remove(session, self._groups[at].transaction)
        self._save(session, keys, before, view)
        if self._deleted is not None:
            self._deleted.keep(session)
        if latest is not None:
            self._keep_history(session, histories, before, view, latest())
        if self._records:
            streaming.record(session, self._records, self._now_ms)
        self.answers = cast("list[Answer]", answers)

    def _refuse_while_busy(self, answers: list[Answer | None]) -> None:
        """Refuse the groups that write to a table that is being created or deleted."""
        busy: dict[int, errors.TableBusy] = {}
        for table in self._tables.values():
            state = table.state_at(self._now_ms)
            if state in BUSY_STATES:
                busy[table.id] = errors.TableBusy(table.name, state.value)
        if not busy:
            return
        for at, group in enumerate(self._groups):
            for write in group.writes:
                if write.table.id in busy and write.stamp is None:
                    answers[at] = answers[at] or busy[write.table.id]

    def _check_partition_locks(self, session: Session, answers: list[Answer | None]) -> None:
        """Refuse writes to partitions that a local transaction has locked, and commits of transactions that have
        ended."""
        partitions: set[local_transactions.Partition] = set()
        for group in self._groups:
            for write in group.writes:
                if write.table.rules.has_local_transactions:
                    partitions.add((write.table.id, write.key.position.partition))
        if partitions and session.statements.guards_partitions:
            local_transactions.guard(session, partitions)
        locks = (
            local_transactions.partition_locks(session, sorted(partitions), self._now_ms)
            if partitions
            else {}
        )
        if not locks and not self._is_commit:
            return
        for at, group in enumerate(self._groups):
            if group.transaction:
                open_transaction = local_transactions.find(
                    session, group.transaction, self._now_ms, lock=True
                )
                if open_transaction is None:
                    answers[at] = answers[at] or errors.TransactionMissing()
                elif open_transaction.writes != len(group.writes):
                    raise RetryableFailure("a write was staged during the commit of a local transaction")
            for write in group.writes:
                partition = write.table.id, write.key.position.partition
                if locks.get(partition, group.transaction) != group.transaction:
                    answers[at] = answers[at] or errors.PartitionLocked()

    def _take_tokens(
        self, session: Session, answers: list[Answer | None]
    ) -> dict[tuple[str, str], tuple[bytes, str]]:
        """Answer replays. Return the stored answers of the tokens in use, which the groups of this list extend."""
        token_keys = sorted({(group.token.scope, group.token.name) for group in self._groups if group.token})
        stored_answers = {}
        for key in token_keys:
            stored_answer = tokens.take(session, *key, self._now_ms)
            if stored_answer is not None:
                stored_answers[key] = stored_answer
        for at, group in enumerate(self._groups):
            if group.token is not None and answers[at] is None:
                answers[at] = _replay(group, stored_answers)
        return stored_answers

    def _apply(
        self,
        session: Session,
        group: WriteGroup,
        writes: Sequence[Write],
        view: dict[RowKey, Row | None],
        stored_answers: dict[tuple[str, str], tuple[bytes, str]],
    ) -> Answer:
        """Apply a group to the view, completely or not at all."""
        if group.token is not None:
            replay = _replay(group, stored_answers)
            if replay is not None:
                return replay
        if self._deleted is not None and self._deleted.is_superseded(writes, view):
            return [WriteOutcome(None, None) for _ in writes]
        outcomes = apply_group(writes, view, self._now)
        if isinstance(outcomes, errors.GatewayError):
            for defect in defects(outcomes):
                log.error("a write could not be applied", exc_info=defect)
            return outcomes
        for write, outcome in zip(writes, outcomes, strict=True):
            if write.stamp is not None and outcome.new is outcome.old:
                continue  # the row has a later write, which the stream has recorded
            rules = write.table.rules
            if (rules.stream is not None or rules.log is not None) and streaming.is_recorded(write.table):
                self._records.append(RowChange(write, outcome.old, outcome.new))
            for peer in self._mirrors.get(write.table.id, ()):
                self._records += replica_writes.mirror(write, outcome, peer, view)
        if self._deleted is not None:
            self._deleted.note(writes, outcomes, self._now_ms)
        if group.token is not None:
            answer = orjson.dumps([_sizes(outcome) for outcome in outcomes]).decode()
            key_of_token = group.token.scope, group.token.name
            expires_at_ms = self._now_ms + group.token.lifetime_ms
            tokens.remember(session, key_of_token, group.token.digest, answer, expires_at_ms)
            stored_answers[key_of_token] = group.token.digest, answer
        return outcomes

    def _save(
        self,
        session: Session,
        keys: list[RowKey],
        before: dict[RowKey, Row],
        after: dict[RowKey, Row | None],
    ) -> None:
        new_rows: list[tuple[int, Row]] = []
        removed_keys: list[RowKey] = []
        unused_keys: list[RowKey] = []
        pairs_by_table: dict[int, list[tuple[Row | None, Row | None]]] = {}
        for key in keys:
            old, new = before.get(key), after.get(key)
            if new is None:
                (unused_keys if old is None else removed_keys).append(key)
            elif new is not old:
                new_rows.append((key[0], new))
            if new is old:
                continue
            self._counts.add(key[0], old, new)
            table = self._tables[key[0]]
            if table.indexes or table.vector_indexes:
                pairs_by_table.setdefault(key[0], []).append((old, new))
        rows.save_many(session, new_rows)
        rows.remove_many(session, removed_keys, claims=unused_keys)
        for table_id, pairs in pairs_by_table.items():
            indexing.update_indexes(session, self._tables[table_id], pairs, self._counts)

    def _histories(self) -> dict[int, HistoryRule]:
        return {
            table.id: rule for table in self._tables.values() if (rule := table.rules.history) is not None
        }

    def _keep_history(
        self,
        session: Session,
        histories: Mapping[int, HistoryRule],
        before: Mapping[RowKey, Row],
        after: Mapping[RowKey, Row | None],
        latest: int,
    ) -> None:
        """Record the old rows under one time for the whole transaction, so that no moment shows a part of a group.

        The time is later than any previous change of these rows, independent of the clocks of other servers. The rows
        are locked, so their changes are committed and not later than `latest`.
        """
        changes = [
            ((histories[key[0]].id, key[1]), before.get(key))
            for key, new in after.items()
            if key[0] in histories and new is not before.get(key)
        ]
        floors = (rule.floor + 1 for rule in histories.values())
        if changes:
            history.record(session, changes, max(self._now, latest + 1, *floors))


def _sizes(outcome: WriteOutcome) -> tuple[int | None, int | None]:
    old, new = outcome.old, outcome.new
    return None if old is None else old.size_bytes, None if new is None else new.size_bytes


def _replay(
    group: WriteGroup, stored_answers: dict[tuple[str, str], tuple[bytes, str]]
) -> ReplayedOutcome | errors.TokenReused | None:
    assert group.token is not None
    stored_answer = stored_answers.get((group.token.scope, group.token.name))
    if stored_answer is None:
        return None
    digest, answer = stored_answer
    if digest != group.token.digest:
        return errors.TokenReused()
    return ReplayedOutcome(tuple((old, new) for old, new in orjson.loads(answer)))
