"""Whatever a team does, and wherever it dies: no graph goes unless somebody has agreed to that."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.cluster.live_graphs import LiveGraph, look_at
from omnigraph.cluster.observing import import_, refresh
from omnigraph.cluster.planning import plan
from tests import profile
from tests.cluster.deployments import SCHEMA, WIDER, Deployment, killed_at

IDS = ("a", "b")
POINTS = (
    "before_put",
    "after_put",
    "cluster_graph_created",
    "cluster_graph_hidden",
    "cluster_state_ready",
    "cluster_state_written",
    "cluster_recovery_settled",
)

declare = st.tuples(
    st.just("declare"), st.sets(st.sampled_from(IDS)).map(tuple), st.sampled_from([SCHEMA, WIDER])
)
kill = st.tuples(st.just("kill"), st.sampled_from(POINTS), st.integers(1, 9))
approve = st.tuples(st.just("approve"), st.sampled_from(IDS), st.none())
others = st.tuples(st.sampled_from(["apply", "apply", "refresh"]), st.none(), st.none())
HISTORIES = st.lists(st.one_of(declare, kill, approve, others), min_size=4, max_size=9)


@dataclass
class Team:
    """A team at work, and what may have become of its graphs."""

    deployment: Deployment
    declared: tuple[str, ...] = ()
    live: set[str] = field(default_factory=set)
    agreed: set[str] = field(default_factory=set)
    """The graphs that somebody has agreed to lose since they were made."""

    def declare(self, ids: tuple[str, ...], schema: str) -> None:
        self.declared = tuple(sorted(ids))
        self.deployment.write("ferries.pg", schema)
        graphs = ", ".join(f"{id_}: {{ schema: ferries.pg }}" for id_ in self.declared)
        self.deployment.declare(f"version: 1\ngraphs: {{ {graphs} }}\n")

    def approve(self, id_: str) -> None:
        if f"graph.{id_}" in {one.resource for one in plan(self.deployment.directory).approvals}:
            self.deployment.approve(f"graph.{id_}")
            self.agreed.add(id_)

    def look(self) -> None:
        """A graph that was there is there, with its row, unless somebody has agreed to lose it."""
        root = self.deployment.root
        for id_ in IDS:
            is_live = isinstance(look_at(root, id_), LiveGraph)
            if id_ in self.live and not is_live:
                assert id_ in self.agreed, f"graph {id_} is gone, and nobody has agreed to that"
                self.live.discard(id_)
            elif is_live and id_ not in self.live:
                row = {"type": "Port", "data": {"code": id_}}
                self.deployment.graph(id_).load([row], mode="merge")
                self.live.add(id_)
                self.agreed.discard(id_)
            elif is_live:
                found = self.deployment.graph(id_).query(
                    "query q() { match { $p: Port } return { $p.code as code } }"
                )
                assert found.rows == [{"code": id_}]

    def converge(self) -> None:
        """Do what is told until everything is as declared."""
        wanted = self.declared
        for _ in range(4):
            for id_ in IDS:
                self.approve(id_)
            found = self.deployment.apply()
            self.look()
            if found.converged and self.declared == wanted:
                assert {*self.live} == {*wanted}
                return
            half = {one.path for one in found.diagnostics if one.code == "graph_delete_incomplete"}
            left = tuple(id_ for id_ in wanted if f"graph.{id_}" not in half)
            self.declare(left, (self.deployment.directory / "ferries.pg").read_text())
        raise AssertionError(found.diagnostics)


@pytest.mark.slow
@profile.dear
@given(history=HISTORIES)
def test_no_graph_goes_unless_that_was_agreed(history: list[tuple[str, object, object]]) -> None:
    directory = Path(tempfile.mkdtemp())
    try:
        team = Team(Deployment.make(directory / "team"))
        team.declare(("a",), SCHEMA)
        assert import_(team.deployment.directory).ok
        for act, first, second in history:
            if act == "declare":
                assert isinstance(first, tuple)
                team.declare(first, str(second))
            elif act == "kill":
                assert isinstance(second, int)
                with killed_at(str(first), second, surely=False):
                    team.deployment.apply()
                team.deployment.unlock()
            elif act == "approve":
                team.approve(str(first))
            elif act == "apply":
                team.deployment.apply()
            else:
                refresh(team.deployment.directory)
            team.look()
        team.converge()
    finally:
        shutil.rmtree(directory)
