"""Generated traversals between interfaces, against their definition by nested loops."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from random import Random

import pytest

import omnigraph as og
from omnigraph.errors import TypeCheckError
from omnigraph.read.plan.physical import Expansion
from tests import profile

SCHEMA = """\
interface Message { text: String? }
interface Thing { label: String? }
node Person implements Thing {}
node Post implements Message, Thing {}
node Comment implements Message {}
edge HasCreator: Message -> Person
edge ReplyOf: Comment -> Message
edge Likes: Thing -> Thing
edge Links: Message -> Message
edge Knows: Person -> Person
"""
TRAVERSALS = 2 * profile.CHOSEN.costly
NODES = ("Comment", "Person", "Post")
SETS = {
    **{name: {name} for name in NODES},
    "Message": {"Comment", "Post"},
    "Thing": {"Person", "Post"},
}
ENDS = {
    "hasCreator": ("Message", "Person"),
    "replyOf": ("Comment", "Message"),
    "likes": ("Thing", "Thing"),
    "links": ("Message", "Message"),
    "knows": ("Person", "Person"),
    "replyOf|links": ("Message", "Message"),
    "knows|likes": ("Thing", "Thing"),
}
Node = tuple[str, str]
Edge = tuple[str, str, Node, Node]


def drawn(random: Random) -> list[Edge]:
    """Edges between four nodes of each type, the same ids in all of them."""
    every = [(type_, str(number)) for type_ in NODES for number in range(4)]
    found: list[Edge] = []
    for name in ("hasCreator", "replyOf", "likes", "links", "knows"):
        ends = [[node for node in every if node[0] in SETS[end]] for end in ENDS[name]]
        for at in range(random.randint(3, 9)):
            source, target = (random.choice(some) for some in ends)
            found.append((name, f"{name}{at}", source, target))
    return found


def rows_of(edges: list[Edge]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = [
        {"type": type_, "data": {"id": str(number)}} for type_ in NODES for number in range(4)
    ]
    for name, id_, source, target in edges:
        type_ = name[0].upper() + name[1:]
        ends = [
            {"@type": node[0], "key": node[1]} if end in ("Message", "Thing") else node[1]
            for node, end in zip((source, target), ENDS[name], strict=True)
        ]
        rows.append({"edge": type_, "from": ends[0], "to": ends[1], "data": {"id": id_}})
    return rows


class Traversal:
    """`$a edge $b`, with what is said of both nodes, and what it means."""

    def __init__(self, random: Random) -> None:
        self.word = random.choice(list(ENDS))
        self.left, self.right = (random.choice((None, *SETS)) for _ in range(2))
        self.both = random.random() < 0.3
        self.form = random.choice(("pairs", "pairs", "edges", "hops", "counted"))
        self.most = random.randint(1, 3)

    @property
    def query(self) -> str:
        word = f"<{self.word}>" if self.both else self.word
        if self.form == "edges":
            word = f"$e:{word}"
        if self.form == "hops":
            word = f"{word}{{1,{self.most}}}"
        said = [f"${v}: {t}" for v, t in (("a", self.left), ("b", self.right)) if t]
        shown = "type($a) as s, $a.@id as i, type($b) as t, $b.@id as j"
        if self.form == "counted":
            shown = "type($a) as s, $a.@id as i, count($b) as n"
        if self.form == "edges":
            shown += ", $e.@id as e"
        return f"query q() {{ match {{ {' '.join(said)} $a {word} $b }} return {{ {shown} }} }}"

    def expected(self, edges: list[Edge]) -> list[tuple[object, ...]] | None:
        """The rows in no order; None for a clause that no node can satisfy."""
        source, target = (SETS[end] for end in ENDS[self.word])
        left, right = (SETS.get(t or "", set(NODES)) for t in (self.left, self.right))
        steps = [(s, d, id_) for name, id_, s, d in edges if name in self.word.split("|")]
        back = [(d, s, id_) for s, d, id_ in steps]
        if self.both:
            if not source & target or not (left & (source | target) and right & (source | target)):
                return None
            steps = list(dict.fromkeys([*steps, *back]))
        elif not (left & source and right & target):
            if not (left & target and right & source):
                return None
            steps = back
        if self.form == "hops" and self.most > 1:
            if not source & target:
                return None
            steps = [(a, b, "") for a, b in reached(steps, self.most)]
        found = [(a, b, e) for a, b, e in steps if a[0] in left and b[0] in right]
        if self.form == "edges":
            return [(*a, *b, e) for a, b, e in found]
        pairs = sorted({(a, b) for a, b, _ in found})
        if self.form != "counted":
            return [(*a, *b) for a, b in pairs]
        starts = sorted({a for a, _ in pairs})
        return [(*a, sum(one == a for one, _ in pairs)) for a in starts]


def reached(steps: list[tuple[Node, Node, str]], most: int) -> set[tuple[Node, Node]]:
    found: set[tuple[Node, Node]] = {(a, b) for a, b, _ in steps if a == b}
    for start in {a for a, _, _ in steps}:
        seen, frontier = {start}, {start}
        for _ in range(most):
            frontier = {b for a, b, _ in steps if a in frontier} - seen
            seen |= frontier
            found |= {(start, node) for node in frontier}
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_traversal_finds_what_it_says(tmp_path: Path, seed: int) -> None:
    random = Random(seed)  # noqa: S311 - for tests, not for secrets
    edges = drawn(random)
    graph = og.init(tmp_path / "graph", SCHEMA)
    graph.load(rows_of(edges), mode="append")
    refused = 0
    ways: tuple[Expansion, ...] = ("csr", "indexed")
    for _, expansion in product(range(TRAVERSALS), ways):
        traversal = Traversal(random)
        expected = traversal.expected(edges)
        try:
            found = graph.query(traversal.query, expansion=expansion)
        except TypeCheckError:
            assert expected is None, traversal.query
            refused += 1
            continue
        assert expected is not None, traversal.query
        rows = sorted(tuple(row.values()) for row in found.rows)
        assert rows == sorted(expected), (traversal.query, expansion)
    assert refused
