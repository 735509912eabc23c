"""Charts of the last minutes: request rates, latencies, ticks and refusals of the server, and capacity units of tables.

The values come from the metrics. They are sampled every two seconds while a page shows them. A chart shows the differences of
successive samples.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tablegate.gateway.console.searches import BadSearch
from tablegate.gateway.observability import metrics

_PERIOD_S = 2.0
_KEPT = 300
# Sampling ends this long after the last page with charts.
_PATIENCE_S = 600.0
_MOST_TABLES = 100
_WIDTH, _HEIGHT, _LEFT, _TOP = 560, 150, 52, 22


@dataclass(frozen=True, slots=True)
class MetricTotals:
    """A sample of the metrics.

    - `buckets`: cumulative number of requests by upper bound of the latency, in seconds.
    - `units`: (table, kind) -> capacity units, for the sampled tables.
    """

    at: float
    requests: float
    refused: float
    throttled: float
    ticks: float
    tick_requests: float
    seconds: float
    buckets: tuple[tuple[float, float], ...]
    units: Mapping[tuple[str, str], float] = field(default_factory=dict)


def figures(tables: Container[str] = ()) -> MetricTotals:
    """Return a sample of the metrics, with the capacity units of `tables`."""
    totals = {
        "requests": 0.0,
        "refused": 0.0,
        "throttled": 0.0,
        "ticks": 0.0,
        "tick_requests": 0.0,
        "seconds": 0.0,
    }
    buckets: dict[float, float] = {}
    units: dict[tuple[str, str], float] = {}
    for sample in metrics.samples():
        match sample.name:
            case "tablegate_requests_total":
                totals["requests"] += sample.value
                status = sample.labels["status"]
                totals["refused"] += sample.value if status >= "400" else 0
                totals["throttled"] += sample.value if status in ("429", "503") else 0
            case "tablegate_request_seconds_sum":
                totals["seconds"] += sample.value
            case "tablegate_request_seconds_bucket":
                bound = float(sample.labels["le"])
                buckets[bound] = buckets.get(bound, 0.0) + sample.value
            case "tablegate_consumed_capacity_total" if sample.labels["table"] in tables:
                of = sample.labels["table"], sample.labels["kind"]
                units[of] = units.get(of, 0.0) + sample.value
            case "tablegate_tick_requests_count":
                totals["ticks"] += sample.value
            case "tablegate_tick_requests_sum":
                totals["tick_requests"] += sample.value
    return MetricTotals(time.monotonic(), **totals, buckets=tuple(sorted(buckets.items())), units=units)


def quantile(before: MetricTotals, after: MetricTotals, share: float) -> float:
    """Return a quantile of the latency between two samples, in seconds. 0 if there were no requests."""
    earlier = dict(before.buckets)
    counts = [(bound, count - earlier.get(bound, 0.0)) for bound, count in after.buckets]
    if not counts or counts[-1][1] <= 0:
        return 0.0
    rank = share * counts[-1][1]
    return next((bound for bound, count in counts if count >= rank and bound != float("inf")), counts[-2][0])


Curve = Callable[[MetricTotals, MetricTotals], float]


def _rate(name: str) -> Curve:
    return lambda before, after: (getattr(after, name) - getattr(before, name)) / (after.at - before.at)


def _per_tick(before: MetricTotals, after: MetricTotals) -> float:
    ticks = after.ticks - before.ticks
    return (after.tick_requests - before.tick_requests) / ticks if ticks else 0.0


def _units(table: str, kind: str) -> Curve:
    """Return the curve of a table's units per second. It is zero if the table was not sampled before, or was dropped."""

    def curve(before: MetricTotals, after: MetricTotals) -> float:
        now = after.units.get((table, kind), 0.0)
        return max(0.0, now - before.units.get((table, kind), now)) / (after.at - before.at)

    return curve


