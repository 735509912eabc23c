"""Comparison of two servers in pairs of slices.

In each round both have a short slice of the same work, one right after the other. The result of a round is the ratio
of the other's cost to ours. A disturbance of the machine affects both.

The median of these ratios has an interval by the sign test, which assumes no distribution. The bounds are the k-th
smallest and the k-th largest ratio. k is the largest number with which the true median is inside in 95 of 100 such
measurements. If 1 is inside, there is no significant difference.

report.py and plot.py make the page from the results file, build/performance.json, which a release has attached.
"""

from __future__ import annotations

import dataclasses
import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb
from pathlib import Path

RESULTS = Path(__file__).parent.parent / "build" / "performance.json"
_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """The median of some ratios with its interval."""

    median: float
    low: float
    high: float

    @property
    def is_significant(self) -> bool:
        return self.low > 1 or self.high < 1

    def __str__(self) -> str:
        mark = "" if self.is_significant else " ="
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f}){mark}"


def interval(ratios: Sequence[float]) -> Interval:
    """Return the median with its interval. With fewer than six ratios the interval has all of them and less than 95 %."""
    ordered = sorted(ratios)
    count = len(ordered)
    outside, cut = 0.0, 0
    while cut < count // 2:
        outside += 2 * comb(count, cut) / 2**count
        if outside > 1 - _CONFIDENCE:
            break
        cut += 1
    at = max(cut - 1, 0)
    return Interval(statistics.median(ordered), ordered[at], ordered[-1 - at])


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of one workload.

    `cpu` and `rate` are the factors of our advantage, in CPU time for a request and in requests a second. `cpu_us` has
    the medians of ours and theirs.
    """

    dialect: str
    workload: str
    connections: int
    ours: str
    other: str
    pairs: int
    cpu: Interval
    rate: Interval
    cpu_us: tuple[float, float]
    measured: str

    @property
    def name(self) -> tuple[str, str, int, str, str]:
        """The identity of the comparison."""
        return self.dialect, self.workload, self.connections, self.ours, self.other


Slices = dict[int, tuple[float, float]]
"""For each round: requests a second, and microseconds of CPU for a request."""


def compare(
    name: tuple[str, str, int, str, str], ours: Slices, others: Slices, measured: str
) -> Comparison | None:
    """Compare the rounds in which both took part, None if there are none. `measured`: date and commit."""
    common = [number for number in ours if number in others]
    if not common:
        return None
    cpu = interval([others[number][1] / ours[number][1] for number in common])
    rate = interval([ours[number][0] / others[number][0] for number in common])
    medians = [statistics.median(slices[number][1] for number in common) for slices in (ours, others)]
    return Comparison(*name, len(common), cpu, rate, (medians[0], medians[1]), measured)


def read() -> list[Comparison]:
    """Return the comparisons of the results file."""
    if not RESULTS.exists():
        return []
    results = []
    for facts in json.loads(RESULTS.read_text()):
        for name in ("cpu", "rate"):
            facts[name] = Interval(**facts[name])
        facts["cpu_us"] = tuple(facts["cpu_us"])
        results.append(Comparison(**facts))
    return results


def record(comparisons: Iterable[Comparison]) -> None:
    """Write comparisons to the results file, replacing older ones with the same identity."""
    by_name = {comparison.name: comparison for comparison in [*read(), *comparisons]}
    lines = [json.dumps(dataclasses.asdict(by_name[name])) for name in sorted(by_name)]
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text("[\n" + ",\n".join(lines) + "\n]\n")
