"""SQL for background jobs. One server at a time holds the claim on a job."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import orjson

from tablegate.gateway.features.jobs.job_commands import Job, ListJobs, ListUnfinishedJobs
from tablegate.gateway.store.sql.databases import Session

_COLUMNS = "id, kind, namespace, table_name, definition, progress, state, created_at_ms, ended_at_ms, cancelled, claim"
_FORGET_BATCH = 100


def add(session: Session, job: Job) -> None:
    """Insert a new, unclaimed job."""
    session.execute(
        f"INSERT INTO jobs ({_COLUMNS}, claimed_until_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, 0, 0, 0)",
        (
            job.id,
            job.kind,
            job.namespace,
            job.table_name,
            _text(job.definition),
            _text(job.progress),
            job.state,
            job.created_at_ms,
        ),
    )


def by_id(session: Session, job_id: int) -> Job | None:
    """Return the job with this id, or None."""
    rows = session.query(f"SELECT {_COLUMNS} FROM jobs WHERE id = ?", (job_id,))
    return _job(*rows[0]) if rows else None


def page(session: Session, command: ListJobs) -> list[Job]:
    """Return the jobs that a ListJobs command selects, newest first."""
    conditions = ["namespace = ?", "kind = ?"]
    parameters: list[Any] = [command.namespace, command.kind]
    for condition, value in (
        ("table_name = ?", command.table_name),
        ("created_at_ms >= ?", command.from_ms),
        ("created_at_ms < ?", command.before_ms),
    ):
        if value is not None:
            conditions.append(condition)
            parameters.append(value)
    if command.after is not None:
        conditions.append("(created_at_ms, id) < (?, ?)")
        parameters += command.after
    rows = session.query(
        f"SELECT {_COLUMNS} FROM jobs WHERE {' AND '.join(conditions)} ORDER BY created_at_ms DESC, id DESC LIMIT ?",
        (*parameters, command.limit),
    )
    return [_job(*columns) for columns in rows]


def count_unfinished(session: Session, namespace: str, kind: str) -> int:
    """Return the number of unfinished jobs of a kind in a namespace."""
    [(number,)] = session.query(
        "SELECT count(*) FROM jobs WHERE ended_at_ms IS NULL AND namespace = ? AND kind = ?",
        (namespace, kind),
    )
    return int(number)


def unfinished(session: Session, kinds: Collection[str]) -> list[tuple[int, str, bool]]:
    """Return the unfinished jobs of these kinds as (id, namespace, is cancelled)."""
    if not kinds:
        return []
    places = ", ".join("?" * len(kinds))
    rows = session.query(
        f"SELECT id, namespace, cancelled FROM jobs WHERE ended_at_ms IS NULL AND kind IN ({places}) ORDER BY id",
        tuple(sorted(kinds)),
    )
    return [(job_id, namespace, bool(cancelled)) for job_id, namespace, cancelled in rows]


def list_unfinished(session: Session, command: ListUnfinishedJobs) -> list[Job]:
    """Return the jobs that a ListUnfinishedJobs command selects, oldest first."""
    rows = session.query(
        f"SELECT {_COLUMNS} FROM jobs WHERE ended_at_ms IS NULL{'' if command.job_id is None else ' AND id = ?'}"
        " ORDER BY id LIMIT ?",
        (*([] if command.job_id is None else [command.job_id]), command.limit),
    )
    return [_job(*columns) for columns in rows]


def unfinished_by_id(session: Session, job_id: int) -> tuple[Job, int] | None:
    """Return an unfinished job and the end of its claim in milliseconds, or None."""
    rows = session.query(
        f"SELECT {_COLUMNS}, claimed_until_ms FROM jobs WHERE id = ? AND ended_at_ms IS NULL", (job_id,)
    )
    return (_job(*rows[0][:-1]), rows[0][-1]) if rows else None


def claim(session: Session, job: Job, until_ms: int) -> bool:
    """Claim a job if its claim number is still `job.claim`. Return True on success."""
    return bool(
        session.execute(
            "UPDATE jobs SET claim = claim + 1, claimed_until_ms = ? WHERE id = ? AND claim = ? AND ended_at_ms IS NULL",
            (until_ms, job.id, job.claim),
        )
    )


def renew(session: Session, job_id: int, claim: int, until_ms: int) -> None:
    """Extend a claim to `until_ms`. Does nothing if the job has a newer claim."""
    session.execute(
        "UPDATE jobs SET claimed_until_ms = ? WHERE id = ? AND claim = ? AND ended_at_ms IS NULL",
        (until_ms, job_id, claim),
    )


def save(session: Session, job: Job, until_ms: int) -> bool:
    """Save the progress and state of a job and extend its claim to `until_ms`.

    Return False if the job has a newer claim or has ended.
    """
    return bool(
        session.execute(
            "UPDATE jobs SET progress = ?, state = ?, ended_at_ms = ?, claimed_until_ms = ?"
            " WHERE id = ? AND claim = ? AND ended_at_ms IS NULL",
            (_text(job.progress), job.state, job.ended_at_ms, until_ms, job.id, job.claim),
        )
    )


def cancel(session: Session, job_id: int) -> None:
    """Mark an unfinished job as cancelled."""
    session.execute("UPDATE jobs SET cancelled = 1 WHERE id = ? AND ended_at_ms IS NULL", (job_id,))


def delete_of_namespace(session: Session, namespace: str | None, tables: Collection[str] | None) -> list[int]:
    """Delete the jobs of a namespace (None for all), or only those of some of its tables. Return the ids of the
    unfinished ones."""
    if tables is not None and not tables:
        return []
    where, parameters = ("1 = 1", []) if namespace is None else ("namespace = ?", [namespace])
    if tables is not None:
        where += f" AND table_name IN ({', '.join('?' * len(tables))})"
        parameters += sorted(tables)
    rows = session.query(
        f"SELECT id FROM jobs WHERE {where} AND ended_at_ms IS NULL ORDER BY id", tuple(parameters)
    )
    session.send(f"DELETE FROM jobs WHERE {where}", tuple(parameters))
    return [int(job_id) for (job_id,) in rows]


def forget(session: Session, before_ms: int) -> None:
    """Delete a batch of the jobs that ended before a time."""
    session.execute(
        "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE ended_at_ms < ? ORDER BY ended_at_ms LIMIT ?)",
        (before_ms, _FORGET_BATCH),
    )


def _text(document: Any) -> str:
    return orjson.dumps(document).decode()


def _job(*columns: Any) -> Job:
    job_id, kind, namespace, table_name, definition, progress, *state_and_times, cancelled, claim = columns
    state, created_at_ms, ended_at_ms = state_and_times
    documents = (orjson.loads(definition), orjson.loads(progress))
    times = (created_at_ms, ended_at_ms)
    return Job(job_id, kind, namespace, table_name, *documents, state, *times, bool(cancelled), claim)
