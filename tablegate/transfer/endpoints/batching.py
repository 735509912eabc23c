"""Batches of rows for a service, with rejects, and retries with backoff while it is busy or cannot be reached.

Each endpoint decides which errors are worth a retry and raises `TransientFailure` for them.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from tablegate.gateway.model.values.rows import Row
from tablegate.transfer.endpoints.endpoint import Reject
from tablegate.transfer.errors import RequestRefused, ServiceUnavailable, TransferError

PATIENCE_S = 600.0
"""Limit of retries without progress, in seconds, for a service that has answered before. Throttling lasts for minutes."""
_FIRST_CONTACT_S = 15.0
"""Limit of retries, in seconds, for a service that has never answered. Usually its address is wrong."""
_FIRST_WAIT_S = 0.05
_LONGEST_WAIT_S = 10.0

T = TypeVar("T")


class TransientFailure(Exception):
    """A failure that a retry may fix. The text has the reason without secrets."""


class RetryBudget:
    """The retry limit that all clients of an endpoint share, and whether the service has ever answered."""

    def __init__(self, seconds: float, shown: str) -> None:
        self.seconds = seconds
        self.shown = shown
        self.was_reached = False

    def run(self, call: Callable[[], T]) -> T:
        """Return the result of a call, which is retried on TransientFailure. Raises ServiceUnavailable."""
        backoff = Backoff(self)
        while True:
            try:
                result = call()
            except TransientFailure as reason:
                backoff.wait(str(reason))
            else:
                self.was_reached = True
                return result


class Backoff:
    """The waits between retries of one piece of work. They double each time and start again after progress."""

    def __init__(self, patience: RetryBudget) -> None:
        self._patience = patience
        self.progressed()

    def progressed(self) -> None:
        """Reset the waits and the time limit after progress."""
        self._since = time.monotonic()
        self._wait_s = _FIRST_WAIT_S

    def wait(self, reason: str) -> None:
        """Wait before the next try. Raises ServiceUnavailable if the limit is exceeded."""
        patience = self._patience
        seconds_max = patience.seconds if patience.was_reached else min(patience.seconds, _FIRST_CONTACT_S)
        seconds_left = self._since + seconds_max - time.monotonic()
        if seconds_left <= 0:
            raise ServiceUnavailable(f"{patience.shown}: {reason} (tried for {seconds_max:g} seconds)")
        # Jitter spreads the retries of many threads.
        time.sleep(min(random.uniform(self._wait_s / 2, self._wait_s), seconds_left))
        self._wait_s = min(2 * self._wait_s, _LONGEST_WAIT_S)


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
