"""Writing of source rows to the target: mapping, rate limits, calls and rejects.

The number of concurrent calls is reduced while a service is slow.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar

import orjson

from tablegate.gateway.model.values import bodies
from tablegate.gateway.model.values.keys import Key, KeySchema, Position
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import Value
from tablegate.transfer.copying.job import CopyJob
from tablegate.transfer.copying.job_records import KeyRepeated, Rejected
from tablegate.transfer.endpoints.endpoint import Endpoint, UnreadableRow
from tablegate.transfer.errors import (
    CannotResume,
    RepeatedKeys,
    RepeatedKeysInFile,
    TableAbsent,
    TransferError,
)
from tablegate.transfer.mapping import rules
from tablegate.transfer.mapping.identities import Duplicates
from tablegate.transfer.mapping.mapping import Mapping
from tablegate.transfer.mapping.rules import Fidelity, MappingFinding

_LOWEST, _HIGHEST = 0.001, 1e9
_FORM = re.compile(r"(\d+(?:\.\d+)?)(/s|rows|rows/s|wcu|rcu)?")


class RateUnit(Enum):
    """The unit of a rate: rows, write units of 1 KiB for each row, or read units of 4 KiB of rows read together."""

    ROWS = "rows"
    WRITE_UNITS = "wcu"
    READ_UNITS = "rcu"


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A maximum rate."""

    per_second: float
    unit: RateUnit


def rate_limit_of(text: str) -> RateLimit:
    """Parse a value of `--rate`: 500 (rows a second), 100wcu, 50rcu. Raises TransferError."""
    match = _FORM.fullmatch(text.strip().lower())
    if match is None or not _LOWEST <= float(match[1]) <= _HIGHEST:
        raise TransferError(
            f"--rate {text}: use a form such as 500 (rows a second), 100wcu (write units) or 100rcu (read units), "
            f"from {_LOWEST} to {_HIGHEST:,.0f}"
        )
    unit = {"wcu": RateUnit.WRITE_UNITS, "rcu": RateUnit.READ_UNITS}.get(match[2] or "", RateUnit.ROWS)
    return RateLimit(float(match[1]), unit)


