"""Collection of measurements for the metrics, and the history of the metrics of the last day.

Requests, ticks, consumed capacity, connections, background work and replicas are measured. Measurements of requests and ticks
go into queues and are counted in batches:
- when a queue is long enough, and every second;
- after each request that Flask handles;
- before the metrics are read.

The Prometheus library (prometheus.py) is loaded when a queue is long enough, when the metrics are read, or with several
worker processes.

All labels have a bounded set of values: dialects, their operation names, tables.

The history says how much each counter has grown, in short and in long intervals. The main background thread takes the samples
(gateway/server/background.py), so there are figures before a page shows them. With several workers each one keeps the sums of
all. Its memory is bounded: a series is one counter, needs 3 KB, and there are at most MAX_SERIES, so 5 MB at most. If there
are more counters, those that have not grown for the longest time are dropped.
"""

from __future__ import annotations

import os
import threading
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
_nodes: dict[str, tuple[bool, int]] = {}
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


def record_excess_connection() -> None:
    """Record a connection above the limit of open connections."""
    _add_events(1, "excess connection")


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


def record_nodes(nodes: Mapping[str, tuple[bool, int]]) -> None:
    """Record for each node of a distributed database whether it answers, and its number of stuck transactions."""
    _nodes.update(nodes)


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
    prometheus.set_all(
        connections, _rows_left, dict(_replicas), dict(_nodes), dict(_lags), dict(_certificates)
    )


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


FINE_S, COARSE_S = 10, 300
"""Lengths of the intervals, in seconds."""
HOUR_S, DAY_S = 3600, 86_400
MAX_SERIES = 1500
_SHARE = 0.01
"""Maximum share of one core for sampling."""


class Counter(NamedTuple):
    """The name of a counter: of the `server`, of an `operation` ("dynamodb PutItem"), or of a `table`.

    figure: requests, errors, throttled, seconds, ticks, tick_requests, read, write, or "le BOUND", the cumulative number of
    requests that took at most BOUND seconds.
    """

    kind: str
    name: str
    figure: str


_ELAPSED = Counter("", "", "elapsed")
"""The seconds that the samples of an interval cover."""


