"""What is noted for the figures: requests, ticks, consumed capacity, connections, background work, replicas.

What every request and tick has to say is noted in a queue, and counted for many of them at once: when there are enough, every
second, after each request that went through Flask, and before anybody is shown the figures. The library that counts is loaded
(prometheus.py) when much is noted, when somebody asks, or where several processes count together.

Everything has a bounded set of labels: dialects, their own operation names, tables.
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
_answered: deque[tuple[str, str, int, float]] = deque()
_ticked: deque[tuple[int, float]] = deque()
_worked: dict[str, tuple[int, float]] = {}
_events: dict[tuple[str, ...], int] = {}
_left: dict[str, int] = {}
_lags: dict[str, float] = {}
_replicas: dict[str, tuple[float | None, bool]] = {}
_certificates: dict[str, float] = {}
_lock = threading.Lock()  # of what follows from what was there before
# With so many noted it is time to count.
_ENOUGH = 512

is_counting = False
"""Whether the library that counts is loaded."""
connections = 0
"""Open client connections. The server sets it."""

consumed: Callable[[tuple[str, str, str, str, float]], None] = _consumptions.append
"""Note capacity units: (dialect, table, index, kind, units), of a table (index "") or one of its indexes; kind is `read` or
`write`."""
answered: Callable[[tuple[str, str, int, float]], None] = _answered.append
"""Note that a request was answered: (dialect, operation, status, seconds)."""


ticked: Callable[[tuple[int, float]], None] = _ticked.append
"""Note that a tick's commands were run: (requests, seconds)."""


def worked(work: str, rows: int, seconds: float) -> None:
    """Note a batch of background work that was done."""
    with _lock:
        rows_before, seconds_before = _worked.get(work, (0, 0.0))
        _worked[work] = (rows_before + rows, seconds_before + seconds)


def refused_by_quota(owner: str, kind: str) -> None:
    """Note a request that was beyond a quota."""
    _happened(1, "quota", owner, kind)


def audit_written(lines: int) -> None:
    """Note lines of the audit."""
    _happened(lines, "audit written")


def audit_lost(events: int) -> None:
    """Note events that the audit has not."""
    _happened(events, "audit lost")


def _happened(times: int, *what: str) -> None:
    with _lock:
        _events[what] = _events.get(what, 0) + times


def left_to_do(rows: Mapping[str, int]) -> None:
    """Note about how many rows of background work are left, by the work; of works that are not named, none."""
    global _left
    _left = dict(rows)


def followed(replica: str, lag_ms: float | None, is_used: bool) -> None:
    """Note how far a replica is behind (None: nobody knows), and whether it is read from."""
    _replicas[replica] = (lag_ms, is_used)


def delivered(table: str, records: int) -> None:
    """Note records that were put into a Kinesis data stream."""
    _happened(records, "delivered", table)


def lagging(kind: str, seconds: float) -> None:
    """Note how far those of a kind who follow tables are behind."""
    _lags[kind] = seconds


def certificate_expires(path: str, at: float) -> None:
    """Note when the TLS certificate of a file expires, in seconds since 1970."""
    _certificates[path] = at


def is_due() -> bool:
    """Whether it is time to load the library that counts, or it is there."""
    return is_counting or _are_many() or "PROMETHEUS_MULTIPROC_DIR" in os.environ


def count_if_enough() -> None:
    """Count what was noted, if it is much and counting has begun. Whoever notes calls this from time to time."""
    if is_counting and _are_many():
        count_noted()


def _are_many() -> bool:
    return len(_answered) >= _ENOUGH or len(_consumptions) >= _ENOUGH or len(_ticked) >= _ENOUGH


def count_noted() -> None:
    """Count what was noted."""
    from tablegate.gateway.observability import prometheus

    global is_counting
    is_counting = True
    units: dict[tuple[str, str, str, str], float] = {}
    answers: dict[tuple[str, str, int], list[float]] = {}
    ticks: list[tuple[int, float]] = []
    try:  # another thread may take what is left in the meantime
        while _consumptions:
            dialect, table, index, kind, more = _consumptions.popleft()
            units[dialect, table, index, kind] = units.get((dialect, table, index, kind), 0.0) + more
        while _answered:
            name, operation, status, took = _answered.popleft()
            answers.setdefault((name, operation, status), []).append(took)
        while _ticked:
            ticks.append(_ticked.popleft())
    except IndexError:
        pass
    prometheus.count(units, answers, ticks)
    with _lock:
        batches, events = dict(_worked), dict(_events)
        _worked.clear()
        _events.clear()
    prometheus.count_work(batches)
    prometheus.count_events(events)
    prometheus.set_all(connections, _left, dict(_replicas), dict(_lags), dict(_certificates))


def exposition(tables: frozenset[str] | None = None) -> tuple[bytes, str]:
    """Everything counted, in Prometheus' text form, and its content type. The series of tables that are not among `tables`
    go away (None: nobody can say which there are)."""
    from tablegate.gateway.observability import prometheus

    count_noted()
    prometheus.contributors = [sample for source in contributor_sources for sample in source()]
    return prometheus.exposition(tables)


def samples() -> Iterator[Sample]:
    """Everything counted, sample by sample."""
    from tablegate.gateway.observability import prometheus

    count_noted()
    return prometheus.samples()


class ContributorSample(NamedTuple):
    """How often a key was met, of those of a table or index (index "") that are met most; `rule`: what is counted."""

    table: str
    index_name: str
    rule: str
    key: tuple[str, ...]
    requests: int


contributor_sources: list[Callable[[], Iterable[ContributorSample]]] = []
"""Who can tell of keys that are met most."""
