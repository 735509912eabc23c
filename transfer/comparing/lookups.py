"""Single rows looked up at an end as they are now."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from tablegate.gateway.model.values.keys import Key, Position
from tablegate.transfer.endpoints.endpoint import AnyRow, Endpoint

Thing = TypeVar("Thing")
_READ_FOR_ROWS = 1000  # which a table that is read as a whole is read once for


def looked_up(endpoint: Endpoint, keys: Sequence[Key | None]) -> list[AnyRow | None]:
    """The rows of keys as they are now; None also where there is no key. An end that can only be read as a whole is."""
    wanted = [key for key in keys if key is not None]
    if not wanted:
        return [None] * len(keys)
    found = iter(endpoint.get(wanted) if endpoint.looks_up else _scanned(endpoint, wanted))
    return [None if key is None else next(found) for key in keys]


def _scanned(endpoint: Endpoint, keys: Sequence[Key]) -> list[AnyRow | None]:
    rows: dict[Position, AnyRow] = {}
    wanted = {key.position for key in keys}
    for segment in endpoint.segments(1):
        for page in endpoint.scan(segment):
            rows.update((row.position, row) for row in page.all_rows if row.position in wanted)
    return [rows.get(key.position) for key in keys]


def batch_rows(*endpoints: Endpoint) -> int:
    """How many rows are looked up at once."""
    if not all(endpoint.looks_up for endpoint in endpoints):
        return _READ_FOR_ROWS
    return max(1, min(endpoint.write_rows for endpoint in endpoints))


def batches(things: Iterable[Thing], size: int) -> Iterator[list[Thing]]:
    """Lists of so many, the last of fewer."""
    rest = iter(things)
    while batch := list(itertools.islice(rest, size)):
        yield batch
