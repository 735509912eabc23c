"""The Prometheus metrics: their definitions, updates and exposition.

The module is loaded on demand (metrics.py), since most servers of tests end before they need it. Each of several workers
counts in a file of PROMETHEUS_MULTIPROC_DIR (set by command_line/server.py). Each worker returns the sums of all.
"""

from __future__ import annotations

import math
import os
from bisect import bisect_left
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample


class _BulkHistogram(Histogram):
    """A histogram with bulk observations."""

    def observe_all(self, amounts: Sequence[float]) -> None:
        self._sum.inc(sum(amounts))
        for at, number in Tally([bisect_left(self._upper_bounds, amount) for amount in amounts]).items():
            self._buckets[at].inc(number)


_REQUESTS = Counter(
    "tablegate_requests_total", "Requests answered.", ["dialect", "operation", "status"]
)  # fmt: skip
_REQUEST_SECONDS = _BulkHistogram(
    "tablegate_request_seconds",
    "Time from the last byte of a request to its reply, in seconds.",
    ["dialect", "operation"],
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
_TICK_REQUESTS = _BulkHistogram(
    "tablegate_tick_requests",
    "Number of requests in one database batch.",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256),
)
_TICK_SECONDS = _BulkHistogram(
    "tablegate_tick_seconds",
    "Time of one database batch, in seconds.",
    buckets=(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1, 5),
)
_CONSUMED_CAPACITY = Counter(
    "tablegate_consumed_capacity_total",
    "Capacity units consumed, including those of failed conditions. Azure Table: requests for rows.",
    ["dialect", "table", "index", "kind"],
)
_CONNECTIONS = Gauge("tablegate_connections", "Open client connections.", multiprocess_mode="livesum")
_EXCESS_CONNECTIONS = Counter(
    "tablegate_excess_connections_total",
    "Connections opened above --max-connections. For each one a waiting connection is closed, or the new one gets 503.",
)

_QUOTA_REFUSALS = Counter(
    "tablegate_quota_refusals_total",
    "Requests refused by a quota, by its owner and the exceeded limit.",
    ["owner", "kind"],
)
_AUDIT_LINES = Counter("tablegate_audit_lines_total", "Lines written to the audit log.")
_AUDIT_LOST = Counter(
    "tablegate_audit_lost_total",
    "Events missing in the audit log, because its queue was full or a write failed.",
)

_BACKGROUND_ROWS = Counter(
    "tablegate_background_rows_total",
    "Rows processed by background work. Jobs also count the KiB that they read.",
    ["work"],
)
_BACKGROUND_SECONDS = Counter(
    "tablegate_background_seconds_total", "Time spent on background work, in seconds.", ["work"]
)
_BACKGROUND_LEFT = Gauge(
    "tablegate_background_rows_left",
    "Approximate number of rows left for background work with a known end, at most a million.",
    ["work"],
    multiprocess_mode="livesum",
)


_REPLICA_LAG = Gauge(
    "tablegate_replica_lag_seconds",
    "Lag of a replica, in seconds. +Inf if it is unknown.",
    ["replica"],
    multiprocess_mode="max",
)
_REPLICA_IS_USED = Gauge(
    "tablegate_replica_used",
    "1 if a replica is read from, 0 if not.",
    ["replica"],
    multiprocess_mode="min",
)


_NODE_ANSWERS = Gauge(
    "tablegate_node_up",
    "1 if a node of a distributed database answers, 0 if requests for it are refused.",
    ["node"],
    multiprocess_mode="min",
)
_NODE_STUCK = Gauge(
    "tablegate_node_stuck_transactions",
    "Prepared transactions at a node of a distributed database that are older than 30 s. Their rows are locked.",
    ["node"],
    multiprocess_mode="max",
)

_DELIVERED = Counter("tablegate_kinesis_records_total", "Records put into Kinesis data streams.", ["table"])
_FOLLOWER_LAG = Gauge(
    "tablegate_follower_lag_seconds",
    "Age of the oldest change not yet delivered to followers of tables (Kinesis, search indexes, tunnels), in seconds.",
    ["kind"],
    multiprocess_mode="max",
)

