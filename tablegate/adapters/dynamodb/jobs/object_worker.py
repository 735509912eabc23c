"""The base class of workers on object stores, and how they run commands of the engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from tablegate.adapters.dynamodb import DIALECT
from tablegate.adapters.dynamodb.jobs.source_tables import check_readable, table_of
from tablegate.adapters.dynamodb.object_stores import object_store
from tablegate.adapters.dynamodb.wire.call_context import CallContext
from tablegate.adapters.dynamodb.wire.gateway_errors import service_error_of
from tablegate.adapters.dynamodb.wire.signature_claims import Caller
from tablegate.gateway.dialect import Gateway
from tablegate.gateway.features.jobs.job_commands import AdvanceJob, Job
from tablegate.gateway.model.authorization.authorizations import Authorization
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.errors import QuotaExceeded, StaleTable
from tablegate.gateway.observability import audit
from tablegate.gateway.security.credentials import Scheme
from tablegate.gateway.security.gate import run_one

# Workers


R = TypeVar("R")


class _Closable(Protocol):
    def close(self) -> None: ...


Resource = TypeVar("Resource", bound=_Closable)


class ObjectWorker(ABC, Generic[Resource]):
    """A worker (gateway/features/jobs/job_runner.py) that reads or writes objects.

    It keeps one open resource for each job.
    """

    name: ClassVar[str]
    """The name of its kind of job in failure texts."""

    def __init__(self, gateway: Gateway, store: object_store.ObjectStore) -> None:
        self._gateway = gateway
        self._store = store
        self._open: dict[int, Resource] = {}

    def carry_on(self, job: Job, limit: int) -> int | None:
        """See JobWorker. An error of the object store or of a quota ends the job."""
        try:
            return self._cancel(job, limit) if job.cancelled else self._carry_on(job, limit)
        except StaleTable:
            self.forget(job.id)
        except object_store.ObjectStoreRejection as refused:
            self.forget(job.id)
            self._fail(job, refused.code, refused.text)
        except QuotaExceeded as error:
            self.forget(job.id)
            service_error = service_error_of(error, "")
            self._fail(job, service_error.code, service_error.message or service_error.code)
        return 0

    def give_up(self, job: Job, error: Exception) -> None:
        """See JobWorker."""
        if job.cancelled:
            self._end_cancelled(job)
        else:
            self._fail(job, "InternalServerError", f"The {self.name} failed: {error}")

    def forget(self, job_id: int) -> None:
        """See JobWorker."""
        open_file = self._open.pop(job_id, None)
        if open_file is not None:
            open_file.close()

    def abandon(self, job_id: int) -> None:
        """See JobWorker."""
        self._open.pop(job_id, None)

    def _check_readable(self, job: Job) -> Callable[[str, str], None]:
        """Return a function that checks that the caller of a job may read an object. It raises ObjectStoreRejection.

        Its arguments are the table of the object and the location in the request.
        """
        return partial(check_readable, self._gateway, job)

    @property
    def _cancellation(self) -> tuple[str, str]:
        """The FailureCode and text of a cancelled job. The service documents none."""
        return "Cancelled", f"The {self.name} was cancelled"

    def _cancel(self, job: Job, limit: int) -> int | None:
        self._end_cancelled(job)
        return 0

    def _end_cancelled(self, job: Job) -> None:
        """End a cancelled job without using the object store."""
        self._fail(job, *self._cancellation)

    @abstractmethod
    def _carry_on(self, job: Job, limit: int) -> int | None:
        """See JobWorker.carry_on. Raises its errors, StaleTable and ObjectStoreRejection."""

    @abstractmethod
    def _fail(self, job: Job, code: str, text: str) -> None: ...


def run_command(gateway: Gateway, command: Command[R]) -> R:
    """Run a command and return its outcome, or raise its GatewayError."""
    outcome = run_one(gateway.engine, command, _limits_of(gateway, command))
    if isinstance(command, AdvanceJob) and isinstance(outcome, Job) and command.ended:
        _record_end(outcome)
    return outcome


def _record_end(job: Job) -> None:
    """Record the end of a job in the audit log. Its start is recorded with the request."""
    failed = job.progress.get("failure")
    result = failed["code"] if failed else job.state
    audit.record_operation(
        job.kind, [job.table_name], result, job.definition["caller"]["access_id"], "background", DIALECT
    )


def _limits_of(gateway: Gateway, command: Command[Any]) -> Authorization | None:
    """Return the quotas for a step of a job: those of the caller that started it. Its grants were checked at the start."""
    if not isinstance(command, AdvanceJob):
        return None
    caller = command.job.definition["caller"]
    principals = command.job.definition["principals"]
    return gateway.quotas.of_background_work(
        Scheme.AWS.value, caller["access_id"], caller["namespace"], principals
    )


def call_of(
    gateway: Gateway, job: Job, operation: str = "", arguments: Mapping[str, Any] | None = None
) -> CallContext:
    """Return a call with the identity of the caller that started the job."""
    return CallContext(operation, dict(arguments or {}), Caller(**job.definition["caller"]), gateway)


def bucket_of(job: Job, place: Mapping[str, Any]) -> object_store.BucketReference:
    """Return the bucket that a part of a request names."""
    return object_store.BucketReference(
        place["S3Bucket"], place.get("S3BucketOwner", ""), job.definition["caller"]["account"]
    )


def new_object_of(job: Job, place: Mapping[str, Any]) -> object_store.NewObject:
    """Return the properties of an object that a job writes, with the encryption that the request demands."""
    encryption = object_store.Encryption(place.get("S3SseAlgorithm", ""), place.get("S3SseKmsKeyId", ""))
    return object_store.NewObject(encryption, table_of(job))


def failure(code: str, text: str) -> dict[str, str]:
    """Return the stored form of a failure."""
    return {"code": code, "text": text}
