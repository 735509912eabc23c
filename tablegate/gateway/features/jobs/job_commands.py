"""Jobs, and the commands for them: exports, imports and other long work that a client starts and polls.

Any server process continues a job in the background."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tablegate.gateway.model.authorization.accesses import Access, any_rows, finer
from tablegate.gateway.model.authorization.conditions import ConditionKey, FactValues
from tablegate.gateway.model.authorization.permissions import Permission, Purpose
from tablegate.gateway.model.authorization.quotas import NO_COST, Cost, TableLimit
from tablegate.gateway.model.commands.command import Command, ControlCommand
from tablegate.gateway.model.commands.row_commands import IdempotencyToken, WriteGroup
from tablegate.gateway.model.commands.table_commands import CreateTable
from tablegate.gateway.model.commands.writes import Replace
from tablegate.gateway.model.tables.tables import Table, is_reserved_namespace


@dataclass(frozen=True, slots=True)
class Job:
    """A job.

    - `kind`: the worker that runs it.
    - `definition`: the request.
    - `progress`: the position of the worker, and figures for the client. If a worker knows the whole work, `total` is
      in the unit of `bytes` or `items`, the first of them that is there.
    - `state`: the state in terms of the dialect.
    - `cancelled`: cancellation was requested.
    - `claim`: number of the last claim. A server process with an older claim cannot change the job.

    `definition` and `progress` are plain JSON values.
    """

    id: int
    kind: str
    namespace: str
    table_name: str
    definition: Mapping[str, Any]
    progress: Mapping[str, Any]
    state: str
    created_at_ms: int
    ended_at_ms: int | None = None
    cancelled: bool = False
    claim: int = 0

    @property
    def done_of_total(self) -> tuple[int, int] | None:
        """The work done and the whole work. None if the whole is not known."""
        done = next((self.progress[name] for name in ("bytes", "items") if name in self.progress), None)
        total = self.progress.get("total")
        return (done, total) if isinstance(done, int) and isinstance(total, int) else None

    @property
    def place(self) -> tuple[int, int]:
        """The sort key of lists: by age."""
        return self.created_at_ms, self.id


_ALSO = {Permission.EXPORT: (Permission.SCAN,), Permission.LOAD: (Permission.PUT,)}


@dataclass(frozen=True, slots=True)
class StartJob(Command[Job]):
    """Start a job, which a worker runs (job_runner.add_workers). Outcome: Job.

    If an equal command has used the token before, the outcome is the job of that command. Errors: TokenReused,
    LimitExceeded `jobs`, TableMissing, TimeNotRetained, QuotaExceeded.

    - `source`: a table. Its rows at a time (`at`, in ticks, or None for now) are copied to the job's own namespace. With
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

    rate = None

    def accesses(self, purpose: Purpose) -> Iterable[Access]:
        """Return the accesses of a job, which reads or writes the whole table.

        An export also needs the permission to scan its table, a bulk put the permission to put rows. So denials of
        these apply to jobs.
        """
        job_permission = finer(purpose, Permission.EXPORT, Permission.IMPORT, Permission.LOAD)
        for permission in (job_permission, *_ALSO.get(job_permission, ())):
            yield Access(permission, purpose.channel, self.namespace, self.table_name, self, self.source)

    def fact(self, key: ConditionKey) -> FactValues:
        return any_rows(key)

    def min_added_bytes(self) -> int:
        return int(self.stores_rows)

    def with_bounds(self, bounds: tuple[TableLimit, ...]) -> StartJob:
        return replace(self, bounds=bounds) if self.makes_table else self


@dataclass(frozen=True, slots=True)
class ListJobs(ControlCommand[list[Job]]):
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

    def accesses(self, purpose: Purpose) -> Iterable[Access]:
        """Return the access of a list of jobs, or of the look-up of one job to describe, cancel or deduplicate it."""
        permission = finer(
            purpose,
            Permission.LIST_JOBS,
            Permission.DESCRIBE_JOB,
            Permission.CANCEL_JOB,
            Permission.IMPORT,
            Permission.LOAD,
        )
        yield Access(permission, purpose.channel, self.namespace, self.path or self.table_name or "", self)


@dataclass(frozen=True, slots=True)
class ListUnfinishedJobs(ControlCommand[list[Job]]):
    """List unfinished jobs of all kinds and namespaces, oldest first, at most `limit`, or the one with an id.

    Outcome: list of Job.
    """

    job_id: int | None = None
    limit: int = 1_000

    permission = Permission.ADMINISTER


@dataclass(frozen=True, slots=True)
class CancelJob(ControlCommand["Job | None"]):
    """Request the cancellation of a job. The worker ends it before its next batch. `path`: as in ListJobs.

    Outcome: Job.
    """

    job: Job
    path: str = ""

    def accesses(self, purpose: Purpose) -> Iterable[Access]:
        path = self.path or self.job.table_name
        yield Access(Permission.CANCEL_JOB, purpose.channel, self.job.namespace, path, self)


@dataclass(frozen=True, slots=True)
class AdvanceJob(Command["Job | None"]):
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

    permission = Permission.ADMINISTER
    rate = None

    def fact(self, key: ConditionKey) -> FactValues:
        return any_rows(key)

    def min_added_bytes(self) -> int:
        """Return the bytes of the rows that it puts into tables of its caller."""
        return sum(
            write.change.contents.size_bytes
            for group in self.groups
            for write in group.writes
            if isinstance(write.change, Replace) and not is_reserved_namespace(write.table.namespace)
        )

    def cost(self, outcome: Job | None) -> Cost:
        return NO_COST if outcome is None else Cost(added_bytes=self.min_added_bytes())

    def with_bounds(self, bounds: tuple[TableLimit, ...]) -> AdvanceJob:
        return self if self.makes is None else replace(self, makes=self.makes.with_bounds(bounds))