@dataclass(slots=True)
class Rate:
    """A rate limit that several threads share.

    An amount of any size is allowed at once. The next caller waits until the average is within the limit again.
    """

    limit: RateLimit
    wait: Callable[[float], object]
    now: Callable[[], float] = time.monotonic
    _free_at: float = field(default=0.0, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def take(self, amount: float) -> None:
        """Wait until the amount may be used."""
        with self._lock:
            now = self.now()
            begin = max(now, self._free_at)
            self._free_at = begin + amount / self.limit.per_second
        if begin > now:
            self.wait(begin - now)


class Concurrency:
    """The limit of concurrent calls.

    It starts at `maximum`. It is halved when a call takes far longer than usual, as with a throttling or unreachable
    service. It then grows slowly again.
    """

    def __init__(self, maximum: int) -> None:
        self._most = maximum
        self._limit = float(maximum)
        self._running = 0
        self._usual_s: float | None = None
        self._slowed_at = 0.0
        self._free = threading.Condition()

    @property
    def limit(self) -> int:
        return max(1, int(self._limit))

    def enter(self, is_stopped: Callable[[], bool]) -> None:
        """Wait until a call may start, or until `is_stopped`."""
        with self._free:
            while self._running >= self.limit and not is_stopped():
                self._free.wait(0.2)
            self._running += 1

    def leave(self, seconds: float, now: float) -> None:
        """End a call that took this time."""
        with self._free:
            self._running -= 1
            usual = self._usual_s
            if usual is not None and seconds > max(1.0, 8 * usual):
                if now - self._slowed_at > seconds / 2:  # once for all calls that were slow at the same time
                    self._limit = max(1.0, self._limit / 2)
                    self._slowed_at = now
            else:
                self._usual_s = seconds if usual is None else 0.9 * usual + 0.1 * seconds
                self._limit = min(float(self._most), self._limit + 0.5 / self._limit)
            self._free.notify_all()


class MemoryBudget:
    """A limit of the bytes in memory between reading and writing."""

    def __init__(self, bytes_max: int) -> None:
        self._most = bytes_max
        self._used = 0
        self._free = threading.Condition()

    def take(self, size_bytes: int, is_stopped: Callable[[], bool]) -> None:
        """Wait until the bytes fit. A size above the limit waits until nothing else is in memory."""
        with self._free:
            while self._used and self._used + size_bytes > self._most and not is_stopped():
                self._free.wait(0.2)
            self._used += size_bytes

    def give(self, size_bytes: int) -> None:
        with self._free:
            self._used -= size_bytes
            self._free.notify_all()


R = TypeVar("R")

_WRITE_UNIT_BYTES, _READ_UNIT_BYTES = 1024, 4096


class CopyStopped(Exception):
    """Another thread has failed, or the user stopped the copy."""


class StopSignal:
    """A stop flag for the threads of a copy, with their first error."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self.error: BaseException | None = None

    def set(self, error: BaseException | None = None) -> None:
        """Stop all threads."""
        with self._lock:
            if self.error is None and not self._event.is_set():
                self.error = error
        self._event.set()

    def is_set(self) -> bool:
        return self._event.is_set()

    def wait(self, seconds: float) -> None:
        """Wait for a time. Raises CopyStopped on a stop."""
        if self._event.wait(seconds):
            raise CopyStopped

    def check(self) -> None:
        """Raise CopyStopped after a stop."""
        if self._event.is_set():
            raise CopyStopped


@dataclass(frozen=True, slots=True)
class CopyLimits:
    """The limits that all threads of a copy share."""

    stop: StopSignal
    rates: tuple[Rate, ...]
    calls: Concurrency

    def most_rows(self, rows: int) -> int:
        """Return the number of rows to write in one call. Low rates get small batches."""
        slowest = min((rate.limit.per_second for rate in self.rates), default=float(rows))
        return max(1, min(rows, int(slowest)))

    def before_read(self, size_bytes: int) -> None:
        """Wait until the bytes may be read."""
        self._take(RateUnit.READ_UNITS, -(-size_bytes // _READ_UNIT_BYTES))

    def before_write(self, rows: Sequence[Row]) -> None:
        """Wait until these rows may be written."""
        self._take(RateUnit.ROWS, len(rows))
        if any(rate.limit.unit is RateUnit.WRITE_UNITS for rate in self.rates):
            self._take(
                RateUnit.WRITE_UNITS, sum(max(1, -(-row.size_bytes // _WRITE_UNIT_BYTES)) for row in rows)
            )

    def _take(self, unit: RateUnit, amount: float) -> None:
        for rate in self.rates:
            if rate.limit.unit is unit:
                rate.take(amount)


class TableWriter:
    """A writer of one source table's rows to its copy. Methods may be called from several threads."""

    def __init__(
        self, source: str, target: Endpoint, mapping: Mapping, key_schema: KeySchema, pace: CopyLimits
    ) -> None:
        """Set up a writer. `source` is the address for messages, and `key_schema` is that of the source."""
        self._source = source
        self._target = target
        self._mapping = mapping
        self._key_schema = key_schema
        self._pace = pace
        self.most_rows = pace.most_rows(target.write_rows)
        """Number of rows for one call of `write`."""

    def write(self, rows: Sequence[Row]) -> list[Position | Rejected]:
        """Write the copies of rows. Return for each row its position in the target, or its reject.

        Of several rows with one key the last is written. Raises CopyStopped, TransferError.
        """
        copies: dict[Position, Row] = {}
        outcomes: list[Position | Rejected] = []
        for row in rows:
            copy, findings = self._mapping.map(row)
            if copy is None:
                outcomes.append(self._reject(row, *_reason(findings)))
            else:
                copies[copy.position] = copy
                outcomes.append(copy.position)
        if copies:
            mapped = list(copies.values())
            self._pace.before_write(mapped)
            refused = {
                reject.row.position: reject for reject in self._call(lambda: self._target.write(mapped))
            }
            for at, outcome in enumerate(outcomes):
                reject = refused.get(outcome) if isinstance(outcome, Position) else None
                if reject is not None:
                    outcomes[at] = self._reject(rows[at], reject.code, reject.reason)
        return outcomes

    def delete(self, keys: Sequence[Key]) -> None:
        """Delete the copies of rows. Raises CopyStopped, TransferError."""
        mapped = [copy for key in keys if (copy := self._mapping.key(key)) is not None]
        if mapped:
            self._call(lambda: self._target.delete(mapped))

    def _call(self, call: Callable[[], R]) -> R:
        calls, stop = self._pace.calls, self._pace.stop
        stop.check()
        calls.enter(stop.is_set)
        began = time.monotonic()
        try:
            return call()
        except TableAbsent as error:
            raise CannotResume(f"{error}. The rows that were copied are gone") from error
        except OSError as error:
            raise TransferError(f"{self._target.shown}: {error.strerror or error}") from error
        finally:
            now = time.monotonic()
            calls.leave(now - began, now)

    def repeated(self, found: KeyRepeated) -> RepeatedKeys:
        """Return the error for two rows with one key."""
        schema = self._key_schema if found.is_rejected else self._mapping.definition.key_schema
        key = _shown_key(schema, schema.decode(found.position).values)
        words = f"{self._source}: several rows have the key {key} in the target. `tablegate lint` counts such rows"
        if not self._target.takes_changes:
            return RepeatedKeysInFile(
                f"{words}. {self._target.shown} cannot keep the last one, because a file is written once. Remove the"
                " others from the source, or copy to a database first"
            )
        return RepeatedKeys(f"{words}. Remove them, or keep the last row of each key with --duplicates last")

    def rejected_unreadable(self, row: UnreadableRow) -> Rejected:
        """Return the reject of an unreadable row."""
        shown_key = _shown_key(self._key_schema, row.key.values)
        return Rejected(row.position, rules.ROW_UNREADABLE.name, row.reason, shown_key, row.wire)

    def _reject(self, row: Row, code: str, reason: str) -> Rejected:
        shown_key = _shown_key(self._key_schema, self._key_schema.decode(row.position).values)
        return Rejected(row.position, code, reason, shown_key, row.body)


def _shown_key(schema: KeySchema, values: Sequence[Value]) -> str:
    key = {name: bodies.tagged(value) for name, value in zip(schema.names, values, strict=True)}
    return orjson.dumps(key).decode()


@dataclass(frozen=True, slots=True)
class TableJob:
    """A table of a job with its source, writer and limits.

    - `parallel`: the number of threads.
    - `duplicates`: what to do with repeated keys. None if rows cannot repeat a key.
    """

    job: CopyJob
    id: int
    source: Endpoint
    writer: TableWriter
    pace: CopyLimits
    parallel: int
    duplicates: Duplicates | None = None


def _reason(findings: Sequence[MappingFinding]) -> tuple[str, str]:
    """Return the rule and the reason why the target cannot hold a row."""
    for rule, attribute in findings:
        if rule.fidelity is Fidelity.IMPOSSIBLE:
            return rule.name, f"{attribute}: {rule.meaning}" if attribute else rule.meaning
    return "impossible", "the target cannot hold this row"
