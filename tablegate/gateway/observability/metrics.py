"""Collection of measurements for the metrics: requests, ticks, consumed capacity, connections, background work, replicas.

Measurements of requests and ticks go into queues and are counted in batches:
- when a queue is long enough, and every second;
- after each request that Flask handles;
- before the metrics are read.

The Prometheus library (prometheus.py) is loaded when a queue is long enough, when the metrics are read, or with several
worker processes.

All labels have a bounded set of values: dialects, their operation names, tables.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from prometheus_client.samples import Sample

_consumptions: deque[tuple[str, str, str, str, float]] = deque()
_requests: deque[tuple[str, str, int, float]] = deque()
_ticks: deque[tuple[int, float]] = deque()
_batches: dict[str, tuple[int, float]] = {}
_events: dict[tuple[str, ...], int] = {}
_rows_left: dict[str, int] = {}
_lags: dict[str, float] = {}
_replicas: dict[str, tuple[float | None, bool]] = {}
_certificates: dict[str, float] = {}
_lock = threading.Lock()  # protects _batches and _events, which are read and then written
_BATCH_SIZE = 512

is_counting = False
"""True if the Prometheus library is loaded."""
connections = 0
"""Open client connections. The server sets it."""

record_consumption: Callable[[tuple[str, str, str, str, float]], None] = _consumptions.append
"""Record capacity units: (dialect, table, index, kind, units). `index` is "" for the table. `kind` is `read` or `write`."""
record_request: Callable[[tuple[str, str, int, float]], None] = _requests.append
"""Record an answered request: (dialect, operation, status, seconds)."""


record_tick: Callable[[tuple[int, float]], None] = _ticks.append
"""Record a tick: (requests, seconds)."""


def record_batch(work: str, rows: int, seconds: float) -> None:
    """Record a finished batch of background work."""
    with _lock:
        rows_before, seconds_before = _batches.get(work, (0, 0.0))
        _batches[work] = (rows_before + rows, seconds_before + seconds)


def record_quota_refusal(owner: str, kind: str) -> None:
    """Record a request that exceeded a quota."""
    _add_events(1, "quota", owner, kind)


def record_audit_lines(lines: int) -> None:
    """Record lines written to the audit log."""
    _add_events(lines, "audit written")


def record_audit_loss(events: int) -> None:
    """Record events that are missing in the audit log."""
    _add_events(events, "audit lost")


def _add_events(number: int, *event: str) -> None:
    with _lock:
        _events[event] = _events.get(event, 0) + number


def record_rows_left(rows: Mapping[str, int]) -> None:
    """Record the approximate number of remaining rows for each kind of background work. Kinds not listed have none."""
    global _rows_left
    _rows_left = dict(rows)


def record_replica_lag(replica: str, lag_ms: float | None, is_used: bool) -> None:
    """Record the lag of a replica (None if unknown) and whether it is read from."""
    _replicas[replica] = (lag_ms, is_used)


def record_delivery(table: str, records: int) -> None:
    """Record records put into a Kinesis data stream."""
    _add_events(records, "delivered", table)


def record_follower_lag(kind: str, seconds: float) -> None:
    """Record the lag of a kind of table followers, in seconds."""
    _lags[kind] = seconds


def record_certificate_expiry(path: str, at: float) -> None:
    """Record the expiry of the TLS certificate in a file, in seconds since 1970."""
    _certificates[path] = at


def is_due() -> bool:
    """True if the Prometheus library is loaded or has to be loaded now."""
    return is_counting or _is_batch_full() or "PROMETHEUS_MULTIPROC_DIR" in os.environ


def has_measurements() -> bool:
    """True if anything was measured in this process or its workers."""
    return is_due() or bool(_requests or _consumptions or _ticks)


def count_if_enough() -> None:
    """Count the queued measurements, if a queue is long enough and the library is loaded."""
    if is_counting and _is_batch_full():
        count_noted()


def _is_batch_full() -> bool:
    return len(_requests) >= _BATCH_SIZE or len(_consumptions) >= _BATCH_SIZE or len(_ticks) >= _BATCH_SIZE


def count_noted() -> None:
    """Count the queued measurements."""
    from tablegate.gateway.observability import prometheus

    global is_counting
    is_counting = True
    units: dict[tuple[str, str, str, str], float] = {}
    answers: dict[tuple[str, str, int], list[float]] = {}
    ticks: list[tuple[int, float]] = []
    try:  # another thread can empty a queue in between
        while _consumptions:
            dialect, table, index, kind, amount = _consumptions.popleft()
            units[dialect, table, index, kind] = units.get((dialect, table, index, kind), 0.0) + amount
        while _requests:
            name, operation, status, took = _requests.popleft()
            answers.setdefault((name, operation, status), []).append(took)
        while _ticks:
            ticks.append(_ticks.popleft())
    except IndexError:
        pass
    prometheus.count(units, answers, ticks)
    with _lock:
        batches, events = dict(_batches), dict(_events)
        _batches.clear()
        _events.clear()
    prometheus.count_work(batches)
    prometheus.count_events(events)
    prometheus.set_all(connections, _rows_left, dict(_replicas), dict(_lags), dict(_certificates))


def exposition(tables: frozenset[str] | None = None) -> tuple[bytes, str]:
    """Return the metrics in the text format of Prometheus, and its content type.

    The series of tables that are not in `tables` are removed. With None no series is removed.
    """
    from tablegate.gateway.observability import prometheus

    count_noted()
    prometheus.contributors = [sample for source in contributor_sources for sample in source()]
    return prometheus.exposition(tables)


def samples() -> Iterator[Sample]:
    """Yield the samples of all metrics."""
    from tablegate.gateway.observability import prometheus

    count_noted()
    return prometheus.samples()


class ContributorSample(NamedTuple):
    """The number of requests of one of the most frequent keys of a table, or of its index.

    `index_name` is "" for the table. `rule` is the name of the contributor insights rule.
    """

    table: str
    index_name: str
    rule: str
    key: tuple[str, ...]
    requests: int


contributor_sources: list[Callable[[], Iterable[ContributorSample]]] = []
"""Functions that return the most frequent keys."""
