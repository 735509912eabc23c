"""Two servers compared in pairs: in each round both have a short slice of the same work, one right after the other, and what is
looked at is how many times the other's cost ours is in each round. What disturbs the machine for a while disturbs both.

The middle of these ratios is told with its interval, from the sign test, which asks nothing of how they are spread: the k-th
smallest and the k-th largest, for the largest k with which the true median is between them in 95 of 100 such measurements.
Where 1 is inside, the two are not told apart.

It has no servers and requests. report.py and plot.py make the page from its results file, docs/explain/performance.json.
"""

from __future__ import annotations

import dataclasses
import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb
from pathlib import Path

RESULTS = Path(__file__).parent.parent / "docs" / "explain" / "performance.json"
_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """The median of some ratios, and between which two the true one is."""

    median: float
    low: float
    high: float

    @property
    def is_told_apart(self) -> bool:
        """Whether it is a difference, and not nothing."""
        return self.low > 1 or self.high < 1

    def __str__(self) -> str:
        told = "" if self.is_told_apart else " ="
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f}){told}"


def interval(ratios: Sequence[float]) -> Interval:
    """The median with its interval; of fewer than six ratios all of them are inside, and too few for 95 %."""
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
    """One workload of ours beside the other's. `cpu` and `rate`: how many times better ours is, by CPU time for a request and by
    requests a second; `cpu_us`: the medians of ours and theirs."""

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
        """What was compared with what."""
        return self.dialect, self.workload, self.connections, self.ours, self.other


Slices = dict[int, tuple[float, float]]
"""Of each round: requests a second, and microseconds of CPU for each."""


def compare(
    name: tuple[str, str, int, str, str], ours: Slices, others: Slices, measured: str
) -> Comparison | None:
    """A comparison over the rounds in which both took part; None if there is none. `measured`: when, and of which commit."""
    both = [number for number in ours if number in others]
    if not both:
        return None
    cpu = interval([others[number][1] / ours[number][1] for number in both])
    rate = interval([ours[number][0] / others[number][0] for number in both])
    medians = [statistics.median(slices[number][1] for number in both) for slices in (ours, others)]
    return Comparison(*name, len(both), cpu, rate, (medians[0], medians[1]), measured)


def read() -> list[Comparison]:
    """The comparisons of the results file."""
    if not RESULTS.exists():
        return []
    found = []
    for facts in json.loads(RESULTS.read_text()):
        for name in ("cpu", "rate"):
            facts[name] = Interval(**facts[name])
        facts["cpu_us"] = tuple(facts["cpu_us"])
        found.append(Comparison(**facts))
    return found


def record(comparisons: Iterable[Comparison]) -> None:
    """Put comparisons into the results file, in the place of older ones of the same."""
    known = {each.name: each for each in [*read(), *comparisons]}
    lines = [json.dumps(dataclasses.asdict(known[name])) for name in sorted(known)]
    RESULTS.write_text("[\n" + ",\n".join(lines) + "\n]\n")
