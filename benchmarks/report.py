"""The results as Markdown: a table of all comparisons, and the pages of docs/explain with the figures that readers need.

    python -m benchmarks.report        prints the table of build/performance.json and writes it to build/performance-all.md

It also writes the goals with their picture into docs/explain/performance.md, if each of them has a result.

Commands write between two marks of a document. The text around them is written by hand.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import comparisons, plot
from benchmarks.comparisons import Comparison
from benchmarks.rounds import Player

DOCUMENT = Path(__file__).parent.parent / "docs" / "explain" / "performance.md"
LARGE = DOCUMENT.with_name("performance-large.md")
ALL = comparisons.RESULTS.with_name("performance-all.md")
PICTURE = DOCUMENT.with_name("performance.svg")
_LINE_LENGTH = 120


class Goal(NamedTuple):
    """The goal of one comparison: the factor of CPU that a request saves."""

    dialect: str
    workload: str
    connections: int
    ours: str
    other: str
    floor: float
    aim: float

    @property
    def name(self) -> tuple[str, str, int, str, str]:
        """The identity of the comparison."""
        return self[:5]


_FULL, _NORMAL, _POSTGRES = "tablegate-full", "tablegate-normal", "tablegate-postgres"
GOALS = (
    *(
        Goal("dynamodb", workload, 16, _FULL, "dynoxide", 1.0, 1.5)
        for workload in ("put", "conditional", "update", "transact")
    ),
    Goal("dynamodb", "get", 16, _FULL, "dynoxide", 1.15, 1.5),
    Goal("dynamodb", "get", 16, _FULL, "dynalite", 2.0, 3.0),
    *(
        Goal("dynamodb", workload, 16, _FULL, "dynalite", 1.3, 2.5)
        for workload in ("put", "conditional", "update", "batch")
    ),
    Goal("dynamodb", "get", 1, _FULL, "dynalite", 1.1, 1.8),
    Goal("dynamodb", "put", 1, _NORMAL, "dynalite", 1.0, 1.8),
    Goal("dynamodb", "update", 1, _FULL, "dynalite", 0.8, 1.8),
    Goal("azuretable", "insert", 16, _FULL, "azurite", 2.4, 6.0),
    Goal("azuretable", "get", 16, _FULL, "azurite", 6.0, 8.0),
    Goal("azuretable", "batch", 16, _FULL, "azurite", 2.0, 4.0),
    Goal("azuretable", "query", 16, _FULL, "azurite", 4.0, 8.0),
    Goal("azuretable", "filter", 16, _FULL, "azurite", 1.2, 4.0),
    Goal("dynamodb", "put", 16, _POSTGRES, "pgbench", 0.75, 1.0),
    Goal("dynamodb", "get", 16, _POSTGRES, "pgbench", 0.6, 1.0),
    Goal("dynamodb", "conditional", 16, _POSTGRES, "pgbench", 0.8, 1.0),
)


def table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table with the first column left-aligned and the others right-aligned."""
    rule = [":--", *("--:" for _ in header[1:])]
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, rule, *lines))


def count(number: float) -> str:
    """Format a number like 1,234. Small numbers get two significant digits."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def page(by_name: Mapping[tuple[str, str, int, str, str], Comparison]) -> str:
    """Return the goals with their results."""
    lines = []
    for goal in GOALS:
        found = by_name[goal.name]
        share = found.cpu.median / goal.floor
        costs = [f"{cost:,.0f}" for cost in found.cpu_us]
        reached = "yes" if share >= 1 else f"{share:.0%} of it"
        lines.append([title(found), *costs, str(found.cpu), f"{goal.floor:g}", reached, str(found.pairs)])
    header = ["CPU of a request", "ours, us", "theirs, us", "times less", "floor", "reached", "pairs"]
    return table(header, lines)


def title(comparison: Comparison) -> str:
    ours = comparison.ours.removeprefix("tablegate-")
    return f"{comparison.dialect} {comparison.workload}, {comparison.connections} connections, {ours} against {comparison.other}"


def everything(measured: Iterable[Comparison]) -> str:
    """Return a table of all comparisons."""
    lines = [
        [
            title(comparison),
            *(f"{us:,.0f}" for us in comparison.cpu_us),
            str(comparison.cpu),
            str(comparison.rate),
            str(comparison.pairs),
            comparison.measured,
        ]
        for comparison in measured
    ]
    header = ["", "ours, us", "theirs, us", "times less CPU", "times the rate", "pairs", "measured"]
    return table(header, lines)


def memory(players: Sequence[Player]) -> str:
    """Return a table of the memory of all processes after the last round."""
    lines = [[player.contestant.title, *(f"{size:,.0f}" for size in player.memory)] for player in players]
    return table(("after the last round", "RSS MB", "PSS MB"), lines)


def write(section: str, text: str, document: Path | None = None) -> None:
    """Write a text between `<!-- SECTION -->` and `<!-- /SECTION -->` of a document (default: DOCUMENT).

    Lines are wrapped, except those of tables. Missing marks are added.
    """
    document = document or DOCUMENT
    begin, end = f"<!-- {section} -->", f"<!-- /{section} -->"
    document.parent.mkdir(parents=True, exist_ok=True)
    old_text = document.read_text() if document.exists() else "# Performance\n"
    if begin not in old_text:
        old_text = f"{old_text.rstrip()}\n\n{begin}\n{end}\n"
    head, _, rest = old_text.partition(begin)
    tail = rest.partition(end)[2]
    lines = "\n".join(map(_wrapped, text.strip().splitlines()))
    document.write_text(f"{head}{begin}\n{lines}\n{end}{tail}")


def _wrapped(line: str) -> str:
    if line.startswith("|") or len(line) <= _LINE_LENGTH:
        return line
    indent = "  " if line.startswith("- ") else ""
    return textwrap.fill(
        line, _LINE_LENGTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def write_all() -> None:
    """Write the table of all comparisons. If all goals have results, write them and their picture into the page."""
    measured = comparisons.read()
    write("all", everything(measured), ALL)
    by_name = {comparison.name: comparison for comparison in measured}
    if missing := [goal for goal in GOALS if goal.name not in by_name]:
        print(f"{DOCUMENT} stays as it is: {len(missing)} of its {len(GOALS)} comparisons have no result.")
        return
    bars = [plot.Bar(title(by_name[goal.name]), by_name[goal.name].cpu, goal.floor) for goal in GOALS]
    PICTURE.write_text(plot.draw("How many times less CPU a request takes here", bars))
    write("page", page(by_name))


if __name__ == "__main__":
    print(everything(comparisons.read()))
    write_all()
