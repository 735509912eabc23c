"""A whole table read, or rows from all over it: segments in parallel, for lint and for comparisons."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

from tablegate.transfer.endpoints.endpoint import JSON, AnyRow, Definition, Endpoint, ScanPage

_SEGMENTS_PER_WORKER = 4
_SAMPLED_SEGMENTS = 64
_LOOK_SECONDS = 0.5


class TableEnd:
    """A table that is read."""

    def __init__(self, endpoint: Endpoint, definition: Definition) -> None:
        self.endpoint = endpoint
        self.definition = definition

    def segments(self, wanted: int) -> list[JSON]:
        """The parts of the table."""
        return self.endpoint.segments(wanted)

    def pages(self, segment: JSON) -> Iterator[ScanPage]:
        """The rows of a part."""
        return self.endpoint.scan(segment)


AnyEnd = TypeVar("AnyEnd", bound=TableEnd)


def read_all(
    ends: Sequence[AnyEnd],
    workers: int,
    work: Callable[[AnyEnd, int, Iterator[ScanPage]], None],
) -> None:
    """Do `work` with the pages of each segment of all tables, so many segments of each at once; the number says which table they
    are of. The first error ends it."""
    wanted = workers * _SEGMENTS_PER_WORKER
    lists = [[(end, at, part) for part in end.segments(wanted)] for at, end in enumerate(ends)]
    tasks = [task for each in itertools.zip_longest(*lists) for task in each if task is not None]
    is_over = False

    def pages(end: AnyEnd, part: JSON) -> Iterator[ScanPage]:
        for page in end.pages(part):
            if is_over:
                return
            yield page

    def run(end: AnyEnd, at: int, part: JSON) -> None:
        if not is_over:
            work(end, at, pages(end, part))

    with ThreadPoolExecutor(len(ends) * workers, "reading") as pool:
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


def sampled(end: TableEnd, number: int) -> Iterator[AnyRow]:
    """So many rows of a table, or all if it has fewer: by turns from each of many segments, in a random order."""
    parts = end.segments(_SAMPLED_SEGMENTS)
    random.shuffle(parts)
    scans = [(row for page in end.pages(part) for row in page.all_rows) for part in parts]
    while scans:
        left = []
        for scan in scans:
            row = next(scan, None)
            if row is None:
                continue
            left.append(scan)
            yield row
            number -= 1
            if not number:
                return
        scans = left
