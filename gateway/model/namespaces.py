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
    """The namespace of what belongs to a backup: the table that has its rows, and jobs with its file."""
    return f"{RETAINED}{backup_id}"


def is_reserved(namespace: str) -> bool:
    """Whether a namespace holds copies and nothing else."""
    return namespace.startswith((SNAPSHOTS, RETAINED))