class _Ring:
    """The growth of counters in the last intervals, `length` of `period_s` each."""

    def __init__(self, period_s: int, length: int) -> None:
        self.period_s = period_s
        self._length = length
        self._series: dict[Counter, array[float]] = {}  # in the order of their last growth
        self._interval = 0

    def add(self, at_s: float, growth: Mapping[Counter, float]) -> None:
        """Add the growth of counters to the interval of a time. Later calls have later times."""
        interval = int(at_s // self.period_s)
        new_intervals = range(max(self._interval + 1, interval - self._length + 1), interval + 1)
        for values in self._series.values():
            for number in new_intervals:
                values[number % self._length] = 0.0
        self._interval = interval
        for counter, amount in growth.items():
            values = self._series[counter] if counter in self._series else array("f", bytes(4 * self._length))
            values[interval % self._length] += amount
            self._series.pop(counter, None)
            self._series[counter] = values
        while len(self._series) > MAX_SERIES:
            del self._series[next(iter(self._series))]

    def growth_of(self, counter: Counter, at_s: float, number: int) -> list[float]:
        """Return the growth of a counter in the last intervals before a time, up to the last sample."""
        values = self._series.get(counter)
        present = int(at_s // self.period_s)
        end = 1 + (self._interval if present - self._interval == 1 else present)
        recorded_intervals = range(self._interval - self._length + 1, self._interval + 1)
        return [
            values[interval % self._length] if values is not None and interval in recorded_intervals else 0.0
            for interval in range(end - number, end)
        ]

    def counters(self) -> list[Counter]:
        """Return the counters that have grown in these intervals."""
        return [counter for counter, values in self._series.items() if any(values)]


class MetricHistory:
    """The growth of all counters during the last day. For use by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rings = (_Ring(FINE_S, HOUR_S // FINE_S + 1), _Ring(COARSE_S, DAY_S // COARSE_S + 1))
        self._before: Mapping[Counter, float] = {}
        self._sampled_at_s: float | None = None
        self._due_s = 0.0

    def sample_if_due(self) -> None:
        """Sample the metrics once in each short interval, or less often if there are very many counters."""
        with self._lock:
            at_s = time.monotonic()
            before_s = self._sampled_at_s
            if before_s is None or (at_s // FINE_S > before_s // FINE_S and at_s >= self._due_s):
                began_s = time.thread_time()
                # Before the first request all counters are 0, and the metrics need not be loaded.
                self._add(at_s, totals() if has_measurements() else {})
                self._due_s = at_s + (time.thread_time() - began_s) / _SHARE

    def add(self, at_s: float, values: Mapping[Counter, float]) -> None:
        """Add a sample: the values of all counters at a time."""
        with self._lock:
            self._add(at_s, values)

    def _add(self, at_s: float, values: Mapping[Counter, float]) -> None:
        before_s, before = self._sampled_at_s, self._before
        self._sampled_at_s, self._before = at_s, values
        if before_s is None:
            return
        growth = {
            counter: value - before.get(counter, 0.0)
            for counter, value in values.items()
            if value > before.get(counter, 0.0)
        }
        growth[_ELAPSED] = at_s - before_s
        for ring in self._rings:
            ring.add(at_s, growth)

    def counters(self, kind: str) -> list[Counter]:
        """Return the counters of a kind that have grown during the last day."""
        with self._lock:
            return [each for each in self._rings[1].counters() if each.kind == kind]

    def excerpt(self, counters: Iterable[Counter], seconds: int, at_s: float | None = None) -> Excerpt:
        """Return the growth of counters in the intervals of the last seconds, before now or `at_s`."""
        end_s = time.monotonic() if at_s is None else at_s
        with self._lock:
            ring = self._rings[0 if seconds <= HOUR_S else 1]
            number = seconds // ring.period_s
            growth = {counter: ring.growth_of(counter, end_s, number) for counter in counters}
            return Excerpt(ring.period_s, ring.growth_of(_ELAPSED, end_s, number), growth)


class Excerpt(NamedTuple):
    """The growth of counters in successive intervals of `period_s`.

    elapsed_s: the seconds that the samples of each interval cover. 0 if there is no sample.
    """

    period_s: float
    elapsed_s: Sequence[float]
    growth: Mapping[Counter, Sequence[float]]

    def rates(self, counter: Counter) -> list[float | None]:
        """Return the growth per second in each interval. None where there is no sample, nor a later one that covers it."""
        rates: list[float | None] = [None] * len(self.elapsed_s)
        for at, (value, seconds) in enumerate(zip(self.growth[counter], self.elapsed_s, strict=True)):
            if not seconds:
                continue
            rates[at] = value / seconds
            for earlier in range(at - 1, max(-1, at - round(seconds / self.period_s)), -1):
                if not self.elapsed_s[earlier]:
                    rates[earlier] = rates[at]
        return rates

    def total(self, counter: Counter) -> float:
        """Return the growth during all intervals."""
        return sum(self.growth.get(counter, ()))


def totals() -> dict[Counter, float]:
    """Return the present values of the counters."""
    values: dict[Counter, float] = {}

    def count(kind: str, name: str, figure: str, value: float) -> None:
        counter = Counter(kind, name, figure)
        values[counter] = values.get(counter, 0.0) + value

    for sample in samples():
        labels, value = sample.labels, sample.value
        if sample.name == "tablegate_consumed_capacity_total":
            count("table", labels["table"], labels["kind"], value)
        elif sample.name == "tablegate_tick_requests_count":
            count("server", "", "ticks", value)
        elif sample.name == "tablegate_tick_requests_sum":
            count("server", "", "tick_requests", value)
        elif sample.name == "tablegate_request_seconds_bucket":
            count("server", "", f"le {labels['le']}", value)
        elif sample.name == "tablegate_request_seconds_sum":
            count("operation", _operation(labels), "seconds", value)
        elif sample.name == "tablegate_requests_total":
            for kind, name in (("server", ""), ("operation", _operation(labels))):
                count(kind, name, "requests", value)
                if labels["status"] >= "400":
                    count(kind, name, "errors", value)
                if labels["status"] in ("429", "503"):
                    count(kind, name, "throttled", value)
    return values


def _operation(labels: Mapping[str, str]) -> str:
    if labels["dialect"] == "gateway":  # its operations are paths
        return "gateway console and control"
    return f"{labels['dialect']} {labels['operation']}"


history = MetricHistory()
"""The history of this process, whose metrics are its own, too."""
