"""Batches of rows for a service, with retries and rejects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from tablegate.gateway.model.values.rows import Row
from tablegate.transfer.endpoints.endpoint import Reject
from tablegate.transfer.endpoints.retrying import Backoff, RetryBudget
from tablegate.transfer.errors import RequestRefused, TransferError

EntryT = TypeVar("EntryT")


@dataclass(slots=True)
class Sent(Generic[EntryT]):
    """The result of a batch: rows that the service rejected, and changes to retry with the reason."""

    rejects: list[Reject] = field(default_factory=list)
    left: list[tuple[Row, EntryT]] = field(default_factory=list)
    reason: str = ""


def write_batch(
    batch: list[tuple[Row, EntryT]],
    send: Callable[[list[tuple[Row, EntryT]]], Sent[EntryT]],
    patience: RetryBudget,
) -> list[Reject]:
    """Send changes until none is left. Return the rows that the service rejects.

    A change is a row and its form for the service. `send` raises RequestRefused if the service rejects the batch as
    a whole. Then the batch is halved until the rejected rows are found.
    """
    backoff = Backoff(patience)
    rejects: list[Reject] = []
    while batch:
        try:
            outcome = send(batch)
        except RequestRefused as refusal:
            if len(batch) == 1:
                return [*rejects, Reject(batch[0][0], refusal.code, refusal.reason)]
            half = len(batch) // 2
            first, second = batch[:half], batch[half:]
            return [*rejects, *write_batch(first, send, patience), *write_batch(second, send, patience)]
        rejects += outcome.rejects
        if len(outcome.left) < len(batch):
            backoff.progressed()
        if outcome.left:
            backoff.wait(outcome.reason)
        batch = outcome.left
    return rejects


def require_deleted(rejects: Sequence[Reject], shown: str) -> None:
    """Raise TransferError if a delete was rejected."""
    if rejects:
        raise TransferError(f"{shown}: the service rejected a delete: {rejects[0].code}: {rejects[0].reason}")


def in_batches(
    entries: Iterable[EntryT],
    size_of: Callable[[EntryT], int],
    entries_max: int,
    bytes_max: int,
    overhead_bytes: int = 0,
) -> Iterator[list[EntryT]]:
    """Yield the entries in order, in batches with at most `entries_max` entries and `bytes_max` bytes.

    `overhead_bytes` is added to each batch. An entry above the limit becomes a batch of its own, which the service
    rejects.
    """
    batch: list[EntryT] = []
    size = overhead_bytes
    for entry in entries:
        entry_bytes = size_of(entry)
        if batch and (len(batch) == entries_max or size + entry_bytes > bytes_max):
            yield batch
            batch, size = [], overhead_bytes
        batch.append(entry)
        size += entry_bytes
    if batch:
        yield batch
