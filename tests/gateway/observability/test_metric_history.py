"""The history of the metrics: rates of a day, in a bounded memory, sampled without a page."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
import requests

from tablegate.gateway.console import metric_pages
from tablegate.gateway.observability import metrics
from tablegate.gateway.observability.metrics import (
    COARSE_S,
    DAY_S,
    FINE_S,
    HOUR_S,
    MAX_SERIES,
    Counter,
    MetricHistory,
)
from tests.conftest import Serve
from tests.support.live_dynamodb import Live
from tests.support.waiting import PATIENCE_S, wait_until

REQUESTS = Counter("server", "", "requests")
PUTS = Counter("operation", "dynamodb PutItem", "requests")


def counted(history: MetricHistory, counter: Counter, seconds: int, at_s: float) -> float:
    return history.excerpt([counter], seconds, at_s).total(counter)


def test_rates_are_growth_by_the_time_between_samples() -> None:
    history = MetricHistory()
    for at_s, value in ((1000.0, 50.0), (1010.0, 70.0), (1020.0, 70.0), (1040.0, 100.0)):
        history.add(at_s, {REQUESTS: value})
    rates = history.excerpt([REQUESTS], 60, 1041.0).rates(REQUESTS)
    # The value of the first sample has no duration. The last sample covers two intervals: 30 in 20 s.
    assert rates == [None, None, 2.0, 0.0, 1.5, 1.5]


def test_a_day_is_kept_in_long_intervals_and_an_hour_in_short_ones() -> None:
    history = MetricHistory()
    start, value = 1_000_000.0, 0.0
    for number in range(2 * DAY_S // 60):
        value += 60.0
        history.add(start + 60 * number, {REQUESTS: value})
    end = start + 2 * DAY_S - 60
    assert counted(history, REQUESTS, DAY_S, end) == pytest.approx(DAY_S, rel=0.01)
    assert counted(history, REQUESTS, HOUR_S, end) == pytest.approx(HOUR_S, rel=0.05)
    assert len(history.excerpt([REQUESTS], DAY_S, end).elapsed_s) == DAY_S // COARSE_S
    assert len(history.excerpt([REQUESTS], 900, end).elapsed_s) == 900 // FINE_S


def test_samples_older_than_the_period_are_not_shown() -> None:
    history = MetricHistory()
    history.add(0.0, {REQUESTS: 0.0})
    history.add(10.0, {REQUESTS: 7.0})
    assert counted(history, REQUESTS, 900, 10.0) == 7
    assert counted(history, REQUESTS, 900, 10.0 + 900) == 0
    assert counted(history, REQUESTS, DAY_S, 10.0 + 900) == 7
    history.add(10.0 + 3 * DAY_S, {REQUESTS: 7.0})
    assert counted(history, REQUESTS, DAY_S, 10.0 + 3 * DAY_S) == 0


def test_a_counter_that_is_dropped_and_begins_again_never_falls() -> None:
    history = MetricHistory()
    for at_s, found in ((0.0, {PUTS: 5.0}), (10.0, {}), (20.0, {PUTS: 2.0}), (30.0, {PUTS: 1.0})):
        history.add(at_s, found)
    assert history.excerpt([PUTS], 60, 30.0).rates(PUTS)[-3:] == [0.0, 0.2, 0.0]


def test_the_memory_is_bounded() -> None:
    history = MetricHistory()
    totals: dict[Counter, float] = {}
    for number in range(40):
        totals[REQUESTS] = number + 1.0
        for each in range(100):
            totals[Counter("table", f"table {number} {each}", "read")] = 1.0
        history.add(10.0 * number, dict(totals))
    series = [values for ring in history._rings for values in ring._series.values()]
    assert len(series) <= 2 * MAX_SERIES
    assert sum(sys.getsizeof(values) for values in series) < 5_000_000
    # Series that still grow are kept, those at rest for the longest time are dropped.
    assert counted(history, REQUESTS, 900, 390.0) == 39
    names = [each.name for each in history.counters("table")]
    assert "table 39 99" in names
    assert "table 1 0" not in names


def test_sampling_takes_at_most_a_hundredth_of_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 20,000 tables a sample takes a second."""
    now_s, used_s, sampled = [1000.0], [0.0], []

    def totals() -> dict[Counter, float]:
        used_s[0] += 1.0
        sampled.append(now_s[0])
        return {}

    monkeypatch.setattr(metrics, "totals", totals)
    monkeypatch.setattr(metrics, "has_measurements", lambda: True)
    clocks = SimpleNamespace(monotonic=lambda: now_s[0], thread_time=lambda: used_s[0])
    monkeypatch.setattr(metrics, "time", clocks)
    history = MetricHistory()
    for _ in range(500):
        history.sample_if_due()
        now_s[0] += 1
    assert sampled == [1000, 1100, 1200, 1300, 1400]


def test_samples_are_taken_without_an_open_page(
    serve: Serve, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = MetricHistory()
    monkeypatch.setattr(metrics, "history", history)
    monkeypatch.setattr(metrics, "FINE_S", 0.1)
    live = Live(serve(database_url).url)
    live.create("p:S", name="songs")

    def is_counted() -> bool:
        live.client.put_item(TableName="songs", Item={"p": {"S": "a"}})
        return "dynamodb PutItem" in {each.name for each in history.counters("operation")}

    wait_until(is_counted)
    assert Counter("table", "songs", "write") in history.counters("table")
    requests.get(f"{live.url}/_tablegate/console/", timeout=PATIENCE_S)
    assert Counter("operation", "gateway console and control", "requests") in metrics.totals()
    # Counters of charts are named as the metrics name them.
    unused = {Counter("server", "", each) for each in ("errors", "throttled")}
    assert set(metric_pages.server_counters()) - unused <= set(metrics.totals())
