"""The steps of a copy: create tables, scan, follow, finish. A copy can start at its beginning or from a stored job.

Each step leaves its result in the job. The steps themselves are in scanning.py and following.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from tablegate.gateway.model.values.keys import key_schema_document, key_schema_of
from tablegate.transfer.copying.existing_rows import ExistingRows, IfExists, require_other_table
from tablegate.transfer.copying.following import ChangeFollower, ChangePoll
from tablegate.transfer.copying.job import COPIED, COPYING, FINISHED, NEW, CopyJob, Counts, TableState
from tablegate.transfer.copying.scanning import TableScan
from tablegate.transfer.copying.writing import (
    Concurrency,
    CopyLimits,
    CopyStopped,
    Rate,
    RateLimit,
    StopSignal,
    TableJob,
    TableWriter,
)
from tablegate.transfer.endpoints.endpoint import Definition, Endpoint
from tablegate.transfer.errors import SchemaChanged, TransferError
from tablegate.transfer.mapping.identities import Duplicates, may_repeat_keys
from tablegate.transfer.mapping.mapping import Mapping, MappingOptions
from tablegate.transfer.progress import Progress

_LOOK_PERIOD_S = 1.0
_CHECK_PERIOD_S = 30.0
_SEGMENTS_PER_READER = 4
_REJECT_START = b'{"table": '
"""The first bytes of a file of rejected rows."""

Opener = Callable[[str], Endpoint]
"""Open the endpoint of an address."""


@dataclass(frozen=True, slots=True)
class CopyOptions:
    """The user's options of a copy.

    - `parallel`: number of reading threads and of writing threads.
    - `until_lag_s`: following ends at this lag, in seconds. Never if None.
    - `sweep_s`: seconds between searches for deletes, if the source does not report them.
    - `if_exists`: what to do if the target has rows. If None, they are an error, but a copy that follows keeps them.
    - `duplicates`: what to do if several rows have one key.
    """

    parallel: int = 4
    limits: tuple[RateLimit, ...] = ()
    follow: bool = False
    until_lag_s: float | None = None
    sweep_s: float = 600.0
    mapping: MappingOptions = field(default_factory=MappingOptions)
    if_exists: IfExists | None = None
    duplicates: Duplicates = Duplicates.FAIL

    @property
    def on_existing_rows(self) -> IfExists:
        if self.if_exists is not None:
            return self.if_exists
        return IfExists.APPEND if self.follow else IfExists.FAIL


class Interrupted(TransferError):
    """The user stopped the copy."""


class TableCopy:
    """One table of a job with its open endpoints."""

    def __init__(
        self,
        job: CopyJob,
        state: TableState,
        ends: tuple[Endpoint, Endpoint],
        options: CopyOptions,
        pace: CopyLimits,
    ) -> None:
        self.job = job
        self.state = state
        self.source, self.target = ends
        self._options = options
        if options.follow and not self.target.takes_changes:
            raise TransferError(
                f"{self.target.shown}: a copy to this target cannot follow changes. Omit --follow"
            )
        definition = self.source.describe()
        if state.key_schema is not None:
            _require_key(self.source, definition, key_schema_of(state.key_schema))
        self.key_schema = definition.key_schema
        self._expected_rows = definition.rows
        self.mapping = mapping_of(definition, self.target, options.mapping)
        writer = TableWriter(self.source.shown, self.target, self.mapping, self.key_schema, pace)
        duplicates = options.duplicates if may_repeat_keys(self.source, self.mapping) else None
        if duplicates is Duplicates.LAST and not self.target.takes_changes:
            raise TransferError(
                f"{self.target.shown}: a file is written once, so that it cannot keep the last of several rows with one"
                " key. Omit --duplicates last, or copy to a database first"
            )
        self._table = TableJob(job, state.id, self.source, writer, pace, options.parallel, duplicates)
        self._existing_rows = 0
        self.follower = ChangeFollower(self._table, self.key_schema)

    def check_target(self, progress: Progress) -> None:
        """Say how many rows the target has before its first write. Raises TransferError if the copy must not begin."""
        if self.state.state != NEW:
            return
        existing = ExistingRows(self.target)
        sentence = existing.require_allowed(self._options.on_existing_rows)
        if sentence:
            progress.say(sentence)
        self._existing_rows = existing.known

    def begin(self, progress: Progress) -> None:
        """Create the target table, capture changes and choose segments. A resumed table keeps its earlier choices."""
        if self.state.state != NEW:
            self.target.reopen()
            return
        if self._options.follow:
            self.follower.capture()
            if self.source.unseen_changes:
                progress.say(f"{self.source.shown}: {self.source.unseen_changes}")
        for sentence in notes_of(self.mapping):
            progress.say(f"{self.target.shown}: {sentence}")
        if self._options.on_existing_rows is IfExists.REPLACE:
            if self._existing_rows or not self.target.takes_changes:
                require_other_table(self.source, self.target, self.mapping)
                self.target.clear(self._table.pace.before_write)
            self._existing_rows = 0
        for sentence in self.target.create(self.mapping.definition):
            progress.say(f"{self.target.shown}: {sentence}")
        # The last one of several rows with one key is well defined only if the source is read in one part.
        is_whole = self._table.duplicates is Duplicates.LAST
        segments = self.source.segments(1 if is_whole else self._options.parallel * _SEGMENTS_PER_READER)
        key_schema = key_schema_document(self.key_schema)
        self.job.begin_table(self.state.id, key_schema, self._expected_rows, self._existing_rows, segments)

    def scan(self, progress: Progress) -> None:
        """Copy the segments that are not done. Raises CopyStopped, TransferError."""
        counts = self.job.counts(self.state.id)
        progress.begin(
            self.source.shown, self._expected_rows, counts.rows, counts.size_bytes, counts.rejected
        )
        keeps_keys = self._options.follow and self.follower.sweeps
        TableScan(self._table, progress, self.check, keeps_keys).run()
        self.job.set_state(self.state.id, COPIED)

    def check(self) -> None:
        """Raise SchemaChanged if the source's key has changed."""
        _require_key(self.source, self.source.describe(), self.key_schema)

    def finish(self) -> None:
        self.target.finish()
        self.job.set_state(self.state.id, FINISHED)


