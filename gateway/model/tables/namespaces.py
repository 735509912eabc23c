"""Names of namespaces that belong to no caller: no dialect reaches their tables, and no list has them."""

from __future__ import annotations

SNAPSHOTS = "snapshot/"
"""What the names of namespaces begin with that hold the tables of a snapshot."""

RETAINED = "retained/"
"""What the names of namespaces begin with that hold the rows of backups, and of dropped tables that are still copied."""


FOLLOWED = "followed/"
"""What the names of namespaces begin with that streams are in which are kept only for those who follow a table."""


def of_job(job_id: int) -> str:
    """The namespace of the tables that a job keeps for itself, until it ends."""
    return f"{RETAINED}job/{job_id}"


def of_backup(backup_id: int) -> str:
    """The namespace of the table that has the rows of a backup."""
    return f"{RETAINED}{backup_id}"


def of_backup_jobs(backup_id: int, namespace: str) -> str:
    """The namespace of the jobs with the file of a backup, given the namespace that the backup belongs to."""
    return f"{RETAINED}{backup_id}/{namespace}"


def served_by_job(namespace: str) -> str:
    """The namespace of the caller that a job works for: its own, or the one that the backup belongs to."""
    if not namespace.startswith(RETAINED):
        return namespace
    return namespace.removeprefix(RETAINED).partition("/")[2]


def is_reserved(namespace: str) -> bool:
    """Whether a namespace holds copies and nothing else."""
    return namespace.startswith((SNAPSHOTS, RETAINED))
