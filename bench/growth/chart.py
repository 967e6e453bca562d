"""A small chart as SVG: lines over a logarithmic axis, each relative to its first point.

Owns the drawing. Measures nothing, and needs nothing that is not in Python.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 56, 168, 40, 48
COLOURS = ("#1f6feb", "#d29922", "#2da44e", "#cf222e", "#8250df", "#57606a")


@dataclass(frozen=True, slots=True)
class Line:
    """One measured line: what it is of, and its points from left to right."""

    name: str
    points: tuple[tuple[float, float], ...]


def chart(title: str, axis: str, lines: Sequence[Line]) -> str:
    """The lines as a picture; the height of a point is its value over that of the first."""
    shown = [(one.name, [(x, y / one.points[0][1]) for x, y in one.points]) for one in lines]
    every = [point for _, points in shown for point in points]
    low, high = min(x for x, _ in every), max(x for x, _ in every)
    top = max(2.0, 1.1 * max(y for _, y in every))

    def across(x: float) -> float:
        share = math.log(x / low) / math.log(high / low) if high > low else 0.0
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def up(y: float) -> float:
        return HEIGHT - BOTTOM - y / top * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(LEFT, 22, title, size=14),
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, axis, anchor="middle"),
    ]
    for tick in _ticks(top):
        parts.append(
            f'<path d="M{LEFT} {up(tick):.1f}H{WIDTH - RIGHT}" stroke="#d0d7de" fill="none"/>'
        )
        parts.append(_text(LEFT - 6, up(tick) + 4, f"{tick:g} x", anchor="end"))
    parts += [
        _text(across(x), HEIGHT - BOTTOM + 16, f"{x:,.0f}", anchor="middle")
        for x in sorted({x for x, _ in every})
    ]
    for place, (name, points) in enumerate(shown):
        colour = COLOURS[place % len(COLOURS)]
        path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [
            f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="3" fill="{colour}"/>'
            for x, y in points
        ]
        label = f"{name}, {points[-1][1]:.2f} x"
        parts.append(_text(WIDTH - RIGHT + 10, TOP + 16 * (place + 1), label, fill=colour))
    return "\n".join([*parts, "</svg>", ""])


def _ticks(top: float) -> list[float]:
    step = 10 ** math.floor(math.log10(top))
    step = next(size for size in (step / 2, step, 2 * step) if top / size <= 6)
    return [number * step for number in range(int(top / step) + 1)]


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", fill: str = "#1f2328", size: int = 12
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}"'
        f' font-family="sans-serif" font-size="{size}">{escape(text)}</text>'
    )
