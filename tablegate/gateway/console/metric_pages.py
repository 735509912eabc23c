"""Charts of the server, of its operations and of tables, for the last 15 minutes, hour or day, and the pages that show them.

The values come from the history of the metrics (observability/metrics.py). templates/console/chart.html draws a chart as SVG
without a fixed width: lines are stretched, and texts keep their size.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import flask

from tablegate.gateway.console.pages import Pages, Route, problem, render
from tablegate.gateway.console.reading import DESCRIBING
from tablegate.gateway.console.searches import BadSearch
from tablegate.gateway.console.sign_in import ConsoleUser
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.observability.metrics import DAY_S, HOUR_S, Counter, Excerpt, MetricHistory, history

RANGES: Mapping[str, tuple[str, int]] = {
    "15m": ("15 minutes", 900),
    "1h": ("1 hour", HOUR_S),
    "24h": ("24 hours", DAY_S),
}
"""The periods that charts can show: text and seconds, by name."""
MOST_LINES = 6
_HEIGHT = 150
BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, math.inf)
"""Bounds of the latency's histogram, in seconds."""

CurveValues = Sequence[float | None]
Curve = tuple[str, CurveValues]
"""A label and the values of successive intervals. An interval without a sample has None."""


class Line(NamedTuple):
    """A curve as it is drawn. `now`: its last value. `parts`: points of each part without gaps."""

    label: str
    now: str
    parts: Sequence[str]


class Chart(NamedTuple):
    """A chart as it is drawn, in units of pixels from above. The width of a line is the number of its intervals.

    - `grid`: (place from above, text) of each line of the grid. `top`: the value of the highest one.
    - `seconds`: the period. `empty`: the text in place of the curves, "" if they have values.
    """

    title: str
    unit: str
    lines: Sequence[Line]
    grid: Sequence[tuple[float, str]]
    top: float
    seconds: int
    width: int
    empty: str = ""
    height: int = _HEIGHT

    @property
    def since(self) -> str:
        """The text of the earliest time."""
        return f"{_period_text(self.seconds)} ago"

    @property
    def summary(self) -> str:
        """The chart in words, for screen readers."""
        return f"{self.title}: " + ", ".join(f"{line.label} {line.now}" for line in self.lines)


def server_counters() -> list[Counter]:
    """Return the counters of the server's charts."""
    names = ("requests", "errors", "throttled", "ticks", "tick_requests")
    return [Counter("server", "", each) for each in (*names, *(bucket(bound) for bound in BOUNDS))]


SERVER_CHARTS: Mapping[str, tuple[str, str, str, Callable[[Excerpt], list[Curve]]]] = {
    "requests": (
        "Requests per second", "", "requests",
        lambda found: [("all", _rates(found, "requests")), ("errors", _rates(found, "errors"))],
    ),
    "latencies": (
        "Latency", "ms", "requests",
        lambda found: [("median", _quantiles(found, 0.5)), ("99 %", _quantiles(found, 0.99))],
    ),
    "ticks": ("Requests per database batch", "", "database batches", lambda found: [("mean", _per_tick(found))]),
    "throttles": (
        "Throttled requests per second (429 and 503)", "", "throttled requests",
        lambda found: [("throttled", _rates(found, "throttled"))],
    ),
}  # fmt: skip
"""Title, unit, what is counted, and curves of each chart of the server, by name."""


def server_chart(history: MetricHistory, name: str, seconds: int) -> Chart:
    """Return a chart of the server."""
    title, unit, counted, curves = SERVER_CHARTS[name]
    return drawn(title, unit, curves(history.excerpt(server_counters(), seconds)), seconds, counted)


def operations_chart(history: MetricHistory, seconds: int) -> Chart:
    """Return the requests of the most frequent operations."""
    counters = [each for each in history.counters("operation") if each.figure == "requests"]
    found = history.excerpt(counters, seconds)
    chosen = sorted(counters, key=lambda each: -found.total(each))[:MOST_LINES]
    curves = [(each.name.partition(" ")[2], found.rates(each)) for each in chosen if found.total(each)]
    return drawn("Requests per second by operation", "", curves, seconds, "requests")


def tables_chart(history: MetricHistory, tables: Sequence[str], seconds: int) -> Chart:
    """Return the units of the first of these tables, read and written together."""
    chosen = {
        name: [Counter("table", name, kind) for kind in ("read", "write")] for name in tables[:MOST_LINES]
    }
    found = history.excerpt([each for counters in chosen.values() for each in counters], seconds)
    curves = [(name, _sums(*(found.rates(each) for each in counters))) for name, counters in chosen.items()]
    return drawn("Units per second by table", "", curves, seconds, "requests to these tables")


