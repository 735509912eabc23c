"""The metrics of the last day: how much each counter has grown, in short and in long intervals.

The main background thread takes the samples (gateway/server/background.py), so there are figures before a page shows
them. With several workers each one keeps the sums of all.

The memory is bounded: a series is one counter, needs 3 KB, and there are at most MAX_SERIES, so 5 MB at most. If there are
more counters, those that have not grown for the longest time are dropped.
"""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tablegate.gateway.observability import metrics

FINE_S, COARSE_S = 10, 300
"""Lengths of the intervals, in seconds."""
HOUR_S, DAY_S = 3600, 86_400
MAX_SERIES = 1500
_SHARE = 0.01
"""Maximum share of one core for sampling."""


class Counter(NamedTuple):
    """The name of a counter: of the `server`, of an `operation` ("dynamodb PutItem"), or of a `table`.

    figure: requests, errors, throttled, seconds, ticks, tick_requests, read, write, or "le BOUND", the cumulative number of
    requests that took at most so many seconds.
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
                self._add(at_s, totals() if metrics.has_measurements() else {})
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

    for sample in metrics.samples():
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
