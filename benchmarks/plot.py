"""Requests a second as bars, one panel for each workload: an SVG without any library.

The scale is logarithmic: contestants are two orders of magnitude apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from benchmarks.rounds import Player
from benchmarks.workloads import Workload

_BAR, _GAP, _PANEL_GAP, _LABEL, _WIDTH, _TOP = 14, 3, 30, 190, 420, 40
_PANELS_PER_ROW = 2
_OURS, _PEER = "#1f6f8b", "#b9b4a7"


def draw(players: Sequence[Player], workloads: Sequence[Workload], connections: int) -> str:
    """The picture of one number of connections."""
    panels = [_bars(players, workload, connections) for workload in workloads]
    most = max((rate for bars in panels for _, rate, _ in bars), default=1.0)
    height = max((len(bars) for bars in panels), default=0) * (_BAR + _GAP) + _PANEL_GAP
    rows = math.ceil(len(panels) / _PANELS_PER_ROW)
    width, total = _PANELS_PER_ROW * (_LABEL + _WIDTH + 90), _TOP + rows * height
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {total}" font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{total}" fill="white"/>',
        f'<text x="10" y="22" font-size="15">Requests per second, {connections} connections (logarithmic scale)</text>',
    ]
    for number, (workload, bars) in enumerate(zip(workloads, panels, strict=True)):
        left = number % _PANELS_PER_ROW * (_LABEL + _WIDTH + 90)
        top = _TOP + number // _PANELS_PER_ROW * height
        parts.append(
            f'<text x="{left + _LABEL}" y="{top + 12}" font-weight="bold">{escape(workload.title)}</text>'
        )
        for at, (name, rate, is_ours) in enumerate(bars):
            y = top + 18 + at * (_BAR + _GAP)
            length = _WIDTH * math.log10(max(rate, 1.0) + 1) / math.log10(most + 1)
            parts.append(
                f'<text x="{left + _LABEL - 6}" y="{y + 11}" text-anchor="end">{escape(name)}</text>'
            )
            colour = _OURS if is_ours else _PEER
            parts.append(
                f'<rect x="{left + _LABEL}" y="{y}" width="{length:.1f}" height="{_BAR}" fill="{colour}"/>'
                f'<text x="{left + _LABEL + length + 5:.1f}" y="{y + 11}">{rate:,.0f}</text>'
            )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _bars(players: Sequence[Player], workload: Workload, connections: int) -> list[tuple[str, float, bool]]:
    at = (workload.name, connections)
    return [
        (each.contestant.title, each.figures[at].rate, each.contestant.is_ours)
        for each in players
        if at in each.figures
    ]
