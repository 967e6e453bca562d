"""What queries cost: one look at the version when nothing changed, and little when little did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

import omnigraph as og
from omnigraph.read.access import entities
from omnigraph.read.access import topology_cache as topologies_module
from omnigraph.read.access.column_cache import columns
from omnigraph.read.access.csr import Topology
from omnigraph.read.access.topology_cache import topologies
from omnigraph.read.output.result import Result
from omnigraph.storage.objects.meter import RequestMeter, measure
from tests import profile
from tests.write.writing import compact_all, mutate, table_of

pytestmark = pytest.mark.slow

SCHEMA = """\
node Person { name: String @key  age: I32? }
node City { name: String @key }
edge Knows: Person -> Person { since: Date? }
edge LivesIn: Person -> City
"""
PEOPLE = 30
QUERIES = (
    "match { $p: Person } return { $p.name, $p.age } order { $p.age desc }",
    'match { $p: Person { name: "p3" } $p knows $q } return { $q.name }',
    "match { $p: Person $p.age > 3 $p knows{1,3} $q $q livesIn $c } return { $c.name, $q.age }",
    "match { $p: Person $p $k:knows $q $k.since is null } return { $p.name, $q.name, $k.@id }",
    "match { $p: Person optional { $p livesIn $c } } return { $p, $c.name }",
    "match { $p: Person count { $p knows $q } >= 1 not { $p livesIn $c } } return { $p.name }",
)
DEGREES = """
query out() { match { $p: Person $p $k:knows $q } return { $p.name, count($q) as n } }
query into() { match { $p: Person $q $k:knows $p } return { $p.name, count($q) as n } }
query friends() { match { $p: Person $p <knows> $q } return { $p.name, count($q) as n } }
query people() { match { $p: Person } return { $p.name, $p.age } }
"""
CHANGE = """
query age($n: String, $a: I32) { update Person set { age: $a } where name = $n }
query since($id: String) { update Knows set { since: date("2024-01-31") } where @id = $id }
"""
Degrees = dict[str, int]


@pytest.fixture(params=["local", "s3"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a graph lies: on disk, and on a real S3-compatible server."""
    if request.param == "local":
        return str(tmp_path / "graph")
    return f"{request.getfixturevalue('s3_bucket')}/graph"


@pytest.fixture
def graph(root: str) -> og.Graph:
    made = og.init(root, SCHEMA)
    made.load(_lines(), mode="append")
    return made


def _lines() -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = [
        {"type": "Person", "data": {"name": f"p{n}", "age": n % 7}} for n in range(PEOPLE)
    ]
    lines += [{"type": "City", "data": {"name": name}} for name in ("x", "y")]
    lines += [
        {"edge": "Knows", "from": f"p{n}", "to": f"p{(n * 7 + 1) % PEOPLE}"} for n in range(PEOPLE)
    ]
    lines += [{"edge": "LivesIn", "from": f"p{n}", "to": "xy"[n % 2]} for n in range(0, PEOPLE, 2)]
    return lines


def _text(body: str) -> str:
    return f"query q() {{ {body} }}"


def _requests(action: Callable[[], object]) -> RequestMeter:
    with measure() as meter:
        action()
    return meter


# -- nothing changed -----------------------------------------------------------------------


@pytest.mark.parametrize("body", QUERIES)
def test_asking_again_costs_one_probe(graph: og.Graph, body: str) -> None:
    first = graph.query(_text(body))
    again: list[Result] = []
    cost = _requests(lambda: again.append(graph.query(_text(body))))
    assert again[0].rows == first.rows
    # On a local disk Lance lists past its own counters.
    wanted = {} if graph.location.is_local else {"list": 1}
    assert +cost.by_operation == wanted, str(cost)


@pytest.mark.parametrize("body", QUERIES[:3])
def test_an_old_commit_costs_no_table_data(graph: og.Graph, body: str) -> None:
    commit = graph.query(_text(body)).commit_id
    graph.query(_text(body), snapshot=commit)
    cost = _requests(lambda: graph.query(_text(body), snapshot=commit))
    # Finding the commit is all there is to it: its schema comes with it.
    found = _requests(lambda: graph.snapshot(commit=commit))
    assert cost.by_operation == found.by_operation, str(cost)


def test_a_branch_shares_what_its_base_has_read(graph: og.Graph) -> None:
    for body in QUERIES:
        graph.query(_text(body))
    graph.branches.create("work")
    before = columns.use().misses, topologies.use().misses
    for body in QUERIES:
        assert len(graph.query(_text(body), branch="work")) == len(graph.query(_text(body)))
    assert (columns.use().misses, topologies.use().misses) == before
    cost = _requests(lambda: graph.query(_text(QUERIES[2]), branch="work"))
    assert cost.gets <= 1, str(cost)


