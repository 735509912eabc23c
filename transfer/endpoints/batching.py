"""Rows on their way to a service, in batches as large as it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from tablegate.gateway.model.values.rows import Row
from tablegate.transfer.endpoints.endpoint import Reject
from tablegate.transfer.endpoints.retrying import Backoff, RetryBudget
from tablegate.transfer.errors import RequestRefused, TransferError

T = TypeVar("T")


@dataclass(slots=True)
class Sent(Generic[T]):
    """The result of a batch that the service took: rows that it refused, and changes to be sent again, with the reason."""

    rejects: list[Reject] = field(default_factory=list)
    left: list[tuple[Row, T]] = field(default_factory=list)
    reason: str = ""


def write_batch(
    batch: list[tuple[Row, T]], send: Callable[[list[tuple[Row, T]]], Sent[T]], patience: RetryBudget
) -> list[Reject]:
    """Send changes until none is left over. Returns the rows that the service refuses.

    A change is a row and what the service takes for it. `send` raises RequestRefused if the service refuses the batch as a
    whole: the rows that cause that are found by halves.
    """
    rests = Backoff(patience)
    rejects: list[Reject] = []
    while batch:
        try:
            sent = send(batch)
        except RequestRefused as refusal:
            if len(batch) == 1:
                return [*rejects, Reject(batch[0][0], refusal.code, refusal.reason)]
            half = len(batch) // 2
            first, second = batch[:half], batch[half:]
            return [*rejects, *write_batch(first, send, patience), *write_batch(second, send, patience)]
        rejects += sent.rejects
        if len(sent.left) < len(batch):
            rests.progressed()
        if sent.left:
            rests.wait(sent.reason)
        batch = sent.left
    return rejects


def require_deleted(rejects: Sequence[Reject], shown: str) -> None:
    """Raise TransferError if a delete was refused."""
    if rejects:
        raise TransferError(f"{shown}: a delete was refused: {rejects[0].code}: {rejects[0].reason}")


def in_batches(
    entries: Iterable[T], size_of: Callable[[T], int], most: int, most_bytes: int, overhead_bytes: int = 0
) -> Iterator[list[T]]:
    """The entries in order, in batches of at most so many and so many bytes, what every batch has besides included. An entry
    that is too large by itself is a batch by itself, for the service to refuse."""
    batch: list[T] = []
    size = overhead_bytes
    for entry in entries:
        more = size_of(entry)
        if batch and (len(batch) == most or size + more > most_bytes):
            yield batch
            batch, size = [], overhead_bytes
        batch.append(entry)
        size += more
    if batch:
        yield batch
