"""Diagrams: boxes with lines of text and arrows between them, as one inline SVG.

Owns how they are drawn. Readable on light and on dark pages, the same for the same input, and asks
for nothing: no fonts, no scripts, no ids that another picture of the page could have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from unicodedata import east_asian_width

from omnigraph.display.layout import Layout, Size, Spot, lay_out
from omnigraph.display.markup import Html, cut, element, joined

LETTER, LINE, PAD = 6.7, 16.0, 8.0
"""The width of a letter of 11 pixels, the height of a line, and the room around text."""
MOST_LINES, WIDEST = 14, 44
HEAD, TURN = 6.0, 14.0
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"
INK, PAPER, TITLE, FRAME, ARROW = "#1f2328", "#ffffff", "#ddf4ff", "#6e7781", "#8c959f"


@dataclass(frozen=True, slots=True)
class Box:
    """A box: its name, its lines, and what is told of it to who points at it."""

    name: str
    lines: tuple[str, ...] = ()
    about: str = ""
    is_dashed: bool = False

    @property
    def shown(self) -> tuple[str, ...]:
        """The lines that there is room for."""
        if len(self.lines) <= MOST_LINES:
            return self.lines
        return (*self.lines[: MOST_LINES - 1], f"… {len(self.lines) - MOST_LINES + 1} more")


@dataclass(frozen=True, slots=True)
class Arrow:
    """An arrow from one box to another, by their names."""

    source: str
    target: str
    name: str = ""
    about: str = ""
    is_dashed: bool = False


def svg_of(boxes: Sequence[Box], arrows: Sequence[Arrow], label: str) -> Html:
    """The picture; ``label`` says what it shows to who cannot see it."""
    sizes = {box.name: _size((box.name, *box.shown), head=PAD) for box in boxes}
    names = [Size(_width(cut(arrow.name, WIDEST)), LINE) for arrow in arrows]
    laid = lay_out(sizes, [(arrow.source, arrow.target) for arrow in arrows], names)
    drawn = [
        *(_arrow(arrow, number, laid) for number, arrow in enumerate(arrows)),
        *(_box(box, laid.boxes[box.name]) for box in boxes),
    ]
    width, height = round(laid.width), round(laid.height)
    return element(
        "svg",
        element("title", label),
        *drawn,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        role="img",
        style="max-width: 100%; height: auto",
        font_family=FONT,
        font_size=11,
    )


def _width(text: str) -> float:
    wide = sum(east_asian_width(letter) in "WF" for letter in text)
    return (len(text) + wide) * LETTER


def _size(lines: Sequence[str], head: float) -> Size:
    widest = max(_width(cut(line, WIDEST)) for line in lines)
    return Size(widest + 2 * PAD, len(lines) * LINE + head + PAD / 2)


def _box(box: Box, spot: Spot) -> Html:
    x, y, size = spot.x, spot.y, spot.size
    dashes = "4 3" if box.is_dashed else None
    frame = {"x": _n(x), "width": _n(size.width), "rx": 4}
    lines = [
        _text(line, x + PAD, y + LINE * (number + 2) + PAD / 2, fill=INK)
        for number, line in enumerate(box.shown)
    ]
    return element(
        "g",
        element("title", box.about or box.name),
        element("rect", y=_n(y), height=_n(size.height), fill=PAPER, **frame),
        element("rect", y=_n(y), height=_n(LINE + PAD / 2), fill=TITLE, **frame),
        element(
            "rect",
            y=_n(y),
            height=_n(size.height),
            fill="none",
            stroke=FRAME,
            stroke_dasharray=dashes,
            **frame,
        ),
        _text(box.name, x + PAD, y + LINE, fill=INK, font_weight="bold"),
        *lines,
    )


def _text(text: str, x: float, y: float, **attributes: object) -> Html:
    return element("text", cut(text, WIDEST), x=_n(x), y=_n(y - 3), **attributes)


def _arrow(arrow: Arrow, number: int, laid: Layout) -> Html:
    way, name = laid.ways[number], laid.names[number]
    points = _loop(way[0], name) if arrow.source == arrow.target else _through(way)
    if laid.backwards[number]:
        points = points[::-1]
    return element(
        "g",
        element("title", arrow.about or arrow.name),
        element(
            "path",
            d=_curve(points),
            fill="none",
            stroke=ARROW,
            stroke_width=1.3,
            stroke_dasharray="4 3" if arrow.is_dashed else None,
        ),
        _tip(points),
        _text(
            arrow.name,
            name.x + name.size.width / 2,
            name.y + LINE - 1,
            text_anchor="middle",
            fill="currentColor",
        ),
    )


Point = tuple[float, float]


def _through(way: Sequence[Spot]) -> list[Point]:
    """From the side of the first box, below the name, to the side of the last."""
    first, name, *bends, last = way
    points = [(first.x + first.size.width, _port(first, name, first.after))]
    under = name.y + name.size.height
    points += [(name.x, under), (name.x + name.size.width, under)]
    for bend in bends:
        points += [(bend.x, bend.middle), (bend.x + bend.size.width, bend.middle)]
    return [*points, (last.x, _port(last, way[-2], last.before))]


def _loop(box: Spot, name: Spot) -> list[Point]:
    """Out of a box, below the name, and back into it."""
    right, y = box.x + box.size.width, _port(box, name, box.after)
    end = name.x + name.size.width
    above, under = name.y - 1, name.y + name.size.height
    return [
        (right, y - 4),
        (name.x, above),
        (end, above),
        (end, under),
        (name.x, under),
        (right, y + 4),
    ]


def _port(box: Spot, joined_to: Spot, side: Sequence[Spot]) -> float:
    """Where on the side of a box an arrow begins: in the order of what they lead to."""
    inner = sorted(side, key=lambda spot: (spot.middle, tuple(map(str, spot.order))))
    place = next(at for at, spot in enumerate(inner) if spot is joined_to)
    return box.y + box.size.height * (place + 1) / (len(inner) + 1)


def _curve(points: Sequence[Point]) -> str:
    """A line that leaves and enters every point level."""
    parts = [f"M{_n(points[0][0])} {_n(points[0][1])}"]
    for (x, y), (to_x, to_y) in pairwise(points):
        half = (x + to_x) / 2 if x != to_x else x + TURN
        parts.append(f"C{_n(half)} {_n(y)} {_n(half)} {_n(to_y)} {_n(to_x)} {_n(to_y)}")
    return " ".join(parts)


def _tip(points: Sequence[Point]) -> Html:
    """The head of an arrow, at its last point."""
    (before, _), (x, y) = points[-2], points[-1]
    back = x - HEAD if before < x else x + HEAD
    corners = joined(f"{_n(one)},{_n(other)} " for one, other in _corners(x, y, back))
    return element("polygon", points=corners.strip(), fill=ARROW)


def _corners(x: float, y: float, back: float) -> list[Point]:
    return [(x, y), (back, y - HEAD / 1.7), (back, y + HEAD / 1.7)]


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