def _sums(reads: CurveValues, writes: CurveValues) -> CurveValues:
    """Return the sums of two series with the same gaps."""
    return [
        None if read is None or write is None else read + write
        for read, write in zip(reads, writes, strict=True)
    ]


def table_chart(history: MetricHistory, table: str, seconds: int) -> Chart:
    """Return the units of a table."""
    found = history.excerpt([Counter("table", table, kind) for kind in ("read", "write")], seconds)
    curves = [(counter.figure, found.rates(counter)) for counter in found.growth]
    return drawn("Units per second", "", curves, seconds, "requests to this table")


class OperationMetrics(NamedTuple):
    """Sums of an operation: requests, errors, and the mean latency in milliseconds."""

    dialect: str
    operation: str
    requests: float
    errors: float
    latency_ms: float


def operation_metrics(history: MetricHistory, seconds: int) -> list[OperationMetrics]:
    """Return the sums of each operation, those with most requests first."""
    counters = history.counters("operation")
    found = history.excerpt(counters, seconds)
    operations = []
    for name in {each.name for each in counters}:
        requests, errors, taken_s = (
            found.total(Counter("operation", name, figure)) for figure in ("requests", "errors", "seconds")
        )
        if requests:
            dialect, _, operation = name.partition(" ")
            operations.append(
                OperationMetrics(dialect, operation, requests, errors, 1000 * taken_s / requests)
            )
    return sorted(operations, key=lambda each: (-each.requests, each.dialect, each.operation))


def table_units(history: MetricHistory, seconds: int) -> dict[str, tuple[float, float]]:
    """Return table -> units that were read and written."""
    counters = history.counters("table")
    found = history.excerpt(counters, seconds)
    return {
        name: (found.total(Counter("table", name, "read")), found.total(Counter("table", name, "write")))
        for name in {each.name for each in counters}
    }


def _rates(found: Excerpt, figure: str) -> CurveValues:
    return found.rates(Counter("server", "", figure))


def bucket(bound: float) -> str:
    """Return the figure of the requests that took at most a number of seconds."""
    return "le +Inf" if bound == math.inf else f"le {float(bound)}"


def _quantiles(found: Excerpt, share: float) -> CurveValues:
    """Return a quantile of the latency in each interval, in milliseconds. None without requests."""
    buckets = [found.growth[Counter("server", "", bucket(bound))] for bound in BOUNDS]
    return [_quantile(counts, share) for counts in zip(*buckets, strict=True)]


def _quantile(counts: Sequence[float], share: float) -> float | None:
    if not counts[-1]:
        return None
    highest = BOUNDS[-2]
    reached = (bound for bound, count in zip(BOUNDS, counts, strict=True) if count >= share * counts[-1])
    return 1000 * min(next(reached, highest), highest)


def _per_tick(found: Excerpt) -> CurveValues:
    ticks, requests = (found.growth[Counter("server", "", each)] for each in ("ticks", "tick_requests"))
    return [joined / number if number else None for number, joined in zip(ticks, requests, strict=True)]


def drawn(title: str, unit: str, curves: Sequence[Curve], seconds: int, counted: str) -> Chart:
    """Return a chart of curves with equally many values. `counted`: what there is none of if all values are 0."""
    highest = max((value for _, values in curves for value in values if value is not None), default=0.0)
    step = _step(highest)
    top = step * max(1, math.ceil(highest / step - 1e-9))
    grid = [
        (_HEIGHT * (1 - number * step / top), figure(number * step, unit))
        for number in range(round(top / step) + 1)
    ]
    lines = [Line(label, _latest(values, unit), _parts(values, top)) for label, values in curves]
    period = _period_text(seconds).removeprefix("1 ")
    empty = "" if highest > 0 else f"No {counted} in the last {period}."
    width = max((len(values) for _, values in curves), default=1)
    return Chart(title, unit, lines, grid, top, seconds, width, empty)


def _period_text(seconds: int) -> str:
    return next(text for text, length in RANGES.values() if length == seconds)


def _step(highest: float) -> float:
    """Return the distance of the lines of a grid: 1, 2 or 5 times a power of ten, for two to five lines."""
    if highest <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(highest))
    return next(power * factor for factor in (0.25, 0.5, 1, 2.5) if highest / (power * factor) <= 4)


def _latest(values: CurveValues, unit: str) -> str:
    latest = values[-1] if values else None
    return "-" if latest is None else figure(latest, unit)


def _parts(values: CurveValues, top: float) -> list[str]:
    """Return the points of each part of a curve without gaps."""
    parts: list[list[str]] = [[]]
    for at, value in enumerate(values):
        if value is None:
            parts.append([])
        else:
            parts[-1].append(f"{at + 0.5},{_HEIGHT * (1 - value / top):.3f}")
    return [" ".join(part if len(part) > 1 else part * 2) for part in parts if part]


