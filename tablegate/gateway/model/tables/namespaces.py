"""Internal namespaces. No dialect can access their tables, and no list contains them."""

from __future__ import annotations

SNAPSHOTS = "snapshot/"
"""Prefix of namespaces with the tables of a snapshot."""

RETAINED = "retained/"
"""Prefix of namespaces with the rows of backups, and of dropped tables that are still being copied."""


FOLLOWED = "followed/"
"""Prefix of namespaces of streams that exist only for the followers of a table."""


def of_job(job_id: int) -> str:
    """Return the namespace of the internal tables of a job. They are dropped when it ends."""
    return f"{RETAINED}job/{job_id}"


def of_backup(backup_id: int) -> str:
    """Return the namespace of the table with the rows of a backup."""
    return f"{RETAINED}{backup_id}"


def is_reserved(namespace: str) -> bool:
    """Return True if a namespace contains only copies."""
    return namespace.startswith((SNAPSHOTS, RETAINED))
