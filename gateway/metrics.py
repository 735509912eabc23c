"""What is counted, for Prometheus: requests, ticks, consumed capacity.

What every request and tick has to say is noted in a queue, and counted for many of them at once: when there are enough, every
second, after each request that went through Flask, and before anybody is shown the figures.

Everything has a bounded set of labels: dialects, their own operation names, tables. With several workers each counts in a
file of PROMETHEUS_MULTIPROC_DIR (workers.py sets it), and any of them gives the sums.
"""

from __future__ import annotations

import math
import os
from bisect import bisect_left
from collections import Counter as Tally
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector


class _ManyAtOnce(Histogram):
    """A histogram that many observations are made of at once."""

    def observe_all(self, amounts: Sequence[float]) -> None:
        """Observe each of these amounts."""
        self._sum.inc(sum(amounts))
        for at, number in Tally([bisect_left(self._upper_bounds, amount) for amount in amounts]).items():
            self._buckets[at].inc(number)


_REQUESTS = Counter(
    "tablegate_requests_total", "Requests answered.", ["dialect", "operation", "status"]
)  # fmt: skip
_REQUEST_SECONDS = _ManyAtOnce(
    "tablegate_request_seconds",
    "From the last byte of a request to its reply.",
    ["dialect", "operation"],
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
_TICK_REQUESTS = _ManyAtOnce(
    "tablegate_tick_requests",
    "Requests that went to the database together.",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256),
)
_TICK_SECONDS = _ManyAtOnce(
    "tablegate_tick_seconds",
    "What one call of the database took.",
    buckets=(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1, 5),
)
_CONSUMED_CAPACITY = Counter(
    "tablegate_consumed_capacity_total",
    "Capacity units consumed, by failed conditions too.",
    ["dialect", "table", "index", "kind"],
)
CONNECTIONS = Gauge("tablegate_connections", "Open client connections.", multiprocess_mode="livesum")

_QUOTA_REFUSALS = Counter(
    "tablegate_quota_refusals_total",
    "Requests beyond a quota, by its owner and what was used up.",
    ["owner", "kind"],
)
_AUDIT_LINES = Counter("tablegate_audit_lines_total", "Lines of the audit that were written.")
_AUDIT_LOST = Counter(
    "tablegate_audit_lost_total",
    "Events that are missing in the audit: there was no room, or it could not be written.",
)

_BACKGROUND_ROWS = Counter(
    "tablegate_background_rows_total", "Rows that background work has gone over.", ["work"]
)
_BACKGROUND_SECONDS = Counter(
    "tablegate_background_seconds_total", "Time that background work took.", ["work"]
)
_BACKGROUND_LEFT = Gauge(
    "tablegate_background_rows_left",
    "About how many rows are left of work whose end is known; counted up to a million.",
    ["work"],
    multiprocess_mode="livesum",
)


_REPLICA_LAG = Gauge(
    "tablegate_replica_lag_seconds",
    "How far a replica is behind; +Inf if that is not known.",
    ["replica"],
    multiprocess_mode="max",
)
_REPLICA_IS_USED = Gauge(
    "tablegate_replica_used",
    "1 if a replica is read from, 0 if it is left alone.",
    ["replica"],
    multiprocess_mode="min",
)


# Labels of the series there are.
_charged: set[tuple[str, str, str, str]] = set()


@lru_cache(maxsize=4096)
def _capacity(dialect: str, table: str, index: str, kind: str) -> Counter:
    _charged.add((dialect, table, index, kind))
    return _CONSUMED_CAPACITY.labels(dialect, table, index, kind)


@lru_cache(maxsize=1024)
def _answers(dialect: str, operation: str, status: int) -> tuple[Counter, _ManyAtOnce]:
    return _REQUESTS.labels(dialect, operation, status), _REQUEST_SECONDS.labels(dialect, operation)


_consumptions: deque[tuple[str, str, str, str, float]] = deque()
_answered: deque[tuple[str, str, int, float]] = deque()
_ticked: deque[tuple[int, float]] = deque()
# With so many noted it is time to count.
_ENOUGH = 512

consumed: Callable[[tuple[str, str, str, str, float]], None] = _consumptions.append
"""Note capacity units: (dialect, table, index, kind, units), of a table (index "") or one of its indexes; kind is `read` or
`write`."""
answered: Callable[[tuple[str, str, int, float]], None] = _answered.append
"""Note that a request was answered: (dialect, operation, status, seconds)."""


ticked: Callable[[tuple[int, float]], None] = _ticked.append
"""Note that a tick's commands were run: (requests, seconds)."""


