"""Changes of the source, applied to the copy after its scan and continuously.

A change is only a key. The row is read again at the source, and its current state is written to the target or
deleted there. The job holds each changed key once. Keys and the new stream position are stored in one transaction.
So duplicates, disorder between rows and a kill at any moment do no harm, and the last write at the source wins. A
row is never in two calls at once. A source without deletes in its stream (Azure Table) needs sweeps, which find the
copied rows that no longer exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tablegate.gateway.model.values.keys import Key, KeySchema, Position
from tablegate.gateway.model.values.rows import Row
from tablegate.transfer.copying.job_records import ChangedKey, Rejected
from tablegate.transfer.copying.writing import TableJob
from tablegate.transfer.endpoints.endpoint import JSON, AnyRow, UnreadableRow
from tablegate.transfer.errors import TransferError
from tablegate.transfer.threads import thread_pool

# Number of polls before their changes are applied.
_MAX_POLLS = 50


class ChangePoll(NamedTuple):
    """The result of polling for changes: the number of keys, and True if there are no more."""

    keys: int
    caught_up: bool


class _AppliedChanges(NamedTuple):
    written: list[Position]
    deleted: list[Position]
    rejects: list[Rejected]


class ChangeFollower:
    """The following of one table."""

    def __init__(self, table: TableJob, key_schema: KeySchema) -> None:
        self._table = table
        self._job = table.job
        self._key_schema = key_schema
        self._batch = min(table.source.write_rows, table.writer.most_rows)
        self.sweeps = not table.source.follows
        """True if the source needs sweeps."""

    def capture(self) -> None:
        """Start the capture of changes. Called once in a job, before any row is read."""
        self._job.set_position(self._table.id, self._table.source.capture())

    def poll(self, position: JSON) -> tuple[JSON, ChangePoll]:
        """Poll for changes until there are no more or many are stored. Return the new position."""
        keys = 0
        caught_up = False
        for _ in range(_MAX_POLLS):
            self._table.pace.stop.check()
            changed_keys = self._table.source.changes(position)
            if changed_keys.keys or changed_keys.position != position:
                positions = [key.position for key in changed_keys.keys]
                self._job.add_changes(self._table.id, positions, changed_keys.position)
            position, caught_up = changed_keys.position, changed_keys.caught_up
            keys += len(changed_keys.keys)
            if caught_up:
                break
        return position, ChangePoll(keys, caught_up)

    def apply(self) -> None:
        """Apply all stored changes to the target. Raises CopyStopped, TransferError."""
        with thread_pool(self._table.parallel) as pool:
            while changed_keys := self._job.changes(self._table.id, self._table.parallel * self._batch):
                parts = [
                    changed_keys[at : at + self._batch] for at in range(0, len(changed_keys), self._batch)
                ]
                outcomes = list(pool.map(self._apply, parts))
                self._table.pace.stop.check()
                self._job.changes_applied(
                    self._table.id,
                    changed_keys,
                    [position for part in outcomes for position in part.written],
                    [position for part in outcomes for position in part.deleted],
                    [reject for part in outcomes for reject in part.rejects],
                    self.sweeps,
                )

    def _apply(self, changed_keys: Sequence[ChangedKey]) -> _AppliedChanges:
        self._table.pace.stop.check()
        keys = [self._key_schema.decode(changed_key.position) for changed_key in changed_keys]
        rows: list[Row] = []
        deleted_keys: list[Key] = []
        unreadable: list[Rejected] = []
        for key, row in zip(keys, self._read(keys), strict=True):
            if row is None:
                deleted_keys.append(key)
            elif isinstance(row, UnreadableRow):
                unreadable.append(self._table.writer.rejected_unreadable(row))
            else:
                rows.append(row)
        outcomes = self._table.writer.write(rows) if rows else []
        if deleted_keys:
            self._table.writer.delete(deleted_keys)
        rejects = [outcome for outcome in outcomes if isinstance(outcome, Rejected)]
        written_positions = [
            row.position for row, outcome in zip(rows, outcomes, strict=True) if isinstance(outcome, Position)
        ]
        return _AppliedChanges(
            written_positions, [key.position for key in deleted_keys], [*rejects, *unreadable]
        )

    def _read(self, keys: Sequence[Key]) -> Sequence[AnyRow | None]:
        try:
            rows = self._table.source.get(keys)
        except OSError as error:
            raise TransferError(f"{self._table.source.shown}: {error.strerror or error}") from error
        self._table.pace.before_read(sum(row.size_bytes for row in rows if row is not None))
        return rows

    def sweep(self) -> int:
        """Find copied rows that no longer exist and rows that were never copied. Store both as changes.

        Return the number of rows that no longer exist.
        """
        number = self._job.begin_sweep(self._table.id)
        with thread_pool(self._table.parallel) as pool:
            list(
                pool.map(
                    lambda segment: self._sweep(number, segment),
                    self._table.source.segments(self._table.parallel),
                )
            )
        self._table.pace.stop.check()
        return self._job.end_sweep(self._table.id, number)

    def _sweep(self, number: int, segment: JSON) -> None:
        for page in self._table.source.scan(segment):
            self._table.pace.stop.check()
            self._table.pace.before_read(sum(row.size_bytes for row in page.all_rows))
            self._job.mark_seen(self._table.id, number, [row.position for row in page.all_rows])
