"""What is counted, for Prometheus: requests, ticks, consumed capacity.

Everything has a bounded set of labels: dialects, their own operation names, tables. With several workers each counts in a
file of PROMETHEUS_MULTIPROC_DIR (workers.py sets it), and any of them gives the sums.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
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

from gateway import handling

_REQUESTS = Counter(
    "tablegate_requests_total", "Requests answered.", ["dialect", "operation", "status"]
)  # fmt: skip
_REQUEST_SECONDS = Histogram(
    "tablegate_request_seconds",
    "From the last byte of a request to its reply.",
    ["dialect", "operation"],
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
_TICK_REQUESTS = Histogram(
    "tablegate_tick_requests",
    "Requests that went to the database together.",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256),
)
_TICK_SECONDS = Histogram(
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


# Labels of the series there are.
_charged: set[tuple[str, str, str, str]] = set()


@lru_cache(maxsize=4096)
def _capacity(dialect: str, table: str, index: str, kind: str) -> Counter:
    _charged.add((dialect, table, index, kind))
    return _CONSUMED_CAPACITY.labels(dialect, table, index, kind)


def consumed(dialect: str, table: str, index: str, kind: str, units: float) -> None:
    """Count capacity units of a table (index "") or one of its indexes; kind is `read` or `write`."""
    _capacity(dialect, table, index, kind).inc(units)
    handling.consumed(kind, units)


@lru_cache(maxsize=1024)
def _answers(dialect: str, operation: str, status: int) -> tuple[Counter, Histogram]:
    return _REQUESTS.labels(dialect, operation, status), _REQUEST_SECONDS.labels(dialect, operation)


def answered(dialect: str, operation: str, status: int, seconds: float) -> None:
    """Count a request that was answered."""
    requests, duration = _answers(dialect, operation, status)
    requests.inc()
    duration.observe(seconds)


def ticked(requests: int, seconds: float) -> None:
    """Count a tick whose commands were run."""
    _TICK_REQUESTS.observe(requests)
    _TICK_SECONDS.observe(seconds)


def worked(work: str, rows: int, seconds: float) -> None:
    """Count a batch of background work that was done."""
    _BACKGROUND_ROWS.labels(work).inc(rows)
    _BACKGROUND_SECONDS.labels(work).inc(seconds)


_known_works: set[str] = set()


def left_to_do(rows: Mapping[str, int]) -> None:
    """Set about how many rows of background work are left, by the work; of works that are not named, none."""
    _known_works.update(rows)
    for work in _known_works:
        _BACKGROUND_LEFT.labels(work).set(rows.get(work, 0))


def exposition(tables: frozenset[str] | None = None) -> tuple[bytes, str]:
    """Everything counted, in Prometheus' text form, and its content type. The series of tables that are not among `tables`
    go away (None: nobody can say which there are)."""
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
