"""Both tables of a comparison read from end to end, segments in parallel; and single rows looked up at either."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

from gateway.model.keys import Key, Position
from gateway.model.rows import Row
from transfer.comparing.sides import End
from transfer.endpoints.endpoint import JSON, Endpoint

Thing = TypeVar("Thing")
AnyEnd = TypeVar("AnyEnd", bound=End)
Progress = Callable[[str, int], None]
"""Told which pass is under way ("reading", "comparing") and how many more rows of it are done. From any thread."""

_SEGMENTS_PER_WORKER = 4
_LOOK_SECONDS = 0.5


def read_both(
    ends: Sequence[AnyEnd],
    workers: int,
    progress: Callable[[int], None],
    work: Callable[[AnyEnd, int, Iterator[list[Row]]], None],
) -> None:
    """Do `work` with the pages of each segment of all tables, so many of each at once; the number says which end they are of.
    The first error ends it."""
    lists = [
        [(side, at, part) for part in side.segments(workers * _SEGMENTS_PER_WORKER)]
        for at, side in enumerate(ends)
    ]
    tasks = [task for both in itertools.zip_longest(*lists) for task in both if task is not None]
    is_over = False

    def pages(side: AnyEnd, part: JSON) -> Iterator[list[Row]]:
        for rows in side.pages(part):
            if is_over:
                return
            yield rows
            progress(len(rows))

    def run(side: AnyEnd, at: int, part: JSON) -> None:
        if not is_over:
            work(side, at, pages(side, part))

    with ThreadPoolExecutor(len(ends) * workers, "compare") as pool:
        futures = {pool.submit(run, *task) for task in tasks}
        try:
            while futures:
                # With a time-out, so that Ctrl-C is heard.
                done, futures = wait(futures, _LOOK_SECONDS, FIRST_EXCEPTION)
                for future in done:
                    future.result()
        finally:
            is_over = True
            for future in futures:
                future.cancel()


def looked_up(endpoint: Endpoint, keys: Sequence[Key | None]) -> list[Row | None]:
    """The rows of keys as they are now; None also where there is no key. An end that can only be read as a whole is."""
    wanted = [key for key in keys if key is not None]
    if not wanted:
        return [None] * len(keys)
    try:
        found = iter(endpoint.get(wanted))
    except NotImplementedError:
        found = iter(_scanned(endpoint, wanted))
    return [None if key is None else next(found) for key in keys]


def _scanned(endpoint: Endpoint, keys: Sequence[Key]) -> list[Row | None]:
    rows: dict[Position, Row] = {}
    wanted = {key.position for key in keys}
    for segment in endpoint.segments(1):
        for page in endpoint.scan(segment):
            rows.update((row.position, row) for row in page.rows if row.position in wanted)
    return [rows.get(key.position) for key in keys]


def batches(things: Iterable[Thing], size: int) -> Iterator[list[Thing]]:
    """Lists of so many, the last of fewer."""
    rest = iter(things)
    while batch := list(itertools.islice(rest, size)):
        yield batch
