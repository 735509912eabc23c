"""Rows of the source on their way into the target: mapped, paced, written; and what is refused on the way.

Knows one table's two ends and its mapping. Knows nothing of segments or changes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import orjson

from tablegate.gateway.model.values import bodies
from tablegate.gateway.model.values.keys import Key, KeySchema, Position
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import Value
from tablegate.transfer.copying.job import CopyJob, Rejected
from tablegate.transfer.copying.pacing import Concurrency, Rate, RateUnit
from tablegate.transfer.endpoints.endpoint import Endpoint, UnreadableRow
from tablegate.transfer.errors import TransferError
from tablegate.transfer.mapping import rules
from tablegate.transfer.mapping.mapping import Mapping
from tablegate.transfer.mapping.rules import Fidelity, MappingFinding

R = TypeVar("R")

_WRITE_UNIT_BYTES, _READ_UNIT_BYTES = 1024, 4096


class CopyStopped(Exception):
    """Some other thread has failed, or the user wants the end."""


class StopSignal:
    """Whether the threads of a copy are to stop, and the first error among them."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self.error: BaseException | None = None

    def set(self, error: BaseException | None = None) -> None:
        """Have all threads stop."""
        with self._lock:
            if self.error is None and not self._event.is_set():
                self.error = error
        self._event.set()

    def is_set(self) -> bool:
        """Whether to stop."""
        return self._event.is_set()

    def wait(self, seconds: float) -> None:
        """Wait, but not when everything is to stop. Raises Stopped."""
        if self._event.wait(seconds):
            raise CopyStopped

    def check(self) -> None:
        """Raises Stopped if it is so."""
        if self._event.is_set():
            raise CopyStopped


@dataclass(frozen=True, slots=True)
class CopyLimits:
    """What all threads of a copy keep to."""

    stop: StopSignal
    rates: tuple[Rate, ...]
    calls: Concurrency

    def most_rows(self, rows: int) -> int:
        """How many of so many rows to write at once, so that a slow rate is kept in small steps."""
        slowest = min((rate.limit.per_second for rate in self.rates), default=float(rows))
        return max(1, min(rows, int(slowest)))

    def before_read(self, size_bytes: int) -> None:
        """Wait until so many bytes may be read."""
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
    """Writes rows of one source table into its copy. May be used by several threads."""

    def __init__(self, target: Endpoint, mapping: Mapping, key_schema: KeySchema, pace: CopyLimits) -> None:
        """`key_schema`: of the source."""
        self._target = target
        self._mapping = mapping
        self._key_schema = key_schema
        self._pace = pace
        self.most_rows = pace.most_rows(target.write_rows)
        """How many rows one call of `write` is good for."""

    def write(self, rows: Sequence[Row]) -> list[Rejected]:
        """Put the copies of these rows; those that cannot be had or were refused. Of several with one key the last counts. Raises
        Stopped, TransferError."""
        copies: dict[Position, Row] = {}
        origins: dict[Position, Row] = {}
        rejects: list[Rejected] = []
        for row in rows:
            copy, findings = self._mapping.map(row)
            if copy is None:
                rejects.append(self._rejected(row, *_reason(findings)))
            else:
                copies[copy.position] = copy
                origins[copy.position] = row
        if copies:
            mapped = list(copies.values())
            self._pace.before_write(mapped)
            for reject in self._call(lambda: self._target.write(mapped)):
                rejects.append(self._rejected(origins[reject.row.position], reject.code, reject.reason))
        return rejects

    def delete(self, keys: Sequence[Key]) -> None:
        """Delete the copies of rows. Raises Stopped, TransferError."""
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
        except OSError as error:
            raise TransferError(f"{self._target.shown}: {error.strerror or error}") from error
        finally:
            now = time.monotonic()
            calls.leave(now - began, now)

    def rejected_unread(self, row: UnreadableRow) -> Rejected:
        """The reject that a row becomes which cannot be read."""
        shown_key = self._shown_key(row.key.values)
        return Rejected(row.position, rules.ROW_UNREADABLE.name, row.reason, shown_key, row.wire)

    def _rejected(self, row: Row, code: str, reason: str) -> Rejected:
        shown_key = self._shown_key(self._key_schema.decode(row.position).values)
        return Rejected(row.position, code, reason, shown_key, row.body)

    def _shown_key(self, values: Sequence[Value]) -> str:
        key = {name: bodies.tagged(value) for name, value in zip(self._key_schema.names, values, strict=True)}
        return orjson.dumps(key).decode()


@dataclass(frozen=True, slots=True)
class TableJob:
    """A table of a job: its source, the writer of its copies, and what its threads keep to. `parallel`: number of threads."""

    job: CopyJob
    id: int
    source: Endpoint
    writer: TableWriter
    pace: CopyLimits
    parallel: int


def _reason(findings: Sequence[MappingFinding]) -> tuple[str, str]:
    """Why a row cannot be had in the target: the rule's name, and a sentence."""
    for rule, attribute in findings:
        if rule.fidelity is Fidelity.IMPOSSIBLE:
            return rule.name, f"{attribute}: {rule.meaning}" if attribute else rule.meaning
    return "impossible", "the target cannot hold this row"
