"""Changes of the source, applied to the copy after its scan and continuously.

A change is only a key. The row is read again at the source, and its current state is written to the target or
deleted there. The job holds each changed key once. Keys and the new stream position are stored in one transaction.
So duplicates, disorder between rows and a kill at any moment do no harm, and the last write at the source wins. A
row is never in two calls at once. A source without deletes in its stream (Azure Table) needs sweeps, which find the
copied rows that no longer exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from tablegate.gateway.model.values.keys import Key, KeySchema, Position
from tablegate.gateway.model.values.rows import Row
from tablegate.transfer.copying.job import ChangedKey, Rejected
from tablegate.transfer.copying.writing import TableJob
from tablegate.transfer.endpoints.endpoint import JSON, AnyRow, UnreadableRow
from tablegate.transfer.errors import TransferError

THREADS = "copy"
"""Name prefix of threads that may still wait for a service when the command ends."""
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
            seen = self._table.source.changes(position)
            if seen.keys or seen.position != position:
                positions = [key.position for key in seen.keys]
                self._job.add_changes(self._table.id, positions, seen.position)
            position, caught_up = seen.position, seen.caught_up
            keys += len(seen.keys)
            if caught_up:
                break
        return position, ChangePoll(keys, caught_up)

    def apply(self) -> None:
        """Apply all stored changes to the target. Raises CopyStopped, TransferError."""
        with ThreadPoolExecutor(self._table.parallel, THREADS) as pool:
            while changed := self._job.changes(self._table.id, self._table.parallel * self._batch):
                parts = [changed[at : at + self._batch] for at in range(0, len(changed), self._batch)]
                applied = list(pool.map(self._apply, parts))
                self._table.pace.stop.check()
                self._job.changes_applied(
                    self._table.id,
                    changed,
                    [position for part in applied for position in part.written],
                    [position for part in applied for position in part.deleted],
                    [reject for part in applied for reject in part.rejects],
                    self.sweeps,
                )

    def _apply(self, changed: Sequence[ChangedKey]) -> _AppliedChanges:
        self._table.pace.stop.check()
        keys = [self._key_schema.decode(each.position) for each in changed]
        rows: list[Row] = []
        gone: list[Key] = []
        unreadable: list[Rejected] = []
        for key, row in zip(keys, self._read(keys), strict=True):
            if row is None:
                gone.append(key)
            elif isinstance(row, UnreadableRow):
                unreadable.append(self._table.writer.rejected_unreadable(row))
            else:
                rows.append(row)
        rejects = self._table.writer.write(rows) if rows else []
        if gone:
            self._table.writer.delete(gone)
        missing = {reject.position for reject in rejects}
        written = [row.position for row in rows if row.position not in missing]
        return _AppliedChanges(written, [key.position for key in gone], [*rejects, *unreadable])

    def _read(self, keys: Sequence[Key]) -> Sequence[AnyRow | None]:
        try:
            found = self._table.source.get(keys)
        except OSError as error:
            raise TransferError(f"{self._table.source.shown}: {error.strerror or error}") from error
        self._table.pace.before_read(sum(row.size_bytes for row in found if row is not None))
        return found

    def sweep(self) -> int:
        """Find copied rows that no longer exist and rows that were never copied. Store both as changes.

        Return the number of rows that no longer exist.
        """
        number = self._job.begin_sweep(self._table.id)
        with ThreadPoolExecutor(self._table.parallel, THREADS) as pool:
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
            self._job.seen(self._table.id, number, [row.position for row in page.all_rows])