_CERTIFICATE_EXPIRY = Gauge(
    "tablegate_certificate_expiry_timestamp_seconds",
    "Expiry of the TLS certificate, in seconds since 1970.",
    ["path"],
    multiprocess_mode="min",
)

MAX_CAPACITY_SERIES = 10_000
"""Maximum number of series of consumed capacity. A series needs about 2 KB."""
OTHER_TABLES = "(other tables)"
"""The label of all further tables. No table can have this name."""
# Labels of the existing series of _CONSUMED_CAPACITY, without those of OTHER_TABLES.
_capacity_labels: set[tuple[str, str, str, str]] = set()


@lru_cache(maxsize=4096)
def _capacity(dialect: str, table: str, index: str, kind: str) -> Counter:
    labels = (dialect, table, index, kind)
    if labels not in _capacity_labels and len(_capacity_labels) >= MAX_CAPACITY_SERIES:
        return _CONSUMED_CAPACITY.labels(dialect, OTHER_TABLES, "", kind)
    _capacity_labels.add(labels)
    return _CONSUMED_CAPACITY.labels(*labels)


@lru_cache(maxsize=1024)
def _answers(dialect: str, operation: str, status: int) -> tuple[Counter, _BulkHistogram]:
    return _REQUESTS.labels(dialect, operation, status), _REQUEST_SECONDS.labels(dialect, operation)


def count(
    units: Mapping[tuple[str, str, str, str], float],
    answers: Mapping[tuple[str, str, int], Sequence[float]],
    ticks: Sequence[tuple[int, float]],
) -> None:
    """Add capacity units, durations of requests by dialect, operation and status, and ticks (metrics.py)."""
    for labels, number in units.items():
        _capacity(*labels).inc(number)
    for key, amounts in answers.items():
        requests, durations = _answers(*key)
        requests.inc(len(amounts))
        durations.observe_all(amounts)
    if ticks:
        _TICK_REQUESTS.observe_all([number for number, _ in ticks])
        _TICK_SECONDS.observe_all([took for _, took in ticks])


def count_work(batches: Mapping[str, tuple[int, float]]) -> None:
    """Add the rows and seconds of background work."""
    for work, (rows, seconds) in batches.items():
        _BACKGROUND_ROWS.labels(work).inc(rows)
        _BACKGROUND_SECONDS.labels(work).inc(seconds)


def count_events(events: Mapping[tuple[str, ...], int]) -> None:
    """Add rare events.

    They are ("quota", owner, kind), ("excess connection",), ("audit written",), ("audit lost",) and ("delivered", table).
    """
    for (event, *labels), times in events.items():
        match event:
            case "quota":
                _QUOTA_REFUSALS.labels(*labels).inc(times)
            case "excess connection":
                _EXCESS_CONNECTIONS.inc(times)
            case "audit written":
                _AUDIT_LINES.inc(times)
            case "audit lost":
                _AUDIT_LOST.inc(times)
            case "delivered":
                _DELIVERED.labels(*labels).inc(times)


_known_works: set[str] = set()


def set_all(
    connections: int,
    rows_left: Mapping[str, int],
    replicas: Mapping[str, tuple[float | None, bool]],
    nodes: Mapping[str, tuple[bool, int]],
    lags: Mapping[str, float],
    certificates: Mapping[str, float],
) -> None:
    """Set the gauges.

    - `connections`: number of open connections.
    - `rows_left`: remaining rows by kind of background work. Kinds not listed have none.
    - `replicas`: lag in milliseconds (None if unknown), and whether the replica is read from.
    - `nodes`: whether the node answers, and its number of stuck transactions.
    - `lags`: lag in seconds by kind of table followers.
    - `certificates`: expiry of each TLS certificate, in seconds since 1970.
    """
    _CONNECTIONS.set(connections)
    _known_works.update(rows_left)
    for work in _known_works:
        _BACKGROUND_LEFT.labels(work).set(rows_left.get(work, 0))
    for replica, (lag_ms, is_used) in replicas.items():
        _REPLICA_LAG.labels(replica).set(math.inf if lag_ms is None else lag_ms / 1000)
        _REPLICA_IS_USED.labels(replica).set(is_used)
    for node, (answers, stuck) in nodes.items():
        _NODE_ANSWERS.labels(node).set(answers)
        _NODE_STUCK.labels(node).set(stuck)
    for kind, seconds in lags.items():
        _FOLLOWER_LAG.labels(kind).set(seconds)
    for path, at in certificates.items():
        _CERTIFICATE_EXPIRY.labels(path).set(at)


