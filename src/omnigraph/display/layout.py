"""Layout: where the boxes of a diagram and the names of its arrows stand.

Owns the columns, the order in them and the places: arrows lead from left to right as far as there
are no circles, and the name of an arrow has a place of its own, where nothing lies below it. The
same diagram is always laid out alike. Never draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

ROUNDS = 8
GAP_X, GAP_Y, MARGIN = 26.0, 16.0, 8.0
BEND = 1.0
"""The height of a place where an arrow only passes."""


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a box or of a name."""

    width: float
    height: float


@dataclass(slots=True)
class Spot:
    """Something that has a place: a box, the name of an arrow, or a bend of one."""

    size: Size
    order: tuple[object, ...]
    """Tells it from its neighbours where nothing else does."""
    column: int = 0
    x: float = 0.0
    y: float = 0.0
    is_bend: bool = False
    """Whether an arrow only passes here."""
    before: list[Spot] = field(default_factory=list)
    after: list[Spot] = field(default_factory=list)

    @property
    def middle(self) -> float:
        """The height of its middle."""
        return self.y + self.size.height / 2


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything is; a way is the spots of an arrow, from the left to the right."""

    boxes: Mapping[str, Spot]
    ways: Sequence[Sequence[Spot]]
    names: Sequence[Spot]
    backwards: Sequence[bool]
    """The arrows that lead from the right to the left."""
    width: float
    height: float


def lay_out(
    boxes: Mapping[str, Size], arrows: Sequence[tuple[str, str]], names: Sequence[Size]
) -> Layout:
    """Places for boxes by name, and for the arrows between them with the sizes of their names."""
    spots = {name: Spot(size, (name,)) for name, size in boxes.items()}
    ranks = _ranks(sorted(boxes), arrows)
    for name, spot in spots.items():
        spot.column = 2 * ranks[name]
    ways, told, backwards = [], [], []
    for number, ((source, target), size) in enumerate(zip(arrows, names, strict=True)):
        is_back = ranks[source] > ranks[target]
        left, right = (target, source) if is_back else (source, target)
        named = Spot(size, (left, right, number), spots[left].column + 1)
        passed = range(named.column + 1, spots[right].column)
        bends = [_bend((left, right, number), column) for column in passed]
        way = [spots[left], named, *bends, *([] if left == right else [spots[right]])]
        for one, other in pairwise(way):
            one.after.append(other)
            other.before.append(one)
        ways.append(way)
        told.append(named)
        backwards.append(is_back)
    columns = _columns(spots, ways)
    _order(columns)
    _place(columns)
    return Layout(spots, ways, told, backwards, *_extent(columns))


def _bend(order: tuple[object, ...], column: int) -> Spot:
    return Spot(Size(0, BEND), order, column, is_bend=True)


def _ranks(names: Sequence[str], arrows: Sequence[tuple[str, str]]) -> dict[str, int]:
    """The column of each box: one more than those that lead to it, circles left out."""
    targets: dict[str, list[str]] = {name: [] for name in names}
    for source, target in sorted(set(arrows)):
        if source != target:
            targets[source].append(target)
    entered = {target for found in targets.values() for target in found}
    finished: list[str] = []
    forward: list[tuple[str, str]] = []
    seen: set[str] = set()
    for root in sorted(names, key=lambda name: (name in entered, -len(targets[name]), name)):
        _visit(root, targets, seen, finished, forward)
    ranks = dict.fromkeys(names, 0)
    led = {name: [target for source, target in forward if source == name] for name in names}
    for name in reversed(finished):
        for target in led[name]:
            ranks[target] = max(ranks[target], ranks[name] + 1)
    return _spread(ranks, targets, entered)


def _visit(
    root: str,
    targets: Mapping[str, Sequence[str]],
    seen: set[str],
    finished: list[str],
    forward: list[tuple[str, str]],
) -> None:
    """Go where the arrows lead; those back to where one came from close circles."""
    if root in seen:
        return
    seen.add(root)
    stack = [(root, iter(targets[root]))]
    above = {root}
    while stack:
        name, left = stack[-1]
        target = next(left, None)
        if target is None:
            stack.pop()
            above.discard(name)
            finished.append(name)
        elif target not in above:
            forward.append((name, target))
            if target not in seen:
                seen.add(target)
                above.add(target)
                stack.append((target, iter(targets[target])))


def _spread(
    ranks: dict[str, int], targets: Mapping[str, Sequence[str]], entered: Iterable[str]
) -> dict[str, int]:
    """Boxes that no arrow touches stand where there is room."""
    touched = {*entered, *(name for name, found in targets.items() if found)}
    filled = [0] * (max((ranks[name] for name in touched), default=1) + 1)
    for name in touched:
        filled[ranks[name]] += 1
    for name in sorted(ranks.keys() - touched):
        ranks[name] = filled.index(min(filled))
        filled[ranks[name]] += 1
    return ranks


def _columns(spots: Mapping[str, Spot], ways: Iterable[Sequence[Spot]]) -> list[list[Spot]]:
    every = {id(spot): spot for spot in (*spots.values(), *(one for way in ways for one in way))}
    columns: list[list[Spot]] = [[] for _ in range(1 + max(s.column for s in every.values()))]
    for spot in every.values():
        columns[spot.column].append(spot)
    for column in columns:
        column.sort(key=lambda spot: tuple(map(str, spot.order)))
    return columns


def _order(columns: Sequence[list[Spot]]) -> None:
    """Bring neighbours to the same height, so that few arrows cross."""
    for sweep in range(ROUNDS):
        is_left = sweep % 2 == 0
        for column in columns if is_left else reversed(columns):
            for other in columns:
                for place, spot in enumerate(other):
                    spot.y = place / len(other)
            column.sort(key=lambda spot: _wanted(spot.before if is_left else spot.after, spot.y))


def _wanted(around: Sequence[Spot], own: float) -> float:
    return sum(spot.y for spot in around) / len(around) if around else own


def _place(columns: Sequence[Sequence[Spot]]) -> None:
    x = MARGIN
    for column in columns:
        width = max((spot.size.width for spot in column), default=0.0)
        y = MARGIN
        for spot in column:
            if spot.is_bend:
                # An arrow crosses a column level, so that it meets no box of it.
                spot.size = Size(width, BEND)
            spot.x, spot.y = x + (width - spot.size.width) / 2, y
            y += spot.size.height + GAP_Y
        x += width + GAP_X
    for sweep in range(ROUNDS):
        for column in columns if sweep % 2 else reversed(columns):
            _pull(column)
    top = min((spot.y for column in columns for spot in column), default=MARGIN)
    for spot in (spot for column in columns for spot in column):
        spot.y += MARGIN - top


def _pull(column: Sequence[Spot]) -> None:
    """Move spots towards what they are joined with; none lies on another, the order stays."""
    wanted = []
    for spot in column:
        around = [*spot.before, *spot.after]
        middle = sum(one.middle for one in around) / len(around) if around else spot.middle
        wanted.append(middle - spot.size.height / 2)
    lowest = float("-inf")
    for spot, y in zip(column, wanted, strict=True):
        spot.y = max(y, lowest)
        lowest = spot.y + spot.size.height + GAP_Y
    if column:
        shift = sum(spot.y - y for spot, y in zip(column, wanted, strict=True)) / len(column)
        for spot in column:
            spot.y -= shift


def _extent(columns: Sequence[Sequence[Spot]]) -> tuple[float, float]:
    every = [spot for column in columns for spot in column]
    right = max((spot.x + spot.size.width for spot in every), default=0.0)
    bottom = max((spot.y + spot.size.height for spot in every), default=0.0)
    return right + 2 * MARGIN, bottom + MARGIN
