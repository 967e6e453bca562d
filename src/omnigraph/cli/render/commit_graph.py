"""The drawing of a commit graph: commits in, lines of characters out.

Owns which commits a log shows, and in which order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omnigraph.manifest.entries import Commit

COMMIT, OPEN = "*", ":"
"""A commit, and a line that goes on below the last one."""


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One commit to draw, with its parents, at most two."""

    id: str
    parents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cell:
    """One character, and the column whose line it is part of; None for a blank."""

    character: str
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the drawing; ``node`` is the commit that stands in it, if one does."""

    cells: tuple[Cell, ...]
    node: str | None = None

    @property
    def text(self) -> str:
        """The characters, without blanks at the end."""
        return "".join(cell.character for cell in self.cells).rstrip()


def draw(nodes: Sequence[GraphNode]) -> list[Line]:
    """Draw commits from top to bottom; children stand before their parents.

    A parent that is not among the nodes is drawn as a line that goes on.
    """
    columns = _Columns()
    lines = [line for node in nodes for line in columns.lines_of(node)]
    if any(columns.expected):
        lines.append(columns.ends())
    return lines


@dataclass(slots=True)
class _Columns:
    """Which commit each column leads to; no two columns lead to the same.

    Every line between columns keeps clear of the others, so that each can be followed:
    a line from a commit to another column leaves right below the commit, and a column
    that joins another is blank from the place where it turns.
    """

    expected: list[str | None] = field(default_factory=list)
    _ended: int | None = None

    def lines_of(self, node: GraphNode) -> Iterator[Line]:
        """The line of a commit, and those that lead from it to its parents."""
        at = self._place(node.id)
        self.expected[at] = node.id
        yield self._straight({at: COMMIT}, node.id)
        first, second = (*dict.fromkeys(node.parents), None, None)[:2]
        self._ended = at if first is None else None
        if first is None:
            self.expected[at] = None
        elif second is None:
            yield from self._continue(at, first)
        elif self._is_left(first, at):
            # The first parent's column is there already: this one is free for the other.
            yield from self._branch_off(at, first)
            yield from self._continue(at, second)
        else:
            yield from self._branch_off(at, second)
            yield from self._continue(at, first)

    def ends(self) -> Line:
        """The last line: which columns go on."""
        return self._straight(
            {at: OPEN for at, expected in enumerate(self.expected) if expected is not None}
        )

    # -- where things are --------------------------------------------------------------

    def _find(self, id_: str) -> int | None:
        return self.expected.index(id_) if id_ in self.expected else None

    def _is_left(self, id_: str, at: int) -> bool:
        found = self._find(id_)
        return found is not None and found < at

    def _place(self, id_: str) -> int:
        """The column of a commit: where it is expected, or a free one.

        Right below a commit without parents, one would seem to be its parent.
        """
        found = self._find(id_)
        return self._free(0, avoid=self._ended) if found is None else found

    def _free(self, near: int, avoid: int | None = None) -> int:
        """A column that leads nowhere, the next one to the right if there is one; or a new one.

        The drawing gets wider only when no column is left.
        """
        free = [at for at, expected in enumerate(self.expected) if expected is None and at != avoid]
        if free:
            return min(free, key=lambda at: (at < near, abs(at - near)))
        self.expected.append(None)
        return len(self.expected) - 1

    # -- moves -------------------------------------------------------------------------

    def _continue(self, at: int, parent: str) -> Iterator[Line]:
        """Lead the column of a commit to a parent; of two columns that do, the left one stays."""
        other = self._find(parent)
        self.expected[at] = parent
        if other is None:
            return
        left, right = min(at, other), max(at, other)
        self.expected[right] = None
        yield from self._leftwards(right, left)

    def _branch_off(self, at: int, parent: str) -> Iterator[Line]:
        """Lead a second line from a commit to a parent, into a column of its own or a known one."""
        known = self._find(parent)
        to = self._free(at) if known is None else known
        yield from self._leftwards(at, to) if to < at else self._rightwards(at, to)
        self.expected[to] = parent

    def _leftwards(self, at: int, to: int) -> Iterator[Line]:
        far = at - to > 1
        yield self._crossing("/", at - 1, range(2 * to + 2, 2 * at - 1) if far else (), at)
        if far:
            yield self._crossing("/", to, (), at)

    def _rightwards(self, at: int, to: int) -> Iterator[Line]:
        far = to - at > 1
        yield self._crossing("\\", at, range(2 * at + 2, 2 * to - 1) if far else (), to)
        if far:
            yield self._crossing("\\", to - 1, (), to)

    # -- lines -------------------------------------------------------------------------

    def _straight(self, marks: dict[int, str], node: str | None = None) -> Line:
        cells: list[Cell] = []
        for at, expected in enumerate(self.expected):
            shown = Cell(" ") if expected is None else Cell(marks.get(at, "|"), at)
            cells += [shown, Cell(" ")]
        return Line(tuple(cells[:-1]), node)

    def _crossing(self, slope: str, gap: int, level: Iterable[int], column: int) -> Line:
        """All columns, with a slope in one gap and a level line that passes below the columns."""
        cells = list(self._straight({}).cells)
        cells[2 * gap + 1] = Cell(slope, column)
        for at in level:
            if cells[at].column is None:
                cells[at] = Cell("_", column)
        return Line(tuple(cells))


def parent_ids(commit: Commit) -> tuple[str, ...]:
    """The parents of a commit, the one it was made on first."""
    both = (commit.parent_id, commit.merged_parent_id)
    return tuple(id_ for id_ in both if id_ is not None)


def in_order(commits: Iterable[Commit]) -> list[Commit]:
    """Children before their parents; where both orders are possible, the newer one first."""
    by_id = {commit.id: commit for commit in commits}
    children = Counter(
        parent for commit in by_id.values() for parent in parent_ids(commit) if parent in by_id
    )
    ready = sorted(_Newest(commit) for commit in by_id.values() if not children[commit.id])
    found: list[Commit] = []
    while ready:
        commit = heappop(ready).commit
        found.append(commit)
        for parent in parent_ids(commit):
            children[parent] -= 1
            if parent in by_id and not children[parent]:
                heappush(ready, _Newest(by_id[parent]))
    return found


class _Newest:
    """Orders commits by time, then by id, the newest first."""

    __slots__ = ("commit",)

    def __init__(self, commit: Commit) -> None:
        self.commit = commit

    def __lt__(self, other: _Newest) -> bool:
        mine, theirs = self.commit, other.commit
        return (mine.created_at, mine.id) > (theirs.created_at, theirs.id)


def nodes_of(commits: Iterable[Commit]) -> list[GraphNode]:
    """The commits to draw."""
    return [GraphNode(commit.id, parent_ids(commit)) for commit in commits]
