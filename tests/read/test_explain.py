"""Explanations: what is foreseen, what happened, and that both speak of one plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import ParamError, ResourceLimit, TypeCheckError
from omnigraph.read import queries
from omnigraph.read.access.column_cache import columns
from omnigraph.read.access.topology_cache import topologies
from omnigraph.read.plan import explain, planner
from omnigraph.read.plan.explain import Explanation
from omnigraph.read.plan.physical import PhysicalPlan
from omnigraph.wire.results import ExplanationBody
from tests.ferry_graph import QUERIES, make_ferries
from tests.wire.plain import plain

ALL = """\
query all($n: I32) {
    match {
        $p: Port
        $p.berths >= $n
        $p.services contains "fuel"
        $p route $q
        not {
            $t callsAt $q
            $t.kind = "tug"
        }
        any { $q.berths = 1 } or { $q route $z }
        optional { $s callsAt $q }
    }
    return { $q.name as name, count($s) as ships }
    order { ships desc, name }
    limit 3
}
"""


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return make_ferries(tmp_path / "f.omni")


def shape(explanation: Explanation) -> list[tuple[int, str, str]]:
    return [(found.depth, found.name, found.detail) for found in explanation.operators]


def named(explanation: Explanation, name: str) -> dict[str, Any]:
    found = next(found for found in explanation.to_json()["operators"] if found["operator"] == name)
    return dict(found)


def test_the_plan_and_the_run_have_the_same_operators(graph: og.Graph) -> None:
    planned = graph.explain(ALL)
    ran = graph.explain(ALL, params={"n": 1}, analyze=True)
    assert shape(planned) == shape(ran)
    assert [name for _, name, _ in shape(planned)] == [
        *("scan", "expand", "anti-join", "expand", "union", "branch", "filter", "branch", "expand"),
        *("optional", "expand", "aggregate", "order"),
    ]
    text = QUERIES.read_text(encoding="utf-8")
    given = {"reachable": {"from": "ARD"}, "calls": {"code": "ARD"}, "port": {"code": "ARD"}}
    for query in ("ports", "reachable", "calls", "forgotten", "port", "fleet"):
        params = given.get(query)
        planned, ran = (
            graph.explain(text, query, params, analyze=analyze) for analyze in (False, True)
        )
        assert shape(planned) == shape(ran)


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        ("return { $p.name }", ["project"]),
        ("return { $p.name } limit 2", ["limit", "project"]),
        ("return { $p.name } order { $p.name } limit 2 offset 1", ["order", "project"]),
        ("return distinct { $p.berths }", ["project", "distinct"]),
        ("return distinct { $p.berths as b } order { b }", ["project", "distinct", "order"]),
        ("return { count($p) as n }", ["aggregate"]),
        ("return { $p.berths as b, count($p) as n } limit 1", ["aggregate", "limit"]),
    ],
)
def test_what_happens_after_the_rows_are_bound(
    graph: og.Graph, tail: str, expected: list[str]
) -> None:
    query = f"query q() {{ match {{ $p: Port }} {tail} }}"
    planned, ran = graph.explain(query), graph.explain(query, analyze=True)
    assert [name for _, name, _ in shape(planned)][1:] == expected
    assert shape(planned) == shape(ran)
    assert ran.total is not None
    assert ran.operators[-1].rows == ran.total.rows == len(graph.query(query))


def test_a_plan_reads_nothing_of_the_data(graph: og.Graph) -> None:
    before = columns.use().misses, topologies.use().misses
    explanation = graph.explain(ALL)
    assert (columns.use().misses, topologies.use().misses) == before
    assert not explanation.is_analyzed
    assert explanation.total is None
    assert explanation.result is None
    scan = named(explanation, "scan")
    assert (scan["entities"], scan["estimated_rows"]) == (5, 5)
    expand = named(explanation, "expand")
    assert (expand["edges"], expand["expansion"]) == (5, "csr (to build)")


def test_a_run_tells_what_happened(graph: og.Graph) -> None:
    first = graph.explain(ALL, params={"n": 1}, analyze=True)
    assert first.is_analyzed
    assert first.result is not None
    assert first.result.rows == graph.query(ALL, params={"n": 1}).rows
    expand = named(first, "expand")
    assert expand["topology"] == "built"
    assert expand["hops"] == [{"sources": 2, "expansion": "csr"}]
    assert all(found.seconds is not None and found.seconds >= 0 for found in first.operators)
    assert first.total is not None
    assert (first.total.requests or 0) > 0
    again = graph.explain(ALL, params={"n": 1}, analyze=True)
    assert named(again, "expand")["topology"] == "cached"
    assert named(graph.explain(ALL), "expand")["expansion"] == "csr (cached)"
    assert sum(found.notes["cache_misses"] for found in again.operators) == 0
    assert again.total is not None
    assert again.total.requests == 0


def test_the_expansion_that_was_asked_for(graph: og.Graph) -> None:
    planned = graph.explain(ALL, expansion="indexed")
    assert named(planned, "expand")["expansion"] == "indexed"
    ran = graph.explain(ALL, params={"n": 1}, analyze=True, expansion="indexed")
    assert named(ran, "expand")["hops"] == [{"sources": 2, "expansion": "indexed"}]
    assert "hop from 2 nodes: indexed" in ran.text


def test_a_walk_lists_its_hops(graph: og.Graph) -> None:
    text = QUERIES.read_text(encoding="utf-8")
    ran = graph.explain(text, "reachable", {"from": "ARD"}, analyze=True)
    assert [hop["sources"] for hop in named(ran, "expand")["hops"]] == [1, 2, 1]
    assert "    hop from 2 nodes: csr\n" in ran.text


def test_keys_are_looked_up_and_other_filters_decided_in_memory(graph: og.Graph) -> None:
    scan = named(
        graph.explain(
            'query q() { match { $p: Port { code: "ARD" } $p.berths > 1 } return { $p.name } }'
        ),
        "scan",
    )
    assert (scan["access"], scan["estimated_rows"]) == ("lookup by id", 1)
    assert scan["in_memory"] == ["$p.berths > 1"]
    every = named(graph.explain("query q() { match { $p: Port } return { $p.name } }"), "scan")
    assert every["access"] == "every row"


def test_a_key_of_several_members_is_looked_up_when_all_are_given(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", "node Slot { room: String  hour: I32  @key(room, hour) }")
    slots = [{"type": "Slot", "data": {"room": "A", "hour": hour}} for hour in (9, 10)]
    graph.load(slots, mode="append")
    both = "query q($r: String) { match { $s: Slot { room: $r, hour: 9 } } return { $s.hour } }"
    scan = named(graph.explain(both, params={"r": "A"}), "scan")
    assert (scan["access"], scan["in_memory"]) == ("lookup by id", [])
    assert graph.query(both, params={"r": "A"}).rows == [{"s.hour": 9}]
    assert graph.query(both, params={"r": "B"}).rows == []
    one = 'query q() { match { $s: Slot { room: "A" } } return { $s.hour } }'
    assert named(graph.explain(one), "scan")["access"] != "lookup by id"


def test_filters_of_a_large_table_are_pushed_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnigraph.read.access.entities.MANY", 3)
    graph = og.init(tmp_path / "g.omni", "node N { name: String @key  x: I32  tags: [String]? }")
    rows = [{"type": "N", "data": {"name": f"n{n}", "x": n, "tags": ["a"]}} for n in range(5)]
    graph.load(rows, mode="append")
    query = 'query q() { match { $n: N $n.x < 2 $n.tags contains "a" } return { $n.name } }'
    ran = graph.explain(query, analyze=True)
    scan = named(ran, "scan")
    assert (scan["access"], scan["rows"]) == ("scan", 2)
    assert (scan["pushed"], scan["in_memory"]) == (["$n.x < 2"], ['$n.tags contains "a"'])
    assert "    pushed down: $n.x < 2\n" in ran.text


def test_filters_of_a_small_table_look_at_whole_columns(graph: og.Graph) -> None:
    scan = named(graph.explain(ALL), "scan")
    assert (scan["access"], scan["pushed"]) == ("whole columns", [])
    assert scan["in_memory"] == ["$p.berths >= $n:I32", '$p.services contains "fuel"']


def test_text_and_json(graph: og.Graph) -> None:
    text = QUERIES.read_text(encoding="utf-8")
    planned = graph.explain(text, "forgotten")
    commit = graph.snapshot().commit_id
    assert str(planned) == planned.text == repr(planned)
    assert planned.text == (
        f"plan of forgotten on branch main, commit {commit}\n"
        "scan $p: Port\n"
        "    every row, 5 nodes, about 5 rows\n"
        "anti-join\n"
        "  expand $p <-[CallsAt]- $ship: Ship\n"
        "      csr (to build), 5 edges, about 5 rows\n"
        "order $p.name asc\n"
        "project port := $p.name"
    )
    assert planned.to_json() == plain(ExplanationBody.of(planned))
    assert "&lt;-[CallsAt]-" in planned._repr_html_()
    past = graph.explain(text, "forgotten", snapshot=commit)
    assert past.text.startswith(f"plan of forgotten on snapshot {commit}, commit {commit}\n")


def test_an_empty_graph(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g.omni", Path(QUERIES).with_suffix(".pg"))
    planned = graph.explain(ALL)
    assert named(planned, "scan")["access"] == "nothing"
    assert named(planned, "expand")["expansion"] == "nothing"
    ran = graph.explain(ALL, params={"n": 1}, analyze=True)
    assert shape(ran) == shape(planned)
    assert named(ran, "scan")["rows"] == 0


def test_refusals(graph: og.Graph) -> None:
    with pytest.raises(ParamError, match="parameter 'n' not provided"):
        graph.explain(ALL, analyze=True)
    with pytest.raises(ParamError, match="param 'n'"):
        graph.explain(ALL, params={"n": "many"})
    with pytest.raises(TypeCheckError, match="is a mutation"):
        graph.explain('query q() { delete Port where code = "ARD" }')
    with pytest.raises(ResourceLimit):
        graph.explain(ALL, params={"n": 1}, analyze=True, timeout=1e-9)


def test_what_is_open_until_the_run_is_said_with_its_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnigraph.read.plan.planner.MANY_EDGES", 3)
    monkeypatch.setattr("omnigraph.read.plan.physical.FEW_NODES", 2)
    graph = og.init(tmp_path / "g.omni", "node N { name: String @key } edge E: N -> N")
    names = [f"n{n}" for n in range(5)]
    rows: list[dict[str, Any]] = [{"type": "N", "data": {"name": name}} for name in names]
    rows += [{"edge": "E", "from": "n0", "to": name} for name in names]
    graph.load(rows, mode="append")
    graph.ensure_indices()
    walk = 'query q() { match { $a: N { name: "n0" } $a e $b $b e $c } return { $c.name } }'
    planned = graph.explain(walk)
    first, second = (found for found in planned.to_json()["operators"] if "expansion" in found)
    rule = "indexed from up to 2 nodes, csr from more"
    assert (first["expansion"], first["expansion_rule"]) == ("indexed", rule)
    assert (second["expansion"], second["expansion_rule"]) == ("indexed", rule)
    assert f"open until then: {rule}" in planned.text
    ran = graph.explain(walk, analyze=True)
    hops = [found.notes["hops"] for found in ran.operators if "hops" in found.notes]
    assert hops == [
        [{"sources": 1, "expansion": "indexed"}],
        [{"sources": 5, "expansion": "csr"}],
    ]
    assert ran.result is not None
    assert len(ran.result) == 5
    assert "expansion_rule" not in named(graph.explain(walk), "expand"), "the topology is there now"


def test_the_plan_is_made_once_and_run_as_it_was_made(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[PhysicalPlan] = []

    def spy(*args: Any) -> PhysicalPlan:
        made.append(planner.plan_read(*args))
        return made[-1]

    monkeypatch.setattr(queries, "plan_read", spy)
    monkeypatch.setattr(explain, "plan_read", spy)
    graph.explain(ALL)
    graph.query(ALL, params={"n": 1})
    graph.explain(ALL, params={"n": 1}, analyze=True)
    first, second, third = made
    assert first == second
    assert third.tail == first.tail
    assert hash(first) == hash(second)


def test_nothing_of_ranking_is_made_where_nothing_is_ranked(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("nothing is ranked")

    monkeypatch.setattr("omnigraph.read.search.ranking.ranked_read", refuse)
    assert len(graph.query(ALL, params={"n": 1})) > 0
