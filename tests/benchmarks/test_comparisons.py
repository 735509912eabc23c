"""Medians of paired ratios and their intervals (benchmarks/comparisons.py), on numbers that tables of the sign test have."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import comparisons, report
from benchmarks.comparisons import Interval, compare, interval


@pytest.mark.parametrize(
    ("count", "rank"),
    # The ranks of 95 % intervals of a median: W. J. Conover, Practical Nonparametric Statistics, table A3 (p = 0.5).
    [(6, 1), (8, 1), (9, 2), (12, 3), (15, 4), (20, 6), (25, 8), (30, 10)],
)
def test_the_interval_has_the_ranks_of_the_sign_test(count: int, rank: int) -> None:
    ratios = [float(number) for number in range(1, count + 1)]
    found = interval([*reversed(ratios)])
    assert (found.low, found.high) == (rank, count + 1 - rank)
    assert found.median == (count + 1) / 2


def test_a_difference_is_distinguished_from_noise() -> None:
    assert not Interval(1.2, 0.99, 1.5).is_significant
    assert Interval(1.2, 1.01, 1.5).is_significant
    assert Interval(0.8, 0.7, 0.99).is_significant
    assert str(Interval(1.2, 0.99, 1.5)) == "1.20 (0.99 to 1.50) ="


def test_ratios_are_of_the_same_round() -> None:
    """A machine that is ten times slower in one round is so for both."""
    ours = {0: (100.0, 10.0), 1: (10.0, 100.0), 2: (100.0, 10.0), 4: (100.0, 10.0)}
    theirs = {0: (50.0, 20.0), 1: (5.0, 200.0), 2: (50.0, 20.0), 3: (1.0, 1.0)}
    found = compare(("dynamodb", "get", 16, "ours", "theirs"), ours, theirs, "today")
    assert found is not None
    assert found.pairs == 3
    assert found.cpu == found.rate == Interval(2.0, 2.0, 2.0)
    assert found.cpu_us == (10.0, 20.0)
    assert compare(("dynamodb", "get", 16, "ours", "theirs"), ours, {}, "today") is None


def test_results_replace_older_ones_of_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparisons, "RESULTS", tmp_path / "results.json")
    slices = {0: (1.0, 1.0)}
    first = compare(("dynamodb", "get", 16, "ours", "theirs"), slices, {0: (1.0, 2.0)}, "yesterday")
    second = compare(("dynamodb", "get", 16, "ours", "theirs"), slices, {0: (1.0, 3.0)}, "today")
    other = compare(("dynamodb", "get", 1, "ours", "theirs"), slices, slices, "today")
    assert first is not None
    assert second is not None
    assert other is not None
    comparisons.record([first, other])
    comparisons.record([second])
    assert comparisons.read() == [other, second]


def _page_after(goals: tuple[report.Goal, ...], folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write the results of these goals and return the page."""
    monkeypatch.setattr(comparisons, "RESULTS", folder / "results.json")
    for name in ("ALL", "DOCUMENT", "PICTURE"):
        monkeypatch.setattr(report, name, folder / name)
    (folder / "DOCUMENT").write_text("<!-- page -->\nold\n<!-- /page -->\n")
    slices = {0: (1.0, 1.0)}
    comparisons.record(filter(None, [compare(goal.name, slices, {0: (1.0, 2.0)}, "today") for goal in goals]))
    report.write_all()
    assert (folder / "ALL").read_text().count("| today |") == len(goals)
    return (folder / "DOCUMENT").read_text()


def test_the_page_changes_if_all_its_comparisons_have_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _page_after(report.GOALS[1:], tmp_path, monkeypatch) == "<!-- page -->\nold\n<!-- /page -->\n"
    page = _page_after(report.GOALS, tmp_path, monkeypatch)
    assert page.count("| 2.00 (2.00 to 2.00) |") == len(report.GOALS)
    assert (tmp_path / "PICTURE").read_text().startswith("<svg")
