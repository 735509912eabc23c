"""The worker for jobs on backup files (file_backups.py): it moves rows into a file, or back, in batches.

One server writes a file from beginning to end. After a kill the next server starts again. The rows leave the database
after the file is on disk, in the transaction that records the file. A restore stores rows together with its progress,
in a table that is CREATING. If the file is damaged, that table is removed.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from typing import Any

from tablegate.gateway.engine.background import job_runner
from tablegate.gateway.engine.background.job_runner import ClaimLost
from tablegate.gateway.engine.backups import change_windows, file_backups, restoring
from tablegate.gateway.engine.backups.file_backups import FILE, REMOVE, RESTORE
from tablegate.gateway.model.errors import BackupUnreadable
from tablegate.gateway.model.tables.backups import Backup, BackupFile
from tablegate.gateway.model.tables.jobs import Job
from tablegate.gateway.model.values.row_lines import UnreadableFile, read_row
from tablegate.gateway.store import jobs
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.tables import backup_files, backups, copies, descriptors, history
from tablegate.gateway.store.tables.history import Mark

log = logging.getLogger("tablegate")

KINDS = (FILE, RESTORE, REMOVE)
_BATCH_BYTES = 4_000_000
# Rows that are already restored are skipped in batches larger by this factor.
_SKIPPED_AT_ONCE = 16
# Pause before a failed backup file is tried again. Meanwhile the rows stay in the database.
_PAUSE_S = 60.0


class _OpenBackup:
    """An open backup file: the position of its rows and, once it is complete, its description."""

    def __init__(self, writer: backup_files.BackupWriter) -> None:
        self.writer = writer
        self.mark: Mark | None = None
        self.file: BackupFile | None = None

    def close(self) -> None:
        self.writer.close()


class BackupFileWorker:
    """The worker (job_runner.JobWorker) for jobs on backup files."""

    def __init__(self, store: Store, directory: backup_files.BackupDirectory) -> None:
        self._store = store
        self._directory = directory
        self._open: dict[int, _OpenBackup | backup_files.BackupReader] = {}
        self._not_before: dict[int, float] = {}

    def begin_waiting(self) -> int:
        """Begin to write the files of waiting backups. Return their number."""
        now = time.monotonic()
        self._not_before = {
            backup_id: retry_at for backup_id, retry_at in self._not_before.items() if retry_at > now
        }
        return file_backups.begin_waiting(self._store, self._not_before)

    def carry_on(self, job: Job, limit: int) -> int | None:
        if job.cancelled and job.kind == RESTORE:
            self._end_without_table(job, "it was cancelled")
            return 0
        carry_on = {FILE: self._write, RESTORE: self._restore, REMOVE: self._remove}[job.kind]
        try:
            return carry_on(job, limit)
        except ClaimLost:
            self.forget(job.id)
            return 0

    def give_up(self, job: Job, error: Exception) -> None:
        if job.kind == RESTORE:
            self._end_without_table(job, str(error))
            return
        if job.kind == FILE:
            self._not_before[job.definition["backup"]] = time.monotonic() + _PAUSE_S
        self._end(job)

    def forget(self, job_id: int) -> None:
        open_file = self._open.pop(job_id, None)
        if open_file is not None:
            open_file.close()

    def abandon(self, job_id: int) -> None:
        self._open.pop(job_id, None)

    def _end(self, job: Job) -> None:
        self.forget(job.id)
        with self._store.write() as session:
            jobs.end(session, job)

    # Into a file

    def _write(self, job: Job, limit: int) -> int | None:
        store = self._store
        with store.read() as session:
            backup = backups.by_id(session, store.catalog.defined, job.definition["backup"])
        if backup is None:  # its file, complete or not, is no longer needed
            self.forget(job.id)
            self._directory.remove(job.definition["stem"])
            self._end(job)
            return 0
        open_backup: Any = self._open.get(job.id) or self._begin(job, backup)
        if open_backup is None:
            self._end(job)
            return 0
        if open_backup.file is not None:
            return self._leave_database(job, open_backup)
        with store.read() as session:
            part = history.rows_after(session, backup.copy_id, open_backup.mark, limit)
        open_backup.writer.add(row for row in part.rows.values() if row is not None)
        open_backup.mark = part.mark
        if part.mark is None:
            open_backup.file = open_backup.writer.finish()
            self._leave_database(job, open_backup)
        return part.length

    def _begin(self, job: Job, backup: Backup) -> _OpenBackup | None:
        """Begin the file of a backup. None if it has one."""
        store = self._store
        with store.read() as session:
            source = store.catalog.by_id(session, backup.copy_id)
        if source is None:
            return None
        table = descriptors.document_of(backup.source)
        open_backup = _OpenBackup(
            self._directory.begin(backup, backup_files.WriteAttempt(job.id, job.claim), table)
        )
        self._open[job.id] = open_backup
        return open_backup

    def _leave_database(self, job: Job, open_backup: _OpenBackup) -> int | None:
        """Remove the rows from the database in favour of the file. None if a restore from them is still running."""
        store, file = self._store, open_backup.file
        assert file is not None
        try:
            with store.write() as session:
                backup = backups.by_id(session, store.catalog.defined, job.definition["backup"], lock=True)
                if backup is None:
                    return 0  # the next batch ends the job
                if copies.is_source(session, backup.copy_id):
                    return None
                file_backups.keep_file(session, backup, file)
                source = store.catalog.lock(session, backup.copy_id)
                if source is not None:
                    store.catalog.remove(session, source)
                if not jobs.end(session, job):
                    raise ClaimLost
        except ClaimLost:
            open_backup.writer.remove()
            raise
        self.forget(job.id)
        store.catalog.cache.forget(backup.copy_id)
        return 0

    # Out of a file

    def _restore(self, job: Job, limit: int) -> int | None:
        store = self._store
        with store.read() as session:
            target = store.catalog.by_id(session, job.definition["table"])
        if target is None:
            self._end(job)
            return 0
        try:
            reader = self._reader(job)
            restored_rows = job.progress.get("rows", 0)
            if reader.rows < restored_rows:
                rows_to_skip = min(restored_rows - reader.rows, limit * _SKIPPED_AT_ONCE)
                return len(reader.take(rows_to_skip, _SKIPPED_AT_ONCE * _BATCH_BYTES))
            lines = reader.take(limit, _BATCH_BYTES)
            rows = [read_row(line, target.key_schema) for line in lines]
        except (BackupUnreadable, UnreadableFile) as error:
            self._end_without_table(job, str(error))
            return 0
        with store.write() as session:
            if store.catalog.check(session, [target], lock=True)():
                raise ClaimLost
            change_windows.keep(session, target, {row.position: row for row in rows}, is_new=True)
            if not reader.is_over:
                job_runner.save(
                    session, dataclasses.replace(job, progress={**job.progress, "rows": reader.rows})
                )
            else:
                restoring.open_table(store, session, target)
                if not jobs.end(session, job):
                    raise ClaimLost
        if reader.is_over:
            self.forget(job.id)
            store.catalog.cache.forget(target.id)
        return len(rows)

    def _reader(self, job: Job) -> backup_files.BackupReader:
        reader = self._open.get(job.id)
        if not isinstance(reader, backup_files.BackupReader):
            file = BackupFile(**job.definition["file"])
            reader = self._open[job.id] = self._directory.open(file, job.definition["stem"])
        return reader

    def _end_without_table(self, job: Job, reason: str) -> None:
        """End a restore that has failed, and remove its table."""
        self.forget(job.id)
        store, table_id = self._store, job.definition["table"]
        with store.write() as session:
            if not jobs.end(session, job):
                return
            target = store.catalog.lock(session, table_id)
            if target is not None:
                store.catalog.remove(session, target)
        store.catalog.cache.forget(table_id)
        log.error(
            "a backup could not be restored", extra={"facts": {"table": job.table_name, "reason": reason}}
        )

    # Removal

    def _remove(self, job: Job, limit: int) -> int:
        for stem in job.definition["stems"]:
            self._directory.remove(stem)
        self._end(job)
        return len(job.definition["stems"])
