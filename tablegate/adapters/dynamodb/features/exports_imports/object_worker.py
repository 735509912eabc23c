"""The base class of workers on object stores, how they run commands of the engine, and the records that they read.

Records of all objects under a prefix are read in order from any position, in bounded memory.

An export and the report of a bulk put hold rows of a table. The job that stores the object writes the table's name to
it. The caller of a job that reads the object must be permitted to scan that table. Objects that no job has written name
no table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO, ClassVar, Generic, NamedTuple, Protocol, TypeVar
from urllib.parse import quote, unquote

from tablegate.adapters.dynamodb import DIALECT
from tablegate.adapters.dynamodb.call import CallContext
from tablegate.adapters.dynamodb.export_files.compression import Compression, blocks
from tablegate.adapters.dynamodb.export_files.records import ImportFormat, ImportRecord, records
from tablegate.adapters.dynamodb.features.exports_imports import object_stores
from tablegate.adapters.dynamodb.features.exports_imports.object_stores import (
    ACCESS_DENIED,
    BucketReference,
    ObjectStore,
    ObjectStoreRejection,
    StoredObject,
)
from tablegate.adapters.dynamodb.wire.gateway_errors import service_error_of
from tablegate.adapters.dynamodb.wire.signature_claims import Caller
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.features.jobs.job_commands import AdvanceJob, Job
from tablegate.gateway.model.authorization.accesses import Access
from tablegate.gateway.model.authorization.authorizations import Authorization, RequestSource
from tablegate.gateway.model.authorization.grants import Verdict
from tablegate.gateway.model.authorization.permissions import Channel, Permission
from tablegate.gateway.model.authorization.quotas import account_of
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.errors import QuotaExceeded, StaleTable
from tablegate.gateway.observability import audit
from tablegate.gateway.security.credentials import Scheme
from tablegate.gateway.security.gate import run_one
from tablegate.gateway.security.identities import caller_of

# Tables of objects


def table_of_object(job: Job) -> str:
    """Return the table of a job as NAMESPACE/NAME, in ASCII as S3 metadata demands."""
    return f"{quote(job.namespace)}/{job.table_name}"


def check_readable(gateway: Gateway, job: Job, table: str, prefix: str) -> None:
    """Check that the caller of a job may read an object of a table.

    Raises ObjectStoreRejection, which omits the table's name.
    """
    if table and not _may_read(gateway, job, table):
        text = f"{prefix} has objects with rows of a table that you are not authorized to scan"
        raise ObjectStoreRejection(ACCESS_DENIED, text)


def _may_read(gateway: Gateway, job: Job, table: str) -> bool:
    credentials, caller = gateway.credentials, job.definition["caller"]
    place, _, name = table.rpartition("/")
    namespace = unquote(place)
    if credentials.is_dev:
        return True
    if credentials.keeps_apart and account_of(namespace) != account_of(job.namespace):
        return False
    source = job.definition["source"]
    if source is None:
        return True
    principals = job.definition["principals"]
    if principals:
        identity = caller_of(principals[0], caller["account"])
        policy = credentials.policy_of_principals(principals, job.namespace)
    else:
        credential = credentials.find(Scheme.AWS, caller["access_id"])
        if credential is None:
            return False
        identity, policy = credential.identity, credential.policy
    limits = credentials.authorization(identity, policy, RequestSource(*source), gateway.now_ms())
    scan = Access(Permission.SCAN, Channel.SINGLE, namespace, name, AdvanceJob(job))
    return limits is None or limits.judge(scan) is Verdict.ALLOWED


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

    def __init__(self, gateway: Gateway, store: object_stores.ObjectStore) -> None:
        self._gateway = gateway
        self._store = store
        self._open: dict[int, Resource] = {}

    def carry_on(self, job: Job, limit: int) -> int | None:
        """See JobWorker. An error of the object store or of a quota ends the job."""
        try:
            return self._cancel(job, limit) if job.cancelled else self._carry_on(job, limit)
        except StaleTable:
            self.forget(job.id)
        except object_stores.ObjectStoreRejection as refused:
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


def bucket_of(job: Job, place: Mapping[str, Any]) -> object_stores.BucketReference:
    """Return the bucket that a part of a request names."""
    return object_stores.BucketReference(
        place["S3Bucket"], place.get("S3BucketOwner", ""), job.definition["caller"]["account"]
    )


def new_object_of(job: Job, place: Mapping[str, Any]) -> object_stores.NewObject:
    """Return the properties of an object that a job writes, with the encryption that the request demands."""
    encryption = object_stores.Encryption(place.get("S3SseAlgorithm", ""), place.get("S3SseKmsKeyId", ""))
    return object_stores.NewObject(encryption, table_of_object(job))


def failure(code: str, text: str) -> dict[str, str]:
    """Return the stored form of a failure."""
    return {"code": code, "text": text}


# Records of objects


# Overhead that is counted for each object and each block, since either may be empty.
_OBJECT_BYTES, _BLOCK_BYTES = 8 << 10, 64
# RFC 8878 (3.1.1.1.2) recommends that decoders support at least 8 MB. Each open object may take as much memory.
_WINDOW_BYTES = 8 << 20


class ObjectSource(NamedTuple):
    """The location and format of objects."""

    bucket: BucketReference
    prefix: str
    compression: Compression
    layout: ImportFormat


class SourceCursor(NamedTuple):
    """A position after `records` records of an object. `done_bytes`: the size of all objects before it."""

    key: str = ""
    records: int = 0
    is_done: bool = False
    done_bytes: int = 0


class LocatedRecord(NamedTuple):
    """A record, the key of its object, and its number in the object, from 1."""

    key: str
    number: int
    record: ImportRecord


class RecordBatch(NamedTuple):
    """A batch of records, the cursor after it, and whether it is the last.

    `units`: the work done, one unit for each record and one for each decompressed KiB.
    """

    found: list[LocatedRecord]
    cursor: SourceCursor
    is_over: bool
    units: int


class SourceObjects:
    """A reader of records from a cursor on.

    After any exception except ObjectStoreRejection, the read can be retried from the last cursor. `check` is called
    before an object is read, with the table that it names (empty if none) and its location. It raises
    ObjectStoreRejection.
    """

    def __init__(
        self,
        store: ObjectStore,
        source: ObjectSource,
        cursor: SourceCursor,
        check: Callable[[str, str], None],
    ) -> None:
        self._store = store
        self._check = check
        self._source = source
        self._cursor = cursor
        self._objects = self._remaining_objects(cursor)
        self._stream: BinaryIO | None = None
        self._records: Iterator[ImportRecord | None] = iter(())
        self._object: StoredObject | None = None
        self._skipped = 0
        self._read_bytes = 0

    def _remaining_objects(self, cursor: SourceCursor) -> Iterator[StoredObject]:
        bucket, prefix = self._source.bucket, self._source.prefix
        if not cursor.key or cursor.is_done:
            return self._store.listed(bucket, prefix, cursor.key)
        # The current object comes first. No key just before it is known, so the listing is filtered.
        return (
            stored_object
            for stored_object in self._store.listed(bucket, prefix)
            if stored_object.key >= cursor.key
        )

    def take(self, limit: int) -> RecordBatch:
        """Return the next records, up to this many units of work. A batch may be empty without being the last."""
        located_records: list[LocatedRecord] = []
        self._read_bytes = 0
        while self._units(located_records) < limit:
            if self._object is None and not self._open_next():
                return RecordBatch(located_records, self._cursor, True, self._units(located_records))
            assert self._object is not None
            try:
                record = next(self._records)
            except StopIteration:
                self._finish_object()
                continue
            if record is None:
                continue
            if self._skipped:
                self._skipped -= 1
                continue
            number = self._cursor.records + 1
            self._cursor = self._cursor._replace(records=number)
            located_records.append(LocatedRecord(self._object.key, number, record))
            if record.ends:
                self._finish_object()
        return RecordBatch(located_records, self._cursor, False, self._units(located_records))

    def _units(self, located_records: list[LocatedRecord]) -> int:
        return len(located_records) + (self._read_bytes >> 10)

    def _open_next(self) -> bool:
        stored_object = next(self._objects, None)
        if stored_object is None:
            return False
        resumes = stored_object.key == self._cursor.key and not self._cursor.is_done
        self._skipped = self._cursor.records if resumes else 0
        self._object = stored_object
        self._cursor = SourceCursor(stored_object.key, self._skipped, False, self._cursor.done_bytes)
        self._read_bytes += _OBJECT_BYTES
        self._stream, table = self._store.read(self._source.bucket, stored_object.key)
        self._check(table, f"s3://{self._source.bucket.name}/{self._source.prefix}")
        self._records = records(self._counting_blocks(self._stream), self._source.layout)
        return True

    def _counting_blocks(self, stream: BinaryIO) -> Iterator[bytes]:
        for block in blocks(stream, self._source.compression, _WINDOW_BYTES):
            self._read_bytes += len(block) + _BLOCK_BYTES
            yield block

    def _finish_object(self) -> None:
        assert self._object is not None
        done_bytes = self._cursor.done_bytes + self._object.size_bytes
        self._cursor = SourceCursor(self._object.key, 0, True, done_bytes)
        self._object = None
        self.close()

    def close(self) -> None:
        if self._stream is not None:
            with suppress(OSError, ValueError):
                self._stream.close()
            self._stream = None
