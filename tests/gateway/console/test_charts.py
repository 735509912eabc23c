"""Charts: quantiles, scales, figures, and gaps."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.gateway.console import metric_pages
from tablegate.gateway.observability.metrics import Counter, MetricHistory
from tests.support.tables import each_row


def counted(latencies: dict[float, int], before: dict[Counter, float]) -> dict[Counter, float]:
    """Return the totals after requests of these latencies, in seconds, and the totals before them."""
    found = dict(before)
    for bound in metric_pages.BOUNDS:
        counter = Counter("server", "", metric_pages.bucket(bound))
        more = sum(number for latency, number in latencies.items() if latency <= bound)
        found[counter] = before.get(counter, 0.0) + more
    return found


def test_quantiles_are_bounds_of_the_histogram() -> None:
    history = MetricHistory()
    before = counted({}, {})
    history.add(0.0, before)
    before = counted({0.0009: 90, 0.2: 9, 60.0: 1}, before)
    history.add(10.0, before)
    history.add(20.0, before)  # no request
    excerpt = history.excerpt(metric_pages.server_counters(), 900, 20.0)
    _, _, _, curves = metric_pages.SERVER_CHARTS["latencies"]
    drawn = {label: list(values)[-2:] for label, values in curves(excerpt)}
    assert drawn == {"median": [1.0, None], "99 %": [250.0, None]}
    assert metric_pages._quantile([0.0] * len(metric_pages.BOUNDS), 0.5) is None
    # A request above the last bound.
    assert metric_pages._quantile([0.0] * (len(metric_pages.BOUNDS) - 1) + [1.0], 0.5) == 10_000


@given(st.floats(min_value=1e-9, max_value=1e12))
def test_a_grid_has_two_to_six_lines_and_covers_the_highest_value(highest: float) -> None:
    chart = metric_pages.drawn("Title", "ms", [("all", [highest])], 900, "requests")
    assert 2 <= len(chart.grid) <= 6
    assert chart.grid[0][0] == chart.height
    assert chart.grid[-1][0] == pytest.approx(0, abs=1e-6)
    [line] = chart.lines
    assert all(-0.06 <= float(point.split(",")[1]) <= chart.height for point in line.parts[0].split())


@each_row("value, unit, text", [
    (0.0, "", "0"), (0.407, "", "0.407"), (1.0, "", "1"), (222.4, "", "222"), (1234.5, "", "1,234"), (9999.0, "", "9,999"),
    (56_700.0, "", "56.7 k"), (23_000_000.0, "", "23 M"), (0.0001, "", "under 0.001"),
    (0.0, "ms", "0 ms"), (0.25, "ms", "250 µs"), (2.5, "ms", "2.5 ms"), (250.0, "ms", "250 ms"), (5000.0, "ms", "5 s"),
    (10_000.0, "ms", "10 s"), (90_000.0, "ms", "1.5 min"),
])  # fmt: skip
def test_figures_are_written_as_people_do(value: float, unit: str, text: str) -> None:
    assert metric_pages.figure(value, unit) == text


@given(st.floats(min_value=0, max_value=1e15), st.sampled_from(["", "ms"]))
def test_figures_have_no_exponent(value: float, unit: str) -> None:
    assert "e" not in metric_pages.figure(value, unit).replace("under", "")


def test_a_chart_without_values_says_so() -> None:
    chart = metric_pages.drawn("Title", "", [("all", [0.0, None])], 3600, "requests")
    assert chart.empty == "No requests in the last hour."
    assert metric_pages.drawn("Title", "", [("all", [0.1])], 900, "requests").empty == ""


def test_a_curve_has_gaps_where_there_is_no_sample() -> None:
    chart = metric_pages.drawn("Title", "", [("all", [1.0, 2.0, None, 1.0])], 900, "requests")
    [line] = chart.lines
    assert [len(part.split()) for part in line.parts] == [2, 2]  # a single value is a point
    assert line.now == "1"
    assert chart.summary == "Title: all 1"


def test_a_chart_of_tables_adds_reads_and_writes() -> None:
    history, now_s = MetricHistory(), time.monotonic()
    history.add(now_s - 10, {})
    history.add(now_s, {Counter("table", "songs", kind): 20.0 for kind in ("read", "write")})
    names = ["songs", *(f"table{number}" for number in range(9))]
    chart = metric_pages.tables_chart(history, names, 900)
    assert [(line.label, line.now) for line in chart.lines] == [
        ("songs", "4"), *((f"table{number}", "0") for number in range(5)),
    ]  # fmt: skip


def test_the_most_frequent_operations_are_drawn_and_all_are_listed() -> None:
    history, now_s = MetricHistory(), time.monotonic()
    names = [f"dynamodb Operation{number}" for number in range(9)]
    found = {Counter("operation", name, "requests"): 10.0 + at for at, name in enumerate(names)}
    found |= {Counter("operation", name, "seconds"): 1.0 for name in names}
    history.add(now_s - 10, {})
    history.add(now_s, found)
    chart = metric_pages.operations_chart(history, 900)
    assert [line.label for line in chart.lines] == [f"Operation{number}" for number in (8, 7, 6, 5, 4, 3)]
    listed = metric_pages.operation_metrics(history, 900)
    assert [(each.operation, each.requests) for each in listed] == [
        (f"Operation{number}", 10 + number) for number in range(8, -1, -1)
    ]
    assert listed[-1].latency_ms == pytest.approx(100)
