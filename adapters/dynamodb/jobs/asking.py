"""How workers ask the engine, and what they have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from adapters.dynamodb.object_stores.object_store import Bucket
from adapters.dynamodb.wire.calls import Call, Caller
from gateway.dialect import Gateway
from gateway.engine.engine import run_with_retries
from gateway.model.commands import Command
from gateway.model.errors import GatewayError
from gateway.model.jobs import Job

R = TypeVar("R")


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
