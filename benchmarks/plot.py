"""Charts as SVG: ratios with their intervals on a logarithmic scale, and lines over time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from benchmarks.comparisons import Interval

_LINE, _LABEL, _WIDTH, _TOP, _RIGHT = 19, 430, 420, 64, 70
_BETTER, _WORSE, _NEITHER = "#1f6f8b", "#b4552d", "#8a867c"
_LEGEND = (
    "dot and line: median of the pairs and its 95 % interval, upright: the floor, right of 1: ours is better, "
    "grey: not significant"
)
_MARKS = (0.25, 0.5, 1, 2, 4, 8, 16)


class Bar(NamedTuple):
    """One ratio. Above 1 our server is better. `floor` is marked unless it is 0."""

    title: str
    ratio: Interval
    floor: float


def draw(heading: str, bars: Sequence[Bar], legend: str = _LEGEND) -> str:
    """Draw each ratio as a dot, its interval as a line and its floor as a mark."""
    values = [value for bar in bars for value in (bar.ratio.low, bar.ratio.high, bar.floor or 1)]
    minimum, maximum = min([0.5, *values]), max([2.0, *values])

    def x(value: float) -> float:
        return _LABEL + _WIDTH * math.log(value / minimum) / math.log(maximum / minimum)

    bottom = _TOP + len(bars) * _LINE
    width, height = _LABEL + _WIDTH + _RIGHT, bottom + 12
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="10" y="20" font-size="15">{escape(heading)}</text>',
        f'<text x="10" y="38" fill="#555">{escape(legend)}</text>',
    ]
    for mark in _MARKS:
        if minimum <= mark <= maximum:
            colour, wide = ("#000", 1.2) if mark == 1 else ("#ddd", 1)
            parts.append(
                f'<line x1="{x(mark):.1f}" x2="{x(mark):.1f}" y1="{_TOP - 6}" y2="{bottom}" stroke="{colour}" '
                f'stroke-width="{wide}"/><text x="{x(mark):.1f}" y="{_TOP - 10}" text-anchor="middle">{mark:g}</text>'
            )
    for number, bar in enumerate(bars):
        y = _TOP + number * _LINE + _LINE / 2
        ratio = bar.ratio
        better = _BETTER if ratio.median > 1 else _WORSE
        colour = better if ratio.is_significant else _NEITHER
        parts.append(
            f'<text x="{_LABEL - 14}" y="{y + 4}" text-anchor="end">{escape(bar.title)}</text>'
            f'<line x1="{x(ratio.low):.1f}" x2="{x(ratio.high):.1f}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="3"/>'
            f'<circle cx="{x(ratio.median):.1f}" cy="{y}" r="4.5" fill="{colour}"/>'
            f'<text x="{_LABEL + _WIDTH + 14}" y="{y + 4}">{ratio.median:.2f}</text>'
        )
        if bar.floor:
            at = x(bar.floor)
            parts.append(
                f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{y - 7}" y2="{y + 7}" stroke="#444" stroke-width="2"/>'
            )
    return "\n".join([*parts, "</svg>"]) + "\n"


_PANEL_WIDTH, _PANEL_HEIGHT, _MARGIN = 400, 130, 56
_COLOURS = (_BETTER, _WORSE, _NEITHER)
Line = list[tuple[float, float]]


def draw_lines(heading: str, unit: str, panels: Mapping[str, Mapping[str, Line]]) -> str:
    """Draw panels under each other, each with a line of (x, y) for each name. The y axes begin at 0."""
    height = _TOP + len(panels) * (_PANEL_HEIGHT + _MARGIN)
    names = list(next(iter(panels.values())))
    width = _PANEL_WIDTH + 2 * _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="10" y="20" font-size="13">{escape(heading)}</text>',
    ]
    for number, name in enumerate(names):
        parts.append(f'<text x="{10 + 90 * number}" y="38" fill="{_COLOURS[number]}">{escape(name)}</text>')
    for number, (title, lines) in enumerate(panels.items()):
        parts += _panel(_TOP + number * (_PANEL_HEIGHT + _MARGIN), f"{title} ({unit})", lines)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(top: int, title: str, lines: Mapping[str, Line]) -> list[str]:
    most_x, most_y = (max(point[axis] for line in lines.values() for point in line) or 1 for axis in (0, 1))
    bottom = top + _PANEL_HEIGHT
    parts = [
        f'<text x="{_MARGIN}" y="{top - 6}">{escape(title)}</text>',
        f'<path d="M{_MARGIN} {top}V{bottom}H{_MARGIN + _PANEL_WIDTH}" fill="none" stroke="#444"/>',
        f'<text x="{_MARGIN - 6}" y="{top + 8}" text-anchor="end">{most_y:g}</text>',
        f'<text x="{_MARGIN - 6}" y="{bottom}" text-anchor="end">0</text>',
        f'<text x="{_MARGIN + _PANEL_WIDTH}" y="{bottom + 14}" text-anchor="end">{most_x:.0f}</text>',
    ]
    for colour, line in zip(_COLOURS, lines.values(), strict=False):
        points = " ".join(
            f"{_MARGIN + x / most_x * _PANEL_WIDTH:.1f},{bottom - y / most_y * _PANEL_HEIGHT:.1f}"
            for x, y in line
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
    return parts
