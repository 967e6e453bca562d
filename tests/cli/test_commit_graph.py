"""The drawing of commit graphs: exact pictures, and every line can be followed to its end."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.cli.render.commit_graph import GraphNode, Line, draw


def nodes(text: str) -> list[GraphNode]:
    """`d:b,c b:a c:a a` for a diamond."""
    found = []
    for word in text.split():
        name, _, parents = word.partition(":")
        ids = tuple(parents.split(",")) if parents else ()
        found.append(GraphNode(name, ids))
    return found


def picture(text: str) -> str:
    """The drawing, with the name of each commit beside it."""
    lines = draw(nodes(text))
    return "".join(
        f"{line.text} {line.node}\n" if line.node else f"{line.text}\n" for line in lines
    )


def test_nothing() -> None:
    assert draw([]) == []


def test_a_line() -> None:
    assert picture("c:b b:a a") == "* c\n* b\n* a\n"


def test_two_branches_with_one_beginning() -> None:
    shown = """\
* d
| * c
* | b
|/
* a
"""
    assert picture("d:b c:a b:a a") == shown


def test_a_merge() -> None:
    shown = """\
* d
|\\
| * c
* | b
|/
* a
"""
    assert picture("d:b,c c:a b:a a") == shown


def test_merges_in_both_directions() -> None:
    shown = """\
* m3
|\\
| * b3
|/|
* | m2
|\\|
| |\\
| * | b2
| | * c1
| |/
|/|
| * b1
|/
* m1
* m0
"""
    assert picture("m3:m2,b3 b3:b2,m2 m2:m1,c1 b2:b1 c1:m1 b1:m1 m1:m0 m0") == shown


def test_a_long_way_below_other_branches() -> None:
    shown = """\
* a1
| * b1
| | * c1
| | | * d1
| | | * d
| |_|/
|/| |
* | | a
| * | b
|/  |
|   * c
| _/
|/
* r
"""
    assert picture("a1:a b1:b c1:c d1:d d:a a:r b:r c:r r") == shown


def test_a_merge_of_a_branch_that_stands_far_to_the_right() -> None:
    shown = """\
* a2
| * b2
| | * c2
| | | * d1
* | | | a1
|\\|_| |
| | |\\|
* | | | a
| * | | b
|/  | |
|   * | c
| _/  |
|/    |
|     * d
| ___/
|/
* r
"""
    assert picture("a2:a1 b2:b c2:c d1:d a1:a,d a:r b:r c:r d:r r") == shown


def test_a_branch_that_merges_back_and_forth() -> None:
    shown = """\
* m3
|\\
| * b2
|/|
* | m2
|\\|
| * b1
|/
* m1
"""
    assert picture("m3:m2,b2 b2:b1,m2 m2:m1,b1 b1:m1 m1") == shown


def test_nothing_seems_to_follow_from_a_commit_without_parents() -> None:
    shown = """\
* a
* b
  * c
