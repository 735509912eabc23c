"""Rows on their way to a service, in batches as large as it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


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
