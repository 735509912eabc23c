"""Expiry: expired rows become ordinary deletes by the actor "expiry". A new rule gives rows new times.

`Table.expires_at_ms` (model) decides when a row expires. The column `expires_at_ms` only finds due rows quickly. It may
be out of date for a while after a rule changed, so the rule is evaluated again before a row is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tablegate.gateway.engine import batch_walk
from tablegate.gateway.engine.scheduler import Scheduler, Work
from tablegate.gateway.model import fast_paths
from tablegate.gateway.model.commands.row_commands import WriteGroup
from tablegate.gateway.model.commands.writes import Remove, Write
from tablegate.gateway.model.errors import ConditionFailed, GatewayError
from tablegate.gateway.model.expressions.predicates import RevisionIs
from tablegate.gateway.model.tables.indexes import Entry
from tablegate.gateway.model.tables.tables import BUSY_STATES, Table
from tablegate.gateway.model.values.keys import Key
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.store.rows import rows
from tablegate.gateway.store.rows.row_counts import CountChanges
from tablegate.gateway.store.sql import progress
from tablegate.gateway.store.sql.databases import RetryableFailure
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.tables import index_kinds

EXPIRY_ACTOR = "expiry"
_FEATURES = frozenset({"expiry.attribute", "expiry.age_ms", "indexes", "max_versions", "stamped"})
"""Features (Table.features) that `fast_remove` supports: the row alone says what else must be deleted."""

ExpiredRow = tuple[Table, Row]


def add_works(background: Scheduler, sweep_period_s: float) -> None:
    """Register the works of this module."""
    sweep, most = Sweep(background.store, background.write), progress.COUNTED_ROWS
    background.add(Work(progress.EXPIRY_BACKFILL, lambda now_ms, limit: backfill(background.store, limit)))
    background.add(
        Work(
            "expiry_sweep",
            sweep.next_batch,
            period_s=sweep_period_s,
            count=lambda session, now_ms: rows.count_expired(session, now_ms, most),
        )
    )


class DueRows(NamedTuple):
    """A batch of due rows.

    `rows`: to be deleted. `corrected`: number of rows that got another time or none. `number`: of all rows read.
    `up_to_ms`: the greatest time of a row read.
    """

    rows: list[ExpiredRow]
    corrected: int
    number: int
    up_to_ms: int


def due(store: Store, now_ms: int, limit: int, from_ms: int = 0, offset: int = 0) -> DueRows | None:
    """Return the next batch of rows that are due by their column, from a time on and after an offset. None if there is
    none.

    Corrects the times of rows that are not due by the rule. Rows of tables that nothing can write to now are left out.
    """
    with store.read() as session:
        candidates, up_to_ms, row_errors = rows.expired(session, (from_ms, now_ms), limit, offset)
        tables = {
            table_id: store.catalog.by_id(session, table_id)
            for table_id in {table_id for table_id, _ in candidates}
        }
    for error in row_errors:
        store.note_damage(error)
    expired_rows: list[ExpiredRow] = []
    rows_to_correct: list[tuple[int, Row]] = []
    for table_id, row in candidates:
        table = tables[table_id]
        if table is None:
            rows_to_correct.append((table_id, row))  # the table is dropped, and the rows await the purge
            row.expires_at_ms = None
        elif table.state_at(now_ms) in BUSY_STATES:
            continue
        elif (expires_at_ms := table.expires_at_ms(row)) is None or expires_at_ms > now_ms:
            rows_to_correct.append((table_id, row))
            row.expires_at_ms = expires_at_ms
        else:
            expired_rows.append((table, row))
    if rows_to_correct:
        with store.write() as session:
            rows.set_expiry(session, rows_to_correct)
    if up_to_ms is None:
        return None
    return DueRows(expired_rows, len(rows_to_correct), len(candidates) + len(row_errors), up_to_ms)


class Sweep:
    """Passes over all rows that are due, oldest first. `write` runs groups of writes (Transactions.write).

    Rows that cannot be deleted now are passed over: those of locked partitions, of tables in BUSY_STATES, and
    damaged ones.
    """

    def __init__(self, store: Store, write: Callable[[list[WriteGroup]], Sequence[Any]]) -> None:
        self._store = store
        self._write = write
        self._from_ms = self._staying = 0

    def next_batch(self, now_ms: int, limit: int) -> int | None:
        """Delete the next rows. Return the number of deleted and corrected ones, or None at the end of a pass."""
        batch = due(self._store, now_ms, limit, self._from_ms, self._staying)
        if batch is None:
            self._from_ms = self._staying = 0
            return None
        rows_to_write = remove(self._store, batch.rows)
        answers = self._write(deletes_of(rows_to_write)) if rows_to_write else []
        # A failed condition means that the row was written or deleted since, perhaps by the sweep of another server.
        failed = sum(
            isinstance(answer, GatewayError) and not isinstance(answer, ConditionFailed) for answer in answers
        )
        done = len(batch.rows) + batch.corrected - failed
        self._staying += batch.number - done
        if not self._staying:
            self._from_ms = batch.up_to_ms
        return done


def deletes_of(expired_rows: Sequence[ExpiredRow]) -> list[WriteGroup]:
    """Return a delete for each row, which applies only if the row was not written since it was read."""
    return [WriteGroup((_removal(table, row),)) for table, row in expired_rows]


def fast_remove(store: Store, expired_rows: Sequence[ExpiredRow]) -> Sequence[ExpiredRow]:
    """Delete rows in one transaction, without reading them again. Return those that need the write path.

    These are the rows of tables with other features, such as streams. All rows need it if one was written meanwhile.
    """
    simple_rows = [pair for pair in expired_rows if pair[0].features <= _FEATURES]
    if not simple_rows or not _remove(store, simple_rows):
        return expired_rows
    return [pair for pair in expired_rows if not pair[0].features <= _FEATURES]


def _remove(store: Store, expired_rows: Sequence[ExpiredRow]) -> bool:
    tables: dict[int, Table] = {}
    counts = CountChanges()
    old_entries: list[tuple[int, Entry]] = []
    # Before the transaction, because other writers may wait for it.
    for table, row in expired_rows:
        tables[table.id] = table
        counts.add(table.id, row, None)
        old_entries += index_kinds.differences(table.indexes, [(row, None)], counts)[0]
    near = expired_rows[0][1].position.partition
    try:
        with store.write() as session:
            if store.catalog.check(session, tables.values(), lock=True, near=near)():
                raise RetryableFailure("a table changed")
            if not rows.remove_unchanged(session, [(table.id, row) for table, row in expired_rows]):
                raise RetryableFailure("a row was written after it was read")
            index_kinds.remove_entries(session, old_entries)
            counts.save(session, near)
    except RetryableFailure:
        return False
    return True


def _write_all(store: Store, expired_rows: Sequence[ExpiredRow]) -> Sequence[ExpiredRow]:
    return expired_rows


remove = fast_paths.choose(fast_remove, _write_all)


def _removal(table: Table, row: Row) -> Write:
    key = Key(table.key_schema.decode(row.position).values, row.position)
    return Write(table, key, Remove(), RevisionIs(row.modified_at), actor=EXPIRY_ACTOR)


def backfill(store: Store, limit: int) -> int | None:
    """Recompute the expiry times of at most `limit` rows of a table that has a new rule.

    Return the number of processed rows, or None if no table waits. `modified_at` and streams do not change.
    """
    with store.read() as session:
        backfill_progress = progress.first_expiry_backfill(session)
    if backfill_progress is None:
        return None
    with store.write() as session:
        table_id, mark = backfill_progress
        table = store.catalog.lock(session, table_id)
        batch = None if table is None else batch_walk.next_batch(session, table, mark, limit)
        if table is None or batch is None:
            progress.finish_expiry_backfill(session, table_id)
            return 0
        changed_rows = []
        for row in batch.rows:
            expires_at_ms = table.expires_at_ms(row)
            if expires_at_ms != row.expires_at_ms:
                row.expires_at_ms = expires_at_ms
                changed_rows.append((table_id, row))
        rows.set_expiry(session, changed_rows)
        progress.save_expiry_backfill(session, table_id, batch.mark, batch.length)
    return batch.length
