"""Backups with rows in files of a directory: their descriptions, and the beginning of the jobs on these files.

A backup is first made in the database. Then its rows move into a file and leave the database. A restore reads the file,
and a deletion removes it. Each of these is a job, so disks do not delay requests. One server runs a job, and another
continues it after a kill. backup_file_worker.py carries these jobs on.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tablegate.gateway.model.errors import BackupUnreadable
from tablegate.gateway.model.tables.backups import Backup, BackupFile
from tablegate.gateway.model.tables.jobs import Job
from tablegate.gateway.model.tables.namespaces import RETAINED, of_backup_jobs
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.store import jobs
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.tables import backups, namespace_documents

FILE, RESTORE, REMOVE = "backup-file", "backup-restore", "backup-file-removal"
"""Kinds of jobs: write a file, restore from it, remove files of deleted backups. Clients cannot list these jobs. A
finished job is deleted."""
_FILES = f"{RETAINED}file"
"""The namespace with a document for each file, named by the id of its backup."""
_MAX_WAITING = 100


def file_of(session: Session, backup: Backup) -> BackupFile | None:
    """Return the file with the rows of a backup. None if a table has them."""
    document = namespace_documents.find(session, _FILES, str(backup.id))
    return None if document is None else BackupFile(**document)


def keep_file(session: Session, backup: Backup, file: BackupFile) -> None:
    """Store the description of the file with the rows of a backup."""
    namespace_documents.keep(session, _FILES, str(backup.id), file._asdict())


def readable_file_of(store: Store, backup: Backup) -> BackupFile | None:
    """Return the file of a backup after checking it. Not to be called in a transaction. Raises BackupUnreadable."""
    with store.read() as session:
        file = file_of(session, backup)
    if file is not None:
        if store.backup_files is None:
            raise BackupUnreadable("its rows are in a file, and this server has no backup directory")
        store.backup_files.check(file, backup.file_stem)
    return file


def is_restored(session: Session, backup: Backup) -> bool:
    """Return True if a table is being restored from the file of a backup."""
    return jobs.count_unfinished(session, _namespace_of(backup), RESTORE) > 0


# Beginning


def begin_waiting(store: Store, excluded: Collection[int]) -> int:
    """Begin to move the rows of completed backups into files, except those in `excluded`. Return the number of jobs
    begun."""
    with store.read() as session:
        backup_ids = backups.in_tables(session, _MAX_WAITING)
        busy = (
            {job.definition["backup"] for job in jobs.unfinished_of_kind(session, FILE)} if backup_ids else ()
        )
    jobs_begun = 0
    for backup_id in backup_ids:
        if backup_id in busy or backup_id in excluded:
            continue
        with store.write() as session:
            backup = backups.by_id(session, store.catalog.defined, backup_id, lock=True)
            if backup is not None and not jobs.count_unfinished(session, _namespace_of(backup), FILE):
                definition = {"backup": backup_id, "stem": backup.file_stem}
                _begin(store, session, FILE, backup, backup.created_at_ms, definition)
                jobs_begun += 1
    return jobs_begun


def begin_restore(
    store: Store, session: Session, backup: Backup, file: BackupFile, target: Table, now_ms: int
) -> None:
    """Begin to fill a table with the rows of a file."""
    definition = {"stem": backup.file_stem, "file": file._asdict(), "table": target.id}
    _begin(store, session, RESTORE, backup, now_ms, definition, {"rows": 0, "total": backup.rows})


def forget(store: Store, session: Session, deleted_backups: Sequence[Backup]) -> None:
    """Remove the file records of deleted backups, and begin to remove the files."""
    ids_with_file = namespace_documents.present(
        session, _FILES, [str(backup.id) for backup in deleted_backups]
    )
    backups_with_file = [backup for backup in deleted_backups if str(backup.id) in ids_with_file]
    for backup in backups_with_file:
        namespace_documents.forget(session, _FILES, str(backup.id))
    if backups_with_file:
        stems = [backup.file_stem for backup in backups_with_file]
        _begin(
            store, session, REMOVE, backups_with_file[0], backups_with_file[0].created_at_ms, {"stems": stems}
        )


def _begin(
    store: Store, session: Session, kind: str, backup: Backup, now_ms: int, definition: dict[str, object],
    progress: dict[str, object] | None = None,
) -> None:  # fmt: skip
    job_id = store.catalog.next_id(session)
    jobs.add(
        session,
        Job(job_id, kind, _namespace_of(backup), backup.table_name, definition, progress or {}, "", now_ms),
    )


def _namespace_of(backup: Backup) -> str:
    return of_backup_jobs(backup.id, backup.namespace)