def run(job: CopyJob, opens: tuple[Opener, Opener], options: CopyOptions, progress: Progress) -> Counts:
    """Run the open part of a job and return its counts. Raises TransferError, or Interrupted after Ctrl-C."""
    stop = StopSignal()
    rates = tuple(Rate(limit, stop.wait) for limit in options.limits)
    pace = CopyLimits(stop, rates, Concurrency(options.parallel))
    with contextlib.ExitStack() as closing, _errors_of(stop):
        copies = [
            _table_copy(job, state, opens, options, pace, closing)
            for state in job.tables()
            if state.state != FINISHED or options.follow
        ]
        for copy in copies:
            copy.check_target(progress)
        for copy in copies:
            copy.begin(progress)
        with _recording_changes(job, copies, stop, options):
            for copy, state in _current(job, copies):
                if state.state == COPYING:
                    copy.scan(progress)
                if not options.follow:
                    copy.finish()
        if options.follow:
            lag_s, changes = _Following(job, copies, stop, options, progress).run()
            for copy in copies:
                copy.finish()
            return replace(job.counts(), lag_s=lag_s, last_changes=changes)
    return job.counts()


def _table_copy(
    job: CopyJob, state: TableState, opens: tuple[Opener, Opener], options: CopyOptions, pace: CopyLimits, closing:
    contextlib.ExitStack
) -> TableCopy:  # fmt: skip
    source = opens[0](state.source)
    closing.callback(source.close)
    target = opens[1](state.target)
    closing.callback(target.close)
    return TableCopy(job, state, (source, target), options, pace)


def _current(job: CopyJob, copies: list[TableCopy]) -> Iterator[tuple[TableCopy, TableState]]:
    for copy in copies:
        [state] = [state for state in job.tables() if state.id == copy.state.id]
        yield copy, state


@contextlib.contextmanager
def _errors_of(stop: StopSignal) -> Iterator[None]:
    """Raise the first error of any thread."""
    try:
        yield
    except CopyStopped:
        if stop.error is not None:
            raise stop.error from None
        raise Interrupted("stopped") from None
    except KeyboardInterrupt:
        raise Interrupted("stopped") from None
    finally:
        stop.set()


@contextlib.contextmanager
def _recording_changes(
    job: CopyJob, copies: list[TableCopy], stop: StopSignal, options: CopyOptions
) -> Iterator[None]:
    """Record changes while tables are scanned, because streams keep them for a limited time only."""
    if not options.follow:
        yield
        return
    is_over = threading.Event()

    def poll() -> None:
        try:
            positions = {state.id: state.position for _, state in _current(job, copies)}
            while not is_over.wait(_LOOK_PERIOD_S):
                for copy in copies:
                    positions[copy.state.id], _ = copy.follower.poll(positions[copy.state.id])
        except CopyStopped:
            pass
        except BaseException as error:
            stop.set(error)

    thread = threading.Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(5.0 if stop.is_set() else None)
    stop.check()


