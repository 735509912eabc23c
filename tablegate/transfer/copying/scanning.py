"""The scan of a table: segments read in parallel, written in batches, and stored in the job page by page.

Each reading thread takes a segment. It divides the rows of a page among the writing threads by the hash of the
partition. So rows with equal keys are written in reading order, and rows of one partition are written together. A
page is done when it and all earlier pages of its segment are in the target. The bytes in memory are bounded.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from tablegate.gateway.model.values.keys import Position, partition_hash
from tablegate.gateway.model.values.rows import Row
from tablegate.transfer.copying.job_records import DonePages, KeyRepeated, Rejected, SegmentState
from tablegate.transfer.copying.writing import CopyStopped, MemoryBudget, TableJob
from tablegate.transfer.endpoints.endpoint import JSON, ScanPage
from tablegate.transfer.errors import TransferError
from tablegate.transfer.mapping.identities import Duplicates
from tablegate.transfer.progress import Progress

_BYTES_IN_MEMORY = 12 << 20
# Memory overhead of a row beyond its billed size.
_ROW_OVERHEAD_BYTES = 1_000
_CHECK_PERIOD_S = 30.0
_PATIENCE_S = 5.0
_MANY_ROWS = 500


@dataclass(slots=True)
class _Page:
    """A page that is being written.

    - `parts`: the number of parts not yet in the target, None before the division.
    - `written`: the positions of the written rows in the source, and `copies` those in the target.
    """

    segment: _Segment
    resume: JSON | None
    size_bytes: int
    weight: int
    parts: int | None = None
    written: list[Position] = field(default_factory=list)
    copies: list[Position] = field(default_factory=list)
    rejects: list[Rejected] = field(default_factory=list)


@dataclass(slots=True)
class _Segment:
    """A segment that is being read, with its pages that are not stored in the job, oldest first."""

    state: SegmentState
    pages: deque[_Page] = field(default_factory=deque)


@dataclass(slots=True)
class _Part:
    """The rows of a page that one writing thread gets."""

    page: _Page
    rows: list[Row]


class TableScan:
    """The scan of the segments of one table that are not done."""

    def __init__(
        self, table: TableJob, progress: Progress, check: Callable[[], None], keeps_keys: bool
    ) -> None:
        """Set up queues and budgets.

        `check` raises SchemaChanged if the source's key has changed. It is called at intervals and at the end.
        `keeps_keys` stores the keys of copied rows in the job.
        """
        self._table = table
        self._progress = progress
        self._check = check
        self._keeps_keys = keeps_keys
        self._budget = MemoryBudget(_BYTES_IN_MEMORY)
        self._waiting: queue.SimpleQueue[SegmentState] = queue.SimpleQueue()
        # If a call takes many rows, few concurrent calls keep the target busy and fill their batches.
        # The last one of several rows with one key is well defined only if rows are read and written one after another.
        self._readers = 1 if table.duplicates is Duplicates.LAST else table.parallel
        writers = min(self._readers, 2) if table.writer.most_rows > _MANY_ROWS else self._readers
        self._queues: list[queue.SimpleQueue[_Part | None]] = [queue.SimpleQueue() for _ in range(writers)]
        self._ends: list[threading.Event] = []
        self._lock = threading.Lock()
        self._checked_at = time.monotonic()

    def run(self) -> None:
        """Copy the open segments and wait until they are done or the copy is stopped. Raises CopyStopped."""
        open_segments = [state for state in self._table.job.segments(self._table.id) if not state.is_done]
        for state in open_segments:
            self._waiting.put(state)
        try:
            writers = [self._start(self._write, writer_queue) for writer_queue in self._queues]
            readers = [self._start(self._read) for _ in range(min(self._readers, len(open_segments)))]
            self._join(readers)
            self._end_queues()
            self._join(writers)
        except KeyboardInterrupt:
            self._table.pace.stop.set()
            self._end_queues()
            self._join(self._ends)
            raise
        self._table.pace.stop.check()
        self._check()

    def _start(self, work: Callable[..., None], *arguments: object) -> threading.Event:
        """Run `work` in a thread. Return an event that is set when it has ended.

        Before Python 3.13, a `Thread.join` that Ctrl-C interrupts takes a running thread for ended.
        """
        end = threading.Event()
        self._ends.append(end)

        def run() -> None:
            try:
                work(*arguments)
            except CopyStopped:
                pass
            except BaseException as error:
                self._table.pace.stop.set(error)
            finally:
                end.set()

        threading.Thread(target=run, daemon=True).start()
        return end

    def _join(self, ends: list[threading.Event]) -> None:
        """Wait for threads.

        After a stop, wait only up to 5 s. The others may wait for a service for minutes, and their work is not
        stored.
        """
        for end in ends:
            while not (end.is_set() or self._table.pace.stop.is_set()):
                end.wait(0.2)
        until = time.monotonic() + _PATIENCE_S
        for end in ends:
            end.wait(max(0.0, until - time.monotonic()))

    def _end_queues(self) -> None:
        for writer_queue in self._queues:
            writer_queue.put(None)

    # Reading

    def _read(self) -> None:
        while True:
            try:
                segment = _Segment(self._waiting.get_nowait())
            except queue.Empty:
                return
            self._read_segment(segment)

    def _read_segment(self, segment: _Segment) -> None:
        stop = self._table.pace.stop
        try:
            for scan_page in self._table.source.scan(segment.state.segment, segment.state.resume):
                stop.check()
                self._check_source_at_intervals()
                page = self._page(segment, scan_page)
                self._table.pace.before_read(page.size_bytes)
                self._budget.take(page.weight, stop.is_set)
                self._distribute(page, scan_page.rows)
        except OSError as error:
            raise TransferError(f"{self._table.source.shown}: {error.strerror or error}") from error

    def _page(self, segment: _Segment, scan_page: ScanPage) -> _Page:
        rows = scan_page.all_rows
        size_bytes = sum([row.size_bytes for row in rows])
        weight = size_bytes + len(rows) * _ROW_OVERHEAD_BYTES
        page = _Page(segment, scan_page.resume, size_bytes, weight)
        page.rejects += [self._table.writer.rejected_unreadable(row) for row in scan_page.unreadable]
        with self._lock:
            segment.pages.append(page)
        return page

    def _distribute(self, page: _Page, rows: list[Row]) -> None:
        shares: list[list[Row]] = [[] for _ in self._queues]
        if len(shares) == 1:
            shares = [rows]
        else:
            for row in rows:
                shares[partition_hash(row.position.partition) % len(shares)].append(row)
        rows_max = self._table.writer.most_rows
        parts = [
            (number, _Part(page, share[at : at + rows_max]))
            for number, share in enumerate(shares)
            for at in range(0, len(share), rows_max)
        ]
        with self._lock:
            page.parts = len(parts)
            self._store_done_pages(page.segment)
        for number, part in parts:
            self._queues[number].put(part)

    def _check_source_at_intervals(self) -> None:
        with self._lock:
            is_due = time.monotonic() - self._checked_at > _CHECK_PERIOD_S
            if is_due:
                self._checked_at = time.monotonic()
        if is_due:
            self._check()

    # Writing

    def _write(self, parts: queue.SimpleQueue[_Part | None]) -> None:
        rows_max = self._table.writer.most_rows
        next_part = parts.get()
        while next_part is not None:
            together, number = [next_part], len(next_part.rows)
            next_part, is_end = None, False
            while next_part is None and not is_end and not parts.empty():
                candidate = parts.get()
                if candidate is None:
                    is_end = True
                elif number + len(candidate.rows) > rows_max:
                    next_part = candidate
                else:
                    together.append(candidate)
                    number += len(candidate.rows)
            self._write_together(together)
            if is_end:
                return
            if next_part is None:
                next_part = parts.get()

    def _write_together(self, parts: list[_Part]) -> None:
        self._table.pace.stop.check()
        outcomes = iter(self._table.writer.write([row for part in parts for row in part.rows]))
        with self._lock:
            for part in parts:
                for row, outcome in zip(part.rows, outcomes, strict=False):
                    if isinstance(outcome, Rejected):
                        part.page.rejects.append(outcome)
                    else:
                        part.page.written.append(row.position)
                        part.page.copies.append(outcome)
                assert part.page.parts is not None
                part.page.parts -= 1
                self._store_done_pages(part.page.segment)

    def _store_done_pages(self, segment: _Segment) -> None:
        """Store the pages of a segment that are in the target, up to the first one that is not."""
        done_pages: list[_Page] = []
        while segment.pages and segment.pages[0].parts == 0:
            done_pages.append(segment.pages.popleft())
        if not done_pages:
            return
        pages = DonePages(
            done_pages[-1].resume,
            [position for page in done_pages for position in page.written],
            [position for page in done_pages for position in page.copies],
            [reject for page in done_pages for reject in page.rejects],
            sum(page.size_bytes for page in done_pages),
        )
        try:
            rows = self._table.job.pages_done(
                self._table.id, segment.state.number, pages, self._keeps_keys, self._table.duplicates
            )
        except KeyRepeated as found:
            raise self._table.writer.repeated(found) from None
        self._budget.give(sum(page.weight for page in done_pages))
        self._progress.advance(rows, pages.size_bytes, len(pages.rejects))