def test_a_branch_reads_only_what_it_changed(graph: og.Graph) -> None:
    for body in QUERIES:
        graph.query(_text(body))
    graph.branches.create("work")
    mutate(graph, 'insert City { name: "z" }', branch="work")
    cities = _text("match { $c: City } return { $c.name } order { $c.name }")
    assert [row["c.name"] for row in graph.query(cities, branch="work")] == ["x", "y", "z"]
    before = columns.use().misses, topologies.use().misses
    graph.query(_text(QUERIES[1]), branch="work")
    assert (columns.use().misses, topologies.use().misses) == before
    assert [row["c.name"] for row in graph.query(cities)] == ["x", "y"]


@pytest.mark.parametrize(
    ("shown", "clause"),
    [("$p.age", ""), ("$p.name, $p.age, $p", ""), ("count($p) as n", "$p.age >= 0")],
)
def test_a_point_lookup_finds_and_fetches_in_one_request(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch, shown: str, clause: str
) -> None:
    """As it is in a large table, whose columns are not read as a whole."""
    monkeypatch.setattr(entities, "SMALL_TABLE", 0)
    monkeypatch.setattr(entities, "CHEAP_IDS", 0)
    monkeypatch.setattr(entities, "ROW_BYTES", 0)
    match = f"match {{ $p: Person {{ name: $n }} {clause} }}"
    text = f"query q($n: String) {{ {match} return {{ {shown} }} }}"

    def ask(name: str) -> list[dict[str, Any]]:
        return graph.query(text, params={"n": name}).rows

    ask("p1")
    for name in ("p2", "p3"):
        cost = _requests(partial(ask, name))
        assert cost.gets == 1, str(cost)
        assert _requests(partial(ask, name)).gets == 0
        assert len(ask(name)) == 1
    assert _requests(partial(ask, "nobody")).gets == 0


def test_rows_of_a_small_table_are_read_one_by_one_at_first(graph: og.Graph) -> None:
    text = "query q($n: String) { match { $p: Person { name: $n } } return { $p.age } }"
    for name in ("p1", "p2"):
        assert graph.query(text, params={"n": name}).rows == [{"p.age": int(name[1:])}]
    assert not columns.holds(table_of(graph, "node:Person"), "age")
    for n in range(3, 12):
        assert graph.query(text, params={"n": f"p{n}"}).rows == [{"p.age": n % 7}]
    assert columns.holds(table_of(graph, "node:Person"), "age")
    asked = _requests(lambda: graph.query(text, params={"n": "p20"}))
    assert asked.gets == 0, str(asked)


# -- a little changed ------------------------------------------------------------------------


