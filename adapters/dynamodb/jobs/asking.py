"""How workers ask the engine, and what they have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from adapters.dynamodb.object_stores.object_store import Bucket, ObjectStore, Refused
from adapters.dynamodb.wire.calls import Call, Caller
from gateway.dialect import Gateway
from gateway.engine.engine import run_with_retries
from gateway.model.commands import Command
from gateway.model.errors import GatewayError, StaleTable
from gateway.model.jobs import Job

R = TypeVar("R")


class _Closable(Protocol):
    def close(self) -> None: ...


Held = TypeVar("Held", bound=_Closable)


class ObjectWorker(ABC, Generic[Held]):
    """A worker (gateway/engine/working.py) that reads or writes objects, and what it holds open for each job."""

    name: ClassVar[str]
    """What a job of its kind is called where one is given up."""

    def __init__(self, gateway: Gateway, store: ObjectStore) -> None:
        self._gateway = gateway
        self._store = store
        self._open: dict[int, Held] = {}

    def carry_on(self, job: Job, limit: int) -> int | None:
        """See Worker. What the store refuses ends the job."""
        try:
            return self._carry_on(job, limit)
        except StaleTable:
            self.forget(job.id)
        except Refused as refused:
            self.forget(job.id)
            self._fail(job, refused.code, refused.text)
        return 0

    def give_up(self, job: Job, error: Exception) -> None:
        """See Worker."""
        self._fail(job, "InternalServerError", f"The {self.name} could not be carried on: {error}")

    def forget(self, job_id: int) -> None:
        """See Worker."""
        left = self._open.pop(job_id, None)
        if left is not None:
            left.close()

    @abstractmethod
    def _carry_on(self, job: Job, limit: int) -> int | None:
        """See Worker.carry_on. Raises what that does, StaleTable and Refused."""

    @abstractmethod
    def _fail(self, job: Job, code: str, text: str) -> None:
        """End a job that has failed."""


def ask(gateway: Gateway, command: Command[R]) -> R:
    """The outcome of a command; its GatewayError is raised."""
    [outcome] = run_with_retries(gateway.engine, [command])  # type: ignore[list-item]
    if isinstance(outcome, GatewayError):
        raise outcome
    return outcome


def call_of(gateway: Gateway, job: Job, operation: str = "", given: Mapping[str, Any] | None = None) -> Call:
    """A call as whoever began the job would make it."""
    return Call(operation, dict(given or {}), Caller(**job.definition["caller"]), gateway)


def bucket_of(job: Job, place: Mapping[str, Any]) -> Bucket:
    """The bucket that a part of a request names."""
    return Bucket(place["S3Bucket"], place.get("S3BucketOwner", ""), job.definition["caller"]["account"])


def failure(code: str, text: str) -> dict[str, str]:
    """Why a job failed, as it is kept."""
    return {"code": code, "text": text}