class _Following:
    """The following of all tables until the lag is small enough."""

    def __init__(
        self,
        job: CopyJob,
        copies: list[TableCopy],
        stop: StopSignal,
        options: CopyOptions,
        progress: Progress,
    ) -> None:
        self._job = job
        self._copies = copies
        self._stop = stop
        self._options = options
        self._progress = progress
        self._positions = {state.id: state.position for _, state in _current(job, copies)}
        self._swept_at = self._checked_at = time.monotonic()

    def run(self) -> tuple[float, int]:
        """Follow until the lag limit is reached. Return it in seconds, and the changed rows of the last look.

        Raises CopyStopped, TransferError.
        """
        until = self._options.until_lag_s
        while True:
            began = time.monotonic()
            changes, is_caught_up = self._poll_once()
            lag_s = time.monotonic() - began
            counts = self._job.counts()
            self._progress.following(lag_s, counts.applied, counts.changes_left)
            if until is not None and is_caught_up and lag_s <= until and self._final_sweep_is_done():
                return lag_s, changes
            if time.monotonic() - self._swept_at > self._options.sweep_s:
                self._sweep()
            elif is_caught_up:
                self._stop.wait(_LOOK_PERIOD_S)

    def _poll_once(self) -> ChangePoll:
        """Poll all tables once and apply the changes.

        If it caught up, the copies have reached the state of the sources at the beginning of the call.
        """
        keys, is_caught_up = 0, True
        for copy in self._copies:
            position, poll = copy.follower.poll(self._positions[copy.state.id])
            self._positions[copy.state.id] = position
            keys += poll.keys
            is_caught_up = is_caught_up and poll.caught_up
            copy.follower.apply()
        if time.monotonic() - self._checked_at > _CHECK_PERIOD_S:
            self._checked_at = time.monotonic()
            for copy in self._copies:
                copy.check()
        return ChangePoll(keys, is_caught_up)

    def _final_sweep_is_done(self) -> bool:
        """True if no sweep is needed before the end. Otherwise sweep, and return True if it found nothing."""
        if not any(copy.follower.sweeps for copy in self._copies):
            return True
        return not self._sweep()

    def _sweep(self) -> int:
        deleted = sum(copy.follower.sweep() for copy in self._copies if copy.follower.sweeps)
        self._swept_at = time.monotonic()
        return deleted + self._job.counts().changes_left


def mapping_of(definition: Definition, target: Endpoint, options: MappingOptions) -> Mapping:
    """Return the mapping of a table to a target, which may hold a table already."""
    return Mapping(definition, target.service, target.existing(), options)


def notes_of(mapping: Mapping) -> list[str]:
    """Return sentences about the parts of the definition that the target does not support."""
    return [
        f"{note.attribute}: {note.rule.meaning}" if note.attribute else note.rule.meaning
        for note in mapping.notes
    ]


def plan(source: Endpoint, target: Endpoint, options: CopyOptions) -> list[str]:
    """Return sentences that describe what a copy would do. Nothing is written."""
    definition = source.describe()
    mapping = mapping_of(definition, target, options.mapping)
    segments = len(source.segments(options.parallel * _SEGMENTS_PER_READER))
    rows = "an unknown number of rows" if definition.rows is None else f"about {definition.rows:,} rows"
    existing = ExistingRows(target)
    action = "exists" if existing.known or existing.number is not None else "is created"
    sentences = [
        f"{source.shown}: {rows}, read in {segments} segments by {min(options.parallel, segments)} threads",
        f"{target.shown}: {action}, key {', '.join(mapping.definition.key_schema.names)}",
        *filter(None, [existing.require_allowed(options.on_existing_rows)]),
        *(f"{target.shown}: {sentence}" for sentence in notes_of(mapping)),
    ]
    if options.follow:
        sentences.append(
            f"{source.shown}: changes are captured before the scan. {source.unseen_changes}".rstrip()
        )
    return sentences


def require_replaceable(path: Path) -> None:
    """Raise TransferError if there is a file that is not one of rejected rows, because `write_rejects` replaces it."""
    start = b""
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        start = file.read(len(_REJECT_START))
    if start not in (b"", _REJECT_START):
        raise TransferError(
            f"{path} exists and is not a file of rejected rows. Name another file with --rejects"
        )


def write_rejects(job: CopyJob, path: Path) -> int:
    """Write the rejected rows of a job to a file of JSON Lines and return their number.

    The file is written whole or not at all. If there are no rejects, it is removed.
    """
    partial = path.with_name(path.name + ".partial")
    number = 0
    try:
        require_replaceable(path)
        with partial.open("w", encoding="utf-8") as file:
            for table, key, code, reason, body in job.rejects():
                line = {
                    "table": table,
                    "key": json.loads(key),
                    "code": code,
                    "reason": reason,
                    "row": json.loads(body),
                }
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
                number += 1
            file.flush()
            os.fsync(file.fileno())
        if number:
            partial.replace(path)
        else:
            partial.unlink()
            path.unlink(missing_ok=True)
    except OSError as error:
        raise TransferError(
            f"the file of rejected rows {path} cannot be written: {error.strerror}"
        ) from error
    return number


def _require_key(source: Endpoint, definition: Definition, key_schema: object) -> None:
    if definition.key_schema != key_schema:
        raise SchemaChanged(
            f"{source.shown}: the table's key has changed since the copy began. Remove the job file, and copy to a table"
            " with the new key"
        )