def count_if_enough() -> None:
    """Count what was noted, if it is much. Whoever notes calls this from time to time."""
    if len(_answered) >= _ENOUGH or len(_consumptions) >= _ENOUGH or len(_ticked) >= _ENOUGH:
        count_noted()


def count_noted() -> None:
    """Count what `consumed`, `answered` and `ticked` have noted."""
    units: dict[tuple[str, str, str, str], float] = {}
    seconds: dict[tuple[str, str, int], list[float]] = {}
    ticks: list[tuple[int, float]] = []
    try:  # another thread may take what is left in the meantime
        while _consumptions:
            dialect, table, index, kind, more = _consumptions.popleft()
            units[dialect, table, index, kind] = units.get((dialect, table, index, kind), 0.0) + more
        while _answered:
            name, operation, status, took = _answered.popleft()
            seconds.setdefault((name, operation, status), []).append(took)
        while _ticked:
            ticks.append(_ticked.popleft())
    except IndexError:
        pass
    for labels, number in units.items():
        _capacity(*labels).inc(number)
    for told, amounts in seconds.items():
        requests, durations = _answers(*told)
        requests.inc(len(amounts))
        durations.observe_all(amounts)
    if ticks:
        _TICK_REQUESTS.observe_all([number for number, _ in ticks])
        _TICK_SECONDS.observe_all([took for _, took in ticks])


def worked(work: str, rows: int, seconds: float) -> None:
    """Count a batch of background work that was done."""
    _BACKGROUND_ROWS.labels(work).inc(rows)
    _BACKGROUND_SECONDS.labels(work).inc(seconds)


def followed(replica: str, lag_ms: float | None, is_used: bool) -> None:
    """Set how far a replica is behind, and whether it is read from."""
    _REPLICA_LAG.labels(replica).set(math.inf if lag_ms is None else lag_ms / 1000)
    _REPLICA_IS_USED.labels(replica).set(is_used)


def refused_by_quota(owner: str, kind: str) -> None:
    """Count a request that was beyond a quota."""
    _QUOTA_REFUSALS.labels(owner, kind).inc()


def audit_written(lines: int) -> None:
    """Count lines of the audit."""
    _AUDIT_LINES.inc(lines)


def audit_lost(events: int) -> None:
    """Count events that the audit has not."""
    _AUDIT_LOST.inc(events)


_known_works: set[str] = set()


def left_to_do(rows: Mapping[str, int]) -> None:
    """Set about how many rows of background work are left, by the work; of works that are not named, none."""
    _known_works.update(rows)
    for work in _known_works:
        _BACKGROUND_LEFT.labels(work).set(rows.get(work, 0))


def figure_names() -> list[tuple[str, bool]]:
    """(name, whether it only grows) of every figure of this process that is one number: no histograms."""
    return [
        (family.name, family.type == "counter")
        for family in REGISTRY.collect()
        if family.name.startswith("tablegate_") and family.type in ("counter", "gauge")
    ]


def figures_of(name: str) -> list[tuple[dict[str, str], float]]:
    """(labels, value) of a figure as this process has it."""
    count_noted()
    return [
        (sample.labels, sample.value)
        for family in REGISTRY.collect()
        if family.name == name
        for sample in family.samples
        if not sample.name.endswith("_created")
    ]


def exposition(tables: frozenset[str] | None = None) -> tuple[bytes, str]:
    """Everything counted, in Prometheus' text form, and its content type. The series of tables that are not among `tables`
    go away (None: nobody can say which there are)."""
    count_noted()
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        registry = CollectorRegistry()
        registry.register(_AllProcesses(tables))
        return generate_latest(registry), CONTENT_TYPE_LATEST
    if tables is not None:
        _forget_others(tables)
    return generate_latest(REGISTRY), CONTENT_TYPE_LATEST


def _forget_others(tables: frozenset[str]) -> None:
    gone = [labels for labels in list(_charged) if labels[1] not in tables]
    for labels in gone:
        _charged.discard(labels)
        _CONSUMED_CAPACITY.remove(*labels)
    if gone:
        _capacity.cache_clear()


class _AllProcesses(Collector):
    """The sums of all workers. What one of them has counted stays in its file, so dropped tables are left out here."""

    def __init__(self, tables: frozenset[str] | None) -> None:
        self._tables = tables
        self._collector = MultiProcessCollector(None)  # type: ignore[no-untyped-call]

    def collect(self) -> Iterable[Metric]:
        for metric in self._collector.collect():  # type: ignore[no-untyped-call]
            if self._tables is not None and metric.name == "tablegate_consumed_capacity":
                metric.samples = [it for it in metric.samples if it.labels["table"] in self._tables]
            yield metric
