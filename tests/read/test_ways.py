"""Hops, conditions on the way, and ways, against a model that walks row by row."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import QueryError, ResourceLimit
from omnigraph.read.access import least_costs
from omnigraph.read.plan.physical import Expansion
from tests.profile import CHOSEN
from tests.read.model import freeze
from tests.read.way_model import Edge, Net, Walks, Way

SCHEMA = """\
node Place { name: String @key  rank: I32? }
node Limit { name: String @key  rank: I32 }
edge Road: Place -> Place { open: Bool?  km: I32? }
"""
LIMITS = {"low": 1, "high": 3}
BOUNDS: tuple[tuple[int, int | None], ...] = (
    (0, 1), (0, 3), (0, None), (1, 1), (1, 2), (1, None), (2, 2), (2, 3), (2, None), (3, 5),
)  # fmt: skip


@dataclass(frozen=True)
class Rule:
    """A condition of `each`: as it is written, and as it is meant."""

    text: str
    uses_limit: bool = False

    def holds(self, net: Net, limit: int | None, edge: Edge, node: str) -> bool:
        """Whether a step may be walked."""
        rank = net.nodes[node]
        match self.text:
            case "":
                return True
            case "$k.open = true":
                return edge.open is True
            case "$n.rank > 1":
                return rank is not None and rank > 1
            case "$k.open = true  $n.rank <= $l.rank":
                return (
                    edge.open is True and rank is not None and limit is not None and rank <= limit
                )
            case "any { $k.km < 3 } or { $n road $n }":
                loops = any(one.src == one.dst == node for one in net.edges)
                return (edge.km is not None and edge.km < 3) or loops
        raise AssertionError(self.text)


RULES = (
    Rule(""),
    Rule("$k.open = true"),
    Rule("$n.rank > 1"),
    Rule("$k.open = true  $n.rank <= $l.rank", uses_limit=True),
    Rule("any { $k.km < 3 } or { $n road $n }"),
)


def drawn_net(draw: random.Random) -> Net:
    """Few nodes and many edges: loops, parallel edges, ties, dead ends."""
    names = [f"{letter}{number}" for number, letter in enumerate("qweasdzxc"[: draw.randint(2, 8)])]
    nodes = {name: draw.choice((None, 0, 1, 2, 3)) for name in names}
    ids = [f"{number:02}" for number in range(draw.randint(1, 16))]
    draw.shuffle(ids)
    edges = tuple(
        Edge(
            id_,
            draw.choice(names),
            draw.choice(names),
            draw.choice((True, True, False, None)),
            draw.choice((0, 1, 1, 2, 5)),
        )
        for id_ in ids
    )
    return Net(nodes, edges)


def made(path: Path, net: Net) -> og.Graph:
    """A graph of a net, in several commits so that positions are not in the order of ids."""
    graph = og.init(path, SCHEMA)
    nodes = [{"type": "Place", "data": {"name": n, "rank": r}} for n, r in net.nodes.items()]
    limits = [{"type": "Limit", "data": {"name": n, "rank": r}} for n, r in LIMITS.items()]
    edges = [
        {
            "edge": "Road",
            "from": one.src,
            "to": one.dst,
            "data": {"id": one.id, "open": one.open, "km": one.km},
        }
        for one in net.edges
    ]
    graph.load([*nodes[::-1], *limits], mode="append")
    graph.load(edges, mode="append")
    return graph


@dataclass(frozen=True)
class Asked:
    """A query about walks, and what it has to say."""

    way: str
    bounds: tuple[int, int | None]
    rule: Rule
    kind: str
    ends: str
    """Which ends are bound before: `left`, `right`, `both`, or `none`."""

    @classmethod
    def drawn(cls, draw: random.Random) -> Asked:
        """Any query."""
        kind = draw.choice(("reach", "hops", "one", "every", "by"))
        bounds = draw.choice([found for found in BOUNDS if kind != "by" or found[0] < 2])
        way = draw.choice(("out", "in", "both"))
        return cls(
            way, bounds, draw.choice(RULES), kind, draw.choice(("left", "right", "both", ""))
        )

    @property
    def text(self) -> str:
        """The query."""
        left, right = ("$b", "$a") if self.way == "in" else ("$a", "$b")
        edge = "<road>" if self.way == "both" else "road"
        named = "" if self.kind == "reach" else "every $w:" if self.kind == "every" else "$w:"
        least, most = self.bounds
        hops = f"{{{least},{'' if most is None else most}}}"
        clauses = [f"{left} {named}{edge}{hops} {right}"]
        if self.rule.text or self.kind == "by":
            inside = self.rule.text or "$k.km is not null"
            clauses[0] += f" each $k, $n {{ {inside} }}"
        if self.kind == "by":
            clauses[0] += " by $k.km"
        if self.rule.uses_limit:
            clauses.append("$l: Limit")
        if self.ends in ("left", "both"):
            clauses.append(f"{left}: Place")
        if self.ends in ("right", "both"):
            clauses.append(f"{right}: Place")
        columns = ["$a.name as a", "$b.name as b"]
        if self.rule.uses_limit:
            columns.append("$l.name as l")
        if self.kind != "reach":
            columns.append("$w.@hops as hops")
        if self.kind in ("one", "every", "by"):
            columns += ["$w.name as nodes", "$w.@edges as edges", "$w.rank as ranks"]
        if self.kind == "by":
            columns.append("$w.@cost as cost")
        return f"query q() {{ match {{ {'  '.join(clauses)} }} return {{ {', '.join(columns)} }} }}"

    def rows(self, net: Net) -> list[dict[str, Any]]:
        """What it returns, in any order."""
        found: list[dict[str, Any]] = []
        limits = LIMITS.items() if self.rule.uses_limit else [("", None)]
        for name, limit in limits:
            rule = partial(self.rule.holds, net, limit)
            # Written from right to left, it is the walk out with its ends called otherwise.
            walks = Walks(net, "both" if self.way == "both" else "out", rule)
            for start in net.nodes:
                for way in self._ways(walks, start):
                    row = self._row(net, way)
                    found.append({**row, "l": name} if name else row)
        return found

    def _ways(self, walks: Walks, start: str) -> list[Way]:
        if self.kind == "by":
            return list(
                walks.cheapest(start, *self.bounds, lambda edge, _: float(edge.km or 0)).values()
            )
        each = walks.shortest(start, *self.bounds).values()
        if self.kind == "every":
            return [way for ways in each for way in ways]
        return [min(ways, key=lambda way: way.ties) for ways in each]

    def _row(self, net: Net, way: Way) -> dict[str, Any]:
        left, right = way.nodes[0], way.nodes[-1]
        row: dict[str, Any] = {"a": left, "b": right}
        if self.way == "in":
            row = {"a": right, "b": left}
        if self.kind != "reach":
            row["hops"] = way.hops
        if self.kind in ("one", "every", "by"):
            row["nodes"], row["edges"] = list(way.nodes), list(way.edges)
            row["ranks"] = [net.nodes[node] for node in way.nodes]
        if self.kind == "by":
            row["cost"] = way.cost
        return row


def _sorted(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr(freeze({name: row[name] for name in sorted(row)})) for row in rows)


def check(graph: og.Graph, net: Net, asked: Asked, expansion: Expansion) -> None:
    """Compare what the engine says."""
    found = graph.query(asked.text, expansion=expansion).rows
    wanted = asked.rows(net)
    assert _sorted(found) == _sorted(wanted), f"{asked.text}\n{expansion}\n{net}"


@pytest.mark.parametrize("seed", range(CHOSEN.seeds // 4))
def test_walks_are_those_of_the_model(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 - no secret: the same nets each time
    net = drawn_net(draw)
    graph = made(tmp_path / "graph", net)
    for number in range(CHOSEN.costly):
        expansion: Expansion = ("auto", "indexed", "csr")[number % 3]
        check(graph, net, Asked.drawn(draw), expansion)


@pytest.mark.parametrize("seed", range(4))
def test_the_cheapest_ways_are_the_same_without_scipy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    draw = random.Random(100 + seed)  # noqa: S311 - no secret: the same nets each time
    net = drawn_net(draw)
    graph = made(tmp_path / "graph", net)
    monkeypatch.setattr(least_costs, "has_extra", lambda _: False)
    # It must not be what finds them.
    monkeypatch.setattr(least_costs, "_scipy", None)
    for way in ("out", "in", "both"):
        for bounds in ((0, None), (1, None)):
            check(graph, net, Asked(way, bounds, RULES[seed], "by", "both"), "csr")


@pytest.mark.parametrize("edge", ["road", "<road>"])
def test_the_cheapest_way_between_two_of_many_under_a_condition(
    ladder: og.Graph, edge: str
) -> None:
    found = ladder.query(
        f"""query q() {{
            match {{
                $a: Place {{ name: "p0000" }}  $b: Place {{ name: "p0006" }}
                $a $w:{edge}{{0,}} $b each $k, $n {{ $k.km > 1 }} by $k.km
            }}
            return {{ $w.@cost as cost, $w.name as names }}
        }}"""
    ).rows
    assert found == [{"cost": 4.0, "names": ["p0000", "p0003", "p0006"]}]


# -- far more ways than are wanted -------------------------------------------------------------

MANY = 600


@pytest.fixture(scope="module")
def ladder(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """Places one after the other, each joined to the next three: 2^200 shortest ways at the end."""
    graph = og.init(tmp_path_factory.mktemp("ladder") / "graph", SCHEMA)
    nodes = [{"type": "Place", "data": {"name": f"p{n:04}", "rank": n}} for n in range(MANY)]
    edges = [
        {"edge": "Road", "from": f"p{n:04}", "to": f"p{n + far:04}", "data": {"km": far % 2 + 1}}
        for n in range(MANY)
        for far in (1, 2, 3, 3)
        if n + far < MANY
    ]
    graph.load([*nodes, *edges], mode="append")
    return graph


def test_a_few_ways_of_very_many(ladder: og.Graph) -> None:
    """All of them together would take more than there is; the pages of the first few fit."""
    text = (
        "query q() {{ match {{ $a: Place $a {} $b }} "
        "return {{ $a.name as a, $b.name as b, {} }} {} }}"
    )
    for walk in ("every $w:road{1,}", "$w:road{1,}", "$w:<road>{0,}"):
        shown = "$w.name as way, $w.@edges as edges, $w.@hops as hops"
        pages = [
            ladder.query(text.format(walk, shown, f"limit 10 offset {at}"), max_bytes=16 << 20).rows
            for at in (0, 10)
        ]
        whole = ladder.query(text.format(walk, shown, "limit 20"), max_bytes=16 << 20).rows
        assert [row for page in pages for row in page] == whole
        for row in whole:
            assert [row["way"][0], row["way"][-1]] == [row["a"], row["b"]]
            assert len(row["edges"]) == row["hops"] == len(row["way"]) - 1


def test_the_longest_of_all_ways(ladder: og.Graph) -> None:
    """An order looks at every way, and keeps a few."""
    text = (
        "query q() { match { $a: Place $a $w:road{1,} $b } "
        "return { $a.rank as a, $b.rank as b, $w.@hops as hops, $w.rank as way } "
        "order { $w.@hops desc } limit 3 }"
    )
    rows = ladder.query(text, max_bytes=24 << 20).rows
    assert [row["hops"] for row in rows] == [200, 200, 200]
    assert all(row["way"][0] == row["a"] and row["way"][-1] == row["b"] for row in rows)


def test_all_shortest_ways_between_two(ladder: og.Graph) -> None:
    text = (
        'query q() {{ match {{ $a: Place {{ name: "p0000" }} $b: Place {{ name: "{}" }} '
        "$a every $w:road{{1,}} $b }} return {{ $w.@edges as edges }} {} }}"
    )
    some = ladder.query(text.format("p0030", "")).rows
    assert len({tuple(row["edges"]) for row in some}) == 2**10
    last = ladder.query(text.format("p0597", "limit 10"), max_bytes=32 << 20).rows
    assert len({tuple(row["edges"]) for row in last}) == 10
    with pytest.raises(ResourceLimit, match="bytes at once"):
        ladder.query(text.format("p0597", ""), max_bytes=32 << 20)


def test_a_search_ends_when_nobody_waits(ladder: og.Graph) -> None:
    text = (
        'query q() { match { $a: Place { name: "p0000" } $a every $w:road{1,} $b } '
        "return { count($w) as n } }"
    )
    with pytest.raises(ResourceLimit, match="timeout"):
        ladder.query(text, timeout=0.2, max_bytes=64 << 30)


@pytest.mark.parametrize("weight", ["$k.km", "0 - $n.rank"])
def test_a_weight_that_is_none(ladder: og.Graph, weight: str) -> None:
    ladder.branches.create("bad")
    try:
        ladder.mutate(
            'query m() { update Road set { km: null } where from = "p0003" }', branch="bad"
        )
        text = (
            'query q() {{ match {{ $a: Place {{ name: "p0000" }} '
            "$a $w:road{{1,}} $b each $k, $n by {} }} return {{ $w.@cost }} }}"
        )
        with pytest.raises(QueryError, match="a weight is a number, 0 or more") as refused:
            ladder.query(text.format(weight), branch="bad")
        assert refused.value.code == "query_error"
    finally:
        ladder.branches.delete("bad")


@pytest.mark.parametrize("expansion", ["auto", "csr", "indexed"])
@pytest.mark.parametrize(
    "walk",
    [
        "$a road{1,3} $a",
        "$a <road>{1,} $a",
        "$a $w:road{1,} $a",
        "$a $w:road{1,} $a each $k, $n { $k.km > 0 } by $k.km",
        "$a every $w:road{1,3} $a",
    ],
)
def test_a_node_leads_to_itself_by_a_loop(tmp_path: Path, walk: str, expansion: Expansion) -> None:
    graph = og.init(tmp_path / "g.omni", SCHEMA)
    places = " ".join(f'insert Place {{ name: "{name}" }}' for name in "abc")
    roads = " ".join(
        f'insert Road {{ from: "{one}", to: "{other}", km: 2 }}'
        for one, other in ("aa", "ab", "ba", "cc")
    )
    graph.mutate(f"{places} {roads}")
    query = f"match {{ $a: Place  {walk} }} return {{ $a.name as name }} order {{ name }}"
    assert graph.query(query, expansion=expansion)["name"] == ["a", "c"]