Chart = tuple[str, str, tuple[tuple[str, Curve], ...]]
"""Title, unit, curves."""
CHARTS: Mapping[str, Chart] = {
    "requests": ("Requests per second", "", (("all", _rate("requests")), ("refused", _rate("refused")))),
    "latencies": (
        "Latency",
        "ms",
        (
            ("median", lambda before, after: 1000 * quantile(before, after, 0.5)),
            ("99 %", lambda before, after: 1000 * quantile(before, after, 0.99)),
        ),
    ),
    "ticks": ("Requests per database batch", "", (("mean", _per_tick),)),
    "throttles": ("Throttled requests per second", "", (("429 and 503", _rate("throttled")),)),
}
"""Charts of the whole server, by name."""


def chart_of(table: str) -> Chart:
    """Return the chart of one table."""
    return (
        "Capacity units per second",
        "",
        (("read", _units(table, "read")), ("write", _units(table, "write"))),
    )


class MetricHistory:
    """The samples of the metrics, taken by a thread while a page shows them. For use by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._noted: deque[MetricTotals] = deque(maxlen=_KEPT)
        self._looked = 0.0
        self._is_running = False
        self._tables: dict[str, None] = {}  # in the order of their last page

    def look(self, tables: Iterable[str] = ()) -> list[MetricTotals]:
        """Return the samples and continue sampling, with `tables` besides the recently shown ones."""
        with self._lock:
            self._looked = time.monotonic()
            for table in tables:
                self._tables.pop(table, None)
                self._tables[table] = None
            while len(self._tables) > _MOST_TABLES:
                del self._tables[next(iter(self._tables))]
            if not self._is_running:
                self._is_running = True
                threading.Thread(target=self._work, name="console figures", daemon=True).start()
            return list(self._noted)

    def chart(self, name: str) -> str:
        """Return a chart of the server as SVG. Raises BadSearch."""
        if name not in CHARTS:
            raise BadSearch(f"There is no such chart. Charts: {', '.join(CHARTS)}.")
        return drawing(CHARTS[name], self.look())

    def chart_of_table(self, table: str) -> str:
        """Return the chart of a table as SVG."""
        return drawing(chart_of(table), self.look([table]))

    def _work(self) -> None:
        while True:
            with self._lock:
                tables = frozenset(self._tables)
            found = figures(tables)
            with self._lock:
                self._noted.append(found)
                if found.at > self._looked + _PATIENCE_S:
                    self._is_running = False
                    return
            time.sleep(_PERIOD_S)


def drawing(chart: Chart, noted: Sequence[MetricTotals]) -> str:
    """Return a chart as SVG."""
    title, unit, curves = chart
    pairs = list(itertools.pairwise(noted))
    drawn = [(label, [curve(before, after) for before, after in pairs]) for label, curve in curves]
    highest = max([value for _, values in drawn for value in values], default=0.0) or 1.0
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{title}">',
        f'<text x="{_LEFT}" y="14" font-weight="600">{title}</text>',
        f'<text x="{_LEFT - 6}" y="{_TOP + 8}" text-anchor="end">{highest:,.3g} {unit}</text>',
        f'<text x="{_LEFT - 6}" y="{_HEIGHT - 20}" text-anchor="end">0</text>',
        f'<path d="M{_LEFT} {_TOP}V{_HEIGHT - 20}H{_WIDTH - 8}" fill="none" stroke="#8a94a3"/>',
        f'<text x="{_WIDTH - 8}" y="{_HEIGHT - 6}" text-anchor="end">now</text>',
        f'<text x="{_LEFT}" y="{_HEIGHT - 6}">{_KEPT * _PERIOD_S / 60:.0f} minutes ago</text>',
    ]
    width, height = _WIDTH - 8 - _LEFT, _HEIGHT - 20 - _TOP
    for number, (label, values) in enumerate(drawn):
        colour = ("#1f6feb", "#c2410c")[number]
        first = _KEPT - len(values)
        points = " ".join(
            f"{_LEFT + width * (first + at) / _KEPT:.1f},{_TOP + height * (1 - value / highest):.1f}"
            for at, value in enumerate(values)
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        now = f"{values[-1]:,.3g} {unit}" if values else "-"
        parts.append(
            f'<text x="{_WIDTH - 8}" y="{14 + 13 * number}" text-anchor="end" fill="{colour}">{label} {now}</text>'
        )
    letters = '<g font-family="system-ui,sans-serif" font-size="11" fill="#5b6675">'
    return "".join([parts[0], letters, *parts[1:], "</g></svg>"])
