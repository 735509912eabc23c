"""Lookups of single rows in their current state."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from tablegate.gateway.model.values.keys import Key, Position
from tablegate.transfer.endpoints.endpoint import AnyRow, Endpoint

Item = TypeVar("Item")
_SCAN_BATCH_ROWS = 1000  # batch size for an endpoint that must be scanned for each lookup


def looked_up(endpoint: Endpoint, keys: Sequence[Key | None]) -> list[AnyRow | None]:
    """Return the current rows of keys. None if there is no row or no key.

    An endpoint without lookups is scanned.
    """
    present_keys = [key for key in keys if key is not None]
    if not present_keys:
        return [None] * len(keys)
    rows = iter(endpoint.get(present_keys) if endpoint.looks_up else _scanned(endpoint, present_keys))
    return [None if key is None else next(rows) for key in keys]


def _scanned(endpoint: Endpoint, keys: Sequence[Key]) -> list[AnyRow | None]:
    rows: dict[Position, AnyRow] = {}
    positions = {key.position for key in keys}
    for segment in endpoint.segments(1):
        for page in endpoint.scan(segment):
            rows.update((row.position, row) for row in page.all_rows if row.position in positions)
    return [rows.get(key.position) for key in keys]


def batch_rows(*endpoints: Endpoint) -> int:
    if not all(endpoint.looks_up for endpoint in endpoints):
        return _SCAN_BATCH_ROWS
    return max(1, min(endpoint.write_rows for endpoint in endpoints))


def batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield lists of `size` items. The last one may be shorter."""
    rest = iter(items)
    while batch := list(itertools.islice(rest, size)):
        yield batch