def figure(value: float, unit: str) -> str:
    """Return a value as people write it: `12.5`, `1,234`, `56.7 k`. Of "ms" in the fitting unit of time: `250 µs`, `5 s`."""
    if unit == "ms":
        name, size = next(
            (each for each in _TIMES if value >= each[1]), ("µs", 0.001) if value else ("ms", 1.0)
        )
    else:
        name, size = next((each for each in _LARGE if value >= 10 * each[1]), ("", 1.0))
    return f"{_digits(value / size)} {name}".strip()


_TIMES = (("min", 60_000.0), ("s", 1_000.0), ("ms", 1.0))
"""Units of time in milliseconds."""
_LARGE = (("G", 1e9), ("M", 1e6), ("k", 1e3))


def _digits(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value >= 0.001 or not value else "under 0.001"


_NO_METRICS = (
    "Your key is not allowed to describe the tables of this chart. Ask the administrator for a grant."
)


class TableUnits(NamedTuple):
    """A table, and the units that were read and written."""

    table: Table
    read: float
    written: float


class MetricPages(Pages):
    """Charts of the server, its operations and tables."""

    def reads(self) -> Sequence[Route]:
        return Route("/metrics", self.metrics), Route("/chart", self.chart)

    def metrics(self, visitor: ConsoleUser) -> Any:
        """Show metrics of the server to an unrestricted visitor, and of the tables that the visitor can describe."""
        history.sample_if_due()
        period, seconds = _period()
        tables, more = self._busiest(visitor, seconds)
        shown, operations = [], []
        if visitor.sees_everything:
            shown = [
                (server_chart(history, name, seconds), self._link(period, name)) for name in SERVER_CHARTS
            ]
            shown.append((operations_chart(history, seconds), self._link(period, "operations")))
            operations = operation_metrics(history, seconds)
        of_tables = tables_chart(history, _names(tables), seconds)
        return render(
            "metrics.html", visitor=visitor, charts=shown, operations=operations, tables=tables,
            has_more_tables=more, period=period, periods=RANGES, shows_server=visitor.sees_everything, figure=figure,
            tables_chart=of_tables, tables_link=self._link(period, "tables"),
            own_address=functools.partial(flask.url_for, "console.metrics"),
        )  # fmt: skip

    def chart(self, visitor: ConsoleUser) -> Any:
        """Return one chart: of a table if the request has a namespace, otherwise of the server."""
        history.sample_if_due()
        given = flask.request.args
        _, seconds = _period()
        if "namespace" in given:
            reading = self._reading(visitor)
            table = self._table(reading, DESCRIBING)
            if not reading.shows_metrics(table):
                return problem(403, _NO_METRICS)
            chart = table_chart(history, table.name, seconds)
        elif given.get("name") == "tables":
            chart = tables_chart(history, _names(self._busiest(visitor, seconds)[0]), seconds)
        elif not visitor.sees_everything:
            return problem(403, _NO_METRICS)
        elif given.get("name") == "operations":
            chart = operations_chart(history, seconds)
        elif given.get("name") in SERVER_CHARTS:
            chart = server_chart(history, given["name"], seconds)
        else:
            names = ", ".join([*SERVER_CHARTS, "operations", "tables"])
            raise BadSearch(f"There is no such chart. Charts: {names}.")
        return render("chart.html", visitor=visitor, chart=chart, link=flask.request.full_path)

    def _busiest(self, visitor: ConsoleUser, seconds: int) -> tuple[list[TableUnits], bool]:
        """Return the tables that the visitor can describe, those with most units first, and True if there are more."""
        reading = self._reading(visitor)
        units = table_units(history, seconds)
        found, more = reading.tables()
        tables = [
            TableUnits(table, *units.get(table.name, (0.0, 0.0)))
            for table in found
            if reading.shows_metrics(table)
        ]
        return sorted(tables, key=lambda each: (-each.read - each.written, each.table.name)), more

    def _link(self, period: str, name: str) -> str:
        return flask.url_for("console.chart", name=name, range=period)


def _names(tables: Sequence[TableUnits]) -> list[str]:
    """Return the names of the tables with units. Tables of several namespaces can have one name."""
    return list(dict.fromkeys(each.table.name for each in tables if each.read or each.written))


def _period() -> tuple[str, int]:
    """Return the name and the seconds of the period that the request names. Raises BadSearch."""
    period = flask.request.args.get("range", "15m")
    if period not in RANGES:
        raise BadSearch(f"There is no such period. Periods: {', '.join(RANGES)}.")
    return period, RANGES[period][1]