def exposition(tables: frozenset[str] | None = None) -> tuple[bytes, str]:
    """Return the metrics in the text format of Prometheus, and its content type.

    The series of tables that are not in `tables` are removed. With None no series is removed.
    """
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        registry = CollectorRegistry()
        registry.register(_MultiprocessCollector(tables))
        registry.register(_Contributors())
        return generate_latest(registry), CONTENT_TYPE_LATEST
    if tables is not None:
        _remove_dropped_tables(tables)
    return generate_latest(REGISTRY), CONTENT_TYPE_LATEST


def samples() -> Iterator[Sample]:
    """Yield the samples of all metrics, of all workers."""
    collector: Collector = (
        _MultiprocessCollector(None) if "PROMETHEUS_MULTIPROC_DIR" in os.environ else REGISTRY
    )
    for metric in collector.collect():
        yield from metric.samples


def figure_names() -> list[tuple[str, bool]]:
    """Return (name, True for a counter) of each counter and gauge of this process."""
    return [
        (family.name, family.type == "counter")
        for family in REGISTRY.collect()
        if family.name.startswith("tablegate_") and family.type in ("counter", "gauge")
    ]


def figures_of(name: str) -> list[tuple[dict[str, str], float]]:
    """Return (labels, value) of a counter or gauge of this process."""
    return [
        (sample.labels, sample.value)
        for family in REGISTRY.collect()
        if family.name == name
        for sample in family.samples
        if not sample.name.endswith("_created")
    ]


def _remove_dropped_tables(tables: frozenset[str]) -> None:
    dropped_series = [labels for labels in list(_capacity_labels) if labels[1] not in tables]
    for labels in dropped_series:
        _capacity_labels.discard(labels)
        _CONSUMED_CAPACITY.remove(*labels)
    if dropped_series:
        _capacity.cache_clear()


contributors: Sequence[tuple[str, str, str, tuple[str, ...], int]] = ()
"""The most frequent keys: table, index, rule, key, requests (metrics.ContributorSample)."""


class _Contributors(Collector):
    """The most frequent keys, counted by this process."""

    def collect(self) -> Iterable[Metric]:
        family = GaugeMetricFamily(
            "tablegate_contributor_requests",
            "Requests of the most frequent keys of tables with contributor insights, counted by the answering process.",
            labels=["table", "index", "rule", "partition", "sort"],
        )
        for table, index, rule, key, count in contributors:
            family.add_metric([table, index, rule, key[0], ",".join(key[1:])], count)
        if family.samples:
            yield family


REGISTRY.register(_Contributors())


class _MultiprocessCollector(Collector):
    """The sums of all workers. The file of a worker keeps all series, so those of dropped tables are removed here."""

    def __init__(self, tables: frozenset[str] | None) -> None:
        self._tables = None if tables is None else tables | {OTHER_TABLES}

    def collect(self) -> Iterable[Metric]:
        for metric in MultiProcessCollector.merge(_files_of_workers()):  # type: ignore[no-untyped-call]
            if self._tables is not None and metric.name == "tablegate_consumed_capacity":
                metric.samples = [
                    sample for sample in metric.samples if sample.labels["table"] in self._tables
                ]
            yield metric


def _files_of_workers() -> list[str]:
    """Return the files with counts. The library cannot read one that was just created, which is empty for a moment."""
    with os.scandir(os.environ["PROMETHEUS_MULTIPROC_DIR"]) as entries:
        return [entry.path for entry in entries if entry.name.endswith(".db") and _size_of(entry)]


def _size_of(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat().st_size
    except FileNotFoundError:  # the file of a process that has ended
        return 0
