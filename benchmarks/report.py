"""What was measured, as Markdown: one table for each workload group and number of connections.

The command writes between two marks in docs/performance.md; the prose around them is written by people.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.rounds import Figures, Player
from benchmarks.workloads import Workload

DOCUMENT = Path(__file__).parent.parent / "docs" / "performance.md"


def table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table: the first column to the left, the others to the right."""
    rule = [":--", *("--:" for _ in header[1:])]
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, rule, *lines))


def count(number: float) -> str:
    """1,234; small numbers with two significant digits."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def ratio(mine: float, theirs: float) -> str:
    """How many times theirs mine is."""
    value = mine / theirs
    if value < 0.1:
        return f"{value:.2f}x"
    return f"{value:.1f}x" if value < 10 else f"{value:.0f}x"


def workload_table(players: Sequence[Player], workload: Workload, connections: int) -> str:
    """All contestants in one workload, in the order in which they were named."""
    at = (workload.name, connections)
    taken = [(each, each.figures[at]) for each in players if at in each.figures]
    lines = [_line(each, figures) for each, figures in taken]
    lines += [
        [each.contestant.title, "-", "", "", "", "", "", ""]
        for each in players
        if workload.name in each.absent
    ]
    header = ("", "requests/s", "spread", "CPU us/request", "p50 ms", "p99 ms", "worst ms", "storage")
    return f"**{workload.title}, {_connections(connections)}**\n\n{table(header, lines)}"


def _line(player: Player, figures: Figures) -> list[str]:
    spread = (max(figures.rates) - min(figures.rates)) / figures.rate
    return [
        player.contestant.title,
        count(figures.rate),
        f"{spread:.0%}",
        count(figures.cpu),
        *(f"{figures.percentile_ms(share):.2f}" for share in (0.5, 0.99, 1.0)),
        player.contestant.storage,
    ]


def _connections(number: int) -> str:
    return "1 connection" if number == 1 else f"{number} connections"


def memory_table(players: Sequence[Player]) -> str:
    """Memory of all processes of each after the last round."""
    lines = [[each.contestant.title, *(f"{size:,.0f}" for size in each.memory)] for each in players]
    return table(("after the last round", "RSS MB", "PSS MB"), lines)


def ratio_table(players: Sequence[Player], workloads: Sequence[Workload], connections: int) -> str:
    """Ours against each peer, by throughput and by CPU: how many times better."""
    ours = [each for each in players if each.contestant.is_ours]
    peers = [each for each in players if not each.contestant.is_ours]
    lines = []
    for workload in workloads:
        at = (workload.name, connections)
        for mine in ours:
            if at not in mine.figures:
                continue
            cells = [workload.title, mine.contestant.title.partition(", ")[2]]
            for peer in peers:
                if at in peer.figures:
                    faster = ratio(mine.figures[at].rate, peer.figures[at].rate)
                    cheaper = ratio(peer.figures[at].cpu, mine.figures[at].cpu)
                    cells.append(f"{faster} / {cheaper}")
                else:
                    cells.append("-")
            lines.append(cells)
    header = [
        f"{_connections(connections)}: requests/s / CPU",
        "ours on",
        *(each.contestant.title for each in peers),
    ]
    return table(header, lines) if peers else ""


def row_table(players: Sequence[Player], workloads: Sequence[Workload], connections: Sequence[int]) -> str:
    """CPU time for each row of each workload, at the number of connections nearest to 16 at which each took part."""
    lines = []
    for workload in workloads:
        cells = [workload.title]
        for each in players:
            played = [number for number in connections if (workload.name, number) in each.figures]
            if played:
                nearest = min(played, key=lambda number: abs(number - 16))
                cells.append(count(each.figures[workload.name, nearest].cpu / workload.rows))
            else:
                cells.append("-")
        lines.append(cells)
    return table(("CPU us a row", *(each.contestant.title for each in players)), lines)


def write(section: str, text: str) -> None:
    """Put a text between `<!-- SECTION -->` and `<!-- /SECTION -->` of the document, which are added where missing."""
    begin, end = f"<!-- {section} -->", f"<!-- /{section} -->"
    document = DOCUMENT.read_text() if DOCUMENT.exists() else "# Performance\n"
    if begin not in document:
        document = f"{document.rstrip()}\n\n{begin}\n{end}\n"
    head, _, rest = document.partition(begin)
    tail = rest.partition(end)[2]
    DOCUMENT.parent.mkdir(exist_ok=True)
    DOCUMENT.write_text(f"{head}{begin}\n{text.strip()}\n{end}{tail}")