class Spy:
    """Counts how topologies came to be."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: Counter[str] = Counter()
        built, grown = topologies_module._built, Topology.grown

        def spy_built(*args: Any) -> Topology:
            self.seen["built"] += 1
            return built(*args)

        def spy_grown(itself: Topology, *args: Any) -> Topology:
            self.seen["grown"] += 1
            return grown(itself, *args)

        monkeypatch.setattr(topologies_module, "_built", spy_built)
        monkeypatch.setattr(Topology, "grown", spy_grown)


def _ask(graph: og.Graph, name: str, key: str = "n", **options: Any) -> Degrees:
    rows = graph.query(DEGREES, name, **options).rows
    assert len({row["p.name"] for row in rows}) == len(rows)
    return {row["p.name"]: row[key] for row in rows}


def test_added_edges_grow_a_topology(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("out", "into", "friends"):
        _ask(graph, name, expansion="csr")
    spy = Spy(monkeypatch)
    before = {name: _ask(graph, name, expansion="csr") for name in ("out", "into", "friends")}
    mutate(graph, 'insert Knows { from: "p0", to: "p5" } insert Knows { from: "p0", to: "p5" }')
    assert _ask(graph, "out", expansion="csr")["p0"] == before["out"]["p0"] + 2
    assert _ask(graph, "into", expansion="csr")["p5"] == before["into"].get("p5", 0) + 2
    assert _ask(graph, "friends", expansion="csr")["p0"] == before["friends"]["p0"] + 1
    assert spy.seen == {"grown": 1}


def test_new_nodes_with_their_edges_grow_a_topology(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _ask(graph, "out", expansion="csr")
    spy = Spy(monkeypatch)
    mutate(graph, 'insert Person { name: "new" } insert Knows { from: "new", to: "p0" }')
    assert _ask(graph, "out", expansion="csr") == {**before, "new": 1}
    assert spy.seen == {"grown": 1}


def test_updated_nodes_leave_a_topology_alone(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _ask(graph, "out", expansion="csr")
    spy = Spy(monkeypatch)
    mutate(graph, 'update Person set { age: 99 } where name = "p0"')
    assert _ask(graph, "out", expansion="csr") == before
    assert not spy.seen
    assert _ask(graph, "people", "p.age")["p0"] == 99


# -- whatever happens ------------------------------------------------------------------------


class History:
    """Random changes to people and who knows whom, kept in plain sets too."""

    def __init__(self, graph: og.Graph, seed: int) -> None:
        self.graph = graph
        self.rng = Random(seed)  # noqa: S311 - for tests, not for secrets
        self.people: dict[str, int | None] = {}
        self.edges: dict[str, tuple[str, str]] = {}
        self.made = 0

    def add(self) -> None:
        lines: list[dict[str, Any]] = []
        for _ in range(self.rng.randint(1, 4)):
            self.made += 1
            name, age = f"p{self.made}", self.rng.choice((None, 1, 2, 3))
            self.people[name] = age
            lines.append({"type": "Person", "data": {"name": name, "age": age}})
        lines += [self._edge() for _ in range(self.rng.randint(0, 6))]
        self.graph.load(lines, mode="append")

    def connect(self) -> None:
        if self.people:
            self.graph.load([self._edge() for _ in range(self.rng.randint(1, 3))], mode="append")

    def update(self) -> None:
        for name in self.rng.sample(list(self.people), min(2, len(self.people))):
            age = self.people[name] = self.rng.randint(10, 20)
            self.graph.mutate(CHANGE, "age", {"n": name, "a": age})

    def touch_edges(self) -> None:
        for id_ in self.rng.sample(list(self.edges), min(2, len(self.edges))):
            self.graph.mutate(CHANGE, "since", {"id": id_})

    def disconnect(self) -> None:
        for id_ in self.rng.sample(list(self.edges), min(2, len(self.edges))):
            del self.edges[id_]
            mutate(self.graph, f'delete Knows where @id = "{id_}"')

    def remove(self) -> None:
        for name in self.rng.sample(list(self.people), min(1, len(self.people))):
            del self.people[name]
            self.edges = {id_: ends for id_, ends in self.edges.items() if name not in ends}
            mutate(self.graph, f'delete Person where name = "{name}"')

    def come_back(self) -> None:
        """A person who left returns under the same name, as somebody else's row."""
        names = [f"p{n}" for n in range(1, self.made + 1) if f"p{n}" not in self.people]
        if names:
            name = self.rng.choice(names)
            self.people[name] = 7
            mutate(self.graph, f'insert Person {{ name: "{name}", age: 7 }}')

    def overwrite(self) -> None:
        lines: list[dict[str, Any]] = [
            {"type": "Person", "data": {"name": name, "age": age}}
            for name, age in self.people.items()
        ]
        self.rng.shuffle(lines)
        edges = [
            {"edge": "Knows", "from": source, "to": target, "data": {"id": id_}}
            for id_, (source, target) in self.edges.items()
        ]
        if lines:
            self.graph.load(lines + edges, mode="overwrite")

    def compact(self) -> None:
        try:
            compact_all(self.graph)
        except AssertionError:
            return

    def _edge(self) -> dict[str, Any]:
        id_ = f"e{len(self.edges)}-{self.rng.randrange(10**9)}"
        ends = self.rng.choice(list(self.people)), self.rng.choice(list(self.people))
        self.edges[id_] = ends
        return {"edge": "Knows", "from": ends[0], "to": ends[1], "data": {"id": id_}}

    def check(self) -> None:
        """What the graph says of everybody's degrees is what the sets say."""
        ends = self.edges.values()
        friends: dict[str, set[str]] = {}
        for source, target in ends:
            friends.setdefault(source, set()).add(target)
            friends.setdefault(target, set()).add(source)
        for way in ("csr", "indexed"):
            assert _ask(self.graph, "out", expansion=way) == Counter(end[0] for end in ends)
            assert _ask(self.graph, "into", expansion=way) == Counter(end[1] for end in ends)
            found = _ask(self.graph, "friends", expansion=way)
            assert found == {name: len(others) for name, others in friends.items()}
        assert _ask(self.graph, "people", "p.age") == self.people


CHANGES = (
    History.add,
    History.connect,
    History.connect,
    History.update,
    History.touch_edges,
    History.disconnect,
    History.remove,
    History.come_back,
    History.overwrite,
    History.compact,
)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(profile.CHOSEN.dear))
def test_degrees_through_any_history(seed: int, tmp_path: Path) -> None:
    history = History(og.init(tmp_path / "graph", SCHEMA), seed)
    history.add()
    history.check()
    for _ in range(12):
        history.rng.choice(CHANGES)(history)
        # At times several changes lie between two queries.
        if history.rng.random() < 0.7:
            history.check()
    history.check()
