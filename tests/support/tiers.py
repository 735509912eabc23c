"""Tiers of tests, and the files that each process of a run collects.

Each case is in one tier: that of its closest mark, or TEST. CONTRIBUTING.md says what belongs where.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SECONDS = ROOT / "tests" / "seconds.json"
"""Recorded wall seconds of each file in runs of "test" and "clients+extended". `make test ARGS=--record-seconds` and
`make test-rest ARGS=--record-seconds` write them."""

TEST, CLIENTS, EXTENDED = TIERS = ("test", "clients", "extended")

# Cases on PostgreSQL are in `make test` where the code writes SQL or where it races. All others may not know the database
# (import rules 2 to 4 of docs/architecture.md).
ON_BOTH_DATABASES = (
    "tests/contract/",
    "tests/durability/",
    "tests/gateway/doctor/",
    "tests/gateway/engine/",
    "tests/gateway/features/",
    "tests/gateway/store/",
)


def tier_of(item: pytest.Item) -> str:
    """Return the tier of a case. Raises UsageError if its marks name two tiers."""
    marked = [tier for tier in (CLIENTS, EXTENDED) if item.get_closest_marker(tier)]
    if len(marked) > 1:
        raise pytest.UsageError(
            f"{item.nodeid} is marked as {' and as '.join(marked)}. Keep one of these marks."
        )
    if marked:
        return marked[0]
    return EXTENDED if _is_twin(item) and not item.nodeid.startswith(ON_BOTH_DATABASES) else TEST


def _is_twin(item: pytest.Item) -> bool:
    """True for the case on PostgreSQL of a test that runs on SQLite too."""
    callspec = getattr(item, "callspec", None)
    return callspec is not None and any(
        isinstance(value, str) and value == "postgresql" for value in callspec.params.values()
    )


def shares(files: Iterable[str], seconds: Mapping[str, float], number: int) -> list[set[str]]:
    """Divide files among this number of processes, so that each gets about the same sum of seconds.

    The longest file comes first, and each file goes to the process with the smallest sum. A file without recorded seconds
    counts as the average.
    """
    average = sum(seconds.values()) / len(seconds) if seconds else 1.0
    weights = {file: seconds.get(file, average) for file in files}
    result: list[set[str]] = [set() for _ in range(number)]
    sums = [0.0] * number
    for file in sorted(weights, key=lambda file: (-weights[file], file)):
        smallest = sums.index(min(sums))
        result[smallest].add(file)
        sums[smallest] += weights[file]
    return result


def name_of(path: Path) -> str:
    """Return a path as it stands in the identifier of a test: relative to the root."""
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)


def files_of_tests() -> list[str]:
    """Return the paths of all files of tests, relative to the root."""
    return sorted(name_of(path) for path in (ROOT / "tests").rglob("test_*.py"))


def recorded_seconds(tiers: Iterable[str]) -> dict[str, float]:
    """Return the recorded seconds of each file in a run of these tiers."""
    run = "+".join(tiers)
    return {file: seconds[run] for file, seconds in _all_recorded_seconds().items() if run in seconds}


def _all_recorded_seconds() -> dict[str, dict[str, float]]:
    return json.loads(SECONDS.read_text()) if SECONDS.exists() else {}


def record_seconds(tiers: Iterable[str], stats: Mapping[str, Sequence[Any]]) -> None:
    """Write the seconds of each file in this run of these tiers to SECONDS."""
    recorded = _all_recorded_seconds()
    measured: dict[str, float] = defaultdict(float)
    for report in chain.from_iterable(stats.values()):
        if isinstance(report, pytest.TestReport):
            measured[report.nodeid.partition("::")[0]] += report.duration
    lines = []
    for file in files_of_tests():
        seconds = recorded.get(file, {}) | {"+".join(tiers): round(measured[file], 1)}
        lines.append(f"  {json.dumps(file)}: {json.dumps(seconds)}")
    SECONDS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


class Progress:
    """A plugin that counts the cases of all processes. xdist takes those of one, and would end at 250 percent."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._cases = 0

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        self._cases += len(ids)

    def pytest_runtest_logstart(self) -> None:
        self._session.testscollected = self._cases


COUNTED = ("passed", "failed", "skipped")


def add_counts(path: Path, stats: Mapping[str, Sequence[Any]]) -> None:
    """Append the counts of this run to a file, as a line of JSON. An error of a fixture counts as a failure."""
    counts = {name: len(stats.get(name, ())) for name in (*COUNTED, "error")}
    counts["failed"] += counts.pop("error")
    with path.open("a") as file:
        file.write(json.dumps(counts) + "\n")


def main() -> None:
    """Print the sums of the counts in a file: `python -m tests.support.tiers FILE`."""
    counts = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
    print(", ".join(f"{sum(each[name] for each in counts)} {name}" for name in COUNTED))


if __name__ == "__main__":
    main()