* d
"""
    assert picture("a:b b c d") == shown


def test_what_goes_on_below_the_last_commit() -> None:
    assert picture("a:b,c b:d") == "* a\n|\\\n* | b\n: :\n"


def test_parents_that_are_the_same_are_one() -> None:
    assert picture("a:b,b b") == "* a\n* b\n"


def test_a_column_keeps_its_number() -> None:
    first, second, third, *_ = draw(nodes("d:b,c c:a b:a a"))
    assert [(cell.character, cell.column) for cell in second.cells] == [
        ("|", 0),
        ("\\", 1),
        (" ", None),
    ]
    assert (first.cells[0].column, third.cells[2].column) == (0, 1)


# -- any graph -----------------------------------------------------------------------------


@st.composite
def graphs(draw_: st.DrawFn) -> list[GraphNode]:
    """Commits with up to two parents among those below them, and some that are not shown."""
    size = draw_(st.integers(1, 24))
    found = []
    for number in range(size):
        below = st.integers(number + 1, min(size + 1, number + 9))
        parents = draw_(st.lists(below, max_size=2, unique=True)) if number < size else []
        found.append(GraphNode(str(number), tuple(map(str, parents))))
    return found


@dataclass
class Tracer:
    """Reads a drawing the way a person does: by its characters alone.

    ``carried`` says whose lines run in a column; ``crossing`` is a line that is on its way
    below other columns.
    """

    lines: list[Line]
    carried: dict[int, set[str]] = field(default_factory=dict)
    crossing: set[str] | None = None
    edges: set[tuple[str, str]] = field(default_factory=set)
    node: tuple[int, str] | None = None

    def trace(self) -> set[tuple[str, str]]:
        """All edges from a child to its parent."""
        for number, line in enumerate(self.lines):
            following = self.text(number + 1)
            if line.node is None:
                self._moves(line.text, following)
            else:
                self._commit(line.text, line.node, following)
            for column in self.carried:
                assert self._leads_down(column, following), f"line {number} breaks: {line.text}"
        assert self.crossing is None
        return self.edges

    def text(self, number: int) -> str:
        return self.lines[number].text if number < len(self.lines) else ""

    def _commit(self, text: str, node: str, following: str) -> None:
        assert self.crossing is None
        assert set(text[1::2]) <= {" "}
        marked = [column for column, mark in enumerate(text[::2]) if mark in "*x"]
        assert len(marked) == 1
        for column, mark in enumerate(text[::2]):
            if mark == "|":
                assert column in self.carried
        (at,) = marked
        self.edges |= {(child, node) for child in self.carried.pop(at, ())}
        self.node = None
        if self._leads_down(at, following):
            self.carried[at] = {node}
            self.node = (at, node)

    def _leads_down(self, column: int, text: str) -> bool:
        """Whether the next line takes up what runs in a column."""
        slopes = (char(text, 2 * column - 1) == "/", char(text, 2 * column + 1) == "\\")
        return not text or char(text, 2 * column) in set("|*x:") or any(slopes)

    def _moves(self, text: str, following: str) -> None:
        if ":" in text:
            assert set(text) <= set(": ")
            return
        ((gap, slope),) = [(at, mark) for at, mark in enumerate(text[1::2]) if mark in "/\\"]
        step = -1 if slope == "/" else 1
        came_from, leads_to = (gap + 1, gap) if slope == "/" else (gap, gap + 1)
        moved = self._picked_up(came_from, text)
        level = 0
        while char(text, 2 * leads_to) == "_" or char(text, 2 * (gap + step) + 1) == "_":
            level += (text[2 * leads_to], char(text, 2 * (gap + step) + 1)).count("_")
            if char(text, 2 * (gap + step) + 1) != "_":
                break
            gap, leads_to = gap + step, leads_to + step
        assert text.count("_") == level
        if char(following, 2 * (gap + step) + 1) == slope:
            self.crossing = moved
        else:
            self.carried.setdefault(leads_to, set()).update(moved)
        self.node = None

    def _picked_up(self, column: int, text: str) -> set[str]:
        if self.crossing is not None:
            moved, self.crossing = self.crossing, None
            return moved
        if self.node is not None and self.node[0] == column:
            if char(text, 2 * column) != "|":
                del self.carried[column]
            return {self.node[1]}
        assert char(text, 2 * column) in {" ", ""}, "only a column that ends here can turn"
        return self.carried.pop(column)


def char(text: str, at: int) -> str:
    return text[at] if 0 <= at < len(text) else " "


@pytest.mark.slow
@given(graphs())
def test_every_commit_stands_once_and_every_line_leads_to_its_parent(
    found: list[GraphNode],
) -> None:
    lines = draw(found)
    assert [line.node for line in lines if line.node] == [node.id for node in found]
    shown = {node.id for node in found}
    wanted = {(node.id, parent) for node in found for parent in node.parents}
    assert Tracer(lines).trace() == {edge for edge in wanted if edge[1] in shown}


@given(graphs())
def test_a_drawing_is_plain_and_no_wider_than_its_branches(found: list[GraphNode]) -> None:
    lines = draw(found)
    assert set().union(*(line.text for line in lines)) <= set("*x:|/\\_ ")
    most, running = 0, set[str]()
    for node in found:
        most = max(most, len(running | {node.id}))
        running = (running - {node.id}) | set(node.parents)
        most = max(most, len(running))
    # One more: a column is not used again right below the last commit of a line.
    assert max(len(line.text) for line in lines) <= 2 * (most + 1) - 1


@pytest.mark.parametrize(
    ("right", "wrong"), [("|/", "| "), ("|\\", "| "), ("| *", "|  "), ("* |", "*  ")]
)
def test_the_reader_sees_a_broken_line(right: str, wrong: str) -> None:
    lines = draw(nodes("d:b,c c:a b:a a"))
    broken = [_replaced(line, wrong) if line.text == right else line for line in lines]
    whole = Tracer(lines).trace()
    assert len(whole) == 4
    try:
        assert Tracer(broken).trace() == whole
    except (AssertionError, ValueError, KeyError):
        return
    pytest.fail("a broken line was not seen")


def _replaced(line: Line, text: str) -> Line:
    cells = tuple(
        type(cell)(character)
        for cell, character in zip(line.cells, text.ljust(len(line.cells)), strict=False)
    )
    return Line(cells, line.node)
