"""Reading of a whole table in parallel segments, sampling of rows from all its parts, and detection of expired rows.

A service may delete an expired row at any time or keep it.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, wait
from typing import TypeVar

from tablegate.gateway.model.tables.tables import State, Table
from tablegate.gateway.model.values.rows import Row
from tablegate.transfer.endpoints.endpoint import JSON, AnyRow, Definition, Endpoint, ScanPage
from tablegate.transfer.progress import NO_PROGRESS, Progress
from tablegate.transfer.threads import thread_pool

_SEGMENTS_PER_WORKER = 4
_SAMPLED_SEGMENTS = 64
_LOOK_SECONDS = 0.5


class TableEnd:
    """A table to read."""

    def __init__(self, endpoint: Endpoint, definition: Definition) -> None:
        self.endpoint = endpoint
        self.definition = definition

    def segments(self, count: int) -> list[JSON]:
        return self.endpoint.segments(count)

    def pages(self, segment: JSON) -> Iterator[ScanPage]:
        return self.endpoint.scan(segment)


AnyEnd = TypeVar("AnyEnd", bound=TableEnd)


def read_all(
    ends: Sequence[AnyEnd],
    workers: int,
    work: Callable[[AnyEnd, int, Iterator[ScanPage]], None],
    progress: Progress = NO_PROGRESS,
) -> None:
    """Call `work` with the pages of each segment of all tables, with `workers` segments of each table at once.

    `work` gets the table's number in `ends` too. The first error ends the reading.
    """
    segment_count = workers * _SEGMENTS_PER_WORKER
    lists = [[(end, at, part) for part in end.segments(segment_count)] for at, end in enumerate(ends)]
    counts = [end.definition.rows for end in ends]
    expected_rows = None if None in counts else sum(number or 0 for number in counts)
    progress.begin(" and ".join(end.endpoint.shown for end in ends), expected_rows)
    tasks = [task for group in itertools.zip_longest(*lists) for task in group if task is not None]
    is_over = False

    def pages(end: AnyEnd, part: JSON) -> Iterator[ScanPage]:
        for page in end.pages(part):
            if is_over:
                return
            number = len(page.all_rows)  # `work` may remove rows
            yield page
            progress.advance(number, 0, 0)

    def run(end: AnyEnd, at: int, part: JSON) -> None:
        if not is_over:
            work(end, at, pages(end, part))

    with thread_pool(len(ends) * workers) as pool:
        futures = {pool.submit(run, *task) for task in tasks}
        try:
            while futures:
                # With a timeout, so that Ctrl-C is handled.
                finished, futures = wait(futures, _LOOK_SECONDS, FIRST_EXCEPTION)
                for future in finished:
                    future.result()
        finally:
            is_over = True


def sample_rows(end: TableEnd, number: int) -> Iterator[AnyRow]:
    """Yield this number of rows, or all if there are fewer, alternating between many segments in random order."""
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


class Expiry:
    """The expiry rule of one table."""

    def __init__(self, definition: Definition) -> None:
        self._has_rule = definition.rules.expiry is not None
        self._table = Table(
            0, "", "", "", definition.key_schema, (), definition.rules, {}, State.ACTIVE, 0, 0, 0
        )

    def is_expired(self, row: Row, now_ms: int) -> bool:
        """True if the row has expired at this time."""
        expires_at_ms = row.expires_at_ms
        if expires_at_ms is None and self._has_rule:
            expires_at_ms = self._table.expires_at_ms(row)
        return expires_at_ms is not None and expires_at_ms <= now_ms
