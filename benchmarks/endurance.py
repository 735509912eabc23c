"""A chart of the endurance runs: what servers use over an hour of mixed load with faults.

    TABLEGATE_TEST_ARTEFACTS=build/artefacts make endurance
    python -m benchmarks.endurance build/artefacts/endurance-*.json > docs/explain/endurance.svg

The files are those that tests/durability/test_endurance.py writes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks import plot

QUANTITIES = {
    "memory_mb": "resident memory, MB",
    "descriptors": "open file descriptors",
    "disk_mb": "database on disk, MB",
    "median_ms": "latency, median, ms",
}


def chart(paths: list[Path]) -> str:
    """Return the chart of these runs, one line each."""
    runs = [json.loads(path.read_text()) for path in paths]
    panels = {
        title: {run["database"]: [(each["at_s"] / 60, each[name]) for each in run["samples"]] for run in runs}
        for name, title in QUANTITIES.items()
    }
    faults = ", ".join(f"{run['database']}: {sum(run['faults'].values())} faults" for run in runs)
    return plot.draw_lines(f"Mixed load of three dialects ({faults})", "minutes", panels)


if __name__ == "__main__":
    sys.stdout.write(chart([Path(path) for path in sys.argv[1:]]))
