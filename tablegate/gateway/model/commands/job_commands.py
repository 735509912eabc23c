"""Commands for jobs: exports, imports and other long background work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tablegate.gateway.model.authorization.quotas import TableLimit
from tablegate.gateway.model.commands.command import BaseCommand
from tablegate.gateway.model.commands.row_commands import IdempotencyToken, WriteGroup
from tablegate.gateway.model.commands.table_commands import CreateTable
from tablegate.gateway.model.tables.jobs import Job
from tablegate.gateway.model.tables.tables import Table


@dataclass(frozen=True, slots=True)
class StartJob(BaseCommand[Job]):
    """Start a job, which a worker runs (Engine.register_worker). Outcome: Job.

    If an equal command has used the token before, the outcome is the job of that command. Errors: TokenReused,
    LimitExceeded `jobs`, TableMissing, TimeNotRetained, QuotaExceeded.

    - `source`: a table. Its rows at a time (`at`, in ticks, None: now) are copied to the job's own namespace. With
      `window` (from, until before), its changes are copied instead.
    - `max_jobs`: maximum number of concurrent jobs of the kind in the namespace.
    - `makes_table`, `stores_rows`: the job creates a table or stores rows, so quotas apply. `bounds`: bounds of quotas.
    """

    kind: str
    namespace: str
    table_name: str
    definition: Mapping[str, Any]
    state: str
    max_jobs: int
    token: IdempotencyToken | None = None
    source: Table | None = None
    at: int | None = None
    window: tuple[int, int] | None = None
    makes_table: bool = False
    stores_rows: bool = False
    bounds: tuple[TableLimit, ...] = ()


@dataclass(frozen=True, slots=True)
class ListJobs(BaseCommand[list[Job]]):
    """List jobs of a kind in a namespace, newest first, after a Job.place, at most `limit`. Outcome: list of Job.

    The other members filter, if given: by table, by start. `path`: the path in grants, if the list finds a single job.
    """

    namespace: str
    kind: str
    after: tuple[int, int] | None = None
    limit: int = 1_000
    table_name: str | None = None
    from_ms: int | None = None
    before_ms: int | None = None
    path: str = ""


@dataclass(frozen=True, slots=True)
class ListUnfinishedJobs(BaseCommand[list[Job]]):
    """List unfinished jobs of all kinds and namespaces, oldest first, at most `limit`, or the one with an id.

    Outcome: list of Job.
    """

    job_id: int | None = None
    limit: int = 1_000


@dataclass(frozen=True, slots=True)
class CancelJob(BaseCommand["Job | None"]):
    """Request the cancellation of a job. The worker ends it before its next batch. `path`: as in ListJobs.

    Outcome: Job.
    """

    job: Job
    path: str = ""


@dataclass(frozen=True, slots=True)
class AdvanceJob(BaseCommand["Job | None"]):
    """Save a batch of a job atomically: its writes and its progress. Outcome: Job.

    The outcome is None, and nothing was saved, if another server has the claim. Errors: StaleTable, TableExists,
    TableBusy.

    - `groups`: writes, also to tables that are CREATING.
    - `settle`: returns the progress from the outcomes of the groups, in place of `progress`.
    - `makes`: a table to create with the id of the job. It is CREATING until it is opened.
    - `keeps`: a table to create in the job's own namespace.
    - `opens`: a table to make ACTIVE.
    - `ended`: the job ends with this batch.
    """

    job: Job
    progress: Mapping[str, Any] = field(default_factory=dict)
    groups: tuple[WriteGroup, ...] = ()
    settle: Callable[[list[Any]], Mapping[str, Any]] | None = None
    makes: CreateTable | None = None
    keeps: CreateTable | None = None
    opens: Table | None = None
    state: str | None = None
    ended: bool = False


JobCommand = StartJob | ListJobs | ListUnfinishedJobs | CancelJob | AdvanceJob
